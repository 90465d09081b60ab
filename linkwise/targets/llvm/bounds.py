"""Checked builds: every load and store of emitted code is compared with the memory it may touch, as it runs.

The check works on the module's text, behind everything that emits it, so it trusts no part of the emitter: before each
load and store (masked ones lane by lane) a call is put in that looks the address up in a table of known ranges: the
caller's inputs, which may only be read, its outputs, the scratch memory, the tables of a program with loops. What is in
none of them, or is not aligned as the instruction claims, is written down with its line, which :class:`BoundsError`
names. The scratch memory is filled with NaNs before each call, so that a value read before it was written shows in a
result.

    kernel = checked_batch(program)          # runs like a BatchKernel, some fifty times slower
    kernel.evaluate(inputs, outputs, count)

Where in the scratch memory an instruction of a straight-line body may reach is known before anything runs:
:func:`verify_scratch` finds it in the text.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from linkwise.targets.llvm import binding, jit, kernel, program_kernel, source, tiers
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.block import Block
from linkwise.trace.in_place import in_place
from linkwise.trace.program import Program
from linkwise.trace.verifier import verify
from linkwise.trace.waiting import with_loops_inlined

_TYPE = r"(<\d+ x \w+>|\w+)"
_LOAD = re.compile(rf"^\s*%[\w.]+ = load (?:volatile )?{_TYPE}, ptr ([%@][\w.]+)(?:, align (\d+))?")
_STORE = re.compile(rf"^\s*store (?:volatile )?{_TYPE} .+, ptr ([%@][\w.]+)(?:, align (\d+))?(?:, !nontemporal !\d+)?$")
_MASKED_LOAD = re.compile(
    rf"^\s*%[\w.]+ = call {_TYPE} @llvm\.masked\.load\.\S+?\(ptr (%[\w.]+), i32 (\d+), <\d+ x i1> (<[^>]*>|%[\w.]+),"
)
_MASKED_STORE = re.compile(
    rf"^\s*call void @llvm\.masked\.store\.\S+?\({_TYPE} .+, ptr (%[\w.]+), i32 (\d+), <\d+ x i1> (<[^>]*>|%[\w.]+)\)"
)
_ALLOCA = re.compile(r"^\s*(%[\w.]+) = alloca (?:\[(\d+) x (\w+)\]|(\w+), i64 (\d+))")
_CONSTANTS = re.compile(r"^(@\w+) = internal constant \[(\d+) x (\w+)\]", re.MULTILINE)
_ADDRESS = re.compile(rf"^\s*(%[\w.]+) = getelementptr {_TYPE}, ptr (%[\w.]+), i64 (\S+)$")
_SIZES = {"ptr": 8, "i64": 8, "double": 8, "i32": 4, "float": 4, "i8": 1, "i1": 1}
_KNOWN = 1024  # ranges that the table has room for


class BoundsError(RuntimeError):
    """Emitted code touched memory that is not its own."""


def size_of(kind: str) -> int:
    """Bytes of a type of LLVM."""
    match = re.fullmatch(r"<(\d+) x (\w+)>", kind)
    return int(match[1]) * _SIZES[match[2]] if match else _SIZES[kind]


# What is called before each access. The table: how many ranges, then begin, end and "may be written to" of each.
_CHECK = """
@lw_ranges = external global i8
@lw_fault = external global i8

define internal void @lw_touch(ptr %p, i64 %bytes, i64 %align, i64 %site, i64 %write) noinline {
entry:
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %done, label %begin
begin:
  %first = ptrtoint ptr %p to i64
  %last = add i64 %first, %bytes
  %below = sub i64 %align, 1
  %off = and i64 %first, %below
  %odd = icmp ne i64 %off, 0
  br i1 %odd, label %fault, label %search
search:
  %count = load i64, ptr @lw_ranges, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %search ], [ %next, %again ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %fault
look:
  %at = mul i64 %i, 3
  %at1 = add i64 %at, 1
  %at2 = add i64 %at, 2
  %at3 = add i64 %at, 3
  %p1 = getelementptr i64, ptr @lw_ranges, i64 %at1
  %p2 = getelementptr i64, ptr @lw_ranges, i64 %at2
  %p3 = getelementptr i64, ptr @lw_ranges, i64 %at3
  %from = load i64, ptr %p1, align 8
  %to = load i64, ptr %p2, align 8
  %may = load i64, ptr %p3, align 8
  %behind = icmp uge i64 %first, %from
  %before = icmp ule i64 %last, %to
  %allowed = icmp uge i64 %may, %write
  %both = and i1 %behind, %before
  %all = and i1 %both, %allowed
  br i1 %all, label %done, label %again
again:
  %next = add i64 %i, 1
  br label %loop
fault:
  %earlier = load i64, ptr @lw_fault, align 8
  %known = icmp ne i64 %earlier, 0
  br i1 %known, label %done, label %report
report:
  %f1 = getelementptr i64, ptr @lw_fault, i64 1
  %f2 = getelementptr i64, ptr @lw_fault, i64 2
  store i64 %site, ptr @lw_fault, align 8
  store i64 %first, ptr %f1, align 8
  store i64 %bytes, ptr %f2, align 8
  br label %done
done:
  ret void
}

