"""Arrays between pages that must not be touched: a read or write outside ends the process at once.

The numbers lie flush against one of the two guard pages, or a few bytes away from it; the bytes in between, and all
others of the array's own pages, are filled with a pattern that :meth:`Guarded.intact` looks at.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from functools import cache
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE
_PATTERN = 0xA5
_NO_ACCESS = 0


@cache
def _mprotect() -> Any:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


def protect(address: int, size: int, access: int) -> None:
    """Change what may be done with whole pages."""
    if _mprotect()(address, size, access) != 0:
        raise OSError(ctypes.get_errno(), "mprotect failed")


def available() -> bool:
    """Whether this system protects pages the way we ask."""
    return hasattr(mmap, "PROT_READ")


class Guarded:
    """One array, ``shift`` bytes from the guard page at its ``side``.

    Args:
        shape: of the array.
        dtype: of the array.
        side: "start" or "end": which of its ends lies at a guard page.
        shift: bytes between; 0 is flush, 1 to 7 leave the numbers misaligned.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, side: str = "end", shift: int = 0) -> None:
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        self.inner = -(-max(size + shift, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, self.inner + 2 * PAGE)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + PAGE
        self._first = shift if side == "start" else self.inner - size - shift
        self._last = self._first + size
        self._bytes = np.frombuffer(self._map, np.uint8, self.inner, PAGE)
        self._bytes[:] = _PATTERN
        self.array = np.frombuffer(self._map, kind, math.prod(shape), PAGE + self._first).reshape(shape)
        for guard in (self.start - PAGE, self.start + self.inner):
            protect(guard, PAGE, _NO_ACCESS)

    def intact(self) -> bool:
        """Whether nothing but the array itself was written to."""
        around = (self._bytes[: self._first], self._bytes[self._last :])
        return all(bool((part == _PATTERN).all()) for part in around)

    def close(self) -> None:
        """Let nobody touch the array itself any more, either."""
        protect(self.start, self.inner, _NO_ACCESS)

    def open(self) -> None:
        """Undo :meth:`close`."""
        protect(self.start, self.inner, mmap.PROT_READ | mmap.PROT_WRITE)
