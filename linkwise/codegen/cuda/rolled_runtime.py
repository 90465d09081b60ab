"""Programs with loops on a GPU: their tables brought there, memory lent for a call, and launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.codegen.cuda.layout import Kind
from linkwise.codegen.cuda.lent import lent
from linkwise.codegen.cuda.rolled import rolled_kernel
from linkwise.codegen.cuda.rolled_plan import Tables, planned
from linkwise.codegen.cuda.runtime import compiled_kernel, cupy
from linkwise.once import cached_property
from linkwise.tracing.program import Program

SCRATCH_BYTES = 4 << 30
"""Memory that the loops of one call work in, at most (but for one tile's); a larger batch takes turns."""

_WARPS = 16  # of each multiprocessor: what its registers can feed


class RolledDeviceProgram:
    """A program with loops for GPUs in one precision; is launched as a :class:`DeviceProgram` is.

    Args:
        program: what is computed.
        dtype: float64 or float32.
    """

    rollout = None
    takes_addresses = True

    def __init__(self, program: Program, dtype: Any) -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        self._ready: dict[int, tuple[Any, Any, Any, int]] = {}

    @cached_property
    def _kernel(self) -> Any:
        return rolled_kernel(self.program, self.dtype.itemsize * 8)

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.program, planned(self.program))

    def in_place(self, kinds: tuple[Kind, ...]) -> bool:
        """Yes: the rows of a tile are read before its results are written."""
        return True

    def launch(self, arrays: Sequence[Any], kinds: tuple[Kind, ...], count: int, steps: int | None = None) -> None:
        """Run on the current device and stream.

        Args:
            arrays: inputs then outputs, laid out as ``kinds`` says; those in lanes as tiles (tiles, size, lanes).
            kinds: how each array comes.
            count: states.
            steps: None; there are no rollouts of loops.
        """
        if count == 0:
            return
        launcher, table, numbers, most = self._on_device()
        lanes = self._kernel.threads
        name, tiles = self.program.name, min(-(-count // lanes), most)
        scratch, blocks = lent(name, tiles, self._tables.size, self.dtype, SCRATCH_BYTES)
        sizes = [spec.size for spec in (*self.program.inputs, *self.program.outputs)]
        apart = [
            {"rows": (size, 1), "one": (0, 1), "columns": (1, count)}[k] for k, size in zip(kinds, sizes, strict=True)
        ]
        strides = [np.int64(x) for both in apart for x in both]
        own = (*arrays, scratch, table, numbers, np.int64(count), *strides)
        launcher((blocks,), (lanes,), own, shared_mem=self._kernel.shared_bytes)

    def _on_device(self) -> tuple[Any, Any, Any, int]:
        """What a launch needs on the current device: the kernel, its tables, and how many blocks run at a time."""
        cp = cupy()
        device = cp.cuda.Device()
        known = self._ready.get(device.id)
        if known is None:
            launcher = compiled_kernel(cp, self._kernel)
            table = cp.asarray(self._tables.whole_numbers)
            numbers = cp.asarray(self._tables.numbers(self.dtype))
            most = _WARPS * int(device.attributes.get("MultiProcessorCount", 64))
            known = self._ready[device.id] = (launcher, table, numbers, most)
        return known
