"""Layouts of CPython's and NumPy's objects in memory, checked before anything relies on them.

A single-state function reads an ndarray's fields in place. The layout it expects has been the same for
every NumPy since 1.7, but it is not a promise we were given: it is compared with real arrays at first
use, and where anything differs there is no such function and the ordinary path serves.
"""

from __future__ import annotations

import ctypes
import importlib
import struct
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

# Offsets in bytes, 64-bit builds: PyObject_HEAD is a reference count and a type.
TYPE, DATA, NDIM, DIMS, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

SIZE = 16
"""Offset of a tuple's length."""

ITEMS = tuple.__basicsize__
"""Offset of a tuple's items."""

# Positions in NumPy's table of C functions.
_NEW_FROM_DESCR, _RETURN = 94, 76

_PYTHON = (
    "PyObject_Vectorcall",
    "PyDict_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "Py_IncRef",
    "Py_DecRef",
    "PyLong_AsVoidPtr",
    "PyLong_AsSize_t",
    "PyErr_Clear",
    "PyMem_RawMalloc",
    "PyMem_RawFree",
    "PyErr_NoMemory",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)


def available() -> bool:
    """Whether this interpreter and this NumPy are laid out as expected."""
    return trouble() is None


@cache
def trouble() -> str | None:
    """Name of something that is not laid out as expected; None if all is."""
    for wrong, words in (
        (sys.implementation.name != "cpython", f"the interpreter is {sys.implementation.name}"),
        (bool(sysconfig.get_config_var("Py_GIL_DISABLED")), "the interpreter is a free-threaded one"),
        (struct.calcsize("P") != 8 or sys.byteorder != "little", "addresses are not of 64 bits, the lowest first"),
        (hasattr(sys, "gettotalrefcount"), "the interpreter is a debug build"),
    ):
        if wrong:
            return words
    try:
        fits = all(map(_as_expected, _probes())) and _items_as_expected() and _allocates()
    except Exception:  # whatever goes wrong here means "not the layout we know"
        fits = False
    return None if fits else "arrays or tuples lie in memory otherwise than expected"


def _probes() -> list[Any]:
    grid = np.arange(24.0).reshape(2, 3, 4)
    return [np.zeros(7), grid, grid.T, grid[:, ::2], np.array(3.0), np.zeros((0, 5)), np.zeros(3, "f4")]


def _as_expected(array: Any) -> bool:
    """One array's fields, read in place, against what Python says of it."""
    raw = ctypes.string_at(id(array), FLAGS + 8)

    def pointer(offset: int) -> int:
        return int(struct.unpack_from("<Q", raw, offset)[0])

    ndim, flags = (struct.unpack_from("<i", raw, offset)[0] for offset in (NDIM, FLAGS))
    fields = (
        pointer(TYPE) == id(type(array))
        and pointer(DATA) == array.ctypes.data
        and ndim == array.ndim
        and pointer(DESCR) == id(array.dtype)
        and flags == array.flags.num
        and bool(flags & C_CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & ALIGNED) == array.flags.aligned
        and bool(flags & WRITEABLE) == array.flags.writeable
    )
    # Strides lie behind the dimensions in one piece of memory: only then are the pointers what we take them for.
    if not fields or (ndim and pointer(DIMS + 8) != pointer(DIMS) + 8 * ndim):
        return False
    return struct.unpack(f"<{ndim}q", ctypes.string_at(pointer(DIMS), 8 * ndim)) == array.shape if ndim else True


def _items_as_expected() -> bool:
    things = (object(), object(), object())
    fits = ctypes.string_at(id(things) + SIZE, 8) == struct.pack("<Q", len(things))
    return fits and ctypes.string_at(id(things) + ITEMS, 24) == struct.pack("<3Q", *map(id, things))


def _allocates() -> bool:
    """NumPy's table has at the expected place the function that makes an array."""
    table = addresses()
    head: list[Any] = [ctypes.py_object, ctypes.py_object, ctypes.c_int]
    kinds = head + [ctypes.c_void_p] * 3 + [ctypes.c_int, ctypes.c_void_p]
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(table["lw_array_new"])
    descr = np.dtype(np.float64)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(descr))  # the call takes a reference of its own
    dims = (ctypes.c_int64 * 2)(3, 2)
    made: Any = new(np.ndarray, descr, 2, ctypes.addressof(dims), None, None, 0, None)
    usual = type(made) is np.ndarray and made.shape == (3, 2) and made.dtype is descr and made.flags.owndata
    scalar = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(table["lw_array_return"])
    empty = np.array(2.5)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(empty))
    number: Any = scalar(id(empty))
    return usual and type(number) is np.float64 and number == 2.5 and np.zeros(1).dtype is descr


def _careful_data_address(array: Any) -> int:
    return int(array.ctypes.data)


def _quick_data_address(array: Any) -> int:
    return _word_at(id(array) + DATA).value or 0


_word_at = ctypes.c_void_p.from_address


@cache
def data_address() -> Callable[[Any], int]:
    """A function that tells where an array's numbers lie; read in place, that takes a tenth of NumPy's way."""
    return _quick_data_address if available() else _careful_data_address


@cache
def addresses() -> dict[str, int]:
    """Addresses that a single-state function links to: functions, types and constants of the running process."""
    found = {name: _address(getattr(ctypes.pythonapi, name)) for name in _PYTHON}
    home = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    core: Any = importlib.import_module(f"{home}._multiarray_umath")
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = ctypes.cast(get(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    found["lw_array_new"] = int(table[_NEW_FROM_DESCR] or 0)
    found["lw_array_return"] = int(table[_RETURN] or 0)
    found["lw_ndarray"] = id(np.ndarray)
    for name in ("float64", "float32"):
        found[f"lw_{name}"] = id(np.dtype(name))  # a singleton of NumPy, never freed
    found.update(
        {"lw_int": id(int), "lw_str": id(str), "lw_none": id(None), "lw_out": id(_OUT), "lw_threads": id(_THREADS)}
    )
    return found


# The names of keywords as they are written in any module; others go the ordinary way.
_OUT, _THREADS = sys.intern("out"), sys.intern("threads")

TUPLE_NEW = tuple.__new__  # kept: each look-up may make a new object


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
