"""Operators of the linearised models (Jain 1993): M̂ = ½(Ṁ - Q[MV]) with its composite R̂ and articulated P̂, and Ḣ.

All in the frames of the links, seen from an inertial frame at rest, in which V has its linear part: there
φ(p,k) X φ*(p,k) carries M̂ as it carries M. M̂ = [[A, 0], [-c~, 0]]: three columns, the others are zero.

P̂ = M̂ + E_ψP̂E_φ*, R̂ = M̂ + E_φR̂E_φ*, Ĝ = P̂*H*D⁻¹ (Jain 1993 eq. 4.12, its star mended), Ḣ* = V×H*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.algorithms.articulated import Axis, articulate
from linkwise.algorithms.fixed_point import HeldLink
from linkwise.algorithms.freedoms import Matrix, zeros
from linkwise.algorithms.kinematics import velocities
from linkwise.algorithms.sweeps import inward
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar, Value
from linkwise.spatial.vectors import Force, Vec

Flat = Sequence[Scalar]


class _Columns(Value):
    """A 6 × 6 matrix whose last three columns are zero."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Force, y: Force, z: Force) -> None:
        self.x, self.y, self.z = x, y, z

    def __iter__(self) -> Any:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: _Columns) -> _Columns:
        return _Columns(*(a + b for a, b in zip(self, other, strict=True)))

    def without(self, axes: Sequence[Axis]) -> _Columns:
        """τ̄ times this."""
        columns = list(self)
        for axis in axes:
            columns = [column - axis.g * axis.s.dot(column) for column in columns]
        return _Columns(*columns)

    def carried(self, link: Link, q: Flat) -> _Columns:
        """φ X φ*: to the parent."""
        phi = link.phi(q)
        R, _ = phi.matrix()
        turned = [self.x * R.m[j][0] + self.y * R.m[j][1] + self.z * R.m[j][2] for j in range(3)]
        return _Columns(*(phi @ column for column in turned))

    def rows(self) -> Matrix:
        """6 × 6."""
        return [[self.x[i], self.y[i], self.z[i], 0.0, 0.0, 0.0] for i in range(6)]


def rate_blocks(tree: Tree, q: Flat, v: Flat, word: str) -> list[Matrix]:
    """The diagonal blocks of M̂, R̂, P̂ (6 × 6) or Ḣ (nv_k × 6), base to tip."""
    V = velocities(tree, q, v)
    if word == "H_dot":
        return [[list(V[link].cross(s)) for s in link.S(q)] for link in tree]

    def own(link: Link) -> _Columns:
        held = HeldLink.moving(link.inertia, V[link])
        return _Columns(*(Force(held.A.column(i), Vec.unit(i).cross(held.c)) for i in range(3)))

    axes = articulate(tree, q) if word == "P_hat" else None

    def gather(link: Link, outboard: _Columns | None) -> tuple[_Columns | None, Matrix]:
        whole = own(link)
        if outboard is not None and word != "M_hat":
            whole = whole + outboard
        handed = whole if axes is None else whole.without(axes[link])
        return (None if link.parent < 0 else handed.carried(link, q)), whole.rows()

    return inward(tree, gather, None).values


def block_diagonal(blocks: Sequence[Matrix]) -> Matrix:
    """One matrix from its diagonal blocks."""
    columns = sum(len(block[0]) for block in blocks if block)
    rows: Matrix = []
    start = 0
    for block in blocks:
        for entries in block:
            row = zeros(1, columns)[0]
            row[start : start + len(entries)] = entries
            rows.append(row)
        start += len(block[0]) if block else 6
    return rows
