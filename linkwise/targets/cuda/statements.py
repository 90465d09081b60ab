"""The writer of statements: a program around blocks as lines of CUDA, wherever its numbers lie.

Every statement is written here, once. Where the numbers of a state are is a matter of the two kernels that programs
have: :mod:`linkwise.targets.cuda.thread_memory`, arrays of the thread's own, and
:mod:`linkwise.targets.cuda.device_memory`, the memory of a tile of states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from linkwise.dataclass import dataclass, replace
from linkwise.targets.c.lines import identifier, identifiers
from linkwise.targets.cuda.plan_writer import Constants
from linkwise.targets.cuda.row_loops import RowLoop, copied_arguments, programs_of
from linkwise.targets.cuda.source import Kernel
from linkwise.trace.block import Block
from linkwise.trace.program import (
    PARAMETERS,
    Angles,
    Call,
    Copy,
    For,
    Host,
    IfAny,
    Lookup,
    ParameterRow,
    Place,
    Program,
    Read,
    Record,
    Seek,
    Statement,
    Switch,
    Unit,
    WhileAny,
    copied,
)


@dataclass(frozen=True)
class Argument:
    """A parameter of a kernel: an array, or a number that says how one lies.

    Args:
        kind: ``array``: the first number of a caller's array. ``apart``: numbers from one state to the next, 0 where
            one serves all. ``stride``: from one number of a state to the next, or from one row to the next of records
            and series. ``rows``: of a curve.
        role: of the array: ``in`` and ``out`` for rows that are loaded and stored, else ``given``.
        name: of the buffer, the table, the record, the curve or the series.
    """

    kind: str
    role: str
    name: str


def arguments_of(program: Program) -> list[Argument]:
    """Arguments of a kernel, in this order; after them come those that the kind of kernel asks for."""
    found = []
    loaded, stored = [b for b in program.buffers if b.load], [b for b in program.buffers if b.store]
    for role, buffers in (("in", loaded), ("out", stored)):
        found += [Argument(kind, role, b.name) for b in buffers for kind in ("array", "apart", "stride")]
    found += [Argument("array", "given", name) for name in program.tables]
    for name, _ in (*program.records, *program.series):
        found += [Argument(kind, "given", name) for kind in ("array", "apart", "stride")]
    for name, _ in program.curves:
        found += [Argument(kind, "given", name) for kind in ("array", "apart", "rows")]
    return found


@dataclass(frozen=True)
class Strided:
    """Numbers of a place: their beginning and their distance, as expressions."""

    pointer: str
    apart: str = "1"

    def element(self, number: int) -> str:
        """One of them."""
        there = self.pointer if self.pointer.isidentifier() else f"({self.pointer})"
        return f"{there}[{number}]" if self.apart == "1" else f"{there}[{number} * {self.apart}]"

    def of(self, start: str) -> Strided:
        """Numbers from a given one on."""
        return Strided(
            f"{self.pointer} + {start}" if self.apart == "1" else f"{self.pointer} + {start} * {self.apart}", self.apart
        )


@dataclass(frozen=True)
class StatementScope:
    """Surroundings of a statement: its program, and the names of the row and the pass of the nearest loops."""

    program: Program
    row: str = ""
    loop: RowLoop | None = None
    passing: str = ""
    depth: int = 0


class ProgramKernelWriter(ABC):
    """The kernel of a program while it is written."""

    apart: ClassVar[str] = "1"
    """Distance from one number of a state to the next in the memory of its buffers."""
    goes_on_in_place: ClassVar[bool] = False
    """Whether called programs may write results where their states are (:mod:`linkwise.trace.in_place`)."""
    context: ClassVar[Mapping[str, str]] = {}
    """Names that the functions of called programs are given besides, and their types."""

    def __init__(self, program: Program, bits: int) -> None:
        if not program.is_compilable:
            raise ValueError(f"{program.name} calls Python functions and cannot be compiled")
        self.program, self.bits = program, bits
        self.name = f"linkwise_{identifier(program.name)}"
        self.programs = programs_of(program)
        for each in self.programs[1:]:
            if each.tables or each.records or each.curves or each.series:
                raise ValueError(f"{program.name} calls {each.name}, which wants arrays that only a caller can bring")
        self.copied = copied_arguments(program)
        self.constants = Constants.of(program.blocks, bits)
        given = list(dict.fromkeys((a.role, a.name) for a in arguments_of(program)))
        names = [f"{role}_{name.removeprefix(f'{role}:')}" for role, name in given]
        self._arrays = dict(zip(given, identifiers(names), strict=True))
        self.functions = {
            id(each): f"lw_program{k}_{identifier(each.name)}" for k, each in enumerate(self.programs[1:])
        }

    @abstractmethod
    def kernel(self) -> Kernel:
        """The whole."""

    @abstractmethod
    def at(self, place: Place, scope: StatementScope) -> Strided:
        """Numbers of a place."""

    @abstractmethod
    def size(self, name: str, scope: StatementScope) -> str:
        """Number of values of a buffer."""

    @abstractmethod
    def any(self, flag: str, scope: StatementScope) -> str:
        """Whether a state has its flag up: this thread's, or any of those that stay together."""

    @abstractmethod
    def column(self, number: int, scope: StatementScope) -> str:
        """A number of the row."""

    @abstractmethod
    def over_rows(self, loop: For, scope: StatementScope) -> Iterator[str]:
        """A loop over rows."""

    @abstractmethod
    def block(self, block: Block, call: Call, scope: StatementScope) -> Iterator[str]:
        """The call of a block."""

    def parameters(self) -> list[str]:
        """Parameters of the kernel that :func:`arguments_of` lists."""
        kinds = {"array": "REAL *"}
        return [f"{kinds.get(a.kind, 'const long long ')}{self.array(a)}" for a in arguments_of(self.program)]

    def array(self, argument: Argument) -> str:
        """The name of a parameter."""
        name = self._arrays[argument.role, argument.name]
        return name if argument.kind == "array" else f"{name}_{argument.kind}"

    def _given(self, kind: str, name: str) -> str:
        return self.array(Argument(kind, "given", name))

    def _own(self, name: str) -> str:
        """Beginning of this state's part of an array."""
        return f"{self._given('array', name)} + state * {self._given('apart', name)}"

    def statements(self, statements: Sequence[Statement], scope: StatementScope) -> Iterator[str]:
        """Statements in their order."""
        for statement in statements:
            yield from self.statement(statement, scope)

    def statement(self, statement: Statement, scope: StatementScope) -> Iterator[str]:
        """One statement, and those inside it."""

        def one(name: str) -> str:
            return self.at(name, scope).element(0)

        match statement:
            case Call(code, _, _):
                if isinstance(code, Block):
                    yield from self.block(code, statement, scope)
                else:
                    yield self._called(code, statement, scope)
            case Copy(source, target):
                yield from self.copy(self.at(source, scope), self.at(target, scope), self._copied(statement, scope))
            case Unit(target):
                there = self.at(target, scope)
                yield f"lw_unit({there.pointer}, {there.apart}, {self.size(target, scope)}, {scope.passing});"
            case Angles(arguments, sines, cosines):
                places = [self.at(name, scope) for name in (arguments, sines, cosines)]
                pointers = ", ".join(place.pointer for place in places)
                yield f"lw_all_angles({pointers}, {places[0].apart}, {self.size(arguments, scope)});"
            case Lookup(table, index, target):
                yield f"{one(target)} = {self._given('array', table)}[(long long){one(index)}];"
            case ParameterRow(index, target, count, stride):
                place, whole, last = one(index), one(target), f"(REAL){count - 1}"
                yield f"{whole} = (REAL)(long long)({place} > (REAL)0 ? {place} < {last} ? {place} : {last} : (REAL)0);"
                width = scope.program.sizes[target] - 1
                if width:
                    taken = self.at(PARAMETERS, scope).of(f"{stride} * (long long){whole}")
                    yield from self.copy(taken, self.at(target, scope).of("1"), str(width))
            case Seek(curve, moment, target, offset):
                part, width = self.at(target, scope).of(str(offset)), dict(scope.program.curves)[curve]
                given = f"{self._own(curve)}, {self._given('rows', curve)}, {width}, {one(moment)}"
                yield f"lw_seek({given}, {part.pointer}, {part.apart});"
            case Read(series, index, target):
                row = f"{self._own(series)} + (long long){one(index)} * {self._given('stride', series)}"
                yield from self.copy(Strided(row), self.at(target, scope), self.size(target, scope))
            case Record(record, value, index, mask):
                row = f"{self._own(record)} + (long long){one(index)} * {self._given('stride', record)}"
                for line in self.copy(self.at(value, scope), Strided(row), self.size(value, scope)):
                    yield f"if (inside && {one(mask)} != (REAL)0) {line}"
            case For(over, body, reverse) if isinstance(over, int):
                k = f"pass{scope.depth}"
                order = f"int {k} = {over - 1}; {k} >= 0; --{k}" if reverse else f"int {k} = 0; {k} < {over}; ++{k}"
                yield "#pragma unroll 1"
                yield f"for ({order}) {{"
                yield from self._inside(body, replace(scope, passing=k, depth=scope.depth + 1))
                yield "}"
            case For():
                yield from self.over_rows(statement, scope)
            case Switch(column, cases):
                yield f"switch ({self.column(column, scope)}) {{"
                for number, case in enumerate(cases):
                    if case:
                        yield f"case {number}: {{"
                        yield from self._inside(case, scope)
                        yield "    break;"
                        yield "}"
                yield "}"
            case WhileAny(flag, body):
                yield "#pragma unroll 1"
                yield f"while ({self.any(one(flag), scope)}) {{"
                yield from self._inside(body, scope)
                yield "}"
            case IfAny(flag, body):
                yield f"if ({self.any(one(flag), scope)}) {{"
                yield from self._inside(body, scope)
                yield "}"
            case Host():
                raise ValueError("a Python function cannot be compiled")

    def _inside(self, body: Sequence[Statement], scope: StatementScope) -> Iterator[str]:
        yield from indented(self.statements(body, scope))

    def copy(self, source: Strided, target: Strided, size: str) -> Iterator[str]:
        """Lines that copy so many numbers from one place to another."""
        if size != "0":
            yield f"lw_copy({source.pointer}, {source.apart}, {target.pointer}, {target.apart}, {size});"

    def _copied(self, statement: Copy, scope: StatementScope) -> str:
        wanted = copied(scope.program, statement)
        whole = [
            p for p in (statement.source, statement.target) if isinstance(p, str) and scope.program.sizes[p] == wanted
        ]
        return self.size(whole[0], scope)

    def _called(self, code: Program, call: Call, scope: StatementScope) -> str:
        """The call of another program, which is a function of pointers to what it loads and stores."""
        if set(call.inputs) & set(call.outputs) and not self.goes_on_in_place:
            raise ValueError(f"the call of {code.name} in {scope.program.name} writes what it reads")
        passed = [self.at(place, scope).pointer for place in (*call.inputs, *call.outputs)]
        given = zip(_passed(code)[0], call.inputs, strict=True)
        passed += [self.at(place, scope).apart for name, place in given if (id(code), name) in self.copied]
        return f"{self.functions[id(code)]}({', '.join([*passed, *self.context])});"

    def function(self, program: Program) -> Iterator[str]:
        """A called program as a function of pointers to what it loads and stores."""
        inputs = [f"const REAL *lw_in{k}" for k in range(len(program.inputs))]
        outputs = [f"REAL *lw_out{k}" for k in range(len(program.outputs))]
        scope = StatementScope(program)
        loaded, stored = _passed(program)
        copied_in = {name: pointer for name, pointer in loaded.items() if (id(program), name) in self.copied}
        more = [f"const long long {pointer}_apart" for pointer in copied_in.values()]
        more += [f"{kind}{name}" for name, kind in self.context.items()]
        yield f"__device__ __noinline__ void {self.functions[id(program)]}({', '.join([*inputs, *outputs, *more])})"
        yield "{"
        yield from indented(self.begin(program))
        for name, pointer in copied_in.items():
            given = Strided(pointer, f"{pointer}_apart")
            yield from indented(self.copy(given, self.at(name, scope), self.size(name, scope)))
        yield from indented(self.statements(program.statements, scope))
        for name, pointer in stored.items():
            if (id(program), name) in self.copied:
                made = Strided(pointer, self.apart)
                yield from indented(self.copy(self.at(name, scope), made, self.size(name, scope)))
        yield "}"
        yield ""

    @abstractmethod
    def begin(self, program: Program) -> Iterator[str]:
        """A program's own buffers, and what is in them at first."""

    def alias(self, name: str, scope: StatementScope) -> str | None:
        """The argument that a called program's buffer is, if it is one."""
        if scope.program is self.program or (id(scope.program), name) in self.copied:
            return None
        loaded, stored = _passed(scope.program)
        return (stored | loaded).get(name)


def _passed(program: Program) -> tuple[dict[str, str], dict[str, str]]:
    """The arguments of a called program's function, for each buffer that is loaded and for each that is stored."""
    loaded, stored = [b.name for b in program.buffers if b.load], [b.name for b in program.buffers if b.store]
    return {n: f"lw_in{k}" for k, n in enumerate(loaded)}, {n: f"lw_out{k}" for k, n in enumerate(stored)}


def indented(lines: Iterator[str]) -> Iterator[str]:
    """One step further in, but for the preprocessor's lines."""
    for line in lines:
        yield line if line.startswith("#") else f"    {line}"
