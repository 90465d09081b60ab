"""Blocks written out as rows, for arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from linkwise.spatial.flexible import FlexibleForce, NodeFactor, RootFactor
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Transform

Rows = Sequence[Sequence[Scalar]]


@singledispatch
def rows_of(block: Any) -> Rows:
    """The rows of a block; one of a further type says them itself, in ``rows()``."""
    rows: Rows = block.rows()
    return rows


@rows_of.register
def _(phi: Transform) -> Rows:
    """[[R, l~R], [0, R]]; with rows for the modes of the parent and columns for those of the link."""
    if any(isinstance(factor, (NodeFactor, RootFactor)) for factor in phi.factors):
        modes = sum(factor.modes for factor in phi.factors if isinstance(factor, RootFactor))
        units = [FlexibleForce.of([1.0 if i == j else 0.0 for j in range(modes + 6)]) for i in range(modes + 6)]
        return [list(row) for row in zip(*(list(phi @ unit) for unit in units), strict=True)]
    R, l = phi.matrix()
    lR = Mat3.cross(l).times(R)
    return [[*R.m[i], *lR.m[i]] for i in range(3)] + [[0.0, 0.0, 0.0, *R.m[i]] for i in range(3)]


@rows_of.register
def _(M: RigidInertia) -> Rows:
    """[[J, h~], [-h~, m]]."""
    h = Mat3.cross(M.h).m
    upper = [[*M.J.m[i], *h[i]] for i in range(3)]
    return upper + [[*(-x for x in h[i]), *(M.m if i == j else 0.0 for j in range(3))] for i in range(3)]
