"""Forward dynamics of one long chain, cut into segments that are worked on side by side.

The articulated-body recursion maps what happens at the outer end of a segment to what happens at its inner end, and
such maps compose: a filter over a long record is the product of the filters over its pieces. Cut after some link, a
segment answers to the acceleration α of its base and to the force F that its tip must bring up for what lies beyond:

    F_base = P α + z + Ψ F,        α_tip = Ψ*α + β - Λ F,

with P, z the articulated inertia and bias force of the segment alone, Ψ the product of its ψ(k+1, k) (Jain 1991 eq.
55), and Λ = Σ (HΨ)*D⁻¹HΨ its compliance at the tip, as Ω of Rodriguez 1989 §3. Three steps, each of independent
segments: how each turns; how each answers; and, with α and F known at every cut, the ordinary forward dynamics of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkwise.algorithms.inverse_dynamics import needed_forces
from linkwise.algorithms.joined_segments import UPPER
from linkwise.algorithms.kinematics import combination, next_motion
from linkwise.algorithms.solver import Articulated
from linkwise.algorithms.sweeps import inward, outward
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Force, Vec

TURNED, MOVED, ANSWER = 12, 9, 21 + 6 + 36 + 21 + 6
"""Numbers in a :class:`Turned`, a :class:`RigidMotion` and an :class:`Answer`."""


@dataclass(frozen=True, slots=True)
class Turned:
    """The turn from a segment's base to a link, and the link's rate of turn relative to the base."""

    R: Mat3
    omega: Vec


def turned(tree: Tree, q: Flat, v: Flat) -> Any:
    """:class:`Turned` of the tip: ω_tip = R*ω_base + omega."""

    def turn(link: Link, parent: Turned) -> Turned:
        phi = link.phi(q)
        R = Mat3([list(phi.rotate_back(Vec.of(row))) for row in parent.R.m])
        return Turned(R, phi.rotate_back(parent.omega) + combination(link.S(q), link.rates(v)).ang)

    return outward(tree, turn, Turned(Mat3.identity(), Vec.zero()))[tree.links[-1]]


@dataclass(frozen=True, slots=True)
class Answer:
    """P, z, Ψ (by columns), Λ (its upper half by rows) and β."""

    P: ArticulatedInertia
    z: Force
    Psi: tuple[Force, ...]
    Lambda: tuple[Scalar, ...]
    beta: tuple[Scalar, ...]

    @classmethod
    def of_nothing(cls) -> Answer:
        """Before the first link: what the tip must bring up reaches it as it is."""
        unit = tuple(Force.of([1.0 if i == j else 0.0 for j in range(6)]) for i in range(6))
        return cls(ArticulatedInertia.zero(), Force.zero(), unit, (0.0,) * 21, (0.0,) * 6)


def answered(tree: Tree, q: Flat, v: Flat, tau: Flat, omega: Vec) -> tuple[Any, Any]:
    """:class:`Answer` of a segment whose base turns with ``omega``, and how its tip moves when its base does not."""
    held = RigidMotion(omega, Vec.zero(), Vec.zero())
    b = needed_forces(tree, q, v, None, base=held)
    tip = outward(tree, lambda link, parent: next_motion(link, parent, q, v, None), held)[tree.links[-1]]

    def gather(link: Link, outboard: Answer) -> tuple[Answer, None]:
        P, z, Psi = link.inertia.articulated() + outboard.P, outboard.z + b[link], outboard.Psi
        Lambda, beta = outboard.Lambda, outboard.beta
        for s, force, armature in zip(link.S(q), link.rates(tau), link.armature, strict=True):
            u = P @ s
            d_inverse = 1.0 / link.felt(s.dot(u) + armature)
            g = u * d_inverse
            eps = force - s.dot(z)
            r = [s.dot(column) for column in Psi]
            Lambda = tuple(x + d_inverse * r[i] * r[j] for x, (i, j) in zip(Lambda, UPPER, strict=True))
            beta = tuple(x + d_inverse * eps * y for x, y in zip(beta, r, strict=True))
            P, z = P.without(u, g, None), z + g * eps
            Psi = tuple(column - g * y for column, y in zip(Psi, r, strict=True))
        phi = link.phi(q)
        return Answer(phi.congruence(P), phi @ z, tuple(phi @ column for column in Psi), Lambda, beta), None

    return inward(tree, gather, Answer.of_nothing()).root, tip


def accelerated(tree: Tree, q: Flat, v: Flat, tau: Flat, base: RigidMotion, tip: Force) -> list[Scalar]:
    """v̇ of a segment whose base moves as ``base`` and whose tip must bring up the force ``tip``."""
    return Articulated(tree, q, tip).accelerations(tau, needed_forces(tree, q, v, None, base=base))
