"""A program as C functions: one for the statements of each program, one for each block that they call.

All numbers of the program are in the text, tables of the links too. The buffers that are nobody's arrays lie one behind
the other in a workspace that the caller brings; programs that are called use what is left of it behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from linkwise.errors import InputError
from linkwise.targets.c.block_writer import BlockWriter
from linkwise.targets.c.lines import constants, function_name, identifier, literal, literals, shape_of, wrapped
from linkwise.trace.block import Block
from linkwise.trace.program import (
    PARAMETERS,
    Angles,
    Buffer,
    Call,
    Copy,
    For,
    IfAny,
    Initial,
    Lookup,
    ParameterRow,
    Place,
    Program,
    Read,
    Record,
    Seek,
    Slice,
    Statement,
    Stretch,
    Switch,
    Unit,
    WhileAny,
    copied,
)

WORKSPACE = "w"
_OWN = ("i", "low", "high", "middle", "workspace")  # variables, beside those of loops


class ProgramWriter:
    """Writes one program, and all that it calls.

    Args:
        program: it must not call Python functions.
        bits: 64 for double, 32 for float.
        name: of the function; that of the program, if not given.
        functions: names and workspaces of the blocks and programs that are written already.
    """

    def __init__(
        self,
        program: Program,
        bits: int,
        name: str | None = None,
        functions: dict[object, tuple[str, int]] | None = None,
    ) -> None:
        if not all(isinstance(code, Block) or code.is_compilable for code in (program, *program.codes)):
            raise InputError(
                f"{program.name} calls a Python function, which cannot be written in C",
                do="write it so that it can be traced: lw.math.where instead of `if`, lw.math.sin instead of math.sin",
            )
        self.program, self.bits = program, bits
        self.real = "double" if bits == 64 else "float"
        self.suffix = "" if bits == 64 else "f"
        self.name = function_name(program) if name is None else name
        self._functions = {} if functions is None else functions
        self._before: list[str] = []  # text of what is called
        self._beyond = 0  # numbers of the workspace that called programs need
        self._used: set[str] = set()
        self._name_arrays()
        self._body = [*self._openings(), *self._all(program.statements, ())]

    # Where numbers are.
    def _name_arrays(self) -> None:
        """C names of buffers and of the caller's other arrays; which buffers are in the workspace, and where."""
        program, taken = self.program, [self.name, *_OWN]

        def named(wanted: str) -> str:
            taken.append(identifier(wanted, taken))
            return taken[-1]

        self.names = {buffer.name: named(buffer.label) for buffer in program.buffers}
        self.names[PARAMETERS] = f"{self.name}_parameters"
        self.arrays = {each: named(each) for each, _ in _arrays(program)} | {
            each: named(each) for each in program.tables
        }
        self.counts = {each: named(f"{self.arrays[each]}_rows") for each, _ in (*program.records, *program.curves)}
        self.own = [b for b in program.buffers if not b.store and (not b.load or b.name in program.written)]
        self.given = {b.name: named(f"{b.label}_given") for b in self.own if b.load}
        self.offsets: dict[str, int] = {}
        self.size = 0
        for buffer in self.own:
            self.offsets[buffer.name] = self.size
            self.size += buffer.size

    @property
    def inputs(self) -> list[tuple[str, Buffer]]:
        """Parameters that are read, and perhaps written."""
        return [(self.given.get(b.name, self.names[b.name]), b) for b in self.program.buffers if b.load]

    @property
    def outputs(self) -> list[tuple[str, Buffer]]:
        """Parameters that are written only."""
        return [(self.names[b.name], b) for b in self.program.buffers if b.store and not b.load]

    @property
    def workspace(self) -> int:
        """Numbers that the function and all that it calls need besides the caller's arrays."""
        return self.size + self._beyond

    def described(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The caller's arrays by titles, with a word on the size of each."""
        sizes = dict(_arrays(self.program))
        taken = [(name, shape_of(b.spec) + (", changed" if b.store else "")) for name, b in self.inputs]
        taken += [(self.arrays[each], "any number") for each in self.program.tables]
        taken += [(self.arrays[each], f"rows of {size}") for each, size in (*self.program.curves, *self.program.series)]
        made = [(name, shape_of(b.spec)) for name, b in self.outputs]
        made += [(self.arrays[each], f"{self.counts[each]} rows of {sizes[each]}") for each, _ in self.program.records]
        return [("Inputs", taken), ("Outputs", made)]

    def parameters(self, sized: bool) -> list[str]:
        """The parameters of the function, but the workspace, which is the last."""

        def array(qualifier: str, name: str, size: int) -> str:
            return f"{qualifier} {name}[{size}]" if sized and size else f"{qualifier} *{name}"

        const = f"const {self.real}"
        found = [array(self.real if b.store else const, name, b.size) for name, b in self.inputs]
        found += [array(self.real, name, b.size) for name, b in self.outputs]
        plain = (*self.program.tables, *(each for each, _ in self.program.series))
        found += [f"{const} *{self.arrays[each]}" for each in plain]
        for each, _ in self.program.curves:
            found += [f"{const} *{self.arrays[each]}", f"int {self.counts[each]}"]
        for each, _ in self.program.records:
            found += [f"{self.real} *{self.arrays[each]}", f"int {self.counts[each]}"]
        return found

    # The text.
    def definitions(self, workspace: str | None = None) -> list[str]:
        """All functions and tables; ``workspace``: the type of the last parameter of one that others call."""
        lines = [*self._before]
        program = self.program
        if self.names[PARAMETERS] in self._used:
            lines += ["", *constants(self.real, self.names[PARAMETERS], literals(program.parameters, self.bits))]
        if self._rows in self._used:
            values = [str(value) for value in program.rows.reshape(-1).tolist()]
            lines += ["", *constants(self._whole_number, self._rows, values)]
        head = f"static void {self.name}(" if workspace is None else f"void {self.name}("
        last = f"{self.real} *{WORKSPACE}" if workspace is None else f"{workspace} *workspace"
        lines += ["", *wrapped(head, [*self.parameters(sized=workspace is not None), last], ")"), "{"]
        if workspace is not None:
            self._used.add(WORKSPACE)
            lines.append(f"    {self.real} *const {WORKSPACE} = workspace->memory;")
        for buffer in self.own:
            name = self.names[buffer.name]
            if name in self._used or buffer.name in self.given:
                self._used.add(WORKSPACE)
                lines.append(f"    {self.real} *const {name} = {WORKSPACE} + {self.offsets[buffer.name]};")
        lines.append("")
        every = [*(name for name, _ in (*self.inputs, *self.outputs)), *self.arrays.values(), *self.counts.values()]
        lines += [f"    (void){name};" for name in [*every, WORKSPACE] if name not in self._used]
        return [*lines, *(f"    {line}" for line in self._body), "}"]

    @property
    def _rows(self) -> str:
        return f"{self.name}_rows"

    @property
    def _whole_number(self) -> str:
        """The type of the table that loops run over."""
        return "short" if abs(self.program.rows).max(initial=0) < 2**15 else "int"

    def _openings(self) -> Iterator[str]:
        """Lines before the first statement: inputs that change are copied, and initial numbers are set."""
        for name, given in self.given.items():
            self._used.add(given)
            yield from self._copied(given, self.names[name], self.program.sizes[name])
        ordered = sorted(enumerate(self.program.initial), key=lambda e: (e[1].buffer, e[1].offset))

        def run(numbered: tuple[int, tuple[int, Initial]]) -> tuple[str, int, str]:
            place, (_, number) = numbered
            return number.buffer, number.offset - place, float(number.value).hex()

        for (buffer, _, _), group in groupby(enumerate(ordered), run):
            numbers = [number for _, (_, number) in group]
            name, first = self._use(buffer), numbers[0].offset
            value = literal(numbers[0].value, self.bits).strip("()")
            if len(numbers) == 1:
                yield f"{name}[{first}] = {value};"
            else:
                yield f"for (int i = {first}; i < {first + len(numbers)}; ++i) {name}[i] = {value};"

    def _use(self, buffer: str) -> str:
        self._used.add(self.names[buffer])
        return self.names[buffer]

    def _array(self, name: str) -> str:
        self._used.add(self.arrays[name])
        return self.arrays[name]

    def _rows_of(self, name: str) -> str:
        self._used.add(self.counts[name])
        return self.counts[name]

    def _all(self, statements: Sequence[Statement], loops: tuple[For, ...]) -> Iterator[str]:
        """Statements inside of some loops."""
        depths = {isinstance(loop.over, int): depth for depth, loop in enumerate(loops)}  # of the nearest ones
        row, number = f"row{depths.get(False)}", f"pass{depths.get(True)}"

        def at(place: Place) -> str:
            match place:
                case Stretch(buffer, column):
                    return f"{self._use(buffer)} + {row}[{column}]"
                case Slice(buffer, stride):
                    return f"{self._use(buffer)} + {stride} * {number}"
                case _:
                    return self._use(place)

        for statement in statements:
            match statement:
                case For():
                    yield from self._loop(statement, loops)
                case Switch(column, cases):
                    yield f"switch ({row}[{column}]) {{"
                    for kind, case in enumerate(cases):
                        if case:
                            yield f"case {kind}:"
                            yield from _indented(self._all(case, loops))
                            yield "    break;"
                    yield from ("default:", "    break;", "}")
                case WhileAny(flag, body) | IfAny(flag, body):
                    word = "while" if isinstance(statement, WhileAny) else "if"
                    yield f"{word} ({self._use(flag)}[0] != 0) {{"
                    yield from _indented(self._all(body, loops))
                    yield "}"
                case _:
                    yield from self._one(statement, number, at)

    def _one(self, statement: Statement, number: str, at: Callable[[Place], str]) -> Iterator[str]:
        match statement:
            case Call(code, inputs, outputs):
                passed = [at(place) for place in (*inputs, *outputs)]
                yield from wrapped(f"{self._function(code)}(", [*passed, *self._rest(code)], ");", none="")
            case Copy(source, target):
                yield from self._copied(at(source), at(target), copied(self.program, statement))
            case Unit(target):
                size, name = self.program.sizes[target], self._use(target)
                yield f"for (int i = 0; i < {size}; ++i) {name}[i] = i == {number};"
            case Angles(arguments, sines, cosines):
                angle = f"{self._use(arguments)}[i]"
                for function, name in (("sin", sines), ("cos", cosines)):
                    size = self.program.sizes[arguments]
                    yield f"for (int i = 0; i < {size}; ++i) {self._use(name)}[i] = {function}{self.suffix}({angle});"
            case Lookup(table, index, target):
                yield f"{self._use(target)}[0] = {self._array(table)}[(int){self._use(index)}[0]];"
            case ParameterRow(index, target, count, stride):
                place, own, width = self._use(index), self._use(target), self.program.sizes[target] - 1
                yield f"{own}[0] = (int)({place}[0] > 0 ? {place}[0] < {count - 1} ? {place}[0] : {count - 1} : 0);"
                if width:
                    row = f"{self._use(PARAMETERS)} + {stride} * (int){own}[0]"
                    yield from self._copied(row, f"{own} + 1", width)
            case Seek(curve, time, target, offset):
                yield from self._seek(curve, time, target, offset)
            case Read(series, index, target):
                width = self.program.sizes[target]
                place = f"{self._array(series)} + {width} * (int){self._use(index)}[0]"
                yield from self._copied(place, self._use(target), width)
            case Record(record, value, index, mask):
                width, place = dict(self.program.records)[record], f"(int){self._use(index)}[0]"
                yield f"if ({self._use(mask)}[0] != 0 && {place} < {self._rows_of(record)}) {{"
                target = f"{self._array(record)} + {width} * {place}"
                yield from _indented(self._copied(self._use(value), target, width))
                yield "}"
            case _:
                raise TypeError(f"{statement} has statements inside, or cannot be compiled")

    def _loop(self, loop: For, loops: tuple[For, ...]) -> Iterator[str]:
        depth = len(loops)
        first, count = (0, loop.over) if isinstance(loop.over, int) else self.program.range_of[loop.over]
        if not count:
            return
        k, row = f"pass{depth}", f"row{depth}"
        if loop.reverse:
            yield f"for (int {k} = {first + count - 1}; {k} >= {first}; --{k}) {{"
        else:
            yield f"for (int {k} = {first}; {k} < {first + count}; ++{k}) {{"
        body = list(self._all(loop.body, (*loops, loop)))
        if any(f"{row}[" in line for line in body):
            self._used.add(self._rows)
            columns = self.program.rows.shape[1]
            yield f"    const {self._whole_number} *const {row} = {self._rows} + {columns} * {k};"
        yield from _indented(body)
        yield "}"

    def _seek(self, curve: str, time: str, target: str, offset: int) -> Iterator[str]:
        """The last row that begins before the time; looked for only where the part does not hold it already."""
        width = dict(self.program.curves)[curve]
        t, rows, part = f"{self._use(time)}[0]", self._array(curve), self._use(target)
        yield f"if (!({part}[{offset}] <= {t} && {t} < {part}[{offset + 1}])) {{"
        yield "    int low = 0;"
        yield f"    int high = {self._rows_of(curve)};"
        yield "    while (high - low > 1) {"
        yield "        const int middle = low + (high - low) / 2;"
        yield f"        if ({rows}[{width} * middle] <= {t}) low = middle; else high = middle;"
        yield "    }"
        yield from _indented(self._copied(f"{rows} + {width} * low", f"{part} + {offset}", width))
        yield "}"

    def _copied(self, source: str, target: str, size: int) -> Iterator[str]:
        if size:
            yield f"for (int i = 0; i < {size}; ++i) {_element(target)} = {_element(source)};"

    # What is called.
    def _function(self, code: Block | Program) -> str:
        """The name of a function, which is written before this one when it is first called."""
        key = code.fingerprint if isinstance(code, Block) else id(code)
        if key not in self._functions:
            name = base = identifier(f"{self.name}_{code.name}")
            taken = {each for each, _ in self._functions.values()} | {self._rows, self.names[PARAMETERS]}
            number = 2
            while name in taken:
                name, number = f"{base}_{number}", number + 1
            self._functions[key] = name, 0
            if isinstance(code, Block):
                self._before += BlockWriter(code, self.bits, name).definitions(static=True)
            else:
                writer = ProgramWriter(code, self.bits, name, self._functions)
                self._before += writer.definitions()
                self._functions[key] = name, writer.workspace
        return self._functions[key][0]

    def _rest(self, code: Block | Program) -> list[str]:
        """Arguments of a called program besides its arrays: the workspace behind that of this one."""
        if isinstance(code, Block):
            return []
        self._used.add(WORKSPACE)
        self._beyond = max(self._beyond, self._functions[id(code)][1])
        return [f"{WORKSPACE} + {self.size}"]


def _arrays(program: Program) -> tuple[tuple[str, int], ...]:
    """The caller's arrays of rows, with the sizes of these."""
    return (*program.curves, *program.series, *program.records)


def _element(place: str) -> str:
    """The number ``i`` from a place on."""
    return f"({place})[i]" if " " in place else f"{place}[i]"


def _indented(lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
