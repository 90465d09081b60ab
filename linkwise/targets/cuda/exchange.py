"""A call with arrays on a GPU: checked, laid out without copying where that is possible, and answered in kind.

Every library whose arrays live on a GPU is one small class with the same methods in the same order; all meet in CuPy
arrays, which are views of the same memory. A library that is not listed can still take part, through
``__cuda_array_interface__`` or DLPack.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from linkwise.array_types import Precision
from linkwise.errors import InputError, LinkwiseError
from linkwise.targets.batch import Shape, check_number, check_shape, check_steps, common_axes, given_outputs
from linkwise.targets.cuda.launched_blocks import Launched
from linkwise.targets.cuda.runtime import cupy, external_stream
from linkwise.targets.cuda.target import on_device
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.targets.steps import Rollout
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import Program

AnyLaunched = Launched[Block] | Launched[Program]


def call(
    program: AnyLaunched, name: str, arrays: Sequence[object], out: object = None, steps: int | None = None
) -> list[Any]:
    """Evaluate a program for a batch; one result for each output.

    Args:
        program: compiled for the dtype of the arrays, see :func:`dtype_of`.
        name: of the function, for messages.
        arrays: one for each input, of any library, all on one device. What serves all states may be on the host.
        out: array or tuple of arrays to fill.
        steps: for a rollout.
    """
    if out is None and program.rollout is None and program.takes_addresses:
        results_at_once = _usual_call(program, arrays)
        if results_at_once is not None:
            return results_at_once
    batch = DeviceBatch(name, program.program.inputs, arrays, program.rollout, steps)
    with batch.place():
        given, kinds = batch.flat()
        results = batch.results(program.program.outputs, out, by_columns="columns" in kinds)
        flat = [result.flat(batch.count * (steps if batch.recorded and steps else 1)) for result in results]
        kinds = (*kinds, *(kind for _, kind in flat))
        targets = [target for target, _ in flat]
        if _overlapping(given, targets) and not (program.in_place(kinds) and _same(given, targets)):
            targets = [cupy().empty_like(target) for target in targets]
        program.launch([*given, *targets], kinds, batch.count, steps)
        for result, (target, _), written in zip(results, flat, targets, strict=True):
            if written is not target:
                target[...] = written
            result.finish()
        return [result.given for result in results]


def dtype_of(arrays: Sequence[object]) -> Precision:
    """float32 where all arrays on the device are, else float64."""
    single = all(_is_single(array) for array in arrays if on_device(array))
    return np.dtype(np.float32 if single else np.float64)


def _is_single(array: Any) -> bool:
    """Whether an array of any library is of float32."""
    dtype = getattr(array, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.char == "f"
    if dtype is None and hasattr(type(array), "__cuda_array_interface__"):
        return bool(np.dtype(array.__cuda_array_interface__["typestr"]) == np.float32)
    return str(dtype).endswith("float32")  # torch.float32


class DeviceBatch:
    """The arguments of one call: their device, their common batch shape and their precision.

    In a rollout, sequences have one more axis, the steps, before all others; so do results that are recorded.
    """

    def __init__(
        self,
        name: str,
        specs: Sequence[ArraySpec],
        arrays: Sequence[object],
        rollout: Rollout | None = None,
        steps: int | None = None,
    ) -> None:
        self.name = name
        self.specs = specs
        self.rollout = rollout
        self.fed = {given for _, given in rollout.feedback} if rollout else set()
        self.sequences = set(rollout.sequences) if rollout else set()
        self.recorded: Shape = (steps or 0,) if rollout and rollout.record else ()
        self.steps: Shape = (steps or 0,)
        self.inputs = [(spec.name, spec.shape) for spec in specs]
        check_number(name, self.inputs, arrays)
        self.library: ArrayLibrary = library_of(next(a for a in arrays if on_device(a)))
        self.dtype = dtype_of(arrays)
        self.views = [self._view(k, spec, array) for k, (spec, array) in enumerate(zip(specs, arrays, strict=True))]
        devices = {s.name: int(v.device.id) for s, v in zip(specs, self.views, strict=True) if on_device(v)}
        if len(set(devices.values())) > 1:
            raise InputError(
                f"the arguments of {name} are on different GPUs",
                got=", ".join(f"{n} on {d}" for n, d in devices.items()),
                allowed="one device for all",
                do="move them to one device first",
            )
        self.device = next(iter(devices.values()))
        self.shape = common_axes(name, self.inputs, [self._leading(k, view) for k, view in enumerate(self.views)])
        self.count = math.prod(self.shape)

    def _view(self, k: int, spec: ArraySpec, array: object) -> Any:
        """A CuPy array over the same memory, or a NumPy array for a value that serves all."""
        if on_device(array):
            view = library_of(array).view(array)
            if view.dtype.kind not in "fiub":
                raise InputError(
                    f"{spec.name} of {self.name} is not made of real numbers",
                    got=f"dtype {view.dtype}",
                    allowed="float64, float32 or integers",
                )
        else:
            view = np.asarray(array)
            if view.dtype.kind not in "fiub" or view.ndim > len(spec.shape) + (k in self.sequences):
                raise InputError(
                    f"{spec.name} of {self.name} is not on the GPU, where other arguments are",
                    got=f"{type(array).__name__} {view.shape} of {view.dtype}",
                    allowed=f"arrays on the device; on the host only one value for all states, {spec.shape}",
                    do="move it there (cupy.asarray, tensor.cuda()), or the others to the host",
                )
        if k in self.sequences:
            check_steps(self.name, spec.name, spec.shape, view.shape, self.steps[0])
        check_shape(self.name, spec.name, spec.shape, view.shape)
        return view

    def _leading(self, k: int, view: Any) -> Shape:
        """The batch axes of an argument."""
        return tuple(view.shape[int(k in self.sequences) : view.ndim - len(self.specs[k].shape)])

    @contextmanager
    def place(self) -> Iterator[None]:
        """Context on the device, and on the caller's stream."""
        with cupy().cuda.Device(self.device), self.library.stream(self.device):
            yield

    def flat(self) -> tuple[list[Any], tuple[ArrayOrder, ...]]:
        """The inputs as kernels take them, and how each lies; copies only where something must change."""
        cp = cupy()
        arrays = []
        kinds: list[ArrayOrder] = []
        by_columns = self._by_columns()
        for k, (spec, view) in enumerate(zip(self.specs, self.views, strict=True)):
            array = cp.asarray(view, self.dtype)
            leading = self._leading(k, view)
            alone = math.prod(leading) == 1 and self.count > 1 and k not in self.fed
            if alone:
                arrays.append(cp.ascontiguousarray(array).reshape(-1))
                kinds.append("one")
            elif k in self.sequences:
                missing = len(self.shape) - len(leading)
                array = array.reshape(*array.shape[:1], *(1,) * missing, *array.shape[1:])
                whole = cp.broadcast_to(array, self.steps + self.shape + spec.shape)
                arrays.append(cp.ascontiguousarray(whole).reshape(-1, spec.size))
                kinds.append("rows")
            elif by_columns:
                arrays.append(array)
                kinds.append("columns")
            else:
                whole = array if leading == self.shape else cp.broadcast_to(array, self.shape + spec.shape)
                arrays.append(cp.ascontiguousarray(whole).reshape(self.count, spec.size))
                kinds.append("rows")
        return arrays, tuple(kinds)

    def _by_columns(self) -> bool:
        """Whether the batch comes element by element, (size, count) in memory, as ``order="F"`` makes it."""
        if self.rollout is not None:
            return False
        batched = [v for s, v in zip(self.specs, self.views, strict=True) if math.prod(v.shape) > s.size]
        fortran = all(v.ndim == 2 and v.flags.f_contiguous and v.dtype == self.dtype for v in batched)
        whole = all(v.shape[0] == self.count for v in batched if v.ndim)
        return len(self.shape) == 1 and fortran and whole and any(not v.flags.c_contiguous for v in batched)

    def results(self, specs: Sequence[ArraySpec], out: object, by_columns: bool) -> list[Result]:
        """Arrays to fill, one for each output: the caller's, or a new one of the caller's library."""
        given = given_outputs(self.name, len(specs), out)
        return [self._result(spec, target, by_columns) for spec, target in zip(specs, given, strict=True)]

    def _result(self, spec: ArraySpec, target: object, by_columns: bool) -> Result:
        shape = self.recorded + self.shape + spec.shape
        if target is None:
            return self._new(spec, by_columns)
        allowed = f"array {shape} {self.dtype} on device {self.device}"
        if not on_device(target) or not library_of(target).can_be_out:
            raise InputError(f"out of {self.name} does not fit", got=type(target).__name__, allowed=allowed)
        view = library_of(target).view(target)
        if view.shape != shape or view.dtype != self.dtype or view.device.id != self.device:
            got = f"{type(target).__name__} {view.shape} {view.dtype} on device {view.device.id}"
            raise InputError(f"out of {self.name} does not fit", got=got, allowed=allowed)
        return Result(target, view, spec)

    def _new(self, spec: ArraySpec, by_columns: bool) -> Result:
        try:
            array = self._made(spec, by_columns)
        except Exception as error:
            if "OutOfMemory" not in type(error).__name__:
                raise
            shape = self.recorded + self.shape + spec.shape
            raise LinkwiseError(
                f"the GPU has no room for the results of {self.name}",
                got=f"{spec.name} {shape} {self.dtype}: {math.prod(shape) * self.dtype.itemsize / 1e9:.2f} GB",
                do="split the batch, free arrays that are no longer needed, or pass out=",
            ) from error
        view = array if type(array).__module__.startswith("cupy") else self.library.view(array)
        return Result(array, view, spec, self.library)

    def _made(self, spec: ArraySpec, by_columns: bool) -> object:
        if by_columns and spec.shape:
            apart = self.library.empty((*spec.shape, *self.shape), self.dtype, self.device)
            array = self.library.last_axis_first(apart)
            if array is not None:
                return array
        return self.library.empty(self.recorded + self.shape + spec.shape, self.dtype, self.device)


