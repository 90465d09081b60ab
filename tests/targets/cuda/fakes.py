"""Libraries of a machine with a GPU, played by NumPy: enough of CuPy, PyTorch and JAX for a call to go all the way.

Kernels run by emulation, on the memory that the arrays claim to have on the device.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linkwise.targets.cuda.source import Kernel
from tests.targets.cuda.emulation import LANES, Emulated

_compiled: dict[str, Emulated] = {}


class CupyArray(np.ndarray):
    """A CuPy array: a NumPy array that says it is on a device."""

    __module__ = "cupy"
    device_id = 0

    def __array_finalize__(self, parent: Any) -> None:
        self.device_id = getattr(parent, "device_id", 0)

    @property
    def device(self) -> Any:
        return types.SimpleNamespace(id=self.device_id)

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.__array_interface__["data"][0])

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device_id)


class Tensor:
    """A PyTorch tensor."""

    __module__ = "torch"

    def __init__(self, array: Any, requires_grad: bool = False) -> None:
        self.array, self.requires_grad = array.view(CupyArray), requires_grad

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.array.device_id)

    @property
    def dtype(self) -> str:
        return sys.intern(f"torch.{self.array.dtype.name}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def __cuda_array_interface__(self) -> Any:
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")
        return self.array

    is_cuda = True

    @property
    def device(self) -> Any:
        return types.SimpleNamespace(index=self.array.device_id)

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def data_ptr(self) -> int:
        return self.array.data.ptr

    def new_empty(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(np.full(shape, np.nan, self.array.dtype))

    def movedim(self, source: int, goal: int) -> Tensor:
        return Tensor(np.moveaxis(self.array, source, goal))


class JaxArray:
    """A JAX array: lent by DLPack only, never written to."""

    __module__ = "jaxlib._jax"

    def __init__(self, array: Any) -> None:
        self.array = array.view(CupyArray)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.array.device_id)

    @property
    def dtype(self) -> Any:
        return self.array.dtype


class _Launcher:
    """What ``get_function`` returns."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, fake: Any, code: str, name: str) -> None:
        self.fake, self.code, self.name = fake, code, name

    def __call__(self, grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
        assert shared_mem <= max(48 * 1024, self.max_dynamic_shared_size_bytes)
        assert shared_mem <= self.fake.shared_bytes
        numbers = [int(a) for a in arguments if isinstance(a, np.int64)]
        turns = "const long long lw_begin" in self.code  # the first and the last state come after the count
        count = numbers[-1] if "const long long count)" in self.code else numbers[-3] if turns else numbers[0]
        loops = "lw_records" in self.code and not turns  # which take turns
        some = numbers[-1] - numbers[-2] if turns else count
        tile = re.search(r"#define LW_STATES (\d+)", self.code)
        blocks = -(-some // (int(tile[1]) if tile else block[0]))
        assert 1 <= grid[0] <= blocks if loops else grid == (blocks,)
        self.fake.launches.append((self.name, count, self.fake.cuda.Device.current, self.fake.cuda.stream))
        kernel = Kernel(self.name, self.code, block[0], shared_mem, True)
        key = hashlib.sha256(self.code.encode()).hexdigest()[:16]
        if key not in _compiled:
            folder = Path(tempfile.mkdtemp(prefix="linkwise-emulated-"))
            _compiled[key] = Emulated.of(kernel, len(arguments), folder)
            shutil.rmtree(folder)
        _compiled[key].launch([int(a) if isinstance(a, np.generic) else a.data.ptr for a in arguments], grid[0])


class _Module:
    def __init__(self, fake: Any, code: str, options: Any) -> None:
        self.fake, self.code = fake, code
        if fake.compile_error is not None:
            raise fake.compile_error

    def get_function(self, name: str) -> _Launcher:
        return _Launcher(self.fake, self.code, name)


def _device(fake: Any) -> Any:
    class Device:
        current = 0

        def __init__(self, number: int | None = None) -> None:
            self.id = Device.current if number is None else number
            self.attributes = {"MaxSharedMemoryPerBlockOptin": fake.shared_bytes}

        def __enter__(self) -> None:
            self.before, Device.current = Device.current, self.id

        def __exit__(self, *error: Any) -> None:
            Device.current = self.before

    return Device


def _stream(cuda: Any) -> Any:
    class ExternalStream:
        def __init__(self, pointer: int) -> None:
            self.pointer = pointer

        def __enter__(self) -> None:
            self.before, cuda.stream = cuda.stream, self.pointer

        def __exit__(self, *error: Any) -> None:
            cuda.stream = self.before

    return ExternalStream


def _cupy() -> types.ModuleType:
    fake: Any = types.ModuleType("cupy")
    fake.launches = []
    fake.shared_bytes, fake.compile_error, fake.most_bytes = 227 * 1024, None, 1 << 30
    fake.uploads = 0

    def asarray(value: Any, dtype: Any = None) -> Any:
        if not isinstance(value, CupyArray):
            lent = getattr(value, "__cuda_array_interface__", None)
            fake.uploads += lent is None
            value = np.array(value).view(CupyArray) if lent is None else lent
        return np.asanyarray(value, dtype)

    class OutOfMemoryError(Exception):
        pass

    def empty(shape: Any, dtype: Any = float) -> Any:
        if np.prod(shape) * np.dtype(dtype).itemsize > fake.most_bytes:
            raise OutOfMemoryError("out of memory")
        made = np.full(shape, np.nan, dtype).view(CupyArray)
        made.device_id = fake.cuda.Device.current
        return made

    fake.ndarray, fake.asarray, fake.empty = CupyArray, asarray, empty
    fake.asnumpy = np.array
    fake.empty_like = lambda a: np.empty_like(a)
    fake.zeros = lambda shape, dtype=float: np.zeros(shape, dtype).view(CupyArray)
    fake.arange = lambda *ends: np.arange(*ends).view(CupyArray)
    fake.concatenate = lambda arrays, axis=0: np.concatenate(arrays, axis).view(CupyArray)
    fake.ascontiguousarray = lambda a: a if a.flags.c_contiguous else a.copy(order="C")
    fake.broadcast_to = lambda a, shape: np.broadcast_to(a, shape, subok=True)
    fake.moveaxis = np.moveaxis
    fake.from_dlpack = lambda a: a.array
    fake.RawModule = lambda code, options: _Module(fake, code, options)
    fake.cuda = types.SimpleNamespace(stream="current")
    fake.cuda.Device = _device(fake)
    fake.cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=fake.cuda.stream)
    fake.cuda.Stream = types.SimpleNamespace()
    fake.cuda.Stream.from_external = lambda stream: _stream(fake.cuda)(stream.__cuda_stream__()[1])
    return fake


def _torch(cupy: Any) -> types.ModuleType:
    fake: Any = types.ModuleType("torch")
    fake.Tensor, fake.float32, fake.float64 = Tensor, sys.intern("torch.float32"), sys.intern("torch.float64")
    fake.empty = lambda shape, dtype, device: Tensor(cupy.empty(shape, dtype.rpartition(".")[2]))
    fake.cuda = types.SimpleNamespace(
        current_stream=lambda device: types.SimpleNamespace(cuda_stream=f"torch {device}")
    )
    return fake


class Fakes:
    """The modules, in place of the real ones."""

    def __init__(self) -> None:
        self.cupy: Any = _cupy()
        self.torch: Any = _torch(self.cupy)
        self.jax: Any = types.ModuleType("jax")
        self.jax.dlpack = types.ModuleType("jax.dlpack")
        self.jax.dlpack.from_dlpack = JaxArray

    def array(self, values: Any, dtype: Any = float, device: int = 0, order: str = "C") -> CupyArray:
        made = np.array(values, dtype, order=order).view(CupyArray)
        made.device_id = device
        return made


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    """CuPy, PyTorch and JAX as far as needed, for one test."""
    made = Fakes()
    for name, module in (
        ("cupy", made.cupy),
        ("torch", made.torch),
        ("jax", made.jax),
        ("jax.dlpack", made.jax.dlpack),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    # A warp is four threads here, so a block covers fewer states.
    monkeypatch.setattr("linkwise.targets.cuda.tile_layout.LANES", (LANES,))
    return made
