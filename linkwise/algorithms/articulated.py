"""Articulated-body inertias and what is solved with them.

P = M + E_ψ P E_ψ*, D = HPH*, G = PH*D⁻¹ (000 eq. 45; the Riccati equation of filtering), and with them
𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK] (000 eq. 57): one inward and one outward sweep per right-hand side.

DIFFERS FROM PAPER: a joint with several freedoms is eliminated one axis after another instead of through the inverse
of a block D. The axes' (d, g) together are the L D L* factors of that block, so the result is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from linkwise.algorithms.sweeps import Field, generalized, inward, outward
from linkwise.model.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia, coordinate_axis
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.vectors import Force, Motion

V = TypeVar("V", Force, Motion)


@dataclass(frozen=True, slots=True)
class Axis:
    """One eliminated joint axis: s, d⁻¹ = (s*Ps + armature)⁻¹ and g = P s d⁻¹."""

    s: Motion
    d_inverse: Scalar
    g: Force


def articulate(tree: Tree, q: Sequence[Scalar]) -> Field[list[Axis]]:
    """The eliminated axes of every link: all that forward dynamics needs to know of the inertias."""

    def step(link: Link, outboard: ArticulatedInertia) -> tuple[ArticulatedInertia, list[Axis]]:
        P = ArticulatedInertia.rigid(link.inertia) + outboard
        axes = []
        for s, armature, bare in zip(link.S(q), link.armature, _bare_axes(link, q), strict=True):
            u = P @ s
            d_inverse = 1.0 / link.felt(s.dot(u) + armature)
            g = u * d_inverse if bare is None else _with(u * d_inverse, bare, 1.0)  # s*g = 1
            axes.append(Axis(s, d_inverse, g))
            P = P.without(u, g, bare)
        return link.phi(q).congruence(P), axes

    return inward(tree, step, ArticulatedInertia.zero())


def solve(
    tree: Tree,
    q: Sequence[Scalar],
    axes: Field[list[Axis]],
    tau: Sequence[Scalar],
    b: Field[Force] | None,
    tip: Force | None = None,
) -> list[Scalar]:
    """v̇ = [I - HψK]* D⁻¹ ([I - HψK] τ - Hψ b) for forces ``b`` on the links (000 eq. 60 with a = 0).

    ``tip``: a force that the leaves must bring up beside.
    """

    def innovate(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        z = outboard if b is None else outboard + b[link]
        nu = []
        for axis, bare, force in zip(axes[link], _bare_axes(link, q), link.rates(tau), strict=True):
            eps = force - axis.s.dot(z)
            nu.append(eps * axis.d_inverse)
            z = z + axis.g * eps  # z⁺ = z + Gε
            if bare is not None:
                z = _with(z, bare, force)  # Hz⁺ = T
        return link.phi(q) @ z, nu

    nu = inward(tree, innovate, Force.zero() if tip is None else tip)

    def accelerate(link: Link, parent: Motion) -> tuple[Motion, list[Scalar]]:
        alpha = link.phi(q).T @ parent
        bares = _bare_axes(link, q)
        vdot: list[Scalar] = [0.0] * len(bares)
        for i in reversed(range(len(vdot))):
            axis, bare = axes[link][i], bares[i]
            if bare is None:
                vdot[i] = nu[link][i] - alpha.dot(axis.g)
                alpha = alpha + axis.s * vdot[i]
            else:  # g is 1 along the axis: Hα = ν - (the rest of g)*α⁺, v̇ = Hα - Hα⁺
                along = nu[link][i] - _with(alpha, bare, 0.0).dot(axis.g)
                vdot[i] = along - alpha[bare]
                alpha = _with(alpha, bare, along)
        return alpha, vdot

    return generalized(tree, outward(tree, accelerate, Motion.zero(), keeps=True))


def _bare_axes(link: Link, q: Sequence[Scalar]) -> list[int | None]:
    """For each axis its index 0-5, if it is a coordinate direction without a rotor: then s*g = 1, P⁺s = 0 exactly."""
    return [coordinate_axis(s) if is_zero(rotor) else None for s, rotor in zip(link.S(q), link.armature, strict=True)]


def _with(vector: V, i: int, value: Scalar) -> V:
    """The vector with its component ``i`` replaced."""
    return type(vector).of([value if j == i else x for j, x in enumerate(vector)])
