"""LLVM text to an object file, and an object file to callable addresses.

The two steps are apart so that an object kept on disk is loaded without making or parsing any IR.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from linkwise.targets.llvm.binding import IN_ORDER, NOT_AGAIN, Machine, Switches, discard, optimising, using_llvm

# A linker keeps ten kilobytes of every library that it ever held: it serves this many, and goes with the last of them.
_LIBRARIES_OF_A_LINKER = 32

# From so many lines on, a module is spared LLVM's second ordering of instructions, after registers are chosen: half of
# the whole time there, since it grows with the square of the loads of spilled values, for one part in a hundred.
_LONG = 60_000

_names = itertools.count()
_loaded: weakref.WeakValueDictionary[Any, LoadedObject] = weakref.WeakValueDictionary()


def switches(text: str, in_order: bool) -> Switches:
    """LLVM's switches for a module."""
    long = text.count("\n") >= _LONG
    return frozenset(name for name, on in ((NOT_AGAIN, long), (IN_ORDER, in_order)) if on)


def compile_text(text: str, machine: Machine, *, in_order: bool = False, assembly: bool = False) -> Any:
    """The object file (or assembly) of a module.

    No optimisation passes are run: a program arrives without anything left to simplify. LLVM's instruction
    selection, scheduling and register allocation do the rest. While they are at work, other threads may use LLVM for
    anything but code with other switches.

    Args:
        text: the module.
        machine: what it is compiled for.
        in_order: keep instructions in the order they are written, where that order was chosen with care.
        assembly: return assembly text instead of an object.
    """
    with optimising.turn(switches(text, in_order)), _parsed(text, machine, level=2) as (llvm, made, module):
        return _emitted(llvm, made, module, assembly)


def compile_quickly(text: str, machine: Machine, level: int = 0) -> bytes:
    """The object file of a module, made some ten times faster, for code that takes two or three times as long.

    It computes the same numbers to the last bit. A short module that all others use deserves a higher level.
    """
    with using_llvm(), _parsed(text, machine, level) as (_, made, module):
        return bytes(made.emit_object(module))


@contextmanager
def _parsed(text: str, machine: Machine, level: int) -> Iterator[tuple[Any, Any, Any]]:
    """The binding, a target machine that optimises as the level says, and a module."""
    with using_llvm() as llvm:
        module = llvm.parse_assembly(text, _ModuleContext(llvm))
        target = llvm.Target.from_triple(machine.triple)
        made = target.create_target_machine(
            cpu=machine.cpu, features=machine.features, opt=level, reloc="pic", codemodel="small"
        )
    try:
        yield llvm, made, module
    finally:
        with using_llvm():
            made.close()
            module.close()


def _emitted(llvm: Any, made: Any, module: Any, assembly: bool) -> Any:
    """Object code of a module, without llvmlite's own lock, which it would hold all the while."""
    ffi = llvm.ffi
    emit = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    with ffi.OutputString() as error:
        buffer = getattr(emit, "_cfn", emit)(made, module, int(not assembly), error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        data = ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)
    return data.decode() if assembly else data


class _ModuleContext:
    """Context that a module is made in. It goes after the last module that holds it.

    An interrupt may leave a module behind that nobody has closed, in the frames of its traceback or to the collector.
    """

    def __init__(self, llvm: Any) -> None:
        context = llvm.create_context()
        self._as_parameter_ = context._as_parameter_
        self._held = unseen(_Closed(context))


def load(obj: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> LoadedObject:
    """An object as callable code; the same object is loaded once for all who use it at the same time."""
    key = (hashlib.sha256(obj).digest(), tuple(exports), tuple(imports.items()))
    library = _loaded.get(key)
    if library is None:
        library = _loaded[key] = LoadedObject(obj, exports, imports)
    return library


class LoadedObject:
    """A loaded object: the addresses of its exported functions, and the memory that holds them."""

    def __init__(self, obj: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> None:
        with using_llvm() as llvm:
            builder = llvm.JITLibraryBuilder().add_object_img(obj)
            for name in exports:
                builder.export_symbol(name)
            for name, address in {**platform_symbols(), **imports}.items():
                builder.import_symbol(name, address)
            linker = _linkers.next(llvm)
            try:
                code = builder.link(linker, f"linkwise-{next(_names)}")
                code.linker = linker  # must outlive what it linked
            except BaseException:
                _abandoned.append(linker)  # an interrupt may leave something behind that it has linked
                raise
        self._addresses = {name: int(code[name]) for name in exports}
        self._held = unseen(_Closed(code))

    def __getitem__(self, name: str) -> int:
        return self._addresses[name]


class _Linkers:
    """Hands out the linker for the next library."""

    def __init__(self) -> None:
        self._current: Any = None
        self._left = 0

    def next(self, llvm: Any) -> Any:
        if not self._left:
            # JITLink places a whole object in one stretch of memory, so that code always reaches its constants.
            self._current, self._left = llvm.create_lljit_compiler(use_jit_link=True), _LIBRARIES_OF_A_LINKER
        self._left -= 1
        return self._current


_linkers = _Linkers()
_abandoned: list[Any] = []


class _Closed:
    """Object of LLVM's, closed when nobody holds this any more: the memory of a library, a context."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __del__(self, _ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _ending():
            discard(self._thing)


def unseen(*things: object) -> tuple[object, ...]:
    """A tuple that owns things without the garbage collector's knowledge.

    The collector runs the finalisers of a dead cycle in any order before it frees anything, and one of them may call,
    or bring back, what another has just closed. What it does not see it does not finalise: these things go when the
    last that holds the tuple is freed. They must not lead back to it, or nothing of all this is ever freed.
    """
    hidden = (*things,)
    _untrack(hidden)
    return hidden


_untrack = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("PyObject_GC_UnTrack", ctypes.pythonapi))


@cache
def library_addresses(names: tuple[str, ...]) -> tuple[int, ...]:
    """Addresses of functions of the C library that is part of this process."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    return tuple(int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0) for name in names)


_FLOATS_ARE_USED = ctypes.c_int(1)


@cache
def platform_symbols(platform: str = sys.platform) -> dict[str, int]:
    """Addresses of what LLVM's code refers to by itself: on Windows a probe of deep stacks, and a mark of floats."""
    if platform != "win32":
        return {}
    probe = ctypes.cast(getattr(ctypes.CDLL("ntdll"), "__chkstk"), ctypes.c_void_p).value or 0
    return {"__chkstk": int(probe), "_fltused": ctypes.addressof(_FLOATS_ARE_USED)}
