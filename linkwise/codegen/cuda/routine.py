"""The text of a routine's kernel: every pass of its loops for one state in one thread.

With one state a thread, a loop that goes on while *any* state has its flag up is a plain loop. The buffers are arrays
of the thread's own. In a short routine all programs are written out in place: all indexes are known, and the compiler
keeps the buffers in registers. In a long one programs are functions, and what they work on lies in the thread's local
memory, behind the nearest cache: then all but the smallest are, so that no values wait in registers while another
program wants them all (with only the longest as a function, the compiler had it spill eleven kilobytes, instead of
none).

The instructions of a long routine do not stay at hand on a multiprocessor, and warps that run apart would each wait for
their own. So all warps there form a block, wait for each other before every function, and go through loops together, as
the vectors of a CPU do: while any of their states has its flag up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from linkwise.codegen.c.names import identifier, identifiers
from linkwise.codegen.cuda import layout as layouts
from linkwise.codegen.cuda.body import Body, Constants, planned_body
from linkwise.codegen.cuda.looping import LoopingFunction
from linkwise.codegen.cuda.memory import Plan
from linkwise.codegen.cuda.source import LIMIT, Kernel, opening
from linkwise.errors import InputError
from linkwise.tracing.block import Block
from linkwise.tracing.program import (
    Call,
    Columns,
    Copy,
    Host,
    IfAny,
    Lookup,
    Program,
    Read,
    Record,
    Seek,
    Statement,
    WhileAny,
)

_WRITTEN_OUT = 5000  # instructions of all copies of a program, up to which it is written out wherever it is called
_SMALL = 100  # instructions of a program that is written out in any case
_LOCAL_BYTES = 64 * 1024  # of a thread's own memory: a card sets it aside for every thread it could run
_FRAME_BYTES = 56 * 1024  # of shared memory for a tile, above which values wait in local memory instead
_LONG = 5000  # instructions of all programs, above which warps stay together
_WARPS = 8  # that do: so many have all the registers that a thread can have


def routine_kernel(routine: Program, bits: int, shared_bytes: int = layouts.SHARED_BYTES) -> Kernel:
    """The kernel of a routine, where a block may have so much shared memory.

    Its parameters are those of :func:`parameters`, then ``count``.
    """
    return _Writer(routine, bits, min(shared_bytes, layouts.SHARED_BYTES)).kernel()


def parameters(routine: Program) -> list[tuple[str, str]]:
    """What a kernel is given, in this order: for each number or array its kind and the name of what it belongs to.

    ``array``: the first number of rows, a table, a record, a curve or a series. ``apart``: numbers from one state to
    the next, 0 where one serves all. ``stride``: numbers from one row to the next. ``rows``: of a curve.
    """
    found = [("array", buffer.name) for buffer in routine.loads]
    found += [("array", name) for name in routine.tables]
    for name, _ in (*routine.records, *routine.series):
        found += [("array", name), ("apart", name), ("stride", name)]
    for name, _ in routine.curves:
        found += [("array", name), ("apart", name), ("rows", name)]
    return found


@dataclass(frozen=True)
class _Function:
    """A program as a function of pointers."""

    name: str
    body: Body
    inputs: int
    outputs: int
    written_out: bool
    frame: int  # values that wait in memory
    apart: int  # numbers of shared memory from one warp's frame to the next one's; 0: the frame is the thread's own

    @property
    def is_long(self) -> bool:
        """Whether warps that stay together should begin it together."""
        return not self.written_out

    def lines(self) -> Iterator[str]:
        """Its definition."""
        names = [f"const REAL *__restrict__ lw_in{k}" for k in range(self.inputs)]
        names += [f"REAL *__restrict__ lw_out{k}" for k in range(self.outputs)]
        how = "LW_INLINE" if self.written_out else "__device__ __noinline__"
        yield f"{how} void {self.name}({', '.join(names)})"
        yield "{"
        for name in (*(f"lw_in{k}" for k in range(self.inputs)), *(f"lw_out{k}" for k in range(self.outputs))):
            yield f"    {name} = LW_ALIGNED({name});"
        if self.frame and not self.apart:
            yield f"    volatile REAL frame[{self.frame}];"
        elif self.frame:
            yield "    extern __shared__ __align__(16) REAL lw_memory[];"
            yield f"    volatile REAL *const frame = lw_memory + threadIdx.x / LW_LANES * {self.apart} + lw_lane();"
        yield from (f"    {line}" for line in self.body.lines)
        yield "}"
        yield ""


class _Writer:
    """Writes one kernel."""

    def __init__(self, routine: Program, bits: int, shared_bytes: int) -> None:
        self.routine, self.bits = routine, bits
        self.name = f"linkwise_{identifier(routine.name)}"
        programs = [program for program in routine.programs if isinstance(program, Block)]
        looping = [program for program in routine.programs if isinstance(program, Program)]
        if not routine.is_compilable:
            raise ValueError(f"{routine.name} calls Python functions and cannot be compiled")
        self.lanes = layouts.LANES[0]
        inner = [body.program for program in looping for body in program.bodies]
        self.constants = Constants.of([*programs, *inner], bits)
        plans = [planned_body(program, LIMIT[bits]) for program in programs]
        frame = max((each.slots - each.given for _, each in plans), default=0)
        frame_bytes = frame * self.lanes * bits // 8
        self.apart = 0 if frame_bytes > min(_FRAME_BYTES, shared_bytes) else frame * self.lanes
        room = _WARPS if not self.apart else min(_WARPS, shared_bytes // frame_bytes)
        self.warps = room if sum(len(each.steps) for _, each in plans) > _LONG else 1
        self.together = self.warps > 1
        self.shared_bytes = self.warps * frame_bytes if self.apart else 0
        called = [id(statement.program) for statement in routine.walk() if isinstance(statement, Call)]
        calls = [called.count(id(program)) for program in programs]
        lengths = [len(each.steps) for _, each in plans]
        short = all(n == 1 or n * length <= _WRITTEN_OUT for n, length in zip(calls, lengths, strict=True))
        short = short and not looping
        self.functions: dict[int, _Function | LoopingFunction] = {
            id(program): self._function(k, program, *plans[k], written_out=short or lengths[k] <= _SMALL)
            for k, program in enumerate(programs)
        }
        for k, rolled in enumerate(looping):
            name = f"lw_loops{k}_{identifier(rolled.name)}"
            self.functions[id(rolled)] = LoopingFunction(name, rolled, self.constants, bits)
        self._check_memory()
        buffers = [buffer.name for buffer in routine.buffers]
        self.places = dict(zip(buffers, identifiers([f"b_{name}" for name in buffers]), strict=True))
        given_names = list(dict.fromkeys(name for _, name in parameters(routine)))
        self.arrays = dict(zip(given_names, identifiers([f"a_{name}" for name in given_names]), strict=True))

    def _check_memory(self) -> None:
        own = [each.memory for each in self.functions.values() if isinstance(each, LoopingFunction)]
        numbers = sum(self.routine.sizes.values()) + max(own, default=0)
        if numbers * self.bits // 8 > _LOCAL_BYTES:
            raise InputError(
                f"a state of {self.routine.name} needs more memory than a thread of a GPU has",
                got=f"{numbers} numbers: {numbers * self.bits // 8 / 1024:.0f} kB",
                allowed=f"{_LOCAL_BYTES // 1024} kB: mechanisms of up to some hundred joints",
                do="a method with fewer stages (rk4, dopri5), or pass NumPy arrays",
            )

    def _function(
        self, number: int, program: Block, given: Sequence[int], steps: Plan, written_out: bool
    ) -> _Function:
        def slot(k: int) -> str:
            if k < len(given):
                _, array, element = program.nodes[given[k]]
                return f"lw_in{array}[{element}]"
            own = k - len(given)
            return f"frame[LW_LANES * {own}]" if self.apart else f"frame[{own}]"

        body = Body(program, steps, self.constants, slot, _output)
        name, frame = f"lw_{number}_{identifier(program.name)}", steps.slots - steps.given
        arrays = len(program.inputs), len(program.outputs)
        return _Function(name, body, *arrays, written_out, frame, self.apart)

    def kernel(self) -> Kernel:
        return Kernel(self.name, "\n".join(self._lines()), self.warps * self.lanes, self.shared_bytes, True)

    def _lines(self) -> Iterator[str]:
        routine, real = self.routine, "float" if self.bits == 32 else "double"
        yield f"// {routine.name}: one state per thread, {real}. Generated by linkwise."
        threads = self.warps * self.lanes
        yield f"// Launch with {threads} threads a block and {self.shared_bytes} bytes of shared memory."
        yield from opening(self.bits, self.lanes, self.warps)
        yield _routine_functions()
        yield from self.constants.table()
        for function in self.functions.values():
            yield from function.lines()
        yield f'extern "C" __global__ void __launch_bounds__({threads})'
        kinds = {
            "array": "REAL *",
            "apart": "const long long ",
            "stride": "const long long ",
            "rows": "const long long ",
        }
        given = [f"{kinds[kind]}{self._parameter(kind, name)}" for kind, name in parameters(routine)]
        yield f"{self.name}({', '.join([*given, 'const long long count'])})"
        yield "{"
        yield f"    const long long own = (long long)blockIdx.x * {threads} + threadIdx.x;"
        if self.together:  # a thread without a state goes along with the last one's, and writes nothing
            yield "    const bool inside = own < count;"
            yield "    const long long state = inside ? own : count - 1;"
        else:
            yield "    if (own >= count) return;"
            yield "    const bool inside = true;"
            yield "    const long long state = own;"
        for buffer in routine.buffers:
            yield f"    [[maybe_unused]] __align__(16) REAL {self.places[buffer.name]}[{max(1, buffer.size)}];"
        for buffer in routine.loads:
            if buffer.load and buffer.size:
                row = f"{self.arrays[buffer.name]} + state * {buffer.size}"
                yield f"    lw_copy<{buffer.size}>({row}, {self.places[buffer.name]});"
        yield from self._statements(routine.statements, "    ")
        for buffer in routine.loads:
            if buffer.store and buffer.size:
                row = f"{self.arrays[buffer.name]} + state * {buffer.size}"
                yield f"    if (inside) lw_copy<{buffer.size}>({self.places[buffer.name]}, {row});"
        yield "}"
        yield ""

    def _parameter(self, kind: str, name: str) -> str:
        return self.arrays[name] if kind == "array" else f"{self.arrays[name]}_{kind}"

    def _own(self, name: str) -> str:
        """Where this state's part of an array begins."""
        return f"{self.arrays[name]} + state * {self._parameter('apart', name)}"

    def _any(self, flag: str) -> str:
        """Whether a state has its flag up: this thread's, or any of those that stay together."""
        own = f"{self.places[flag]}[0] != (REAL)0"
        return f"__syncthreads_or(inside && {own})" if self.together else own

    def _statements(self, statements: Sequence[Statement], indent: str) -> Iterator[str]:
        at, sizes = self.places, self.routine.sizes
        for statement in statements:
            match statement:
                case Call(program, inputs, outputs):
                    passed = ", ".join(at[name] for name in (*inputs, *outputs))
                    function = self.functions[id(program)]
                    if self.together and function.is_long:
                        yield f"{indent}__syncthreads();"
                    yield f"{indent}{function.name}({passed});"
                case Copy(source, target) if sizes[source]:
                    yield f"{indent}lw_copy<{sizes[source]}>({at[source]}, {at[target]});"
                case Lookup(table, index, target):
                    yield f"{indent}{at[target]}[0] = {self.arrays[table]}[(long long){at[index]}[0]];"
                case Seek(curve, moment, target, offset):
                    width, rows = dict(self.routine.curves)[curve], self._parameter("rows", curve)
                    target_part = f"{at[target]} + {offset}"
                    yield f"{indent}lw_seek<{width}>({self._own(curve)}, {rows}, {at[moment]}[0], {target_part});"
                case Read(series, index, target) if sizes[target]:
                    stride = self._parameter("stride", series)
                    yield (
                        f"{indent}lw_read<{sizes[target]}>"
                        f"({self._own(series)}, {stride}, {at[index]}[0], {at[target]});"
                    )
                case Record(record, value, index, mask) if sizes[value]:
                    stride = self._parameter("stride", record)
                    wanted = f"inside && {at[mask]}[0] != (REAL)0"
                    yield (
                        f"{indent}if ({wanted}) lw_record<{sizes[value]}>"
                        f"({self._own(record)}, {stride}, {at[index]}[0], {at[value]});"
                    )
                case WhileAny(flag, body):
                    yield "#pragma unroll 1"
                    yield f"{indent}while ({self._any(flag)}) {{"
                    yield from self._statements(body, indent + "    ")
                    yield f"{indent}}}"
                case IfAny(flag, body):
                    yield f"{indent}if ({self._any(flag)}) {{"
                    yield from self._statements(body, indent + "    ")
                    yield f"{indent}}}"
                case Columns(unit, column, matrix, body):
                    yield "#pragma unroll 1"
                    yield f"{indent}for (int j = 0; j < {sizes[unit]}; ++j) {{"
                    yield f"{indent}    lw_unit<{sizes[unit]}>({at[unit]}, j);"
                    yield from self._statements(body, indent + "    ")
                    yield f"{indent}    lw_copy<{sizes[column]}>({at[column]}, {at[matrix]} + j * {sizes[column]});"
                    yield f"{indent}}}"
                case Host():
                    raise ValueError("a Python function cannot be compiled")
                case _:  # nothing to copy
                    pass


def _output(array: int, element: int, value: str) -> str:
    return f"lw_out{array}[{element}] = {value};"


@cache
def _routine_functions() -> str:
    return Path(__file__).with_name("routine.cuh").read_text(encoding="utf-8")