define internal void @lw_own(ptr %p, i64 %bytes, i64 %write) noinline {
  %count = load i64, ptr @lw_ranges, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr @lw_ranges, align 8
  %at = mul i64 %count, 3
  %at1 = add i64 %at, 1
  %at2 = add i64 %at, 2
  %at3 = add i64 %at, 3
  %p1 = getelementptr i64, ptr @lw_ranges, i64 %at1
  %p2 = getelementptr i64, ptr @lw_ranges, i64 %at2
  %p3 = getelementptr i64, ptr @lw_ranges, i64 %at3
  %first = ptrtoint ptr %p to i64
  %last = add i64 %first, %bytes
  store i64 %first, ptr %p1, align 8
  store i64 %last, ptr %p2, align 8
  store i64 %write, ptr %p3, align 8
  ret void
}
"""


def instrumented(text: str) -> str:
    """The module with a check before every load and store. A line that touches memory in an unknown way is refused."""
    lines: list[str] = []
    fresh = 0
    constants = [_own(name, int(count) * size_of(kind), write=False) for name, count, kind in _CONSTANTS.findall(text)]
    for site, line in enumerate(text.splitlines(), start=1):
        if match := _LOAD.match(line):
            lines.append(_touch(match[2], size_of(match[1]), match[3], site, write=False))
        elif match := _STORE.match(line):
            lines.append(_touch(match[2], size_of(match[1]), match[3], site, write=True))
        elif match := _MASKED_LOAD.match(line) or _MASKED_STORE.match(line):
            write = ".store." in line
            for lane in _lanes(match, site, write, fresh):
                lines.append(lane)
            fresh += 1
        elif _is_access(line):
            raise BoundsError(f"line {site} touches memory in an unchecked way: {line.strip()}")
        lines.append(line)
        if match := _ALLOCA.match(line):
            count, kind = (match[2], match[3]) if match[2] else (match[5], match[4])
            lines.append(_own(match[1], int(count) * size_of(kind), write=True))
        elif line == "entry:" and lines[-2].startswith("define void"):  # where a call comes in
            lines.extend(constants)
    return "\n".join([*lines, _CHECK])


def _is_access(line: str) -> bool:
    stripped = line.strip()
    if stripped.startswith(("declare", ";")) or "@llvm.prefetch" in stripped:
        return False
    words = (" load ", " = load", "@llvm.masked.", "@llvm.mem", "atomicrmw", "cmpxchg", "va_arg")
    return stripped.startswith("store ") or any(word in f" {stripped}" for word in words)


def _touch(pointer: str, size: int | str, align: str | None, site: int, *, write: bool) -> str:
    return f"  call void @lw_touch(ptr {pointer}, i64 {size}, i64 {align or 1}, i64 {site}, i64 {int(write)})"


def _own(pointer: str, size: int, *, write: bool) -> str:
    return f"  call void @lw_own(ptr {pointer}, i64 {size}, i64 {int(write)})"


def _lanes(match: re.Match[str], site: int, write: bool, fresh: int) -> Iterable[str]:
    """A masked access, lane by lane: lanes that the mask leaves out touch nothing."""
    kind, pointer, align, mask = match.groups()
    [(lanes, element)] = re.findall(r"<(\d+) x (\w+)>", kind)
    for k in range(int(lanes)):
        name = f"%lw{fresh}.{k}"
        yield f"  {name}.on = extractelement <{lanes} x i1> {mask}, i64 {k}"
        yield f"  {name}.size = select i1 {name}.on, i64 {_SIZES[element]}, i64 0"
        yield f"  {name} = getelementptr {element}, ptr {pointer}, i64 {k}"
        yield _touch(name, f"{name}.size", align, site, write=write)


class Watch:
    """The table of ranges of one checked module, and what it has found. One call at a time: others wait."""

    def __init__(self, text: str) -> None:
        self.lock = threading.Lock()
        self._lines = text.splitlines()
        self._ranges = (ctypes.c_uint64 * (1 + 3 * _KNOWN))()
        self._fault = (ctypes.c_uint64 * 3)()

    @property
    def imports(self) -> dict[str, int]:
        """Addresses that a checked module links to, with those of every module."""
        own = {"lw_ranges": ctypes.addressof(self._ranges), "lw_fault": ctypes.addressof(self._fault)}
        return {**kernel.imports(), **own}

    def allow(self, ranges: Sequence[tuple[int, int, bool]]) -> None:
        """Begin, bytes and "may be written to" of all that the next call may touch."""
        self._ranges[0] = len(ranges)
        for k, (begin, size, writable) in enumerate(ranges):
            self._ranges[3 * k + 1 : 3 * k + 4] = [begin, begin + size, int(writable)]
        self._fault[0] = 0

    def call(
        self, ranges: Sequence[tuple[int, int, bool]], scratch: int, scratch_bytes: int, inside: Callable[[], None]
    ) -> None:
        """Run something that may touch these ranges, in scratch memory full of NaNs."""
        with self.lock:
            self.allow(ranges)
            ctypes.memset(scratch, 0xFF, scratch_bytes)  # NaNs
            inside()
            self.judge()

    def judge(self) -> None:
        """Raise if the call touched anything else."""
        site, address, size = self._fault
        if site:
            line = self._lines[site - 1].strip()
            name = next((x for x in reversed(self._lines[:site]) if x.startswith("define")), "").split("(")[0]
            raise BoundsError(
                f"{size} bytes at {address:#x} are out of bounds, or not aligned as stated: {line} ({name})"
            )


def checked_batch(
    program: Block, dtype: DTypeLike = np.float64, machine: binding.Machine | None = None
) -> kernel.BatchKernel:
    """A batch kernel that watches itself."""
    machine = machine or binding.host()
    item = np.dtype(dtype).itemsize
    verify(program)
    text = source.batch_module(program, machine, item * 8).text
    verify_scratch(text)
    watch = Watch(text)
    obj = bytes(jit.compile_text(instrumented(text), machine))
    library = jit.LoadedObject(obj, (source.BATCH_ENTRY, source.SCRATCH_ENTRY), watch.imports)
    made = kernel.BatchKernel(program, dtype, tiers.Library(source.ENTRIES, library), machine.lanes(dtype))
    made._call = _watched(made._call, watch, _rows(program, item), made._scratch_bytes)
    return made


def checked_program(program: Program, dtype: DTypeLike = np.float64, *, single: bool = False) -> ProgramKernel:
    """A kernel with loops that watches itself; for programs that need nothing of the caller's but rows."""
    machine, item = binding.host(), np.dtype(dtype).itemsize
    verify(program)
    vector = machine.lanes(dtype)
    lanes = 1 if single else vector
    program = in_place(program)
    program = program if single else with_loops_inlined(program)
    text = program_kernel.program_module(program, machine, item * 8, lanes)
    watch = Watch(text)
    obj = bytes(jit.compile_text(instrumented(text), machine))
    library = jit.LoadedObject(obj, (program_kernel.ENTRY, program_kernel.FRAME_ENTRY), watch.imports)
    made = ProgramKernel(program, dtype, tiers.Library(program_kernel.ENTRIES, library), lanes, vector)
    call, size = made._call, made.memory.bytes
    fixed = [(int(part.ctypes.data), part.nbytes, False) for part in made.memory.parts]

    def run(arrays: Any, first: int, count: int, scratch: int, table: int) -> None:
        ranges = [*fixed, (scratch, size, True), (table, made.memory.table.nbytes, False)]
        ranges.append((ctypes.addressof(arrays), ctypes.sizeof(arrays), False))
        for place, buffer in zip(arrays, program.kept, strict=False):
            row = buffer.size * item
            ranges.append((int(place or 0) + first * row, count * row, buffer.store))
        watch.call(ranges, scratch, size, lambda: call(arrays, first, count, scratch, table))

    made._call = run
    return made


