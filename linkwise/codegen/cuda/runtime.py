"""Kernels compiled and launched, through CuPy.

CuPy brings NVRTC, so nothing but the driver is needed on the user's machine, and keeps what it compiled on disk.
It is imported here and in :mod:`linkwise.codegen.cuda.exchange`, when a kernel is first wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.codegen.cuda.layout import Kind
from linkwise.codegen.cuda.source import Kernel, batch_kernel, rollout_kernel
from linkwise.codegen.steps import Rollout
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
        rollout: for many steps of it in one launch.
    """

    def __init__(self, program: Program, dtype: Any, rollout: Rollout | None = None) -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        self.rollout = rollout
        self._texts: dict[tuple[Any, ...], Kernel] = {}
        self._memory: dict[int, int] = {}
        self._launchers: dict[tuple[Any, ...], tuple[Kernel, Any]] = {}

    def kernel(self, kinds: tuple[Kind, ...]) -> Kernel:
        """The text for arrays that come in these ways, and for the current device."""
        available = self._shared_bytes()
        made = self._texts.get((kinds, available))
        if made is None:
            bits = self.dtype.itemsize * 8
            if self.rollout is None:
                made = batch_kernel(self.program, bits, kinds, available)
            else:
                made = rollout_kernel(self.program, bits, self.rollout, kinds, available)
            self._texts[kinds, available] = made
        return made

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
        kernel, launcher = self._launcher(kinds)
        last = () if steps is None else (np.int32(steps),)
        arguments = (*arrays, np.int64(count), *last)
        launcher((kernel.blocks(count),), (kernel.threads,), arguments, shared_mem=kernel.shared_bytes)

    def _launcher(self, kinds: tuple[Kind, ...]) -> tuple[Kernel, Any]:
        cp = cupy()
        key = (kinds, cp.cuda.Device().id)
        known = self._launchers.get(key)
        if known is None:
            kernel = self.kernel(kinds)
            known = self._launchers[key] = (kernel, _compiled(cp, kernel))
        return known


def _compiled(cp: Any, kernel: Kernel) -> Any:
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
