"""Sums, products, adjoints and inverses of operators, kept in one normal form so that rules can compare them.

Products are flat and without identities, sums are flat with like terms collected, an adjoint stands only on a letter,
on a sum or on an inverse, and a number in front of a product is taken out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.operators import notation
from linkwise.operators.blocks import Solution, Space
from linkwise.operators.engine import Engine, Stacked
from linkwise.operators.operator import Operator
from linkwise.spatial.scalar import Scalar

_ANY = Space("any", ())
Term = tuple[Scalar, Operator]


@final
class Identity(Operator):
    """I, of the space that its neighbours ask for (``space`` None: not yet known)."""

    def __init__(self, engine: Engine, space: Space | None = None) -> None:
        super().__init__(engine, space or _ANY, space or _ANY)
        self.is_fitted = space is not None

    def forward(self, x: Stacked) -> Stacked:
        return x

    def adjoint(self, y: Stacked) -> Stacked:
        return y

    def transposed(self) -> Operator:
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; an identity that is not yet part of an expression has none."""
        if not self.is_fitted:
            raise InputError(
                "I takes its size from the expression it is part of, and this one is part of none",
                allowed="I - H @ psi @ K, I - E_phi, …",
                do="use ops.identity('links') or ops.identity('joints') for one of a given size",
            )
        return super().shape

    def apply(self, x: ArrayLike) -> Array:
        return super().apply(x) if self.is_fitted else np.asarray(x)

    def apply_transpose(self, y: ArrayLike) -> Array:
        return super().apply_transpose(y) if self.is_fitted else np.asarray(y)

    def __matmul__(self, other: Scalar) -> Scalar:
        return other if not self.is_fitted and not isinstance(other, Operator) else super().__matmul__(other)

    def dense(self) -> Array:
        self.shape  # noqa: B018  # an identity without a size says so
        return np.array(self.engine.dense(self.rows))

    @property
    def key(self) -> str:
        return f"I[{self.rows.name}]"

    @property
    def name(self) -> str:
        return "I"


@final
class Zero(Operator):
    """The operator whose every value is zero."""

    def forward(self, x: Stacked) -> Stacked:
        return self.engine.zero(self.rows, like=x)

    def adjoint(self, y: Stacked) -> Stacked:
        return self.engine.zero(self.cols, like=y)

    def transposed(self) -> Operator:
        return Zero(self.engine, self.cols, self.rows)

    @property
    def key(self) -> str:
        return f"0[{self.rows.name},{self.cols.name}]"

    @property
    def name(self) -> str:
        return "0"


@final
class Product(Operator):
    """A B … C, applied from the right. Make it with ``@``."""

    def __init__(self, factors: tuple[Operator, ...]) -> None:
        super().__init__(factors[0].engine, factors[0].rows, factors[-1].cols)
        self.parts = self.factors = factors

    def with_parts(self, parts: Sequence[Operator]) -> Operator:
        return product(*parts)

    def forward(self, x: Stacked) -> Stacked:
        for factor in reversed(self.factors):
            x = factor.forward(x)
        return x

    def adjoint(self, y: Stacked) -> Stacked:
        for factor in self.factors:
            y = factor.adjoint(y)
        return y

    def transposed(self) -> Operator:
        return Product(tuple(factor.T for factor in reversed(self.factors)))

    @cached_property
    def key(self) -> str:
        return " ".join(factor.key for factor in self.factors)

    @property
    def name(self) -> str:
        return notation.juxtaposed([(factor.name, isinstance(factor, Sum)) for factor in self.factors])


