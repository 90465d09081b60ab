"""Kernels compiled and launched, through CuPy.

CuPy brings NVRTC, so nothing but the driver is needed on the user's machine, and keeps what it compiled on disk.
It is imported here and in :mod:`linkwise.codegen.cuda.exchange`, when a kernel is first wanted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from linkwise.codegen.cuda.layout import Kind
from linkwise.codegen.cuda.parts import Part, split
from linkwise.codegen.cuda.source import Kernel, batch_kernel, rollout_kernel, wide_results
from linkwise.codegen.steps import Repetition
from linkwise.errors import LinkwiseError, require_extra
from linkwise.tracing.program import Program

# No contraction: the kernel's text says where multiply-adds are fused, and so results do not depend on the compiler.
OPTIONS = ("--std=c++17", "--fmad=false")

_PLAIN_SHARED = 48 * 1024  # beyond this a kernel must ask


def cupy() -> Any:
    """CuPy, or an error that names the extra."""
    return require_extra("cupy", "cuda")


class DeviceProgram:
    """A program for GPUs in one precision: a kernel for each way its arrays can lie, compiled when first needed.

    Args:
        program: what is computed.
        dtype: float64 or float32.
        routine: for many steps of it in one launch.
    """

    takes_addresses = True
    """Whether arrays may be given by their addresses alone."""

    def __init__(self, program: Program, dtype: Any, routine: Repetition | None = None) -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        self.routine = routine
        self.rollout = None if routine is None else routine.rollout
        self._texts: dict[tuple[Any, ...], list[tuple[Part, Kernel]]] = {}
        self._memory: dict[int, int] = {}
        self._launchers: dict[tuple[Any, ...], list[tuple[Part, Kernel, Any]]] = {}

    def kernels(self, kinds: tuple[Kind, ...]) -> list[tuple[Part, Kernel]]:
        """The texts for arrays that come in these ways, and for the current device: one, or those of several parts."""
        available = self._shared_bytes()
        made = self._texts.get((kinds, available))
        if made is None:
            made = self._texts[kinds, available] = self._written(kinds, available)
        return made

    def _written(self, kinds: tuple[Kind, ...], available: int) -> list[tuple[Part, Kernel]]:
        bits, cut = self.dtype.itemsize * 8, len(self.program.inputs)
        if self.routine is not None:
            whole = Part(self.program, tuple(range(len(self.program.outputs))), {})
            return [(whole, rollout_kernel(self.routine, bits, kinds, available))]
        made = []
        for part in split(self.program, wide_results(self.program, bits, kinds)):
            own = (*kinds[:cut], *(kinds[cut + k] for k in part.outputs))
            made.append((part, batch_kernel(part.program, bits, own, available, part.pieces)))
        return made

    def in_place(self, kinds: tuple[Kind, ...]) -> bool:
        """Whether an output may be the same array as an input."""
        made = self.kernels(kinds)
        return len(made) == 1 and made[0][1].in_place

    def _shared_bytes(self) -> int:
        """Shared memory that a block may have on the current device; asked once, since asking is slow."""
        device = cupy().cuda.Device()
        known = self._memory.get(device.id)
        if known is None:
            known = int(device.attributes.get("MaxSharedMemoryPerBlockOptin", _PLAIN_SHARED))
            self._memory[device.id] = known
        return known

    def launch(self, arrays: Sequence[Any], kinds: tuple[Kind, ...], count: int, steps: int | None = None) -> None:
        """Run on the current device and stream.

        Args:
            arrays: inputs then outputs, laid out as ``kinds`` says: CuPy's, or addresses as ``numpy.uint64``.
            kinds: how each array comes.
            count: states.
            steps: for a rollout.
        """
        if count == 0:
            return
        cut, last = len(self.program.inputs), () if steps is None else (np.int32(steps),)
        for part, kernel, launcher in self._loaded(kinds):
            own = (*arrays[:cut], *(arrays[cut + k] for k in part.outputs), np.int64(count), *last)
            launcher((kernel.blocks(count),), (kernel.threads,), own, shared_mem=kernel.shared_bytes)

    def _loaded(self, kinds: tuple[Kind, ...]) -> list[tuple[Part, Kernel, Any]]:
        cp = cupy()
        device = cp.cuda.Device().id
        known = self._launchers.get((kinds, device))
        if known is None:
            made = self.kernels(kinds)

            def on_device(kernel: Kernel) -> Any:
                with cp.cuda.Device(device):
                    return compiled_kernel(cp, kernel)

            with ThreadPoolExecutor(max(1, min(len(made), os.cpu_count() or 1))) as pool:
                launchers = list(pool.map(on_device, [kernel for _, kernel in made]))
            known = [(part, kernel, launcher) for (part, kernel), launcher in zip(made, launchers, strict=True)]
            self._launchers[kinds, device] = known
        return known


def compiled_kernel(cp: Any, kernel: Kernel) -> Any:
    """What launches a kernel, compiled for the current device."""
    try:
        launcher = cp.RawModule(code=kernel.text, options=OPTIONS).get_function(kernel.name)
    except Exception as error:
        if type(error).__name__ not in ("CompileException", "NVRTCError"):
            raise
        raise LinkwiseError(
            f"NVRTC did not compile {kernel.name}",
            got=str(error)[:500],
            do='check that CuPy fits the CUDA driver: python -c "import cupy; cupy.show_config()"',
        ) from error
    if kernel.shared_bytes > _PLAIN_SHARED:
        launcher.max_dynamic_shared_size_bytes = kernel.shared_bytes
    return launcher
