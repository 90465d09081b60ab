"""The arguments of a call: their number, shapes and batch axes, checked; those on the host laid out for kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.targets import recycled
from linkwise.trace.block import ArraySpec

Shape = tuple[int, ...]
Inputs = Sequence[tuple[str, Shape]]

FLOAT64 = np.dtype(np.float64)
FLOAT32 = np.dtype(np.float32)


def check_number(name: str, inputs: Inputs, arrays: Sequence[Any]) -> None:
    """Raise InputError unless there is one array for each input."""
    if len(arrays) != len(inputs):
        raise InputError(
            f"{name} takes {len(inputs)} arrays",
            got=f"{len(arrays)}",
            allowed=", ".join(f"{n} {_core(s)}" for n, s in inputs),
        )


def check_shape(name: str, argument: str, shape: Shape, got: Shape) -> None:
    """Raise InputError unless the last axes are those of one state."""
    if len(got) < len(shape) or got[len(got) - len(shape) :] != shape:
        raise InputError(
            f"{argument} has the wrong shape for {name}",
            got=str(tuple(got)),
            allowed=_core(shape),
            do="the last axes are the state's, any axes before them are a batch",
        )


def common_axes(name: str, inputs: Inputs, leading: Sequence[Shape]) -> Shape:
    """The batch axes of all arguments together."""
    try:
        return np.broadcast_shapes(*leading)
    except ValueError:
        raise InputError(
            f"the batches of {name}'s arguments do not fit together",
            got=", ".join(f"{n} {b}" for (n, _), b in zip(inputs, leading, strict=True)),
            allowed="equal leading axes, or 1 or none where one value serves all",
        ) from None


def given_outputs(name: str, count: int, out: Any) -> list[Any]:
    """The arrays to fill, one for each result; each may be None, as all are where none was given."""
    given = [None] * count if out is None else list(out) if isinstance(out, tuple) else [out]
    if len(given) != count:
        raise InputError(f"out of {name} has the wrong length", got=str(len(given)), allowed=f"{count} arrays")
    return given


def check_steps(name: str, argument: str, shape: Shape, got: Shape, steps: int) -> None:
    """Raise InputError unless a sequence has its steps before all other axes."""
    if len(got) <= len(shape) or got[0] != steps:
        raise InputError(
            f"{argument} of {name} does not have one row for each step",
            got=str(tuple(got)),
            allowed=f"({steps}, ..., {', '.join(map(str, shape))}): the steps first, then the batch",
        )


class HostBatch:
    """The NumPy arrays of one call: their common batch shape, their precision, and contiguous copies where needed."""

    def __init__(self, name: str, inputs: Inputs, arrays: Sequence[Any]) -> None:
        self.name, self.inputs, self.arrays = name, inputs, list(arrays)
        if self._is_plain():
            return
        check_number(name, inputs, arrays)
        for (argument, shape), array in zip(inputs, self.arrays, strict=True):
            check_shape(name, argument, shape, array.shape)
        leading = [a.shape[: a.ndim - len(s)] for (_, s), a in zip(inputs, self.arrays, strict=True)]
        self.shape = common_axes(name, inputs, leading)
        self.size = math.prod(self.shape)
        single = bool(self.arrays) and all(a.dtype == FLOAT32 for a in self.arrays)
        self.dtype = FLOAT32 if single else FLOAT64

    def _is_plain(self) -> bool:
        """The usual case, quickly: float64 arrays of one batch shape."""
        batch = None
        for array, (_, shape) in zip(self.arrays, self.inputs, strict=False):
            if array.dtype is not FLOAT64:
                return False
            cut = array.ndim - len(shape)
            leading = array.shape[:cut]
            if array.shape[cut:] != shape or leading != (leading if batch is None else batch) or cut < 0:
                return False
            batch = leading
        if batch is None or len(self.arrays) != len(self.inputs):
            return False
        self.shape, self.size, self.dtype = batch, math.prod(batch), FLOAT64
        return True

    def flat_inputs(self) -> list[Any]:
        """(batch, size) arrays, C-contiguous, of one dtype."""
        flat = []
        for (_, shape), array in zip(self.inputs, self.arrays, strict=True):
            whole = np.broadcast_to(array, self.shape + shape) if array.shape != self.shape + shape else array
            if not (whole.flags.c_contiguous and whole.dtype is self.dtype):
                whole = np.ascontiguousarray(whole, self.dtype)
            flat.append(whole.reshape(self.size, math.prod(shape)))
        return flat

    def outputs(self, specs: Sequence[ArraySpec], out: Any) -> list[tuple[Any, Any]]:
        """Arrays of each output: a flat one (batch, size) to fill, and one in the caller's shape."""
        shapes = [self.shape + spec.shape for spec in specs]
        results = []
        self._filled = self.checked_out(shapes, out)
        for spec, shape, target in zip(specs, shapes, self._filled, strict=True):
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

    def checked_out(self, shapes: Sequence[Shape], out: Any) -> list[Any]:
        """The arrays to fill with results of these shapes; None for those that are to be new."""
        given = given_outputs(self.name, len(shapes), out)
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

    def finish(self, results: Sequence[tuple[Any, Any]]) -> list[Any]:
        """The arrays to return, of these :meth:`outputs`; what could not be written in place is copied into ``out``."""
        values = []
        for (_, array), target in zip(results, self._filled, strict=True):
            if target is not None and target is not array:
                target[...] = array
            value = array if target is None else target
            values.append(value[()] if value.ndim == 0 else value)
        return values


def _core(shape: Shape) -> str:
    return "(...)" if not shape else f"(..., {', '.join(map(str, shape))})"
