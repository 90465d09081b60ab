"""CuPy played by NumPy, for whole simulations: its arrays refuse what CuPy's refuse.

No way from a :class:`DeviceArray` to NumPy but ``asnumpy``, none from NumPy to it but ``asarray``: an index, an operand
or a value of the other side is an error, as it is on a real device (or there a slow surprise).
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from tests.targets.cuda.emulation import LANES
from tests.targets.cuda.fakes import Fakes


class DeviceArray:
    """A CuPy array."""

    __module__ = "cupy"
    __array_ufunc__ = None  # NumPy's functions refuse it

    def __init__(self, inner: Any, device: int = 0) -> None:
        self.inner, self.device_id = np.asarray(inner), device

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device_id)

    @property
    def device(self) -> Any:
        return types.SimpleNamespace(id=self.device_id)

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.inner.ctypes.data)

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "strides", "nbytes", "flags"):
            return getattr(self.inner, name)
        if name in ("reshape", "astype", "copy", "all", "any", "max", "min", "sum"):
            method = getattr(self.inner, name)
            return lambda *args, **kwargs: DeviceArray(method(*args, **kwargs), self.device_id)
        raise AttributeError(name)

    def __len__(self) -> int:
        return len(self.inner)

    def __bool__(self) -> bool:
        raise AssertionError("the host waits for the device to learn one truth value")

    def __getitem__(self, index: Any) -> DeviceArray:
        return DeviceArray(self.inner[_index(index)], self.device_id)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        self.inner[_index(index)] = value.inner if isinstance(value, DeviceArray) else value


def _operator(name: str) -> Any:
    def applied(self: DeviceArray, *others: Any) -> DeviceArray:
        return DeviceArray(getattr(self.inner, name)(*map(_inner, others)), self.device_id)

    return applied


for _name in ["add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "pow", "neg", "and", "gt"]:
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))


def _inner(value: Any) -> Any:
    """An operand or an argument, which must not be an array of the host."""
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (list, tuple)):
        return type(value)(map(_inner, value))
    return value.inner if isinstance(value, DeviceArray) else value


def _index(index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, (np.ndarray, list)) for part in parts):
        raise TypeError("an index from the host")
    found = tuple(part.inner if isinstance(part, DeviceArray) else part for part in parts)
    return found if isinstance(index, tuple) else found[0]


class Tensor(DeviceArray):
    """A PyTorch tensor on a GPU."""

    __module__ = "torch"
    is_cuda, requires_grad = True, False

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.inner


def _cupy(fakes: Fakes) -> Any:
    fake = fakes.cupy
    fake.ndarray = DeviceArray

    def made(values: Any) -> DeviceArray:
        return DeviceArray(values, fake.cuda.Device.current)

    def asarray(value: Any, dtype: Any = None) -> DeviceArray:
        if isinstance(value, DeviceArray):
            same = type(value) is DeviceArray and dtype in (None, value.dtype)
            return value if same else made(np.asarray(value.inner, dtype))
        fake.uploads += 1
        return made(np.array(value, dtype))

    def asnumpy(value: Any) -> Any:
        assert isinstance(value, DeviceArray)
        fake.downloads += 1
        fake.downloaded += value.size
        return value.inner.copy()

    fake.downloads = fake.downloaded = 0
    fake.asarray, fake.asnumpy = asarray, asnumpy
    empty = fake.empty
    fake.empty = lambda shape, dtype=float: made(np.asarray(empty(shape, dtype)))
    fake.zeros = lambda shape, dtype=float: made(np.zeros(shape, dtype))

    def of_numpy(function: Any) -> Any:
        def there(*arguments: Any, **options: Any) -> Any:
            found = function(*map(_inner, arguments), **options)
            return tuple(map(made, found)) if isinstance(found, tuple) else made(found)

        return there

    def solve(a: Any, b: Any) -> Any:
        if a.shape[:-1] != b.shape[:-1]:  # CuPy's broadcasts nothing
            raise ValueError("a must have (..., M, M) shape and b must have (..., M) or (..., M, K)")
        return np.linalg.solve(a, b)

    names = ("isfinite", "broadcast_to", "swapaxes", "eye", "full", "zeros_like", "where", "sqrt", "maximum")
    for name in (*names, "concatenate", "einsum"):
        setattr(fake, name, of_numpy(getattr(np, name)))
    fake.nan = np.nan
    fake.linalg = types.SimpleNamespace(
        cholesky=of_numpy(np.linalg.cholesky), svd=of_numpy(np.linalg.svd), solve=of_numpy(solve)
    )
    fake.ascontiguousarray = lambda a, dtype=None: made(np.ascontiguousarray(a.inner, dtype))
    fakes.torch.empty = lambda shape, dtype, device: Tensor(np.empty(shape, dtype.rpartition(".")[2]))
    fakes.torch.from_dlpack = lambda a: Tensor(a.inner, a.device_id)
    return fake


@pytest.fixture
def strict(fakes: Fakes) -> Any:
    """A strict CuPy in place of the real one, for one test; a warp has four threads."""
    assert LANES == 4
    return _cupy(fakes)
