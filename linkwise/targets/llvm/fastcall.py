"""Python functions whose whole call is machine code.

For a small robot the arithmetic takes a hundred nanoseconds, and unpacking arguments in Python several times as much.
So the builtin function itself is emitted: it looks at each ndarray in place, makes the result with NumPy's allocator,
runs the program and returns. It knows two kinds of arguments: those of one state, for which it carries the program on
plain scalars (in float64), and contiguous batches with one leading axis, for which it calls the batch kernel of their
precision, as soon as there is one; that also serves one state of float32, and any state of a program with loops. It
knows ``out=``, an array for the one result there is, and ``threads=``. Whatever is not exactly as expected (lists,
other dtypes, strides, other keywords) goes to a Python callable with the same arguments.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from linkwise.targets.llvm import jit, layouts, tiers
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.builtin import ENTRY, SLOW, WORDS, Result
from linkwise.trace.block import Block
from linkwise.trace.program import Program

# A program beyond this many nodes takes so long that a call's overhead does not show, and much stack.
LARGEST = 50_000

available = layouts.available


def identity() -> str:
    """Facts that the code relies on beyond the machine; part of the cache key."""
    offsets = (layouts.TYPE, layouts.DATA, layouts.NDIM, layouts.DIMS, layouts.DESCR, layouts.FLAGS)
    return f"ndarray at {' '.join(map(str, offsets))}, tuple at {layouts.ITEMS}"


def result_of(program: Block | Program, make_result: Callable[..., Any] | None) -> Result:
    """Type of the result of a program's function."""
    if make_result is None:
        return "array" if len(program.outputs) == 1 else "tuple"
    if make_result is tuple:
        return "tuple"
    return "call" if _named_tuple(make_result) is None else "named tuple"


def _named_tuple(make_result: Callable[..., Any]) -> type[Any] | None:
    """The class of named tuples that is asked for, itself or by its ``_make``; None for any other callable."""
    kind = getattr(make_result, "__self__", None) if getattr(make_result, "__name__", "") == "_make" else make_result
    return kind if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields") else None


# Bound by what is deleted as late as the interpreter itself, when globals are gone.
_SPARES = slice(list(WORDS).index("spare"), None, len(WORDS))
_raw_free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("PyMem_RawFree", ctypes.pythonapi))


class BatchSlot:
    """Slot where a function finds the kernels for batches and the crew that shares them; empty until there are any.

    It keeps the memory that a kernel works in for the next call.
    """

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * (4 * len(WORDS)))()
        self._kernels: dict[int, object] = {}

    def __del__(self, _free: Callable[[int], None] = _raw_free, _spares: slice = _SPARES) -> None:
        for spare in self._words[_spares]:
            _free(spare)

    @property
    def address(self) -> int:
        """Address of the words."""
        return ctypes.addressof(self._words)

    def fill(self, held: object, item: int, kernel: int, few: bool = False, **others: int) -> None:
        """Set the words for numbers of ``item`` bytes, the kernel's address last: whoever finds it may use the rest.

        ``held``: its code; ``few``: whether it is a program's kernel for few states.
        """
        first = self._first(item) + 2 * few * len(WORDS)
        self._kernels[first] = held
        for name, value in others.items():
            self._words[first + list(WORDS).index(name)] = value
        self._words[first] = kernel

    def meet(self, item: int, run: int, board: int) -> None:
        """Let jobs be shared out."""
        behind = self._first(item) + len(WORDS)
        self._words[behind - 1] = board
        self._words[behind - 2] = run

    @staticmethod
    def _first(item: int) -> int:
        return 0 if item == 8 else len(WORDS)


class _MethodDef(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL_KEYWORDS = 0x0080 | 0x0002


class _Bound(tuple[Any, ...]):
    """Owner of a single-state function, its ``__self__``: its ordinary path, and all that its code refers to.

    The last item holds the code and the method definition. They go when the function goes: it lets go of this tuple
    when it is freed, as the last thing it does (CPython's ``meth_dealloc`` says that a method definition may be kept
    alive by ``__self__``), and the collector, which cannot take a tuple apart, does not see into that item.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """A builtin pickles as an attribute of what it is bound to: here of the object whose method it stands for."""
        return _itself, (getattr(self[SLOW], "__self__", None),)


def _itself(thing: object) -> object:
    return thing


def library(
    key: str,
    write: tiers.Writer,
    machine: Machine,
    imports: Mapping[str, int],
    quickly: tiers.QuickWriter | None = None,
) -> tiers.Library:
    """The library of a text of ``entry_module`` or ``names_module``."""
    return tiers.library(
        key, write, machine, tiers.EntryPoints({ENTRY: 4}), {**imports, **layouts.addresses()}, quickly
    )


def make_function(
    code: tiers.Library,
    slow: Callable[..., Any],
    name: str,
    signature: str,
    doc: str,
    make_result: Callable[..., Any] | dict[str, Callable[..., Any]] | None,
    slot: BatchSlot,
) -> Callable[..., Any]:
    """Wrap the entry of a :func:`library` as a builtin function.

    ``make_result``: for one from ``names_module``, its table.
    """
    kind = _named_tuple(make_result) if callable(make_result) else None
    text = f"{name}{signature}\n--\n\n{doc}"
    method = _MethodDef(name.encode(), code[ENTRY], _FASTCALL_KEYWORDS, text.encode())
    callee = make_result if kind is None else layouts.TUPLE_NEW
    held = jit.unseen(code, method, slot)
    function: Callable[..., Any] = _new_function(
        ctypes.addressof(method), _Bound((slow, callee, kind, slot.address, held)), "linkwise"
    )
    return function


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
