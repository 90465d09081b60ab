"""CuPy as far as kernels need it: they are compiled, and given memory to work in.

CuPy brings NVRTC, so nothing but the driver is needed on the user's machine, and keeps what it compiled on disk.
It is imported here and in :mod:`linkwise.targets.cuda.exchange`, when a kernel is first wanted.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

from linkwise.array_types import Precision
from linkwise.errors import LinkwiseError, require_extra
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.source import Kernel

# No contraction: the kernel's text says where multiply-adds are fused, and so results do not depend on the compiler.
OPTIONS = ("--std=c++17", "--fmad=false")

WORKING_BYTES = 4 << 30
"""Memory that a call's states work in, or that lies between its kernels, at most (but for one tile's)."""

_PLAIN_SHARED = 48 * 1024  # beyond this a kernel must ask
_kept: list[object] = []  # memory that a captured graph works in whenever it runs


def cupy() -> Any:
    """CuPy, or an error that names the extra."""
    return require_extra("cupy", "cuda")


class Launcher(Protocol):
    """A compiled kernel: a function that launches it."""

    max_dynamic_shared_size_bytes: int

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[object, ...], *, shared_mem: int
    ) -> None:
        """Launch so many blocks of so many threads."""


class _Stream:
    """Another library's stream, as CuPy takes it."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._pointer


def external_stream(pointer: int) -> AbstractContextManager[object]:
    """Context in which CuPy works on another library's stream."""
    cuda = cupy().cuda
    take = getattr(cuda.Stream, "from_external", None)  # CuPy 14; before, ExternalStream
    stream: AbstractContextManager[object] = take(_Stream(pointer)) if take else cuda.ExternalStream(pointer)
    return stream


@cache
def launch_address() -> int:
    """Address of the driver's function that launches kernels; zero where there is none."""
    try:
        launch = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
    except (OSError, AttributeError):
        return 0
    return int(ctypes.cast(launch, ctypes.c_void_p).value or 0)


def shared_bytes(known: dict[int, int]) -> int:
    """Shared memory that a block may have on the current device; asked once for each, since asking is slow."""
    device = cupy().cuda.Device()
    if device.id not in known:
        known[device.id] = int(device.attributes.get("MaxSharedMemoryPerBlockOptin", _PLAIN_SHARED))
    return known[device.id]


def compiled_kernels(kernels: Sequence[Kernel]) -> list[Launcher]:
    """Launchers of some kernels, compiled side by side for the current device."""
    cp = cupy()
    device = cp.cuda.Device().id

    def on_device(kernel: Kernel) -> Launcher:
        with cp.cuda.Device(device):
            return compiled_kernel(cp, kernel)

    with ThreadPoolExecutor(max(1, min(len(kernels), os.cpu_count() or 1))) as pool:
        return list(pool.map(on_device, kernels))


def compiled_kernel(cp: Any, kernel: Kernel) -> Launcher:
    """Launcher of a kernel, compiled for the current device."""
    try:
        launcher: Launcher = cp.RawModule(code=kernel.text, options=OPTIONS).get_function(kernel.name)
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


def working_memory(name: str, tiles: int, size: int, dtype: Precision, least: int = 0) -> tuple[Any, int]:
    """Memory of the device for tiles of states, which a call works in, and for how many of them there is room.

    Args:
        name: of the program that works in it.
        tiles: wanted.
        size: numbers for each state.
        dtype: of these.
        least: bytes that there are to be, if more than WORKING_BYTES.
    """
    tile = max(1, size) * layouts.LANES[0]
    tiles = max(1, min(tiles, max(WORKING_BYTES, least) // (tile * dtype.itemsize)))
    while True:
        try:
            memory = cupy().empty(tiles * tile, dtype)
            if _is_captured():
                _kept.append(memory)
            return memory, tiles
        except Exception as error:
            if "OutOfMemory" not in type(error).__name__:
                raise
            if tiles == 1:
                raise LinkwiseError(
                    f"the GPU has no room for the memory that {name} works in",
                    got=f"{tile * dtype.itemsize / 1e9:.2f} GB for {layouts.LANES[0]} states",
                    do="free arrays that are no longer needed, or compute on the CPU",
                ) from error
            tiles //= 2


def zeros(count: int) -> Any:
    """So many whole numbers on the device, zero when what is launched next begins."""
    made = cupy().zeros(count, "int64")
    if _is_captured():
        _kept.append(made)
    return made


def _is_captured() -> bool:
    """Whether calls become a graph that runs later."""
    asked = getattr(cupy().cuda.get_current_stream(), "is_capturing", None)
    return asked is not None and bool(asked())
