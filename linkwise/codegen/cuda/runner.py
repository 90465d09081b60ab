"""A routine on a GPU: compiled when first wanted, launched on arrays there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwise.codegen.cuda.routine import parameters, routine_kernel
from linkwise.codegen.cuda.runtime import compiled_kernel, cupy, shared_bytes
from linkwise.codegen.cuda.source import Kernel
from linkwise.once import once
from linkwise.tracing.program import Program, steps_between


class DeviceRoutine:
    """A routine in one precision, for the current device.

    Its arrays are CuPy's, and may also be NumPy's: those are brought to the device for a run, and the rows among them
    that are stored come back, which waits for the kernel.
    """

    def __init__(self, routine: Program, dtype: Any) -> None:
        self.routine, self.dtype = routine, np.dtype(dtype)
        self._memory: dict[int, int] = {}
        self._kernels: dict[int, Kernel] = {}
        self._launchers: dict[int, Any] = {}

    @property
    def kernel(self) -> Kernel:
        """The text."""
        available = shared_bytes(self._memory)
        return once(self._kernels, available, lambda: routine_kernel(self.routine, self.dtype.itemsize * 8, available))

    def run(
        self,
        rows: Mapping[str, Any],
        tables: Mapping[str, Any],
        records: Mapping[str, Any],
        count: int,
        threads: int = 1,
    ) -> None:
        """As :meth:`linkwise.codegen.llvm.routine.RoutineKernel.run`; ``threads`` are the device's own affair."""
        cp = cupy()
        given = {**rows, **tables, **records}
        here = {name: cp.asarray(array) for name, array in given.items()}
        if count:
            self._launch(here, count)
        for buffer in self.routine.buffers:
            if buffer.store and isinstance(rows[buffer.name], np.ndarray):
                rows[buffer.name][...] = cp.asnumpy(here[buffer.name])

    def _launch(self, arrays: Mapping[str, Any], count: int) -> None:
        routine, kernel = self.routine, self.kernel
        numbers: dict[tuple[str, str], int] = {}
        for name, size in routine.records:
            apart = steps_between(name, arrays[name], count, size)
            numbers["apart", name], numbers["stride", name] = apart
        for name, size in routine.series:
            apart = steps_between(name, arrays[name], count, size, shared=True)
            numbers["apart", name], numbers["stride", name] = apart
        for name, width in routine.curves:
            members, length, own = arrays[name].shape
            if members not in (1, count) or own != width:
                raise ValueError(f"the curve {name!r} has shape {arrays[name].shape}, not ({count} or 1, …, {width})")
            numbers["apart", name], numbers["rows", name] = 0 if members == 1 else length * width, length
        arguments = [
            arrays[name] if kind == "array" else np.int64(numbers[kind, name]) for kind, name in parameters(routine)
        ]
        device = cupy().cuda.Device().id
        launcher = once(self._launchers, device, lambda: compiled_kernel(cupy(), kernel))
        launcher(
            (kernel.blocks(count),), (kernel.threads,), (*arguments, np.int64(count)), shared_mem=kernel.shared_bytes
        )
