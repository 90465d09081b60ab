"""Operators: linear maps between stacked vectors that are applied, never formed.

Expressions are built with ``@ + - *``, ``.T`` and ``.inv()`` and stay as they are written until they meet a vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.operators.blocks import Space
from linkwise.spatial.scalar import Scalar

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

    from linkwise.operators.engine import Engine, Stacked
    from linkwise.operators.rewrite import Step
    from linkwise.operators.rules import Rule
    from linkwise.operators.stacked_vectors import Vector

_SCALARS = (int, float, np.floating, np.integer)


class Operator(ABC):
    """A linear map from stacked vectors over ``cols`` to stacked vectors over ``rows``, for one state or a batch."""

    __array_ufunc__ = None  # `array @ operator` comes to us
    derivation: tuple[Step, ...] = ()
    """The steps by which ``simplify`` or ``inv`` arrived here."""

    parts: Sequence[Operator] = ()
    """The operators that an expression is made of; a letter has none."""

    def __init__(self, engine: Engine, rows: Space, cols: Space) -> None:
        self.engine = engine
        self.rows = rows
        self.cols = cols

    # What every operator says of itself.
    @abstractmethod
    def forward(self, x: Stacked) -> Stacked:
        """A x, on the engine's stacked vectors."""

    @abstractmethod
    def adjoint(self, y: Stacked) -> Stacked:
        """A* y, on the engine's stacked vectors."""

    @abstractmethod
    def transposed(self) -> Operator:
        """A*."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Equal for operators that are written alike, whatever the order of sums: what rules compare."""

    @property
    @abstractmethod
    def name(self) -> str:
        """In the papers' notation."""

    def with_parts(self, parts: Sequence[Operator]) -> Operator:
        """The same expression of other operators."""
        return self

    # What follows from it.
    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, batch axes left out."""
        return (self.rows.size, self.cols.size)

    @property
    def T(self) -> Operator:
        """A*, the adjoint."""
        return self.transposed()

    def inv(self) -> Operator:
        """A⁻¹ as the papers' identities give it; ``.explain()`` of the result shows which."""
        from linkwise.operators.rewrite import inverse

        return inverse(self)

    def simplify(self) -> Operator:
        """The same operator with fewer sweeps and factors, by the papers' identities."""
        from linkwise.operators.rewrite import simplify

        return simplify(self)

    def expand(self) -> Operator:
        """The same operator with sums multiplied out."""
        from linkwise.operators.rewrite import expand

        return expand(self)

    def rewrite(self, rule: Rule | str, *, reverse: bool = False) -> Operator:
        """The same operator with one rule applied wherever its left side (or right side, in reverse) stands.

        Args:
            rule: its name in ``linkwise.operators.rules()``, as in ``expr.rewrite("mixed_sweeps")``.
            reverse: whether to put the left side in place of the right.
        """
        from linkwise.operators.rewrite import rewrite

        return rewrite(self, rule, reverse=reverse)

    def explain(self) -> str:
        """The steps that led here, each with its equation; those of ``simplify`` when none are recorded."""
        from linkwise.operators.rewrite import explain

        return explain(self)

    def apply(self, x: ArrayLike) -> Array:
        """A x for a vector (..., columns) or for several in columns (..., columns, r); O(n) sweeps."""
        return self._apply(x, self.forward, self.cols, self.rows)

    def apply_transpose(self, y: ArrayLike) -> Array:
        """A* y for a vector (..., rows) or for several in columns (..., rows, r); O(n) sweeps."""
        return self._apply(y, self.adjoint, self.rows, self.cols)

    def dense(self) -> Array:
        """The matrix (..., rows, columns), one sweep over all columns; for looking at and for tests."""
        return self.apply(self.engine.dense(self.cols))

    def block(self, i: int, j: int) -> Array:
        """The block (..., rows of i, columns of j) of two links, joints or points."""
        self._check_block("row", i, self.rows)
        self._check_block("column", j, self.cols)
        units = np.zeros((self.cols.size, self.cols.sizes[j]))
        units[self.cols.slice(j)] = np.eye(self.cols.sizes[j])
        units = np.broadcast_to(units, (*self.engine.batch, *units.shape))
        return self.apply(units)[..., self.rows.slice(i), :]

    def _check_block(self, what: str, k: int, space: Space) -> None:
        if not 0 <= k < len(space.sizes):
            allowed = f"0 … {len(space.sizes) - 1} ({space.name})"
            raise InputError(f"{self.name} has no such block {what}", got=str(k), allowed=allowed)

    def _apply(self, given: ArrayLike, function: Callable[[Stacked], Stacked], cols: Space, rows: Space) -> Array:
        x = np.asarray(given)
        axes = len(self.engine.batch)
        if x.ndim not in (1, axes + 1, axes + 2) or x.shape[-2 if x.ndim == axes + 2 else -1] != cols.size:
            lead = "".join(f"{size}, " for size in self.engine.batch)
            raise InputError(
                f"{self.name} cannot be applied to an array of this shape",
                got=f"{self.name} {self.shape} and an array {x.shape}",
                allowed=f"({lead}{cols.size}), or ({lead}{cols.size}, r) for r columns",
                do="give several right-hand sides as columns" if x.shape[-1:] == (cols.size,) else None,
            )
        return self.engine.run(function, cols, rows, x)

    # Arithmetic.
    @overload
    def __matmul__(self, other: Operator) -> Operator: ...
    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    @overload
    def __matmul__(self, other: ArrayLike) -> Array: ...
    def __matmul__(self, other: Operator | Vector | ArrayLike) -> Operator | Vector | Array:
        from linkwise.operators.expressions import product
        from linkwise.operators.stacked_vectors import Applied, Vector

        if isinstance(other, Operator):
            return product(self, other)
        if isinstance(other, Vector):
            return Applied(self, other)
        return self.apply(other)

    def __rmatmul__(self, other: ArrayLike) -> Array:
        x = np.asarray(other)
        if self.engine.is_matrix(x):
            return self.apply_transpose(x.swapaxes(-1, -2)).swapaxes(-1, -2)
        return self.apply_transpose(x)

    def __add__(self, other: object) -> Operator:
        from linkwise.operators.expressions import total

        return total((1.0, self), (1.0, other)) if isinstance(other, Operator) else NotImplemented

    def __sub__(self, other: object) -> Operator:
        from linkwise.operators.expressions import total

        return total((1.0, self), (-1.0, other)) if isinstance(other, Operator) else NotImplemented

    def __mul__(self, scale: Scalar) -> Operator:
        from linkwise.operators.expressions import total

        if isinstance(scale, Operator) or np.ndim(scale):
            raise InputError(
                f"{self.name} is scaled by one number only",
                got=f"{type(scale).__name__} {getattr(scale, 'shape', '')}",
                allowed="a number",
                do="use @ for products of operators and to apply one to a vector",
            )
        return total((float(scale) if isinstance(scale, _SCALARS) else scale, self))

    __rmul__ = __mul__

    def __neg__(self) -> Operator:
        return self * -1.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and self.engine is other.engine and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return self.name

    # SciPy: what `aslinearoperator` looks for.
    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers that come out."""
        return self.engine.dtype

    def matvec(self, x: ArrayLike) -> Array:
        """A x, for SciPy."""
        return self.apply(np.reshape(x, self.cols.size))

    def rmatvec(self, y: ArrayLike) -> Array:
        """A* y, for SciPy."""
        return self.apply_transpose(np.reshape(y, self.rows.size))

    matmat = apply
    rmatmat = apply_transpose

    def as_linear_operator(self) -> LinearOperator:
        """This operator as a ``scipy.sparse.linalg.LinearOperator``; one state only."""
        from scipy.sparse.linalg import LinearOperator

        if self.engine.batch:
            raise InputError(
                f"{self.name} stands for a batch of states",
                got=f"batch {self.engine.batch}",
                allowed="one state",
                do="ask for the operators of one state: model.operators(q[i], v[i])",
            )
        return LinearOperator(
            self.shape,
            matvec=self.matvec,
            rmatvec=self.rmatvec,
            matmat=self.matmat,
            rmatmat=self.rmatmat,
            dtype=self.dtype,
        )
