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
from linkwise.codegen.cuda.source import Kernel, batch_kernel, rollout_kernel
from linkwise.codegen.steps import Repetition
from linkwise.errors import LinkwiseError, require_extra
from linkwise.tracing.block import Block

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

    def __init__(self, program: Block, dtype: Any, routine: Repetition | None = None) -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        self.routine = routine
        self.rollout = None if routine is None else routine.rollout
        self._memory: dict[int, int] = {}
        self._texts: dict[tuple[Any, ...], Kernel] = {}
        self._launchers: dict[tuple[Any, ...], tuple[Kernel, Any]] = {}

    def kernel(self, kinds: tuple[Kind, ...]) -> Kernel:
        """The text for arrays that come in these ways, and for the current device."""
        key = (kinds, shared_bytes(self._memory))
        made = self._texts.get(key)
        if made is None:
            made = self._texts[key] = self._written(*key)
        return made

    def _written(self, kinds: tuple[Kind, ...], available: int) -> Kernel:
        bits = self.dtype.itemsize * 8
        if self.routine is not None:
            return rollout_kernel(self.routine, bits, kinds, available)
        return batch_kernel(self.program, bits, kinds, available)

    def in_place(self, kinds: tuple[Kind, ...]) -> bool:
        """Whether an output may be the same array as an input."""
        return self.kernel(kinds).in_place

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
        kernel, launcher = self._loaded(kinds)
        last = () if steps is None else (np.int32(steps),)
        own = (*arrays, np.int64(count), *last)
        launcher((kernel.blocks(count),), (kernel.threads,), own, shared_mem=kernel.shared_bytes)

    def _loaded(self, kinds: tuple[Kind, ...]) -> tuple[Kernel, Any]:
        device = cupy().cuda.Device().id
        known = self._launchers.get((kinds, device))
        if known is None:
            kernel = self.kernel(kinds)
            known = self._launchers[kinds, device] = (kernel, compiled_kernel(cupy(), kernel))
        return known


def shared_bytes(known: dict[int, int]) -> int:
    """Shared memory that a block may have on the current device; asked once for each, since asking is slow."""
    device = cupy().cuda.Device()
    if device.id not in known:
        known[device.id] = int(device.attributes.get("MaxSharedMemoryPerBlockOptin", _PLAIN_SHARED))
    return known[device.id]


def compiled_kernels(kernels: Sequence[Kernel]) -> list[Any]:
    """What launches each of some kernels, compiled side by side for the current device."""
    cp = cupy()
    device = cp.cuda.Device().id

    def on_device(kernel: Kernel) -> Any:
        with cp.cuda.Device(device):
            return compiled_kernel(cp, kernel)

    with ThreadPoolExecutor(max(1, min(len(kernels), os.cpu_count() or 1))) as pool:
        return list(pool.map(on_device, kernels))


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
