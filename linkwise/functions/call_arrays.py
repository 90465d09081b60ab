"""The call boundary: what callers hand in, checked and laid out for kernels, and results handed back in kind."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.scalar_protocol import NumPyScalar
from linkwise.targets import recycled
from linkwise.trace.block import ArraySpec

Assemble = Callable[[Any], Any]


def scalars_of(value: Any) -> tuple[Any, Assemble] | None:
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


def _array(entries: list[list[Any]], rows: int, columns: int) -> Any:
    array = np.empty((rows, columns), object)
    for i in range(rows):
        for j in range(columns):
            array[i, j] = entries[i][j]
    return array[:, 0] if columns == 1 else array


def _casadi(kind: Any) -> Assemble:
    def assemble(array: Any) -> Any:
        casadi = sys.modules["casadi"]
        if np.ndim(array) == 0:
            return kind(array)
        if np.ndim(array) == 1:
            return casadi.vertcat(*(kind(x) for x in array))
        if np.ndim(array) == 2:
            return casadi.vertcat(*(casadi.horzcat(*(kind(x) for x in row)) for row in array))
        return array  # CasADi has no arrays of more axes: an object array of its scalars

    return assemble


def _sympy(array: Any) -> Any:
    sympy = sys.modules["sympy"]
    return sympy.Matrix(array) if np.ndim(array) in (1, 2) else array


_FLOAT64 = np.dtype(np.float64)
_FLOAT32 = np.dtype(np.float32)
_PLAIN = ((_FLOAT64, 1), (_FLOAT32, 1), (_FLOAT32, 0))  # precision, axes of the batch
_FLOAT32 = np.dtype(np.float32)


class CallBatch:
    """The arguments of one call: their common batch shape, their precision, and contiguous copies where needed."""

    def __init__(self, name: str, inputs: Sequence[tuple[str, tuple[int, ...]]], arrays: Sequence[Any]) -> None:
        self.name = name
        self.specs = inputs
        if self._is_plain(arrays):
            return
        if len(arrays) != len(inputs):
            raise InputError(
                f"{name} takes {len(inputs)} arrays",
                got=f"{len(arrays)}",
                allowed=", ".join(f"{n} {_core(s)}" for n, s in inputs),
            )
        parts = [scalars_of(a) for a in arrays]
        self._assemble = next((part[1] for part in parts if part is not None), None)
        arrays = [a if part is None else part[0] for a, part in zip(arrays, parts, strict=True)]
        self.arrays = [_as_array(name, n, a) for (n, _), a in zip(inputs, arrays, strict=True)]
        for (input_name, shape), array in zip(inputs, self.arrays, strict=True):
            if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
                raise InputError(
                    f"{input_name} has the wrong shape for {name}",
                    got=str(array.shape),
                    allowed=_core(shape),
                    do="the last axes are the state's, any axes before them are a batch",
                )
        leading = [a.shape[: a.ndim - len(s)] for (_, s), a in zip(inputs, self.arrays, strict=True)]
        try:
            self.shape = np.broadcast_shapes(*leading)
        except ValueError:
            raise InputError(
                f"the batches of {name}'s arguments do not fit together",
                got=", ".join(f"{n} {b}" for (n, _), b in zip(inputs, leading, strict=True)),
                allowed="equal leading axes, or 1 or none where one value serves all",
            ) from None
        self.size = math.prod(self.shape)
        self.is_symbolic = any(a.dtype == object for a in self.arrays)
        single = bool(self.arrays) and all(a.dtype == _FLOAT32 for a in self.arrays)
        self.dtype = _FLOAT32 if single else _FLOAT64

    def _is_plain(self, arrays: Sequence[Any]) -> bool:
        """The usual case, quickly: float64 arrays of one batch shape."""
        batch = None
        for array, (_, shape) in zip(arrays, self.specs, strict=False):
            if type(array) is not np.ndarray or array.dtype is not _FLOAT64:
                return False
            cut = array.ndim - len(shape)
            leading = array.shape[:cut]
            if array.shape[cut:] != shape or leading != (leading if batch is None else batch) or cut < 0:
                return False
            batch = leading
        if batch is None or len(arrays) != len(self.specs):
            return False
        self.arrays, self._assemble = list(arrays), None
        self.shape, self.size = batch, math.prod(batch)
        self.is_symbolic, self.dtype = False, _FLOAT64
        return True

    def flat_inputs(self) -> list[Any]:
        """(batch, size) arrays, C-contiguous, of one dtype."""
        flat = []
        for (_, shape), array in zip(self.specs, self.arrays, strict=True):
            whole = np.broadcast_to(array, self.shape + shape) if array.shape != self.shape + shape else array
            if not (whole.flags.c_contiguous and whole.dtype is self.dtype):
                whole = np.ascontiguousarray(whole, self.dtype)
            flat.append(whole.reshape(self.size, math.prod(shape)))
        return flat

    def outputs(self, specs: Sequence[ArraySpec], out: Any) -> list[tuple[Any, Any]]:
        """Arrays of each output: a flat one (batch, size) to fill, and one in the caller's shape."""
        shapes = [self.shape + spec.shape for spec in specs]
        results = []
        for spec, shape, target in zip(specs, shapes, self.checked_out(shapes, out), strict=True):
            if (
                target is not None
                and target.flags.c_contiguous
                and not any(np.may_share_memory(target, a) for a in self.arrays)
            ):
                results.append((target.reshape(self.size, spec.size), target))
                continue
            fresh = recycled.empty(shape, self.dtype)
            results.append((fresh.reshape(self.size, spec.size), fresh))
        return results

    def checked_out(self, shapes: Sequence[tuple[int, ...]], out: Any) -> list[Any]:
        """The arrays to fill with results of these shapes; each may be None, as all are where none was given."""
        given = [None] * len(shapes) if out is None else list(out) if isinstance(out, tuple) else [out]
        if len(given) != len(shapes):
            raise InputError(
                f"out of {self.name} has the wrong length", got=str(len(given)), allowed=f"{len(shapes)} arrays"
            )
        for target, shape in zip(given, shapes, strict=True):
            if target is None:
                continue
            if not isinstance(target, np.ndarray) or target.shape != shape or target.dtype != self.dtype:
                raise InputError(
                    f"out of {self.name} does not fit",
                    got=f"{type(target).__name__} {getattr(target, 'shape', '')} {getattr(target, 'dtype', '')}",
                    allowed=f"ndarray {shape} {self.dtype}",
                )
            if not target.flags.writeable:
                raise InputError(f"out of {self.name} is read-only", allowed="an array that can be written to")
        return given

    def finish(self, results: Sequence[tuple[Any, Any]], out: Any) -> list[Any]:
        """The arrays to return; results that could not be written in place are copied into ``out``."""
        given = [None] * len(results) if out is None else list(out) if isinstance(out, tuple) else [out]
        values = []
        for (_, array), target in zip(results, given, strict=True):
            if target is not None and target is not array:
                target[...] = array
            value = array if target is None else target
            values.append(value[()] if value.ndim == 0 else value)
        return values

    def each_state(self, text: Callable[..., Any], collect: Callable[[Any], tuple[list[Any], type[Any] | None]]) -> Any:
        """Run a text eagerly on symbols, one state after another."""
        whole = [
            np.broadcast_to(array, self.shape + shape)
            for (_, shape), array in zip(self.specs, self.arrays, strict=True)
        ]
        stacks: list[np.ndarray[Any, Any]] = []
        result_type = None
        for index in np.ndindex(*self.shape):
            arrays, result_type = collect(text(*(_scalars(array[index]) for array in whole)))
            if not stacks:
                stacks = [np.empty(self.shape + np.shape(a), object) for a in arrays]
            for stack, array in zip(stacks, arrays, strict=True):
                stack[index] = array
        values = [stack[()] if stack.ndim == 0 else stack for stack in stacks]
        if any(isinstance(x, NumPyScalar) for array in whole for x in array.flat):
            values = [scalar_array(value) if np.ndim(value) else value for value in values]
        if self._assemble is not None:  # a symbolic library's own vectors in, the same out
            values = [self._assemble(value) for value in values]
        return values[0] if result_type is None else result_type._make(values)

    def one_state(self) -> list[list[Any]]:
        """The scalars of a call without batch axes, one flat list for each array."""
        return [_scalars(array) for array in self.arrays]


