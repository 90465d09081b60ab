"""A GPU as the home of a run: CuPy's arrays inside, the caller's library at its door."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from linkwise.errors import InputError, LinkwiseError
from linkwise.targets.cuda.launching import DeviceProgram
from linkwise.targets.cuda.libraries import library_of
from linkwise.targets.cuda.runtime import cupy
from linkwise.targets.cuda.target import on_device
from linkwise.targets.home import Home, Runner
from linkwise.trace.program import Program

# What a large card is known to do, and what a single thread does: operations take so long.
_TOGETHER, _ALONE = 1e-13, 3e-9


class Device(Home):
    """The GPU that some arrays are on; results are of the library of the first of them, on its stream."""

    name = "the GPU"

    def __init__(self, arrays: Sequence[Any]) -> None:
        there = [array for array in arrays if on_device(array)]
        self.xp = cupy()
        self.library = library_of(there[0])
        devices = {int(library_of(array).view(array).device.id) for array in there}
        if len(devices) > 1:
            raise InputError(
                "the arrays are on different GPUs",
                got=", ".join(map(str, sorted(devices))),
                allowed="one device for all",
                do="move them to one device first",
            )
        (self.number,) = devices

    def runner(self, routine: Program, dtype: np.dtype[Any], single_states: bool) -> Runner:
        """One state a thread, however few."""
        if not routine.is_compilable:
            raise InputError(
                "a function that runs in Python cannot be called from a GPU",
                allowed="functions that can be traced: lw.math.where instead of `if`, lw.math.sin instead of math.sin",
                do="rewrite it; or lw.Sampled(model, control, rate, python=True), which asks Python between the steps; "
                "or pass NumPy arrays",
            )
        return DeviceProgram(routine, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
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

    def seconds(self, operations: int, count: int) -> float:
        """Seconds, not less than one thread takes."""
        return operations * max(_ALONE, count * _TOGETHER)

    def to_device(self, array: Any) -> Any:
        """Copied to the device."""
        return self.xp.asarray(array)

    def to_host(self, array: Any) -> Any:
        """Copied to the host, when everything before it is done."""
        return self.xp.asnumpy(library_of(array).view(array)) if on_device(array) else np.asarray(array)

    def taken(self, array: Any, index: Any) -> Any:
        """``array[index]`` on the host; the index may be an array there."""
        return self.xp.asnumpy(array[self._index(index)])

    def put(self, array: Any, index: Any, values: Any) -> None:
        """``array[index] = values``, both of the host."""
        array[self._index(index)] = self.xp.asarray(np.asarray(values, array.dtype))

    def _index(self, index: Any) -> Any:
        return self.xp.asarray(index) if isinstance(index, np.ndarray) else index

    def as_callers_library(self, array: Any) -> Any:
        """Array of the caller's library, without a copy, but for libraries whose arrays have no gaps."""
        return self.library.from_cupy(array)

    def owns(self, array: Any) -> bool:
        """Whether an array is CuPy's, and here."""
        return isinstance(array, self.xp.ndarray) and int(array.device.id) == self.number

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Context on the device, and on the stream the caller works on."""
        with self.xp.cuda.Device(self.number), self.library.stream(self.number):
            yield
