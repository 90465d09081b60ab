"""The velocity-dependent terms that the methods share, in the two meanings of "acceleration".

Jain 1991 takes the rate of [ω; v] in the inertial frame: α = φ*α(parent) + H*β' + a, f = Mα + b (eq. 13-16).
Featherstone 2000 takes Featherstone's spatial acceleration: a = a(parent) + hq̈ + ḣq̇, f = Ia + v ×* Iv (eq. 4, 5).
A method uses the one or the other, never both. In either a base at rest in a field of gravity accelerates upwards.
"""

from __future__ import annotations

from linkwise.algorithms.kinematics import at_rest, combination, next_motion
from linkwise.algorithms.sweeps import Field, each, outward
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True, slots=True)
class Terms:
    """ω of a link, its Coriolis and centrifugal acceleration a and its gyroscopic force b."""

    omega: Vec
    a: Motion
    b: Force


def velocity_terms(tree: Tree, q: Flat, v: Flat) -> Field[Terms]:
    """a and b of Jain 1991 eq. 14 and 16 for every link, in its axes."""

    def step(link: Link, parent: Terms) -> Terms:
        alone = next_motion(link, RigidMotion(parent.omega, Vec.zero(), Vec.zero()), q, v, None)
        a = Motion(alone.omega_dot, alone.a)
        return Terms(alone.omega, a, link.inertia.wrench(RigidMotion(alone.omega, Vec.zero(), Vec.zero())))

    return outward(tree, step, Terms(Vec.zero(), Motion.zero(), Force.zero()))


@dataclass(frozen=True, slots=True)
class SpatialTerms:
    """Velocity v, velocity-product acceleration c = ḣq̇ and bias force p = v ×* Iv (Featherstone 2000 eq. 13)."""

    v: Motion
    c: Motion
    p: Force


def spatial_terms(tree: Tree, q: Flat, v: Flat) -> Field[SpatialTerms]:
    """v, c and p of Featherstone 2000 §3 for every link, in its axes at its origin."""

    def step(link: Link, parent: SpatialTerms) -> SpatialTerms:
        joint = combination(link.S(q), link.rates(v))
        V = link.phi(q).T @ parent.v + joint
        return SpatialTerms(V, V.cross(joint) + link.S_rate(q, v), V.cross_force(link.inertia @ V))

    return outward(tree, step, SpatialTerms(Motion.zero(), Motion.zero(), Force.zero()))


def base_acceleration(tree: Tree) -> Motion:
    """Of a base at rest in the field of gravity."""
    return Motion(Vec.zero(), -tree.gravity)


def gravity_in_links(tree: Tree, q: Flat) -> Field[Vec]:
    """The vector of gravity in the axes of every link."""
    return outward(tree, lambda link, parent: link.phi(q).rotate_back(parent), tree.gravity)


def remainder_forces(tree: Tree, q: Flat, v: Flat) -> Field[Force]:
    """Mα + b of every link when no joint accelerates, gravity included."""
    motion = outward(tree, lambda link, parent: next_motion(link, parent, q, v, None), at_rest(tree.gravity))
    return each(tree, lambda link: link.inertia.wrench(motion[link]))
