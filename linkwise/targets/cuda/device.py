"""A GPU as a device: CuPy's arrays inside, the caller's library at its door."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linkwise.array_types import Precision
from linkwise.errors import InputError, LinkwiseError
from linkwise.memoized import cached_property
from linkwise.targets.cuda import exchange
from linkwise.targets.cuda.exchange import AnyLaunched, ArrayLibrary, library_of
from linkwise.targets.cuda.launched_blocks import device_block
from linkwise.targets.cuda.launched_programs import DeviceProgram
from linkwise.targets.cuda.runtime import cupy
from linkwise.targets.cuda.source import straight
from linkwise.targets.cuda.target import TARGET, on_device
from linkwise.targets.device import Callee, Device
from linkwise.targets.steps import Repetition
from linkwise.trace.block import Block
from linkwise.trace.program import Program


class CudaDevice(Device):
    """The GPU that some arrays are on; results are of the library of the first of them, on its stream."""

    name = "the GPU"
    alone, together = 3e-9, 1e-13  # by a single thread, and on a large card
    target = TARGET

    def __init__(self, arrays: Sequence[object]) -> None:
        self.xp = cupy()
        self._arrays = arrays  # until a run asks where they are; a call looks at each by itself

    @cached_property
    def _where(self) -> tuple[ArrayLibrary, int]:
        """The caller's library, and the number of the device."""
        there, self._arrays = [array for array in self._arrays if on_device(array)], ()
        devices = {int(library_of(array).view(array).device.id) for array in there}
        if len(devices) > 1:
            raise InputError(
                "the arrays are on different GPUs",
                got=", ".join(map(str, sorted(devices))),
                allowed="one device for all",
                do="move them to one device first",
            )
        return library_of(there[0]), devices.pop()

    def kernel(self, program: Block | Program, dtype: Precision, few_states: bool = False) -> AnyLaunched:
        """One state a thread, however few; of a repetition, all steps of a state."""
        if isinstance(program, Repetition):
            # The number of steps is an argument of the kernel, so one kernel serves every number.
            return device_block(straight(program), dtype, program)
        if isinstance(program, Block):
            return device_block(program, dtype)
        if not program.is_compilable:
            raise InputError(
                "a function that runs in Python cannot be called from a GPU",
                allowed="functions that can be traced: lw.math.where instead of `if`, lw.math.sin instead of math.sin",
                do="rewrite it; or lw.Sampled(model, control, rate, python=True), which asks Python between the steps; "
                "or pass NumPy arrays",
            )
        return DeviceProgram(program, dtype)

    def call(self, function: Callee, arrays: Sequence[object], out: object = None, threads: int = 1) -> list[Any]:
        """Evaluate on the device and the stream of the arrays."""
        kernel = function.kernel(exchange.dtype_of(arrays), self)
        return exchange.call(kernel, function.name, arrays, out, function.repeats and function.repeats[0])

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """A new array, or an error that says how large it would be."""
        try:
            return self.xp.empty(shape, dtype)
        except Exception as error:
            if "OutOfMemory" not in type(error).__name__:
                raise
            raise LinkwiseError(
                "the GPU has no room for the results",
                got=f"{shape} {np.dtype(dtype)}: {np.prod(shape, dtype=float) * np.dtype(dtype).itemsize / 1e9:.3g} GB",
                do="a smaller batch, fewer samples (save_every, output_times), or free arrays that are not needed",
            ) from error

    def to_device(self, array: object) -> Any:
        """Copied to the device."""
        return self.xp.asarray(array)

    def to_host(self, array: object) -> Any:
        """Copied to the host, when everything before it is done."""
        return self.xp.asnumpy(library_of(array).view(array)) if on_device(array) else np.asarray(array)

    def taken(self, array: Any, index: object) -> Any:
        """``array[index]`` on the host; the index may be an array there."""
        return self.xp.asnumpy(array[self._index(index)])

    def put(self, array: Any, index: object, values: ArrayLike) -> None:
        """``array[index] = values``, both of the host."""
        array[self._index(index)] = self.xp.asarray(np.asarray(values, array.dtype))

    def _index(self, index: object) -> object:
        return self.xp.asarray(index) if isinstance(index, np.ndarray) else index

    def as_callers_library(self, array: object) -> Any:
        """Array of the caller's library, without a copy, but for libraries whose arrays have no gaps."""
        return self._where[0].from_cupy(array)

    def owns(self, array: Any) -> bool:
        """Whether an array is CuPy's, and here."""
        return isinstance(array, self.xp.ndarray) and int(array.device.id) == self._where[1]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Context on the device, and on the stream the caller works on."""
        library, number = self._where
        with self.xp.cuda.Device(number), library.stream(number):
            yield
