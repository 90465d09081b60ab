"""Articulated-body inertias and what is solved with them.

P = M + E_ψ P E_ψ*, D = HPH*, G = PH*D⁻¹ (Jain 1991 eq. 45; the Riccati equation of filtering), and with them
𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK] (Jain 1991 eq. 57): one inward and one outward sweep per right-hand side.

DIFFERS FROM PAPER: a joint with several freedoms is eliminated one axis after another instead of through the inverse
of a block D. The axes' (d, g) together are the L D L* factors of that block, so the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any, TypeVar

from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import Field, generalized, inward, outward
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Sweeps, Tree
from linkwise.spatial.inertia import ArticulatedInertia, coordinate_axis
from linkwise.spatial.scalar import Flat, Matrix, Scalar, is_zero, plus
from linkwise.spatial.vectors import NO_FORCE, Force, Motion

V = TypeVar("V", Force, Motion)


@dataclass(frozen=True, slots=True)
class Axis:
    """One eliminated joint axis: s, d⁻¹ = (s*Ps + armature)⁻¹ and g = P s d⁻¹."""

    s: Motion
    d_inverse: Scalar
    g: Force


def articulate(tree: Sweeps, q: Flat, held: Field[ArticulatedInertia] | None = None) -> Field[list[Axis]]:
    """The eliminated axes of every link: all that forward dynamics needs to know of the inertias.

    ``held``: what each link carries beside its own inertia.
    """

    def step(link: Link, outboard: ArticulatedInertia) -> tuple[ArticulatedInertia, list[Axis]]:
        P = link.M(q).articulated() + outboard
        if held is not None:
            P = P + held[link]
        axes = []
        for s, armature, bare in zip(link.S(q), link.armature, _bare_axes(link, q), strict=True):
            u = P @ s
            d_inverse = 1.0 / link.checked_inertia(s.dot(u) + armature)
            g = u * d_inverse if bare is None else _with(u * d_inverse, bare, 1.0)  # s*g = 1
            axes.append(Axis(s, d_inverse, g))
            P = P.without(u, g, bare)
        return link.phi(q).congruence(P), axes

    return inward(tree, step, ArticulatedInertia.zero())


def solve(
    tree: Tree,
    q: Flat,
    axes: Field[list[Axis]],
    tau: Flat,
    b: Field[Force] | None,
    tip: Force | None = None,
) -> list[Scalar]:
    """v̇ = [I - HψK]* D⁻¹ ([I - HψK] τ - Hψ b) for forces ``b`` on the links (Jain 1991 eq. 60 with a = 0).

    ``tip``: an extra force at the outer end of each leaf.
    """
    nu = innovate(tree, q, axes, lambda link: link.rates(tau), b, tip)
    return generalized(tree, accelerate(tree, q, axes, nu))


def innovate(
    tree: Sweeps,
    q: Flat,
    axes: Field[list[Axis]],
    efforts: Callable[[Link], Flat],
    b: Field[Force] | None,
    tip: Force | None = None,
) -> Field[list[Scalar]]:
    """ν = D⁻¹([I - HψK] τ - Hψ b): the inward half. ``efforts`` gives τ on the axes of a link's joint."""

    def step(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        z = outboard if b is None else outboard + b[link]
        nu = []
        for axis, bare, force in zip(axes[link], _bare_axes(link, q), efforts(link), strict=True):
            eps = force - axis.s.dot(z)
            nu.append(eps * axis.d_inverse)
            z = z + axis.g * eps  # z⁺ = z + Gε
            if bare is not None:
                z = _with(z, bare, force)  # Hz⁺ = T
        return link.phi(q) @ z, nu

    return inward(tree, step, Force.zero() if tip is None else tip)


def accelerate(tree: Sweeps, q: Flat, axes: Field[list[Axis]], nu: Field[list[Scalar]]) -> Field[list[Scalar]]:
    """v̇ = [I - HψK]*ν of every axis: the outward half."""

    def step(link: Link, parent: Motion) -> tuple[Motion, list[Scalar]]:
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

    return outward(tree, step, Motion.zero(), keeps=True)


@dataclass(frozen=True, slots=True)
class _Pulling:
    """Sum of several pulls outboard of a joint: a force for each, and half of the matrix Λ so far, by rows."""

    z: tuple[Force, ...]
    half: tuple[Scalar, ...]

    def __add__(self, other: _Pulling) -> _Pulling:
        return _Pulling(tuple(map(add, self.z, other.z)), tuple(map(add, self.half, other.half)))


def pull(tree: Sweeps, q: Flat, axes: Field[list[Axis]], pulls: Pulls) -> tuple[Field[Any], Scalar]:
    """ε = [I - HψK]c + Hψf of several pulls at once, for each axis one number a pull; and Λ = ε*D⁻¹ε, count × count.

    With J_c*λ = c λ + Hφf λ the joint forces that the pulls amount to, Λ is J_c𝓜⁻¹J_c* (Rodriguez 1989 §3: Λ = B*ΩB
    with Ω = ψ*H*D⁻¹Hψ). One inward sweep, in which the sum over the axes is gathered on the way (Popov and
    Vereshchagin).
    """
    rows = [r * (r + 1) // 2 for r in range(pulls.count + 1)]  # where each row of the lower half begins

    def step(link: Link, outboard: _Pulling) -> tuple[_Pulling, Matrix]:
        z = plus(outboard.z, pulls.on_link(link))
        half = list(outboard.half)
        kept = []
        bares = _bare_axes(link, q)
        for axis, bare, efforts in zip(axes[link], bares, pulls.on_axes(link), strict=True):
            eps = [c if f is NO_FORCE else c + axis.s.dot(f) for c, f in zip(efforts, z, strict=True)]
            acting = [r for r, e in enumerate(eps) if not is_zero(e)]  # pulls that do anything here
            scaled = {s: eps[s] * axis.d_inverse for s in acting}
            for k, r in enumerate(acting):
                for s in acting[: k + 1]:
                    half[rows[r] + s] = half[rows[r] + s] + eps[r] * scaled[s]
            for r in acting:
                z[r] = z[r] - axis.g * eps[r]
            if bare is not None:
                z = [f if f is NO_FORCE else _with(f, bare, -c) for f, c in zip(z, efforts, strict=True)]
            kept.append(eps)
        phi = link.phi(q)
        return _Pulling(tuple(phi @ f for f in z), tuple(half)), kept

    nothing = _Pulling((NO_FORCE,) * pulls.count, (0.0,) * rows[-1])
    field = inward(tree, step, nothing)
    half, n = field.root.half, range(pulls.count)
    return field, [[half[rows[max(r, s)] + min(r, s)] for s in n] for r in n]


def _bare_axes(link: Link, q: Flat) -> list[int | None]:
    """For each axis its index 0-5, if it is a coordinate direction without a rotor: then s*g = 1, P⁺s = 0 exactly."""
    return [coordinate_axis(s) if is_zero(rotor) else None for s, rotor in zip(link.S(q), link.armature, strict=True)]


def _with(vector: V, i: int, value: Scalar) -> V:
    """The vector with its component ``i`` replaced."""
    return type(vector).of([value if j == i else x for j, x in enumerate(vector)])
