"""Energies, momenta, the mass centre and what belongs to it.

Sums over the moving bodies; what is welded to the world is left out. O(n).
"""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed, placed, velocities
from linkwise.algorithms.mass_matrix import composites
from linkwise.algorithms.sweeps import add, freedom, inward, own, total
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, quotient
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Force, Motion, Vec


def kinetic_energy(tree: Tree, q: Flat, v: Flat) -> Scalar:
    """½ v*𝓜v, in J."""
    V = velocities(tree, q, v)

    def twice(link: Link) -> Scalar:
        energy = V[link].dot(link.M(q) @ V[link])
        for J, rate in zip(link.armature, link.rates(v), strict=True):
            energy = energy + J * rate * rate
        return energy

    return total(tree, twice, 0.0) * 0.5


def potential_energy(tree: Tree, q: Flat) -> Scalar:
    """-Σ m g·p + Σ ½η*Kη, in J: zero with all mass at the world's origin and nothing deformed."""
    of_gravity = gravity_energy(tree, q)
    if not tree.has_modes:
        return of_gravity
    return of_gravity + total(tree, lambda link: link.elastic_energy(q), 0.0)


def gravity_energy(tree: Tree, q: Flat) -> Scalar:
    """-Σ m g·p, in J: zero with all mass at the world's origin."""
    _, h = _first_moment(tree, q)
    return -tree.root.rotate(tree.gravity).dot(h)


def mass(tree: Tree, q: Flat) -> Scalar:
    """Mass of all moving bodies, kg."""
    return _first_moment(tree, q)[0]


def center_of_mass(tree: Tree, q: Flat) -> list[Scalar]:
    """The mass centre of all moving bodies in the world, m; NaN where none has mass."""
    m, h = _first_moment(tree, q)
    return [quotient(x, m) for x in h]


def _composite(tree: Tree, q: Flat) -> RigidInertia:
    """The inertia of all moving bodies, about the world's origin and in world axes."""
    whole: RigidInertia = tree.root.congruence(tree.base_inertia + composites(tree, q).root)
    return whole


def _first_moment(tree: Tree, q: Flat) -> tuple[Scalar, Vec]:
    whole = _composite(tree, q)
    return whole.m, whole.h


def momentum(tree: Tree, q: Flat, v: Flat) -> list[Scalar]:
    """Total momentum [angular about the world's origin; linear], world axes."""
    V = velocities(tree, q, v)

    def gather(link: Link, outboard: Force) -> tuple[Force, None]:
        return link.phi(q) @ (link.M(q) @ V[link] + outboard), None

    return list(tree.root @ inward(tree, gather, Force.zero()).root)


def centroidal_momentum(tree: Tree, q: Flat, v: Flat) -> list[Scalar]:
    """Total momentum [angular about the mass centre; linear], world axes."""
    m, h = _first_moment(tree, q)
    p = Force.of(momentum(tree, q, v))
    return [*(p.ang - (h * quotient(1.0, m)).cross(p.lin)), *p.lin]


def centroidal_momentum_matrix(tree: Tree, q: Flat) -> Matrix:
    """A(q), 6 × nv: centroidal momentum is A v."""
    composite = composites(tree, q)
    frames = placed(tree, q)
    com = Vec.of(center_of_mass(tree, q))
    A = zeros(6, tree.nv)
    for link in tree:
        to_com = _from_com(frames[link], com)
        for i, s in enumerate(link.S(q)):
            f = to_com @ (composite[link] @ s)
            for row, value in enumerate(f):
                add(A, own(row), freedom(link, i), value)
    return A


def centroidal_inertia(tree: Tree, q: Flat) -> Matrix:
    """The inertia of the whole as if it were frozen, 6 × 6, about the mass centre in world axes."""
    whole = _composite(tree, q)
    about = Transform(Shift(-(whole.h * quotient(1.0, whole.m)))).congruence(whole)
    columns = [list(about @ Motion.unit(i)) for i in range(6)]
    return [[columns[j][i] for j in range(6)] for i in range(6)]


def _from_com(frame: Placed, com: Vec) -> Transform:
    """φ from the mass centre (world axes) to a frame."""
    return Transform.rigid(Mat3(frame.R.m), frame.p - com)
