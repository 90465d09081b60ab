"""Memory for results: that of large ones is used again.

Fresh memory is slow: the operating system hands it out page by page, each at its first touch and filled with zeros,
which takes as long as writing the results themselves. So the memory of a large result, when its last user lets go,
is kept for the next result of about the same size. Of what came back :func:`most_kept` bytes are kept when the next one
is made, those freed last; ``LINKWISE_KEPT_MEMORY=0`` in the environment (a number of MiB) keeps none.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections import deque
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

SMALLEST = 1 << 20
"""Bytes of a result from which on its memory is kept; the allocator recycles smaller pieces by itself."""

_DEFAULT_MIB = 256
_LENT = 4  # times as much may be lent and come back, which is kept until the next large result
_LINE = 64  # pieces begin where a line of the caches does


def most_kept() -> int:
    """Bytes that may be kept for later, by the environment."""
    try:
        return max(0, int(float(os.environ.get("LINKWISE_KEPT_MEMORY", _DEFAULT_MIB)) * (1 << 20)))
    except (ValueError, OverflowError):
        return _DEFAULT_MIB << 20


def _rounded(size: int) -> int:
    """The size of the piece that serves: at most an eighth more, so that there are few kinds of pieces."""
    step = max(1 << (size - 1).bit_length() - 4, _LINE)
    return -(-size // step) * step


@cache
def _lease(size: int) -> Any:
    """A type whose objects are pieces on loan: arrays hold one as their base; the last of them to go lets it go."""
    return type("Lease", (ctypes.c_char * size,), {})


class _Loan(weakref.ref[Any]):
    """A piece that comes back when its lease has no user any more."""

    __slots__ = ("piece",)
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    piece: NDArray[np.uint8]


class _FreeMemory:
    """The pieces that nobody uses, oldest first.

    A piece is given back without a line of Python: an interrupt that a finaliser met would be lost.
    """

    def __init__(self) -> None:
        self._pieces: list[NDArray[np.uint8]] = []
        self._bytes = 0
        self._lent: set[_Loan] = set()
        self._lent_bytes = 0
        self._returned: deque[_Loan] = deque()
        self._guard = threading.RLock()

    def take(self, size: int) -> NDArray[np.uint8]:
        """A piece of exactly so many bytes (and a line), of those kept or a new one."""
        with self._guard:
            self.settle()
            for k in range(len(self._pieces) - 1, -1, -1):  # that used last is likeliest to be in a cache
                if self._pieces[k].size == size + _LINE:
                    self._bytes -= size + _LINE
                    return self._pieces.pop(k)
        return np.empty(size + _LINE, np.uint8)

    def lend(self, piece: NDArray[np.uint8], lease: object) -> None:
        """Take a piece back when its lease goes; but for those beyond some times what is kept, which are freed then."""
        with self._guard:
            if self._lent_bytes + piece.size <= _LENT * most_kept():
                loan = _Loan(lease, self._returned.append)
                loan.piece = piece
                self._lent.add(loan)
                self._lent_bytes += piece.size

    def settle(self) -> None:
        """Put by what came back, and let go of the oldest while there are too many."""
        most = most_kept()
        with self._guard:
            while self._returned:
                loan = self._returned.popleft()
                self._lent.discard(loan)
                self._lent_bytes -= loan.piece.size
                self._pieces.append(loan.piece)
                self._bytes += loan.piece.size
            while self._bytes > most:
                self._bytes -= self._pieces.pop(0).size


_store = _FreeMemory()


def _forget() -> None:
    """Forget the lock: after a fork a thread may hold it that is not there."""
    global _store
    _store = _FreeMemory()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array with arbitrary contents, as ``np.empty`` makes it; where it is large, in memory that was used before."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < SMALLEST or not most_kept():
        return np.empty(shape, dtype)
    rounded = _rounded(size)
    piece = _store.take(rounded)
    lease = _lease(rounded).from_buffer(piece, -piece.ctypes.data % _LINE)
    _store.lend(piece, lease)
    return np.ndarray(shape, dtype, buffer=lease)


def steps_between(name: str, array: Any, count: int, size: int, *, shared: bool = False) -> tuple[int, int]:
    """Distances of a record's or a series' states and rows in memory, in numbers; 0 where one state serves all.

    Raises where an array is not (count, capacity, size), or (1, capacity, size) if ``shared``, with whole rows.
    """
    states = (1, count) if shared else (count,)
    itemsize = array.dtype.itemsize
    whole = array.ndim == 3 and array.shape[0] in states and array.shape[2] == size
    if not whole or (size > 1 and array.size and array.strides[2] != itemsize):
        raise ValueError(f"{name!r} is an array {array.shape}, not ({count}, …, {size}) with whole rows")
    apart = 0 if shared and array.shape[0] == 1 else array.strides[0] // itemsize
    return apart, array.strides[1] // itemsize