@final
class Sum(Operator):
    """a A + b B + …; one term is a scaled operator. Make it with ``+ - *``."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        first = terms[0][1]
        super().__init__(first.engine, first.rows, first.cols)
        self.terms = terms
        self.parts = [op for _, op in terms]

    def with_parts(self, parts: Sequence[Operator]) -> Operator:
        return total(*((c, op) for (c, _), op in zip(self.terms, parts, strict=True)))

    def forward(self, x: Stacked) -> Stacked:
        return self.engine.combined([(c, op.forward(x)) for c, op in self.terms])

    def adjoint(self, y: Stacked) -> Stacked:
        return self.engine.combined([(c, op.adjoint(y)) for c, op in self.terms])

    def transposed(self) -> Operator:
        if len(self.terms) == 1:
            coefficient, op = self.terms[0]
            return total((coefficient, op.T))
        return Transposed(self)

    @cached_property
    def key(self) -> str:
        return "{" + " + ".join(sorted(f"{_coefficient_key(c)}·{op.key}" for c, op in self.terms)) + "}"

    @property
    def name(self) -> str:
        return notation.added([(c, op.name, isinstance(op, Sum)) for c, op in self.terms])


@final
class Transposed(Operator):
    """A* of a letter, a sum or an inverse. Make it with ``.T``."""

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator.engine, operator.cols, operator.rows)
        self.operator = operator
        self.parts = (operator,)

    def with_parts(self, parts: Sequence[Operator]) -> Operator:
        return parts[0].T

    def forward(self, x: Stacked) -> Stacked:
        return self.operator.adjoint(x)

    def adjoint(self, y: Stacked) -> Stacked:
        return self.operator.forward(y)

    def transposed(self) -> Operator:
        return self.operator

    @cached_property
    def key(self) -> str:
        if isinstance(self.operator, Sum):  # (A + B)* and A* + B* are written differently and mean one thing
            return total(*((c, op.T) for c, op in self.operator.terms)).key
        return f"{self.operator.key}*"

    @property
    def name(self) -> str:
        return notation.starred(self.operator.name, not isinstance(self.operator, (Sum, Inverse)))


@final
class Inverse(Operator):
    """A⁻¹ that no rule has rewritten. Make it with ``.inv()``.

    Between constraints, which are few, it is solved as a matrix: (AΛA*)⁻¹ in step D of Rodriguez 1989 §3. Elsewhere it
    can be looked at, but not applied.
    """

    def __init__(self, operator: Operator) -> None:
        super().__init__(operator.engine, operator.cols, operator.rows)
        self.operator = operator
        self.parts = (operator,)

    def with_parts(self, parts: Sequence[Operator]) -> Operator:
        return Inverse(parts[0])

    def forward(self, x: Stacked) -> Stacked:
        if not self.rows.is_small:
            raise self._no_rule()
        return self.engine.solved(self._solution, x, self.rows)

    def adjoint(self, y: Stacked) -> Stacked:
        return self.transposed().forward(y)

    @cached_property
    def _solution(self) -> Solution:
        return self.engine.blocks.solution(self.operator.dense())

    def _no_rule(self) -> InputError:
        return InputError(
            f"no rule gives the inverse of {self.operator.name}",
            got=f"{self.name} {self.shape}",
            allowed="block-diagonal operators, φ, ψ, I − E_φ, I + HφK, 𝓜 = HφMφ*H* (+ J_r with rotor inertia), …",
            do="see linkwise.operators.RULES, or solve with scipy.sparse.linalg and as_linear_operator()",
        )

    def dense(self) -> Array:
        return super().dense() if self.rows.is_small else np.linalg.inv(self.operator.dense())

    def transposed(self) -> Operator:
        return Inverse(self.operator.T)

    @cached_property
    def key(self) -> str:
        return f"inv({self.operator.key})"

    @property
    def name(self) -> str:
        return notation.inverted(self.operator.name, not isinstance(self.operator, (Sum, Product, Transposed)))


def product(*operators: Operator) -> Operator:
    """The normal form of A B … C; raises InputError, with both shapes, where two do not compose."""
    scale: Scalar = 1.0
    factors: list[Operator] = []
    fallback = operators[0]
    for op in operators:
        if isinstance(op, Sum) and len(op.terms) == 1:
            coefficient, op = op.terms[0]
            scale = _multiplied(scale, coefficient)
        for factor in op.factors if isinstance(op, Product) else (op,):
            if isinstance(factor, Identity) and not factor.is_fitted:
                continue
            if factors:
                _check_composes(factors[-1], factor)
            fallback = factor
            factors.append(factor)
    rows, cols = (factors[0].rows, factors[-1].cols) if factors else (_ANY, _ANY)
    if any(isinstance(factor, Zero) for factor in factors):
        return Zero(factors[0].engine, rows, cols)
    factors = [factor for factor in factors if not isinstance(factor, Identity)]
    if not factors:
        return total((scale, fallback))
    whole = factors[0] if len(factors) == 1 else Product(tuple(factors))
    return whole if _is(scale, 1.0) else total((scale, whole))


def total(*terms: Term) -> Operator:
    """The normal form of a A + b B + …; raises InputError, with both shapes, where two do not add up."""
    flat: list[Term] = []
    for coefficient, op in terms:
        if isinstance(op, Sum):
            flat.extend((_multiplied(coefficient, c), inner) for c, inner in op.terms)
        else:
            flat.append((coefficient, op))
    fitted = next((op for _, op in flat if not (isinstance(op, Identity) and not op.is_fitted)), None)
    if fitted is not None:
        flat = [(c, _fitted(op, fitted)) for c, op in flat]
        for _, op in flat:
            _check_adds(fitted, op)
    collected: dict[str, Term] = {}
    for coefficient, op in flat:
        if op.key in collected:
            coefficient = collected[op.key][0] + coefficient
        collected[op.key] = (coefficient, op)
    kept = tuple((c, op) for c, op in collected.values() if not _is(c, 0.0) and not isinstance(op, Zero))
    if not kept:
        first = flat[0][1]
        return Zero(first.engine, first.rows, first.cols)
    if len(kept) == 1 and _is(kept[0][0], 1.0):
        return kept[0][1]
    return Sum(kept)


def _fitted(op: Operator, beside: Operator) -> Operator:
    if isinstance(op, Identity) and not op.is_fitted:
        if beside.rows != beside.cols:
            raise InputError(
                "I can only be added to a square operator", got=f"I and {_described(beside)}", allowed="rows = columns"
            )
        return Identity(op.engine, beside.rows)
    return op


def _check_composes(left: Operator, right: Operator) -> None:
    _check_same_state(left, right)
    if left.cols != right.rows:
        raise InputError(
            f"{left.name} and {right.name} do not compose",
            got=f"{_described(left)} @ {_described(right)}",
            allowed="the columns of the first must be the rows of the second",
            do=_hint(left, right),
        )


def _check_adds(left: Operator, right: Operator) -> None:
    _check_same_state(left, right)
    if (left.rows, left.cols) != (right.rows, right.cols):
        raise InputError(
            f"{left.name} and {right.name} cannot be added",
            got=f"{_described(left)} + {_described(right)}",
            allowed="operators between the same spaces",
        )


def _check_same_state(left: Operator, right: Operator) -> None:
    if left.engine is not right.engine:
        raise InputError(
            f"{left.name} and {right.name} belong to different states",
            got="operators of two calls of model.operators",
            allowed="operators of one call",
        )


def _described(op: Operator) -> str:
    rows, cols = op.shape
    return f"{op.name} ({rows} {op.rows.name} × {cols} {op.cols.name})"


def _hint(left: Operator, right: Operator) -> str | None:
    if left.cols == right.cols:
        return f"did you mean {left.name} @ ({right.name}).T?"
    return f"did you mean ({left.name}).T @ {right.name}?" if left.rows == right.rows else None


def _is(coefficient: Scalar, value: float) -> bool:
    return isinstance(coefficient, float) and coefficient == value


def _multiplied(a: Scalar, b: Scalar) -> Scalar:
    return b if _is(a, 1.0) else a if _is(b, 1.0) else a * b


def _coefficient_key(coefficient: Scalar) -> str:
    return repr(coefficient) if isinstance(coefficient, float) else f"<{id(coefficient)}>"
