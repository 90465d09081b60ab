"""Arrays at the boundary of a call: arguments, checked and laid out for kernels, and results of the caller's kind."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from linkwise.array_types import Array, NumPyScalar
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.targets.batch import FLOAT32, FLOAT64, HostBatch, Inputs, check_number

Assemble = Callable[[Array], object]


def scalars_of(value: Any) -> tuple[Array, Assemble] | None:
    """The scalars of a CasADi or SymPy matrix in an object array (a column as a vector), and what makes such a matrix.

    None for anything else.
    """
    library = type(value).__module__.partition(".")[0]
    if library == "casadi" and type(value).__name__ in ("SX", "MX"):
        rows, columns = value.shape
        entries = [[value[i, j] for j in range(columns)] for i in range(rows)]
        return _array(entries, rows, columns), _casadi(type(value))
    if library == "sympy" and hasattr(value, "tolist") and len(getattr(value, "shape", ())) == 2:
        rows, columns = value.shape
        return _array(value.tolist(), rows, columns), _sympy
    return None


def _array(entries: list[list[Scalar]], rows: int, columns: int) -> Array:
    array = np.empty((rows, columns), object)
    for i in range(rows):
        for j in range(columns):
            array[i, j] = entries[i][j]
    return array[:, 0] if columns == 1 else array


def _casadi(kind: type) -> Assemble:
    def assemble(array: Array) -> object:
        casadi = sys.modules["casadi"]
        if np.ndim(array) == 0:
            return kind(array)
        if np.ndim(array) == 1:
            return casadi.vertcat(*(kind(x) for x in array))
        if np.ndim(array) == 2:
            return casadi.vertcat(*(casadi.horzcat(*(kind(x) for x in row)) for row in array))
        return array  # CasADi has no arrays of more axes: an object array of its scalars

    return assemble


def _sympy(array: Array) -> object:
    sympy = sys.modules["sympy"]
    return sympy.Matrix(array) if np.ndim(array) in (1, 2) else array


_PLAIN = ((FLOAT64, 1), (FLOAT32, 1), (FLOAT32, 0))  # precision, axes of the batch


def host_arrays(name: str, inputs: Inputs, arrays: Sequence[object]) -> list[Array]:
    """Arguments on the host as NumPy arrays, of numbers or of symbols."""
    check_number(name, inputs, arrays)
    return [
        a if type(a) is np.ndarray and a.dtype is FLOAT64 else _as_array(name, n, a)
        for (n, _), a in zip(inputs, arrays, strict=True)
    ]


class SymbolBatch(HostBatch):
    """The arguments of one call, of which some are symbols.

    Args:
        name: of the function, for messages.
        inputs: name and core shape of each input.
        arrays: the arguments, by :func:`host_arrays`.
        given: the same as the caller gave them.
    """

    def __init__(self, name: str, inputs: Inputs, arrays: Sequence[Array], given: Sequence[object]) -> None:
        super().__init__(name, inputs, arrays)
        self._assemble = next((found[1] for found in map(scalars_of, given) if found is not None), None)

    def each_state(
        self, text: Callable[..., object], collect: Callable[[object], tuple[list[Array], type[Any] | None]]
    ) -> Any:
        """Run a text eagerly on symbols, one state after another."""
        whole = [
            np.broadcast_to(array, self.shape + shape)
            for (_, shape), array in zip(self.inputs, self.arrays, strict=True)
        ]
        stacks: list[Array] = []
        result_type = None
        for index in np.ndindex(*self.shape):
            arrays, result_type = collect(text(*(_scalars(array[index]) for array in whole)))
            if not stacks:
                stacks = [np.empty(self.shape + np.shape(a), object) for a in arrays]
            for stack, array in zip(stacks, arrays, strict=True):
                stack[index] = array
        values: list[Scalar] = [stack[()] if stack.ndim == 0 else stack for stack in stacks]
        if any(isinstance(x, NumPyScalar) for array in whole for x in array.flat):
            values = [scalar_array(value) if np.ndim(value) else value for value in values]
        if self._assemble is not None:  # a symbolic library's own vectors in, the same out
            values = [self._assemble(value) for value in values]
        return values[0] if result_type is None else result_type._make(values)

    def one_state(self) -> list[list[Scalar]]:
        """The scalars of a call without batch axes, one flat list for each array."""
        return [_scalars(array) for array in self.arrays]


def is_plain_batch(arrays: Sequence[object], inputs: Inputs) -> bool:
    """Whether a call is one that a builtin function may serve with a batch kernel.

    That is arrays of one precision with one leading axis, or of float32 with none.
    """
    kinds = [
        (a.dtype, a.ndim - len(shape)) if isinstance(a, np.ndarray) else None
        for a, (_, shape) in zip(arrays, inputs, strict=False)
    ]
    return bool(kinds) and kinds[0] in _PLAIN and kinds.count(kinds[0]) == len(kinds)


def is_one_state(arrays: Sequence[object], inputs: Inputs) -> bool:
    """Whether a call is one for the single-state function: float64 arrays with no batch axes."""
    return all(
        isinstance(a, np.ndarray) and a.ndim == len(shape) and a.dtype == FLOAT64
        for a, (_, shape) in zip(arrays, inputs, strict=False)
    )


def results_like(shape: tuple[int, ...], values: Flat) -> Scalar:
    """Scalars in an object array of this shape; the scalar itself for shape ()."""
    if shape == ():
        return values[0]
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def _scalars(array: Array) -> list[Scalar]:
    """Flat Python scalars: constants as floats, so that they fold."""
    return [float(x) if _is_constant(x) else x for x in np.ravel(array)]


def _is_constant(x: object) -> bool:
    own = type(x).__module__.partition(".")[0] in ("builtins", "numpy", "fractions", "decimal")
    return own and isinstance(x, (numbers.Real, np.bool_, Decimal))


def _as_array(function: str, name: str, value: object) -> Array:
    found = scalars_of(value)
    try:
        array = np.asarray(value if found is None else found[0])
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} of {function} is not an array", got=f"{type(value).__name__}: {error}", allowed="numbers"
        ) from None
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"{name} of {function} has masked numbers", do="fill them first: array.filled(…)")
    if array.dtype.kind not in "fiubO":
        raise InputError(
            f"{name} of {function} is not made of real numbers",
            got=f"dtype {array.dtype}",
            allowed="float64, float32 or integers",
        )
    if array.dtype.kind == "O":
        for entry in array.reshape(-1):
            if not _is_number_or_symbol(entry):
                raise InputError(
                    f"{name} of {function} is not made of real numbers",
                    got=_shortened(repr(entry)),
                    allowed="numbers or symbols",
                )
    return array


def _is_number_or_symbol(entry: Scalar) -> bool:
    if isinstance(entry, (numbers.Real, Decimal)):
        try:
            float(entry)  # not a whole number beyond all floats
        except OverflowError:
            return False
        return True
    if isinstance(entry, (str, bytes, list, tuple, dict, set, complex)):
        return False
    try:
        entry * 1.0 + 0.0
    except (TypeError, AttributeError):
        return False
    return True


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:78]} …"