def _rows(program: Block, item: int) -> tuple[list[int], list[int]]:
    """Bytes of one state in each input and output."""
    return [a.size * item for a in program.inputs], [a.size * item for a in program.outputs]


def _watched(
    call: Callable[..., None],
    watch: Watch,
    rows: tuple[list[int], list[int]],
    scratch_bytes: int,
) -> Any:
    """The way into compiled code, with the table filled before and looked at after."""

    def run(ins: Any, outs: Any, count: int, scratch: int) -> None:
        ranges = [(scratch, scratch_bytes, True)]
        for pointers, sizes, writable in ((ins, rows[0], False), (outs, rows[1], True)):
            ranges.append((ctypes.addressof(pointers), ctypes.sizeof(pointers), False))
            ranges += [(int(place or 0), count * size, writable) for place, size in zip(pointers, sizes, strict=True)]
        watch.call(ranges, scratch, scratch_bytes, lambda: call(ins, outs, count, scratch))

    return run


# Inside the scratch memory.
def verify_scratch(text: str) -> int:
    """Raise unless all that straight-line bodies touch lies in the piece of scratch memory that they were given.

    The entry hands ``body`` pointers into the scratch memory, each the beginning of a piece that ends where the next
    one begins, or made from such a one and inside its piece. Offsets are constants of the text, so this needs no run.
    Returns how many accesses were looked at.
    """
    functions = {m[1]: m[2].splitlines() for m in re.finditer(r"^define [^@]*@([\w.]+)\((.*?)^}", text, re.M | re.S)}
    entry, size = functions[source.BATCH_ENTRY], functions[source.SCRATCH_ENTRY]
    [whole] = (int(x) for x in re.findall(r"ret i64 (\d+)", "\n".join(size)))
    places = _offsets(entry, {"%scratch": 0})
    made = [match.groups() for match in map(_ADDRESS.match, entry) if match]
    pieces: dict[str, int] = {}  # beginnings: the frame's pointer is within it, or where a small one ends
    for name, _, base, _ in made:
        if name in places:
            pieces[name] = pieces.get(base, places[name])
    starts = sorted({*pieces.values(), whole})
    looked = 0
    bodies = {name: lines for name, lines in functions.items() if re.fullmatch(r"body(_\d+)?", name)}
    calls = [line for line in entry if "call void @body(" in line]
    for call in calls:
        passed = re.findall(r"ptr (%[\w.]+)", call)
        for name, lines in bodies.items():
            parameters = re.findall(r"ptr (?:noalias )?(%[\w.]+)", lines[0])
            for parameter, argument in zip(parameters, passed, strict=True):
                if argument not in places:
                    continue  # rows of the caller: watched as it runs
                place = places[argument]
                begin = pieces.get(argument, place)
                end = next(start for start in starts if start > begin or start == whole)
                for low, high, line in _touched(lines, parameter):
                    looked += 1
                    if place + low < begin or place + high > end:
                        raise BoundsError(f"{line.strip()} of {name} leaves its {end - begin} bytes of scratch memory")
    return looked


def _offsets(lines: Sequence[str], known: dict[str, int]) -> dict[str, int]:
    """Pointers at a constant distance, in bytes, from a known one; of a choice between two the first."""
    found = dict(known)
    for line in lines:
        if match := _ADDRESS.match(line):
            name, kind, base, index = match.groups()
            if base in found and re.fullmatch(r"-?\d+", index):
                found[name] = found[base] + int(index) * size_of(kind)
        elif (match := re.match(r"^\s*(%[\w.]+) = phi ptr \[ (%[\w.]+), ", line)) and match[2] in found:
            found[match[1]] = found[match[2]]
    return {name: place for name, place in found.items() if name not in known}


def _touched(lines: Sequence[str], parameter: str) -> Iterable[tuple[int, int, str]]:
    """First and last byte, from a parameter on, of every load and store through it."""
    places = {parameter: 0, **_offsets(lines, {parameter: 0})}
    for line in lines:
        if (match := _LOAD.match(line) or _STORE.match(line)) and match[2] in places:
            yield places[match[2]], places[match[2]] + size_of(match[1]), line
