"""The array libraries whose arrays live on a GPU: how each lends an array, makes one, and which stream it works on.

Every library is one small class with the same methods in the same order; all meet in CuPy arrays, which are
views of the same memory. A library that is not listed can still take part, through ``__cuda_array_interface__``
or DLPack.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from linkwise.errors import InputError
from linkwise.targets.cuda.runtime import cupy, external_stream


class ArrayLibrary:
    """CuPy itself; the others differ from it where they must."""

    can_be_out = True
    """Whether its arrays can be written to."""

    def view(self, array: Any) -> Any:
        """The array as CuPy sees it, not copied."""
        return array

    def empty(self, shape: tuple[int, ...], dtype: Any, device: int) -> Any:
        """A new array, of the library or else of CuPy (see ``finished``)."""
        return cupy().empty(shape, dtype)

    def last_axis_first(self, array: Any) -> Any:
        """Array over the same memory with its last axis in front, or None where the library has no such arrays."""
        return cupy().moveaxis(array, -1, 0)

    def finished(self, array: Any) -> Any:
        """Array for the caller, of one that ``empty`` made, once it is filled."""
        return array

    def from_cupy(self, array: Any) -> Any:
        """A CuPy array as one of the library, over the same memory where the library can."""
        return array

    def stream(self, device: int) -> AbstractContextManager[Any]:
        """The stream the caller works on."""
        return nullcontext()


class _Torch(ArrayLibrary):
    """PyTorch: memory from its own allocator, work on its current stream."""

    def view(self, array: Any) -> Any:
        if array.requires_grad:
            raise InputError(
                "a tensor that needs a gradient was passed to a compiled function",
                got="requires_grad=True",
                allowed="tensors that autograd does not follow",
                do="pass tensor.detach(), or let autograd through with linkwise.as_torch(f)",
            )
        return cupy().asarray(array)

    def empty(self, shape: tuple[int, ...], dtype: Any, device: int) -> Any:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype.name), device=f"cuda:{device}")

    def last_axis_first(self, array: Any) -> Any:
        return array.movedim(-1, 0)

    def from_cupy(self, array: Any) -> Any:
        if not array.size:
            return self.empty(array.shape, array.dtype, array.device.id)
        return sys.modules["torch"].from_dlpack(array)

    def stream(self, device: int) -> AbstractContextManager[Any]:
        return external_stream(sys.modules["torch"].cuda.current_stream(device).cuda_stream)


class _Jax(ArrayLibrary):
    """JAX: its arrays cannot be written to. Results are CuPy's memory, handed over by DLPack, which orders streams."""

    can_be_out = False

    def view(self, array: Any) -> Any:
        return cupy().from_dlpack(array)

    def last_axis_first(self, array: Any) -> Any:
        return None  # its arrays are row-major

    def finished(self, array: Any) -> Any:
        return importlib.import_module("jax.dlpack").from_dlpack(array)

    def from_cupy(self, array: Any) -> Any:
        if not array.size:
            return importlib.import_module("jax.numpy").zeros(array.shape, array.dtype)
        return self.finished(cupy().ascontiguousarray(array))


class _Other(ArrayLibrary):
    """Any library: results come back by its own ``from_dlpack`` where it has one, else as CuPy arrays."""

    def __init__(self, module: str) -> None:
        self.module = module

    def view(self, array: Any) -> Any:
        if hasattr(type(array), "__cuda_array_interface__"):
            return cupy().asarray(array)
        return cupy().from_dlpack(array)

    def last_axis_first(self, array: Any) -> Any:
        return None

    def finished(self, array: Any) -> Any:
        take = getattr(sys.modules.get(self.module), "from_dlpack", None)
        return array if take is None else take(array)

    def from_cupy(self, array: Any) -> Any:
        return self.finished(cupy().ascontiguousarray(array))


def library_of(array: Any) -> ArrayLibrary:
    """The library an array belongs to."""
    module = type(array).__module__.partition(".")[0]
    if module == "cupy":
        return ArrayLibrary()
    if module == "torch":
        return _Torch()
    return _Jax() if module in ("jax", "jaxlib") else _Other(module)
