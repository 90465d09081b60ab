"""Stacked vectors that are not yet computed: V, a, b, and what operators make of them.

``A @ x`` of an array is computed at once. ``A @ x`` of a :class:`Vector` is not: the whole expression is run when its
numbers are asked for (``numpy.asarray``, or ``.value``), which lets the sweeps of its parts be joined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.operators import notation
from linkwise.operators.blocks import Space
from linkwise.operators.engine import Engine, Stacked
from linkwise.operators.expressions import Sum
from linkwise.operators.operator import _SCALARS, Operator
from linkwise.spatial.scalar import Scalar

_REFLECTED = {np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__"}
"""Results of ``array + vector``, ``array - vector`` and ``number * vector``."""


class Vector(ABC):
    """A stacked vector of one state or a batch, shown by name. To NumPy it is the array of its numbers (..., size)."""

    def __init__(self, engine: Engine, space: Space) -> None:
        self.engine = engine
        self.space = space

    @abstractmethod
    def evaluate(self) -> Stacked:
        """The numbers as the engine keeps them."""

    @property
    @abstractmethod
    def name(self) -> str:
        """In the papers' notation."""

    @cached_property
    def stacked(self) -> Stacked:
        """The numbers as the engine keeps them, computed once."""
        return self.evaluate()

    @property
    def value(self) -> Array:
        """The numbers (..., size)."""
        return self.engine.leave(self.space, self.stacked)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch and size."""
        return (*self.engine.batch, self.space.size)

    def blocks(self) -> Array:
        """(..., n, width): one row for each link or point, (..., n, 6) where all are rigid."""
        sizes = sorted(set(self.space.sizes))
        if len(sizes) > 1 or self.space == self.engine.joints:
            got = f"a vector over {self.space.name}, with blocks of {', '.join(map(str, sizes))}"
            raise InputError(f"{self.name} has blocks of different sizes", got=got, do="use .value")
        return self.value.reshape(*self.engine.batch, len(self.space.sizes), *sizes)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.asarray(self.value, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        """Sums with arrays and multiples stay expressions, all else that NumPy does gives plain arrays."""
        if method == "__call__" and ufunc in _REFLECTED and not how and isinstance(inputs[1], Vector):
            return getattr(inputs[1], _REFLECTED[ufunc])(inputs[0])
        plain = [x.value if isinstance(x, Vector) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **how)

    def __getattr__(self, name: str) -> Any:
        """Attributes that arrays have and vectors have not, ``sum`` or ``tolist`` say, is asked of the numbers."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.value, name)

    def __truediv__(self, scale: Scalar) -> Scalar:
        return self.value / np.asarray(scale) if np.ndim(scale) else self * (1.0 / scale)

    def __pow__(self, exponent: ArrayLike) -> Array:
        return np.asarray(self.value ** np.asarray(exponent))

    def __abs__(self) -> Array:
        return np.abs(self.value)

    def __lt__(self, other: ArrayLike) -> Array:
        return self.value < np.asarray(other)

    def __le__(self, other: ArrayLike) -> Array:
        return self.value <= np.asarray(other)

    def __gt__(self, other: ArrayLike) -> Array:
        return self.value > np.asarray(other)

    def __ge__(self, other: ArrayLike) -> Array:
        return self.value >= np.asarray(other)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Scalar:
        return self.value[index]

    def __add__(self, other: Vector | ArrayLike) -> Vector:
        return Combination(((1.0, self), (1.0, self._like(other))))

    def __radd__(self, other: Vector | ArrayLike) -> Vector:
        return self._like(other) + self

    def __sub__(self, other: Vector | ArrayLike) -> Vector:
        return Combination(((1.0, self), (-1.0, self._like(other))))

    def __rsub__(self, other: Vector | ArrayLike) -> Vector:
        return self._like(other) - self

    def __mul__(self, scale: Scalar) -> Scalar:
        if np.ndim(scale):
            return self.value * np.asarray(scale)
        return Combination(((float(scale) if isinstance(scale, _SCALARS) else scale, self),))

    __rmul__ = __mul__

    def __neg__(self) -> Vector:
        return Combination(((-1.0, self),))

    def __repr__(self) -> str:
        return self.name

    def _like(self, other: Vector | ArrayLike) -> Vector:
        if not isinstance(other, Vector):
            return Given(self.engine, self.space, other)
        if other.engine is not self.engine or other.space != self.space:
            raise InputError(
                f"{self.name} and {other.name} cannot be added",
                got=f"{self.name} ({self.space.size} {self.space.name}) and {other.name} "
                f"({other.space.size} {other.space.name})",
                allowed="vectors of one state and one space",
            )
        return other


@final
class Given(Vector):
    """A vector of known numbers."""

    def __init__(self, engine: Engine, space: Space, array: ArrayLike, name: str = "x") -> None:
        super().__init__(engine, space)
        self.array = np.asarray(array)
        self._name = name
        if self.array.shape[-1:] != (space.size,) or self.array.ndim not in (1, len(engine.batch) + 1):
            raise InputError(
                f"a vector over the {space.name} has the wrong shape",
                got=str(self.array.shape),
                allowed=str((*engine.batch, space.size)),
            )

    def evaluate(self) -> Stacked:
        return self.engine.enter(self.space, self.array)

    @property
    def name(self) -> str:
        return self._name


@final
class VelocityTerms(Vector):
    """V, a, b, or f = Mφ*a + b, from the state's velocity."""

    def __init__(self, engine: Engine, word: str) -> None:
        super().__init__(engine, engine.links)
        self.word = word

    def evaluate(self) -> Stacked:
        return self.engine.motion(self.word)

    @property
    def name(self) -> str:
        return {"f": "(Mφ*a + b)"}.get(self.word, self.word)


@final
class Applied(Vector):
    """A x."""

    def __init__(self, operator: Operator, vector: Vector) -> None:
        super().__init__(operator.engine, operator.rows)
        if operator.cols != vector.space or operator.engine is not vector.engine:
            raise InputError(
                f"{operator.name} cannot be applied to {vector.name}",
                got=f"{operator.name} {operator.shape} and {vector.name} ({vector.space.size} {vector.space.name})",
                allowed=f"a vector of {operator.cols.size} {operator.cols.name}, of the same state",
            )
        self.operator = operator
        self.vector = vector

    def evaluate(self) -> Stacked:
        return self.operator.forward(self.vector.stacked)

    @property
    def name(self) -> str:
        return f"{notation.juxtaposed([(self.operator.name, isinstance(self.operator, Sum))])} {_wrapped(self.vector)}"


@final
class Combination(Vector):
    """A weighted sum of vectors."""

    def __init__(self, terms: tuple[tuple[Scalar, Vector], ...]) -> None:
        super().__init__(terms[0][1].engine, terms[0][1].space)
        self.terms = terms

    def evaluate(self) -> Stacked:
        return self.engine.combined([(c, vector.stacked) for c, vector in self.terms])

    @property
    def name(self) -> str:
        return notation.added([(c, v.name, isinstance(v, Combination)) for c, v in self.terms])


def _wrapped(vector: Vector) -> str:
    return f"({vector.name})" if isinstance(vector, Combination) else vector.name