class Result:
    """One output: the array for the caller and CuPy's view of it."""

    def __init__(self, given: object, view: Any, spec: ArraySpec, library: ArrayLibrary | None = None) -> None:
        self.given, self.view, self.spec = given, view, spec
        self._library = library  # whose array it is to become, if it is new
        self._copied: Any = None

    def flat(self, count: int) -> tuple[Any, ArrayOrder]:
        """The array a kernel fills; a temporary where the caller's is not contiguous."""
        cp = cupy()
        shape = (count, self.spec.size)
        if self.view.flags.c_contiguous:
            return self.view.reshape(shape), "rows"
        batch = self.view.shape[: self.view.ndim - len(self.spec.shape)]
        if len(batch) == 1 and self.spec.shape:
            apart = cp.moveaxis(self.view, 0, -1)
            if apart.flags.c_contiguous:
                return apart.reshape(self.spec.size, count).T, "columns"
        self._copied = cp.empty(shape, self.view.dtype)
        return self._copied, "rows"

    def finish(self) -> None:
        """The caller's array holds the values."""
        if self._copied is not None:
            self.view[...] = self._copied.reshape(self.view.shape)
        if self._library is not None:
            self.given = self._library.finished(self.given)


def _span(array: Any) -> tuple[int, int]:
    start = int(array.data.ptr)
    return start, start + int(array.nbytes)


