"""Rosenthal 1990: Kane's equations, order n, for joints of one freedom. O(n).

Jain 1991 §5, table 1 (ref. 13), in Kane's words: generalised speeds u, partial velocities (ω_r, v_r) of a link for its
own speed, remainder accelerations (those when every u̇ vanishes), and momenta instead of forces. Inwards the mass m_kk
met by u̇_k and the remainder force X; outwards u̇. All velocity terms sit in the remainder accelerations, which are
carried out once, so the recursion itself has none: the core's own forward dynamics does the same. Trees, joints of
one freedom.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.requirements import no_mimics
from linkwise.classics.terms import remainder_forces
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia, coordinate_axis
from linkwise.spatial.scalar import Flat, Scalar, is_zero
from linkwise.spatial.vectors import Force, Motion


@dataclass(frozen=True)
class _Subsystem:
    """Inertia dyadics and remainder force of a link with all outboard links."""

    M: ArticulatedInertia
    X: Force

    def __add__(self, other: _Subsystem) -> _Subsystem:
        return _Subsystem(self.M + other.M, self.X + other.X)


@dataclass(frozen=True, slots=True)
class _Speed:
    """One generalised speed: its partial velocity, the momentum it gives over m_kk, u̇ if its parent stood still."""

    partial: Motion
    momentum: Force
    u_dot_alone: Scalar


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """u̇ of every generalised speed."""
    _one_freedom(tree)
    no_mimics(tree, "Rosenthal")
    remainder = remainder_forces(tree, q, v)

    def triangularize(link: Link, outboard: _Subsystem) -> tuple[_Subsystem, _Speed]:
        M = link.inertia.articulated() + outboard.M
        X = remainder[link] + outboard.X
        (partial,), (rotor,), (active,) = link.S(q), link.armature, link.rates(tau)
        momentum = M @ partial
        m_kk = partial.dot(momentum) + rotor
        per_mass = momentum * (1.0 / m_kk)
        left = active - partial.dot(X)
        M = M.without(momentum, per_mass, coordinate_axis(partial) if is_zero(rotor) else None)
        handed = _Subsystem(link.phi(q).congruence(M), link.phi(q) @ (X + per_mass * left))
        return handed, _Speed(partial, per_mass, left * (1.0 / m_kk))

    speeds = inward(tree, triangularize, _Subsystem(ArticulatedInertia.zero(), Force.zero()))

    def substitute(link: Link, inboard: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        speed = speeds[link]
        moved = link.phi(q).T @ inboard[0]
        u_dot = speed.u_dot_alone - moved.dot(speed.momentum)
        return moved + speed.partial * u_dot, [u_dot]

    return tree.generalized(Field([x for _, x in outward(tree, substitute, (Motion.zero(), [])).values]))


def _one_freedom(tree: Tree) -> None:
    for link in tree:
        if link.joint.nv != 1:
            raise InputError(
                "the method Rosenthal is for joints of one freedom",
                got=f"{link.joint!r} of {link.name!r} with {link.joint.nv}",
                allowed="joints with nv = 1",
                do='use another method, e.g. "articulated_body"',
            )
