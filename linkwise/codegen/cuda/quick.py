"""The usual call on a GPU with as little Python as possible: a learning loop calls thousands of times a second.

Usual are contiguous arrays of one library (CuPy or PyTorch), on the current device, with the same batch axes, in the
kernel's precision, and a new result. Everything else is left to :mod:`linkwise.codegen.cuda.exchange`, which says what
is wrong if something is.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.codegen.cuda.launched import Launched
from linkwise.codegen.cuda.layout import Kind
from linkwise.codegen.cuda.runtime import cupy


def quick_call(program: Launched, arrays: Sequence[Any]) -> list[Any] | None:
    """One result for each output, or None where the call is not a usual one."""
    look = _LOOK.get(type(arrays[0]).__module__.partition(".")[0]) if arrays else None
    specs = program.program.inputs
    if look is None or len(arrays) != len(specs):
        return None
    cp, batch, kind = cupy(), None, type(arrays[0])
    device = cp.cuda.Device().id
    of_cupy = kind.__module__.startswith("cupy")
    if not (of_cupy or _same_stream(cp, device)):
        return None
    passed = []
    for spec, array in zip(specs, arrays, strict=True):
        seen = look(array, program.dtype, device) if type(array) is kind else None
        if seen is None:
            return None
        passed.append(seen)
        cut = len(array.shape) - len(spec.shape)
        shape = tuple(array.shape)
        if cut < 0 or shape[cut:] != spec.shape or (batch is not None and shape[:cut] != batch):
            return None
        batch = shape[:cut]
    count = math.prod(batch or ())
    if batch is None or count == 0:
        return None
    try:
        results = [_new(cp, arrays[0], batch + spec.shape, program.dtype) for spec in program.program.outputs]
    except Exception as error:
        if "OutOfMemory" in type(error).__name__:
            return None
        raise
    passed += results if of_cupy else [np.uint64(result.data_ptr()) for result in results]
    program.launch(passed, tuple[Kind, ...]("rows" for _ in passed), count)
    return results


def _look_at_cupy(array: Any, dtype: np.dtype[Any], device: int) -> Any:
    if array.dtype != dtype or not array.flags.c_contiguous or array.device.id != device:
        return None
    return array


def _look_at_torch(tensor: Any, dtype: np.dtype[Any], device: int) -> Any:
    """The tensor's address."""
    torch = sys.modules["torch"]
    if not tensor.is_cuda or tensor.requires_grad or tensor.dtype is not getattr(torch, dtype.name):
        return None
    if not tensor.is_contiguous() or tensor.device.index != device:
        return None
    return np.uint64(tensor.data_ptr())


def _same_stream(cp: Any, device: int) -> bool:
    """Whether CuPy launches on the stream that PyTorch works on."""
    return bool(sys.modules["torch"].cuda.current_stream(device).cuda_stream == cp.cuda.get_current_stream().ptr)


def _new(cp: Any, like: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    if type(like).__module__.startswith("cupy"):
        return cp.empty(shape, dtype)
    return like.new_empty(shape)


_LOOK: dict[str, Callable[..., Any]] = {"cupy": _look_at_cupy, "torch": _look_at_torch}