def _overlapping(inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
    """Whether an output shares memory with an input."""
    spans = [_span(array) for array in inputs if array.size]
    return any(a < stop and start < b for out in outputs if out.size for start, stop in [_span(out)] for a, b in spans)


def _same(inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
    """Whether each output that overlaps an input is that input, number for number."""
    for out in outputs:
        for array in inputs:
            if array.size and out.size and _overlapping([array], [out]):
                same = _span(array) == _span(out) and array.shape == out.shape and array.strides == out.strides
                if not same:
                    return False
    return True


def _usual_call(program: AnyLaunched, arrays: Sequence[Any]) -> list[Any] | None:
    """One result for each output with as little Python as possible, or None where the call is not a usual one.

    A learning loop calls thousands of times a second. Usual are contiguous arrays of one library (CuPy or PyTorch), on
    the current device, with the same batch axes, in the kernel's precision, and a new result.
    """
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
    program.launch(passed, tuple[ArrayOrder, ...]("rows" for _ in passed), count)
    return results


def _look_at_cupy(array: Any, dtype: Precision, device: int) -> object:
    if array.dtype != dtype or not array.flags.c_contiguous or array.device.id != device:
        return None
    return array


def _look_at_torch(tensor: Any, dtype: Precision, device: int) -> object:
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


def _new(cp: Any, like: Any, shape: tuple[int, ...], dtype: Precision) -> Any:
    if type(like).__module__.startswith("cupy"):
        return cp.empty(shape, dtype)
    return like.new_empty(shape)


_LOOK: dict[str, Callable[[Any, Precision, int], object]] = {"cupy": _look_at_cupy, "torch": _look_at_torch}


class ArrayLibrary:
    """CuPy itself; the others differ from it where they must."""

    can_be_out = True
    """Whether its arrays can be written to."""

    def view(self, array: object) -> Any:
        """The array as CuPy sees it, not copied."""
        return array

    def empty(self, shape: tuple[int, ...], dtype: Precision, device: int) -> object:
        """A new array, of the library or else of CuPy (see ``finished``)."""
        return cupy().empty(shape, dtype)

    def last_axis_first(self, array: Any) -> object:
        """Array over the same memory with its last axis in front, or None where the library has no such arrays."""
        return cupy().moveaxis(array, -1, 0)

    def finished(self, array: object) -> object:
        """Array for the caller, of one that ``empty`` made, once it is filled."""
        return array

    def from_cupy(self, array: Any) -> object:
        """A CuPy array as one of the library, over the same memory where the library can."""
        return array

    def stream(self, device: int) -> AbstractContextManager[object]:
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

    def empty(self, shape: tuple[int, ...], dtype: Precision, device: int) -> object:
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype.name), device=f"cuda:{device}")

    def last_axis_first(self, array: Any) -> object:
        return array.movedim(-1, 0)

    def from_cupy(self, array: Any) -> object:
        if not array.size:
            return self.empty(array.shape, array.dtype, array.device.id)
        return sys.modules["torch"].from_dlpack(array)

    def stream(self, device: int) -> AbstractContextManager[object]:
        return external_stream(sys.modules["torch"].cuda.current_stream(device).cuda_stream)


