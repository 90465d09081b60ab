"""The blocks of one link over any scalar, each as the two maps it stands for; no block is multiplied out.

The articulated cells rest on the eliminated axes (s_i, d_i, g_i) of :mod:`linkwise.algorithms.articulated`. For a joint
of several freedoms these are the factors of the papers' blocks: with L unit lower triangular, L_ji = s_j·g_i,

    D = L diag(d) L*,   D⁻¹ = L⁻* diag(1/d) L⁻¹,   G = PH*D⁻¹ = [g_1 … g_m] L⁻¹.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import final

from linkwise.algorithms.articulated import Axis
from linkwise.algorithms.rigid_motion import combination
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Motion, SpatialVector

Part = Sequence[Scalar] | SpatialVector
"""One block of a stacked vector: 6 numbers, or nv."""


class Cell(ABC):
    """A block X and its adjoint."""

    @abstractmethod
    def forward(self, x: Part) -> Part:
        """X x."""

    @abstractmethod
    def adjoint(self, y: Part) -> Part:
        """X* y."""


def force(x: Part) -> Force:
    """Six numbers as a force."""
    return x if isinstance(x, Force) else Force.of(list(x))


def motion(x: Part) -> Motion:
    """Six numbers as a motion."""
    return x if isinstance(x, Motion) else Motion.of(list(x))


@final
class JointMap(Cell):
    """H(k): the joint's share of a force; H*(k) = S makes a motion of joint rates."""

    def __init__(self, S: Sequence[Motion]) -> None:
        self.S = S

    def forward(self, x: Part) -> Part:
        f = force(x)
        return [s.dot(f) for s in self.S]

    def adjoint(self, y: Part) -> Part:
        return combination(self.S, list(y))


@final
class Symmetric(Cell):
    """A symmetric block, given as the map it is."""

    def __init__(self, apply: Callable[[Part], Part]) -> None:
        self.apply = apply

    def forward(self, x: Part) -> Part:
        return self.apply(x)

    def adjoint(self, y: Part) -> Part:
        return self.apply(y)


@final
class Gain(Cell):
    """G(k) = PH*D⁻¹ (000 eq. 33)."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = axes

    def forward(self, x: Part) -> Part:
        total = Force.zero()
        for axis, y in zip(self.axes, innovations(self.axes, x), strict=True):
            total = total + axis.g * y
        return total

    def adjoint(self, y: Part) -> Part:
        alpha = motion(y)
        return smoothed(self.axes, [alpha.dot(axis.g) for axis in self.axes])


@final
class Projection(Cell):
    """τ̄(k) = I - G(k)H(k) (000 eq. 39)."""

    def __init__(self, H: JointMap, G: Gain) -> None:
        self.H = H
        self.G = G

    def forward(self, x: Part) -> Part:
        return minus(x, self.G.forward(self.H.forward(x)))

    def adjoint(self, y: Part) -> Part:
        return minus(y, self.H.adjoint(self.G.adjoint(y)))


@final
class Composed(Cell):
    """The product of two blocks."""

    def __init__(self, left: Cell, right: Cell) -> None:
        self.left = left
        self.right = right

    def forward(self, x: Part) -> Part:
        return self.left.forward(self.right.forward(x))

    def adjoint(self, y: Part) -> Part:
        return self.right.adjoint(self.left.adjoint(y))


def joint_inertia_inverse(axes: Sequence[Axis]) -> Symmetric:
    """D⁻¹(k) = L⁻* diag(1/d) L⁻¹."""

    def apply(x: Part) -> Part:
        scaled = [y * axis.d_inverse for axis, y in zip(axes, innovations(axes, x), strict=True)]
        return smoothed(axes, scaled)

    return Symmetric(apply)


def innovations(axes: Sequence[Axis], x: Part) -> list[Scalar]:
    """L⁻¹x: the innovation of each axis, what the axes before it explain taken off."""
    y = list(x)
    for j in range(len(y)):
        for i in range(j):
            y[j] = y[j] - axes[j].s.dot(axes[i].g) * y[i]
    return y


def smoothed(axes: Sequence[Axis], x: Part) -> list[Scalar]:
    """L⁻*x."""
    y = list(x)
    for i in reversed(range(len(y))):
        for j in range(i + 1, len(y)):
            y[i] = y[i] - axes[j].s.dot(axes[i].g) * y[j]
    return y


def plus(x: Part, y: Part) -> Part:
    """The sum of two blocks of a stacked vector."""
    return [a + b for a, b in zip(x, y, strict=True)]


def minus(x: Part, y: Part) -> Part:
    """The difference of two blocks of a stacked vector."""
    return [a - b for a, b in zip(x, y, strict=True)]


def matrix_of(cell: Cell, size: int) -> list[list[Scalar]]:
    """The rows of a block with ``size`` columns, from its map of unit vectors."""
    columns = [cell.forward([1.0 if i == j else 0.0 for i in range(size)]) for j in range(size)]
    return [list(row) for row in zip(*columns, strict=True)]


def from_matrix(rows: Sequence[Sequence[Scalar]]) -> Symmetric:
    """A symmetric block from its rows."""
    return Symmetric(lambda x: [sum((a * b for a, b in zip(row, x, strict=True)), 0.0) for row in rows])
