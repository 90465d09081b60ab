"""Kernels that run programs with loops."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.codegen import cache
from linkwise.codegen import threads as split
from linkwise.codegen.llvm import checked, jit, kernel, machines
from linkwise.codegen.llvm.rolled_source import ENTRY, FRAME_ENTRY, rolled_module
from linkwise.codegen.llvm.rolled_table import Table, Word
from linkwise.tracing.program import Program

_KEPT_BYTES = 1 << 26  # a thread keeps its scratch memory up to this size, and gives larger ones back
_kept = threading.local()


@contextmanager
def _lent(size: int) -> Iterator[int]:
    """Address of scratch memory on a cache line, for the time of one call."""
    buffer = getattr(_kept, "buffer", None)
    if buffer is None or buffer.nbytes < size + 64:
        buffer = np.empty(size + 64, np.uint8)
        if size <= _KEPT_BYTES:
            _kept.buffer = buffer
    yield int(buffer.ctypes.data) + -int(buffer.ctypes.data) % 64


class RolledKernel:
    """A program with loops, compiled; runs batches, or states one at a time."""

    def __init__(self, program: Program, dtype: DTypeLike, library: jit.Library, lanes: int, vector: int) -> None:
        self.program, self.dtype, self.lanes = program, np.dtype(dtype), lanes
        self._library = library
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)(
            library[ENTRY]
        )
        frame_bytes = int(ctypes.CFUNCTYPE(ctypes.c_int64)(library[FRAME_ENTRY])())
        self._table = Table(program, self.dtype, lanes, vector, arrays=lanes > 1)
        self.scratch_bytes = self._table.frame + frame_bytes
        item = self.dtype.itemsize
        self._in_strides = [array.size * item for array in program.inputs]
        self._out_strides = [array.size * item for array in program.outputs]

    @classmethod
    def build(cls, program: Program, dtype: DTypeLike = np.float64, *, single: bool = False) -> RolledKernel:
        """From the cache or compiled; in debug runs one that checks every access."""
        if checked.wanted():
            from linkwise.codegen.llvm import bounds

            return bounds.checked_rolled(program, dtype, single=single)
        machine, bits = machines.host(), np.dtype(dtype).itemsize * 8

        def make() -> bytes:
            return bytes(jit.compile_text(rolled_module(program, machine, bits, single=single), machine))

        how = "rolled single" if single else "rolled"
        obj = cache.get(kernel.cache_key(program, how, f"float{bits}", machine), make)
        library = jit.load(obj, (ENTRY, FRAME_ENTRY), kernel.imports())
        vector = machine.lanes(dtype)
        return cls(program, dtype, library, 1 if single else vector, vector)

    def run(
        self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]], count: int, threads: int = 1
    ) -> None:
        """Fill ``outputs`` from ``inputs``: C-contiguous ``(count, size)`` arrays of the kernel's dtype."""
        ins = [array.ctypes.data for array in inputs]
        outs = [array.ctypes.data for array in outputs]
        if threads == 1:
            self._range(ins, outs, 0, count)
        else:
            work = partial(self._range, ins, outs)
            split.run(work, count, threads, self.lanes, self.lanes, keeping=(inputs, outputs))

    def _range(self, ins: Sequence[int], outs: Sequence[int], start: int, stop: int) -> None:
        here = [place + start * stride for place, stride in zip(ins, self._in_strides, strict=True)]
        there = [place + start * stride for place, stride in zip(outs, self._out_strides, strict=True)]
        pointers = ctypes.c_void_p
        with _lent(self.scratch_bytes) as scratch:
            ins_at, outs_at = (pointers * len(here))(*here), (pointers * len(there))(*there)
            self._call(ins_at, outs_at, stop - start, scratch, self._table.address)

    def run_units(self, out: NDArray[Any], parameters: NDArray[Any], stops: NDArray[Any], threads: int = 1) -> None:
        """One row of ``out`` for each unit vector of the only input, which is in lanes.

        Args:
            out: (count, size), C-contiguous, of the kernel's dtype.
            parameters: link constants to use in place of the program's.
            stops: (count) for each unit vector how many links its loops pass; they do not fall.
            threads: how many share the work.
        """
        size, lanes = self.program.inputs[0].size, self.lanes
        window = np.zeros((2 * size + lanes + 8) * lanes, self.dtype)
        first = -(window.ctypes.data // self.dtype.itemsize) % lanes + size * lanes
        window[first : first + lanes * lanes].reshape(lanes, lanes)[...] = np.eye(lanes)
        numbers = np.ascontiguousarray(parameters, self.dtype)
        item = self.dtype.itemsize

        def work(start: int, stop: int) -> None:
            words = self._table.words.copy()
            words[Word.PARAMETERS] = numbers.ctypes.data
            table, ones, rows = words.ctypes.data, window.ctypes.data + first * item, out.ctypes.data
            ins, outs = (ctypes.c_void_p * 1)(), (ctypes.c_void_p * 1)()
            passed = stops.tolist()
            with _lent(self.scratch_bytes) as scratch:
                for row in range(start, stop, lanes):
                    count = min(lanes, stop - row)
                    words[Word.LINKS] = passed[row + count - 1]
                    ins[0] = ones - row * lanes * item  # the ones of the window slide to the places of these rows
                    outs[0] = rows + row * self._out_strides[0]
                    self._call(ins, outs, count, scratch, table)

        split.run(work, len(out), threads, lanes, lanes, keeping=(out, numbers, window))