class _Jax(ArrayLibrary):
    """JAX: its arrays cannot be written to. Results are CuPy's memory, handed over by DLPack, which orders streams."""

    can_be_out = False

    def view(self, array: object) -> Any:
        return cupy().from_dlpack(array)

    def last_axis_first(self, array: object) -> object:
        return None  # its arrays are row-major

    def finished(self, array: object) -> object:
        return importlib.import_module("jax.dlpack").from_dlpack(array)

    def from_cupy(self, array: Any) -> object:
        if not array.size:
            return importlib.import_module("jax.numpy").zeros(array.shape, array.dtype)
        return self.finished(cupy().ascontiguousarray(array))


class _Other(ArrayLibrary):
    """Any library: results come back by its own ``from_dlpack`` where it has one, else as CuPy arrays."""

    def __init__(self, module: str) -> None:
        self.module = module

    def view(self, array: object) -> Any:
        if hasattr(type(array), "__cuda_array_interface__"):
            return cupy().asarray(array)
        return cupy().from_dlpack(array)

    def last_axis_first(self, array: object) -> object:
        return None

    def finished(self, array: object) -> object:
        take = getattr(sys.modules.get(self.module), "from_dlpack", None)
        return array if take is None else take(array)

    def from_cupy(self, array: Any) -> object:
        return self.finished(cupy().ascontiguousarray(array))


def library_of(array: object) -> ArrayLibrary:
    """The library an array belongs to."""
    module = type(array).__module__.partition(".")[0]
    if module == "cupy":
        return ArrayLibrary()
    if module == "torch":
        return _Torch()
    return _Jax() if module in ("jax", "jaxlib") else _Other(module)
