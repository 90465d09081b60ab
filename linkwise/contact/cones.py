"""Impulses that are confined to cones, and the sweeps that find them.

A mechanism feels impulses λ along some rows: normals and tangents of contacts, joint axes at their limits or with dry
friction, equations of closures. Rows that are confined together are a :class:`Cone`: a half line (normals, limits), a
disk whose radius follows a normal (Coulomb), a disk of fixed size (dry friction), a whole line (closures). With w = W λ
+ w₀ the velocities along the rows, a solution has

    λ = proj(λ - w/ℓ)    for every cone,

ℓ > 0 any number: Signorini's condition, Coulomb's law with maximal dissipation, and closures, all in one list.

Velocities are carried in fewer numbers than rows where several rows act on one link: V, those of the *pulls*, w = C V,
with V = V₀ + Λ C*λ and Λ = J𝓜⁻¹J* from one inward sweep (:func:`linkwise.algorithms.articulated.pull`); W is never
formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.spatial.scalar import Scalar, maximum, repeated, sqrt, where

_TINY = 1e-30  # beside squares of velocities and impulses


@dataclass(frozen=True)
class Row:
    """C of one row: numbers of pulls, and what each counts for."""

    pulls: tuple[int, ...]
    factors: tuple[Scalar, ...]

    def of(self, V: Sequence[Scalar]) -> Scalar:
        """C V."""
        total: Scalar = 0.0
        for k, c in zip(self.pulls, self.factors, strict=True):
            total = total + c * V[k]
        return total


@dataclass(frozen=True)
class Cone:
    """Rows that are confined together.

    Args:
        rows: one, or two for a disk.
        bias: w + bias is what the cone speaks of, m/s, one number a row.
        kind: ``"half_line"`` (λ ≥ 0), ``"disk"`` (|λ| ≤ radius), ``"line"`` (free).
        radius: of a disk, N s; or a coefficient of friction, if it ``follows`` a half line.
        follows: the place of that half line in the list of cones, which comes before.
        compliance: R, the velocity by which a row gives way to an impulse, m/s for each N s.
    """

    rows: tuple[Row, ...]
    bias: tuple[Scalar, ...]
    kind: str
    radius: Scalar = 0.0
    follows: int | None = None
    compliance: Scalar = 0.0

    def nearest(self, impulses: Sequence[Scalar], normal: Scalar) -> list[Scalar]:
        """The point of the cone nearest to some impulses, for the impulse of the half line that it follows."""
        if self.kind == "half_line":
            return [maximum(impulses[0], 0.0)]
        if self.kind == "line":
            return list(impulses)
        reach = self.radius * normal if self.follows is not None else self.radius
        if len(impulses) == 1:
            (x,) = impulses
            return [where(x > reach, reach, where(x < -reach, -reach, x))]
        square: Scalar = 0.0
        for x in impulses:
            square = square + x * x
        shrunk = reach / sqrt(maximum(square, _TINY))
        return [where(square > reach * reach, x * shrunk, x) for x in impulses]


class Response:
    """Cones with what their impulses do: U = ΛC* for each row, and the slope ℓ of each cone."""

    def __init__(self, cones: Sequence[Cone], Lambda: Sequence[Sequence[Scalar]]) -> None:
        self.cones = list(cones)
        self.starts: list[int] = []
        self.count = 0
        for cone in self.cones:
            self.starts.append(self.count)
            self.count += len(cone.rows)
        self.size = len(Lambda)
        self.U = [[row.of(line) for line in Lambda] for cone in self.cones for row in cone.rows]
        self.slopes = [self._slope(k) for k in range(len(self.cones))]

    def _slope(self, k: int) -> Scalar:
        """The largest eigenvalue of the cone's own block of W."""
        cone, start = self.cones[k], self.starts[k]
        W = [[row.of(self.U[start + j]) for j in range(len(cone.rows))] for row in cone.rows]
        if len(W) == 1:
            return maximum(W[0][0] + cone.compliance, _TINY)
        (a, b), (_, c) = W
        half = 0.5 * (a - c)
        return maximum(0.5 * (a + c) + sqrt(half * half + b * b) + cone.compliance, _TINY)

    def velocities(self, k: int, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """w + bias + Rλ of one cone."""
        cone, start = self.cones[k], self.starts[k]
        return [
            row.of(V) + bias + cone.compliance * impulses[start + j]
            for j, (row, bias) in enumerate(zip(cone.rows, cone.bias, strict=True))
        ]

    def pushed(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """V + Uλ."""
        moved = list(V)
        for column, x in zip(self.U, impulses, strict=True):
            moved = [a + u * x for a, u in zip(moved, column, strict=True)]
        return moved

    def wanted(self, k: int, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """The proj(λ - w/ℓ) of one cone."""
        cone, start, inverse = self.cones[k], self.starts[k], 1.0 / self.slopes[k]
        own = impulses[start : start + len(cone.rows)]
        w = self.velocities(k, V, impulses)
        normal = impulses[self.starts[cone.follows]] if cone.follows is not None else 0.0
        return cone.nearest([x - y * inverse for x, y in zip(own, w, strict=True)], normal)

    def sweep(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        """One pass over the cones, each with the velocities that the ones before it left."""
        V, impulses = list(V), list(impulses)
        for k, start in enumerate(self.starts):
            for j, x in enumerate(self.wanted(k, V, impulses)):
                change = x - impulses[start + j]
                impulses[start + j] = x
                V = [a + u * change for a, u in zip(V, self.U[start + j], strict=True)]
        return V, impulses

    def swept(self, V: Sequence[Scalar], impulses: Sequence[Scalar], count: int) -> tuple[list[Scalar], list[Scalar]]:
        """Several passes."""
        n = len(V)

        def once(state: list[Scalar]) -> list[Scalar]:
            after = self.sweep(state[:n], state[n:])
            return [*after[0], *after[1]]

        state = repeated(count, once, [*V, *impulses])
        return state[:n], state[n:]

    def missing(self, V: Sequence[Scalar], impulses: Sequence[Scalar]) -> list[Scalar]:
        """The λ - proj(λ - w/ℓ) of every row, N s: zero where all laws hold."""
        wanted = [x for k in range(len(self.cones)) for x in self.wanted(k, V, impulses)]
        return [a - b for a, b in zip(impulses, wanted, strict=True)]
