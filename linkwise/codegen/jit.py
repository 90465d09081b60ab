"""LLVM text to an object file, and an object file to callable addresses.

The two steps are apart so that an object kept on disk is loaded without making or parsing any IR.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from linkwise.codegen.target import Machine

_names = itertools.count()
_compiling = threading.Lock()


@cache
def _llvm() -> Any:
    """llvmlite, imported and initialised at first use: it takes a tenth of a second."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _linker() -> Any:
    # JITLink places a whole object in one stretch of memory, so that code always reaches its constants.
    return _llvm().create_lljit_compiler(use_jit_link=True)


def _target_machine(machine: Machine) -> Any:
    target = _llvm().Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=2, reloc="pic", codemodel="small"
    )


def compile_text(text: str, machine: Machine, *, in_order: bool = False, assembly: bool = False) -> Any:
    """The object file (or assembly) of a module.

    No optimisation passes are run: a program arrives without anything left to simplify. LLVM's instruction
    selection, scheduling and register allocation do the rest.

    Args:
        text: the module.
        machine: what it is compiled for.
        in_order: keep instructions in the order they are written, where that order was chosen with care.
        assembly: return assembly text instead of an object.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(text, llvm.create_context())
    made = _target_machine(machine)
    with _compiling:
        if in_order:  # a switch of the process, not of the module; put back below
            llvm.set_option("linkwise", "-enable-misched=false")
        try:
            return made.emit_assembly(module) if assembly else made.emit_object(module)
        finally:
            if in_order:
                llvm.set_option("linkwise", "-enable-misched=true")


class Library:
    """A loaded object: the addresses of its exported functions, and the memory that holds them."""

    def __init__(self, obj: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> None:
        builder = _llvm().JITLibraryBuilder().add_object_img(obj)
        for name in exports:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        self._linker = _linker()  # must outlive what it linked
        self._held = builder.link(self._linker, f"linkwise-{next(_names)}")
        self._addresses = {name: int(self._held[name]) for name in exports}

    def __getitem__(self, name: str) -> int:
        return self._addresses[name]


@cache
def library_addresses(names: tuple[str, ...]) -> tuple[int, ...]:
    """Addresses of functions of the C library that is part of this process."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    return tuple(int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0) for name in names)