def is_plain_batch(arrays: Sequence[Any], inputs: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
    """Whether a call is one that a builtin function may serve with a batch kernel.

    That is arrays of one precision with one leading axis, or of float32 with none.
    """
    kinds = [
        (a.dtype, a.ndim - len(shape)) if isinstance(a, np.ndarray) else None
        for a, (_, shape) in zip(arrays, inputs, strict=False)
    ]
    return bool(kinds) and kinds[0] in _PLAIN and kinds.count(kinds[0]) == len(kinds)


def is_one_state(arrays: Sequence[Any], inputs: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
    """Whether a call is one for the single-state function: float64 arrays with no batch axes."""
    return all(
        isinstance(a, np.ndarray) and a.ndim == len(shape) and a.dtype == _FLOAT64
        for a, (_, shape) in zip(arrays, inputs, strict=False)
    )


def results_like(shape: tuple[int, ...], values: Sequence[Any]) -> Any:
    """Scalars in an object array of this shape; the scalar itself for shape ()."""
    if shape == ():
        return values[0]
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def _scalars(array: Any) -> list[Any]:
    """Flat Python scalars: constants as floats, so that they fold."""
    return [float(x) if _is_constant(x) else x for x in np.ravel(array)]


def _is_constant(x: Any) -> bool:
    own = type(x).__module__.partition(".")[0] in ("builtins", "numpy", "fractions", "decimal")
    return own and isinstance(x, (numbers.Real, np.bool_, Decimal))


def _as_array(function: str, name: str, value: Any) -> Any:
    try:
        array = np.asarray(value)
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


def _is_number_or_symbol(entry: Any) -> bool:
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


def _shortened(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[: most - 2]} …"


def _core(shape: tuple[int, ...]) -> str:
    return "(...)" if not shape else f"(..., {', '.join(map(str, shape))})"
