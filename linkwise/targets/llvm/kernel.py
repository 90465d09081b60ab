"""Kernels: compiled programs as Python calls them, the way into this package.

:class:`BatchKernel` runs a program for a batch of states, :func:`builtin_function` makes a Python function for one
state and for plain batches. Both are immutable and may be used from any number of threads.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.targets import threads as split
from linkwise.targets.llvm import binding, builtin, fastcall, jit, layouts, source, tiers, transcendental
from linkwise.targets.llvm import crew as native
from linkwise.targets.llvm.foreign_calls import ForeignEntry
from linkwise.trace.block import Block
from linkwise.trace.program import Program

# Part of every cache key: raise it whenever the same program would be compiled to something else.
CODEGEN_VERSION = 30

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_NUMBER = ctypes.CFUNCTYPE(ctypes.c_int64)


class _Scratch(threading.local):
    """Memory for the lanes, one piece for each thread, kept and grown."""

    def __init__(self) -> None:
        self.buffer: Any = None
        self.size = -1
        self.address = 0

    def at_least(self, size: int) -> int:
        if self.size < size:
            self.buffer = ctypes.create_string_buffer(size + 64)
            address = ctypes.addressof(self.buffer)
            self.size, self.address = size, address + -address % 64
        return self.address


_scratch = _Scratch()


# Work is measured in nodes times states, each of some thirty picoseconds. Below this the interpreter's lock is kept.
BRIEF_NODES = 100_000
# From here on it is worth a thread that is awake, from here on one that must be woken first, and from here on it takes
# some tenths of a second.
_SHARE_NODES = 400_000
_WAKING_NODES = 5_000_000
_LONGEST_NODES = 20_000_000_000
# Beyond this the interpreter is ready sooner than code that is compiled quickly.
_LONG_NODES = 3000
# So many states take as long, in code that was compiled quickly, as optimising that code.
_MANY_STATES = 500_000


def cache_key(what: Block | Program | str, kind: str, dtype: str, machine: binding.Machine) -> str:
    """Key of an object in the cache: its source (a program, or its fingerprint), its maker, and its machine."""
    import llvmlite

    make = f"codegen {CODEGEN_VERSION}, llvmlite {llvmlite.__version__}"
    made_from = what if isinstance(what, str) else what.fingerprint
    return "\n".join((make, kind, dtype, machine.identity, made_from))


def _bits(dtype: DTypeLike) -> int:
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise TypeError(f"kernels compute in float64 or float32; got {kind}")
    return kind.itemsize * 8


def worth_interpreting(program: Block | Program) -> bool:
    """Whether first calls of a program come sooner if they are interpreted."""
    size = program.operations if isinstance(program, Program) else len(program.nodes)
    return size > _LONG_NODES


def imports() -> dict[str, int]:
    """Functions of the C library that compiled code calls."""
    found = jit.library_addresses(tuple(transcendental.LIBRARY.values()))
    return dict(zip(transcendental.LIBRARY, found, strict=True))


class BatchKernel:
    """A program compiled for batches of states in one precision."""

    def __init__(self, program: Block, dtype: DTypeLike, library: tiers.Library, lanes: int) -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        self.lanes = lanes
        self._library = library  # holds the code
        self._call = _ENTRY(library[source.BATCH_ENTRY])
        self._scratch_bytes = int(_NUMBER(library[source.SCRATCH_ENTRY])())
        self._smallest_share = _SHARE_NODES // (len(program.nodes) + 1) + 1
        self._slot: fastcall.BatchSlot | None = None
        item = self.dtype.itemsize
        self._in_strides = [array.size * item for array in program.inputs]
        self._out_strides = [array.size * item for array in program.outputs]
        self._address = library[source.BATCH_ENTRY]
        self._in_type = ctypes.c_void_p * len(program.inputs)
        self._out_type = ctypes.c_void_p * len(program.outputs)

    @classmethod
    def build(cls, program: Block, dtype: DTypeLike = np.float64) -> BatchKernel:
        """Kernel for the machine this runs on, cached or compiled; in debug runs one that checks every access."""
        if binding.checked_builds():
            from linkwise.targets.llvm import bounds

            return bounds.checked_batch(program, dtype)
        machine, bits = binding.host(), _bits(dtype)
        key = cache_key(program, "batch", f"float{bits}", machine)
        write = partial(source.batch_module, program, machine, bits)
        quickly = partial(source.quick_batch_module, program, machine, bits)
        library = tiers.library(
            key, write, machine, source.ENTRIES, imports(), quickly if worth_interpreting(program) else None
        )
        return cls(program, dtype, library, machine.lanes(dtype))

    def offer(self, slot: fastcall.BatchSlot) -> None:
        """Let a builtin function call this kernel by itself, but for results so large that their memory is recycled."""
        from linkwise.targets import recycled

        nodes = len(self.program.nodes) + 1
        slot.fill(
            self._library,
            self.dtype.itemsize,
            kernel=self._address,
            scratch_bytes=self._scratch_bytes,
            fresh=(recycled.SMALLEST - 1) // max(sum(self._out_strides), 1),
            brief=BRIEF_NODES // nodes,
            smallest=self._smallest_share,
            step=self.lanes,
            worth_waking=_WAKING_NODES // nodes,
            longest=_LONGEST_NODES // nodes,
        )
        self._slot = slot

    def foreign_entry(self) -> ForeignEntry:
        """Entry for calls that do not come from Python."""
        inputs, outputs = len(self.program.inputs), len(self.program.outputs)
        return ForeignEntry(
            "batch",
            self._address,
            inputs,
            outputs,
            rank=len(self.program.outputs[0].shape),
            scratch_bytes=self._scratch_bytes,
            table=0,
            order=tuple(range(inputs + outputs)),
            held=self,
        )

    def evaluate(
        self,
        inputs: Sequence[NDArray[Any]],
        outputs: Sequence[NDArray[Any]],
        count: int,
        threads: int = 1,
    ) -> None:
        """Fill ``outputs`` from ``inputs``: C-contiguous ``(count, size)`` arrays of the kernel's dtype.

        Shapes, dtypes and contiguity are the caller's to check. An output may be the same array as an
        input of the same size; other overlaps are not allowed.
        """
        if count >= _MANY_STATES:
            self._library.settle()
        address = layouts.data_address()
        ins = [address(array) for array in inputs]
        outs = [address(array) for array in outputs]
        if threads == 1 or count < 2 * self._smallest_share:
            self._range(ins, outs, 0, count)
        elif (crew := native.crew()) is not None:
            self._share_out(crew, ins, outs, count, threads - 1)
        else:
            work = partial(self._range, ins, outs)
            split.run(work, count, threads, self._smallest_share, self.lanes, keeping=(inputs, outputs))

    def _share_out(self, crew: native.Crew, ins: Sequence[int], outs: Sequence[int], count: int, others: int) -> None:
        """Share out the states in stretches of some tenths of a second, so that an interrupt is seen between them."""
        nodes, arrays = len(self.program.nodes) + 1, len(ins) + len(outs)
        strides = (ctypes.c_int64 * arrays)(*self._in_strides, *self._out_strides)
        places = (ctypes.c_void_p * arrays)()
        stretch = max(1, _LONGEST_NODES // nodes // self.lanes) * self.lanes
        for first in range(0, count, stretch):
            places[:] = [place + first * s for place, s in zip((*ins, *outs), strides, strict=True)]
            job = native.Job(
                kernel=self._address,
                inputs=len(ins),
                outputs=len(outs),
                places=ctypes.addressof(places),
                strides=ctypes.addressof(strides),
                count=min(stretch, count - first),
                scratch_bytes=self._scratch_bytes,
                smallest=self._smallest_share,
                step=self.lanes,
                worth_waking=_WAKING_NODES // nodes,
            )
            crew.run(job, others)
        if self._slot is not None:
            self._slot.meet(self.dtype.itemsize, *crew.places)

    def _range(self, ins: Sequence[int], outs: Sequence[int], start: int, stop: int) -> None:
        if start:
            ins = [place + start * stride for place, stride in zip(ins, self._in_strides, strict=True)]
            outs = [place + start * stride for place, stride in zip(outs, self._out_strides, strict=True)]
        self._call(self._in_type(*ins), self._out_type(*outs), stop - start, _scratch.at_least(self._scratch_bytes))


def builtin_function(
    program: Block | Program,
    slow: Callable[..., Any],
    name: str,
    doc: str = "",
    make_result: Callable[..., Any] | None = None,
    signature: str | None = None,
    slot: fastcall.BatchSlot | None = None,
    one_state: bool = True,
) -> Callable[..., Any] | None:
    """A builtin function of arrays, or None where this interpreter or machine does not allow it.

    None also in debug runs: the checked batch kernel serves single states too.
    Its arguments are the program's inputs, of one precision and the program's shapes, in order: those of one state (of
    float64, if ``one_state``), or what the kernels in ``slot`` serve: batches with one leading axis, and one state of
    float32; besides, ``out`` for a single output, and ``threads`` where there is too little for two. Whatever else it
    is called with, it passes on to ``slow`` untouched. One output is returned as an array (a number of NumPy's if its
    shape is empty), several as a tuple. With ``make_result``, a named tuple class or any callable, the tuple of the
    outputs (also of a single one) is turned into one of those, or handed to the callable. It is pickled as the
    attribute ``name`` of the object that ``slow`` is a method of, and shows ``signature`` ("(q, *, out=None)") to
    those who ask; the names of the inputs, if none is given.
    """
    if binding.checked_builds() or not fastcall.available():
        return None
    machine = binding.host()
    result = fastcall.result_of(program, make_result)
    quickly: tiers.QuickWriter | None = None
    if isinstance(program, Program):
        if not (program.is_function and program.is_compilable):
            return None
        one_state = False  # the kernel in the slot serves it
    elif one_state:
        if len(program.nodes) > fastcall.LARGEST:
            return None
        if worth_interpreting(program):
            quickly = partial(builtin.quick_entry_module, program, machine, result)

    def write() -> tiers.Module:
        return tiers.Module(builtin.entry_module(program, machine, result, one_state=one_state))

    what = program.fingerprint if one_state else builtin.signature_of(program)
    served = "single" if one_state else "loops" if isinstance(program, Program) else "plain batches"
    kind = f"{served} {result}, {fastcall.identity()}"
    key = cache_key(what, kind, "float64", machine)
    code = fastcall.library(key, write, machine, imports(), quickly)
    shown = signature or f"({', '.join(array.name for array in program.inputs)})"
    return fastcall.make_function(code, slow, name, shown, doc, make_result, slot or fastcall.BatchSlot())


def function_by_name(
    table: dict[str, Callable[..., Any]], arrays: int, slow: Callable[..., Any], name: str, signature: str, doc: str
) -> Callable[..., Any] | None:
    """A builtin function of so many arrays and a name, which calls what the table has under the name.

    That gets the arrays, ``out`` and ``threads``; calls of any other form, and names not in the table, go to ``slow``.
    None where this interpreter does not allow it.
    """
    if binding.checked_builds() or not fastcall.available():
        return None
    machine = binding.host()
    key = cache_key(f"{arrays} arrays", f"by name, {fastcall.identity()}", "float64", machine)
    code = fastcall.library(key, lambda: tiers.Module(builtin.names_module(arrays, machine)), machine, {})
    return fastcall.make_function(code, slow, name, signature, doc, table, fastcall.BatchSlot())
