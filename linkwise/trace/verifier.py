"""Checks that blocks and programs are well formed: between passes, and before code is emitted in debug runs.

The structure of a program (which buffers its statements name, and their sizes) is checked whenever one is made; what
its tables say, row by row, only on demand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.trace.block import OPS, Block
from linkwise.trace.in_place import goes_on_in_place
from linkwise.trace.program import (
    PARAMETERS,
    Call,
    Copy,
    For,
    IfAny,
    Lookup,
    ParameterRow,
    Place,
    Program,
    Read,
    Seek,
    Slice,
    Statement,
    Stretch,
    Switch,
    Unit,
    WhileAny,
    buffer_of,
    copied,
    places_of,
)

_Piece = tuple[tuple[str, int], int]  # buffer and first value, how many


def verify(code: Block | Program) -> None:
    """Raise ``ValueError`` naming the first node, or the first access to memory, that breaks a rule."""
    if isinstance(code, Block):
        _verify_block(code)
        return
    for block in code.codes:
        verify(block)
    _WrittenValues(code).run()


def _verify_block(block: Block) -> None:
    kinds: list[str] = []
    for number, (op, *arguments) in enumerate(block.nodes):
        where = f"node %{number} {(op, *arguments)} of {block.name}"
        if op == "const":
            if not isinstance(arguments[0], float) or math.isnan(arguments[0]):
                raise ValueError(f"{where}: a constant is a float, not NaN")
            kinds.append("R")
        elif op == "input":
            array, element = arguments
            if not (0 <= array < len(block.inputs) and 0 <= element < block.inputs[array].size):
                raise ValueError(f"{where}: reads outside the inputs {block.inputs}")
            kinds.append("R")
        elif op in OPS:
            if len(arguments) != OPS[op].arity:
                raise ValueError(f"{where}: takes {OPS[op].arity} arguments")
            if not all(0 <= a < number for a in arguments):
                raise ValueError(f"{where}: uses a value that is not computed yet")
            if "".join(kinds[a] for a in arguments) != OPS[op].arguments:
                raise ValueError(f"{where}: takes kinds {OPS[op].arguments}")
            kinds.append(OPS[op].result)
        else:
            raise ValueError(f"{where}: no such operation; there are {', '.join(OPS)}")
    for spec, result in zip(block.outputs, block.results, strict=True):
        if len(result) != spec.size:
            raise ValueError(f"output {spec.name} of {block.name} has {len(result)} values, shape {spec.shape}")
        if not all(0 <= n < len(kinds) for n in result):
            raise ValueError(f"output {spec.name} of {block.name} takes a value that is not there")
        if any(kinds[n] != "R" for n in result):
            raise ValueError(f"output {spec.name} of {block.name} holds a truth value")


def check_places(program: Program) -> None:
    """Raise ``ValueError`` unless all places of statements are there, of the right sizes and inside their loops."""
    _check_statements(program, program.statements, over_rows=False, passes=0)


def _check_statements(program: Program, statements: Sequence[Statement], over_rows: bool, passes: int) -> None:
    """``passes``: of the nearest counted loop, 0 outside of one."""
    sizes, where = program.sizes, f"of {program.name}"
    for statement in statements:
        for place, size in _uses(statement):
            name = buffer_of(place)
            if name not in sizes:
                raise ValueError(f"{statement} {where} uses the buffer {name!r}; there are {sorted(sizes)}")
            if isinstance(place, str) and size is not None and sizes[name] != size:
                raise ValueError(f"buffer {name!r} {where} has {sizes[name]} numbers where {size} are passed")
            if isinstance(place, Stretch) and not (over_rows and 0 <= place.column < program.rows.shape[1]):
                raise ValueError(f"{place} {where} is outside a loop over rows, or they have no such column")
            if isinstance(place, Slice):
                size = copied(program, statement) if isinstance(statement, Copy) else size or 0
                if not passes or (passes - 1) * place.stride + size > sizes[name]:
                    raise ValueError(
                        f"{passes} passes of {size} numbers, {place.stride} apart, are not in the {sizes[name]} "
                        f"of {name!r} {where}"
                    )
        match statement:
            case Call(code, inputs, outputs):
                both = [place for place in outputs if place in inputs and not isinstance(place, Stretch)]
                if not all(goes_on_in_place(code, inputs.index(x), outputs.index(x)) for x in both):
                    raise ValueError(f"the call of {code.name} in {program.name} writes what it reads")
            case Copy() if not any(isinstance(place, str) for place in (statement.source, statement.target)):
                raise ValueError(f"{statement} {where} has no whole buffer")
            case Unit(target) if passes > sizes[target] or not passes:
                raise ValueError(f"{statement} {where} is outside a counted loop, or has too few numbers for it")
            case Seek(curve, _, target, offset) if offset + dict(program.curves)[curve] > sizes[target]:
                raise ValueError(f"a row of {curve!r} does not fit into {target!r} {where}")
            case ParameterRow(_, target, count, stride) if count < 1 or (count - 1) * stride + sizes[target] - 1 > len(
                program.parameters
            ):
                raise ValueError(f"{count} rows, {stride} apart, are not in the parameters {where}")
            case Read(series, _, target) if dict(program.series)[series] != sizes[target]:
                raise ValueError(f"a row of {series!r} is not what {target!r} {where} takes")
            case For(over, body):
                if isinstance(over, str) and over not in program.range_of:
                    raise ValueError(f"no range of rows {over!r} {where}; there are {sorted(program.range_of)}")
                if isinstance(over, str):
                    _check_statements(program, body, True, passes)
                elif over:
                    _check_statements(program, body, over_rows, over)
            case Switch(column, cases):
                if not (over_rows and 0 <= column < program.rows.shape[1]):
                    raise ValueError(f"the table {where} has no column {column}, or no loop over it is around")
                for case in cases:
                    _check_statements(program, case, over_rows, passes)
            case WhileAny(_, body) | IfAny(_, body):
                _check_statements(program, body, over_rows, passes)
            case _:
                pass


def _uses(statement: Statement) -> list[tuple[Place, int | None]]:
    """Places of one statement, with the size they must have where that is known."""
    places = [place for side in places_of(statement) for place in side]
    if isinstance(statement, Call):
        code = statement.code
        return list(zip(places, (spec.size for spec in (*code.inputs, *code.outputs)), strict=True))
    single = {getattr(statement, name, None) for name in ("index", "at", "mask", "flag")}
    if isinstance(statement, Lookup):
        single.add(statement.target)
    return [(place, 1 if place in single else None) for place in places]


class _WrittenValues:
    """Record of the values of each buffer that are written, while the statements are gone through row by row.

    Places are data of the program, so all this is known before anything runs. The body of a loop that asks a flag is
    gone through once, as that of a branch.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.written = {b.name: np.full(b.size, b.load) for b in program.buffers}
        self.written[PARAMETERS] = np.ones(len(program.parameters), bool)
        self.read_only = {PARAMETERS, *(b.name for b in program.buffers if b.load and b.open and not b.store)}
        self.row: int | None = None
        self.pass_number = 0

    def run(self) -> None:
        for number in self.program.initial:
            self._write(number.buffer, number.offset, 1, "an initial number")
        self._all(self.program.statements)
        for buffer in self.program.buffers:
            missing = np.flatnonzero(~self.written[buffer.name])
            if buffer.store and len(missing):
                raise ValueError(f"output {buffer.label} of {self.program.name}: value {missing[0]} is never written")

    def _all(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._one(statement)

    def _one(self, statement: Statement) -> None:
        who = type(statement).__name__
        match statement:
            case Call(code, inputs, outputs):
                self._call(code, inputs, outputs)
            case Copy(source, target):
                size = copied(self.program, statement)
                self._read(*self._at(source, who), size, who)
                self._write(*self._at(target, who), size, who)
            case Seek(curve, at, target, offset):
                self._whole((at,), (), who)
                self._write(target, offset, dict(self.program.curves)[curve], who)
            case For():
                self._repeat(statement)
            case Switch(column, cases):
                kind = int(self.program.rows[self.row or 0, column])
                if not 0 <= kind < len(cases):
                    raise ValueError(
                        f"row {self.row} of {self.program.name} is of kind {kind}; there are {len(cases)} cases"
                    )
                self._all(cases[kind])
            case WhileAny(flag, body) | IfAny(flag, body):
                self._whole((flag,), (), who)
                self._all(body)
            case _:
                self._whole(*places_of(statement), who)

    def _repeat(self, loop: For) -> None:
        around = self.row, self.pass_number
        if isinstance(loop.over, int):
            for self.pass_number in range(loop.over):
                self._all(loop.body)
        else:
            first, count = self.program.range_of[loop.over]
            if not 0 <= first <= first + count <= len(self.program.rows):
                raise ValueError(
                    f"the range {loop.over!r} of {self.program.name} is not in its table of "
                    f"{len(self.program.rows)} rows"
                )
            rows = range(first, first + count)
            for self.row in reversed(rows) if loop.reverse else rows:
                self._all(loop.body)
        self.row, self.pass_number = around

    def _whole(self, inputs: Sequence[Place], outputs: Sequence[Place], who: str) -> None:
        for name in map(buffer_of, inputs):
            self._read(name, 0, self.program.sizes[name], who)
        for name in map(buffer_of, outputs):
            self._write(name, 0, self.program.sizes[name], who)

    def _at(self, place: Place, who: str) -> tuple[str, int]:
        match place:
            case Stretch(buffer, column):
                if self.row is None:
                    raise ValueError(f"{who} in {self.program.name} is outside a loop over rows")
                return buffer, int(self.program.rows[self.row, column])
            case Slice(buffer, stride):
                return buffer, stride * self.pass_number
            case _:
                return place, 0

    def _call(self, code: Block | Program, inputs: Sequence[Place], outputs: Sequence[Place]) -> None:
        who = f"{code.name} of row {self.row}" if self.row is not None else code.name
        given, made = ([self._at(place, who) for place in places] for places in (inputs, outputs))
        if isinstance(code, Block):
            read = [(array, element, 1) for array, element in sorted({n[1:] for n in code.nodes if n[0] == "input"})]
        else:
            read = [(array, 0, spec.size) for array, spec in enumerate(code.inputs)]
        for array, element, size in read:
            self._read(given[array][0], given[array][1] + element, size, who)
        written = list(zip(made, (spec.size for spec in code.outputs), strict=True))
        for (buffer, start), size in written:
            self._write(buffer, start, size, who)
        if not set(inputs) & set(outputs):
            self._apart([((given[a][0], given[a][1] + e), n) for a, e, n in read], written, who)

    def _apart(self, read: list[_Piece], written: list[_Piece], who: str) -> None:
        """Blocks none of whose inputs is one of its outputs are compiled as if all of these lay apart."""
        taken = {(buffer, i) for (buffer, start), size in read for i in range(start, start + size)}
        for (buffer, start), size in written:
            values = {(buffer, i) for i in range(start, start + size)}
            if values & taken:
                raise ValueError(
                    f"{who} in {self.program.name} writes {buffer}[{min(values & taken)[1]}], which it also reads or "
                    "writes in another place"
                )
            taken |= values

    def _inside(self, buffer: str, start: int, size: int, who: str) -> None:
        if buffer not in self.written:
            known = sorted(self.written)
            raise ValueError(f"{who} in {self.program.name}: no such buffer {buffer!r}; there are {known}")
        room = len(self.written[buffer])
        if size and not 0 <= start <= start + size <= room:
            raise ValueError(
                f"{who} in {self.program.name}: {buffer}[{start}:{start + size}] is outside its {room} values"
            )

    def _read(self, buffer: str, start: int, size: int, who: str) -> None:
        self._inside(buffer, start, size, who)
        if not self.written[buffer][start : start + size].all():
            raise ValueError(f"{who} in {self.program.name} reads {buffer}[{start}] before it is written")

    def _write(self, buffer: str, start: int, size: int, who: str) -> None:
        self._inside(buffer, start, size, who)
        if buffer in self.read_only:
            raise ValueError(f"{who} in {self.program.name} writes to {buffer}, which is only for reading")
        self.written[buffer][start : start + size] = True
