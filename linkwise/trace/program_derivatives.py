"""Derivatives of programs, themselves programs.

Forward: every buffer that depends on what is differentiated gets one more, with its tangents along some directions
(those of one number side by side), and every statement does to them what it does to the values. Reverse: through calls,
each result made once, and through counted loops and loops over items, which remember the state that every pass began
with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from linkwise.errors import InputError
from linkwise.trace.block import Block
from linkwise.trace.calls import CallingTracer
from linkwise.trace.derivatives import RULES, Cotangent, Tangent, cotangents, tangents
from linkwise.trace.program import (
    Buffer,
    Call,
    Copy,
    For,
    IfAny,
    Initial,
    ParameterRow,
    Place,
    Program,
    Slice,
    Statement,
    Stretch,
    Switch,
    Unit,
    WhileAny,
    buffer_of,
)
from linkwise.trace.replay import Table, values
from linkwise.trace.state_loops import (
    CAPTURED,
    STATE,
    CountedLoop,
    ItemLoop,
    Spread,
    TableRow,
    as_it_is,
    laid_out,
    zeros,
)
from linkwise.trace.tracer import Number, Traced, Tracer

Code = Block | Program


def called(code: Code, inputs: Sequence[Sequence[Number]], table: Table) -> list[list[Number]]:
    """The outputs of a block or a program for flat inputs of any scalars; a call, where a trace can have one."""
    if isinstance(code, Block):
        found = values(code, inputs, table)
        return [[found[number] for number in result] for result in code.results]
    tracer = next((x.tracer for array in inputs for x in array if isinstance(x, Traced)), None)
    if isinstance(tracer, CallingTracer):
        return [list(array) for array in tracer.call(code, inputs)]
    return _stepped(code, inputs, table)


def _stepped(program: Program, inputs: Sequence[Sequence[Number]], table: Table) -> list[list[Number]]:
    """A program gone through on scalars of any library; loops that ask a flag only on numbers."""
    given = iter(inputs)
    memory: dict[str, list[Number]] = {b.name: list(next(given)) if b.load else [0.0] * b.size for b in program.buffers}
    for number in program.initial:
        memory[number.buffer][number.offset] = number.value

    def read(place: Place, size: int, count: int) -> list[Number]:
        start = place.stride * count if isinstance(place, Slice) else 0
        return memory[buffer_of(place)][start : start + size]

    def write(place: Place, numbers: Sequence[Number], count: int) -> None:
        start = place.stride * count if isinstance(place, Slice) else 0
        memory[buffer_of(place)][start : start + len(numbers)] = numbers

    def run(statements: Sequence[Statement], count: int) -> None:
        for statement in statements:
            match statement:
                case Call(code, sources, targets):
                    arrays = [read(p, spec.size, count) for p, spec in zip(sources, code.inputs, strict=True)]
                    for place, numbers in zip(targets, called(code, arrays, table), strict=True):
                        write(place, numbers, count)
                case Copy(source, target):
                    whole = source if isinstance(source, str) else target
                    write(target, read(source, program.sizes[buffer_of(whole)], count), count)
                case ParameterRow(index, target, rows, stride):
                    width = program.sizes[target] - 1
                    own = [[float(k), *program.parameters[stride * k :][:width].tolist()] for k in range(rows)]
                    found = list(own[0])
                    for row in own[1:]:
                        beyond = table["le"](row[0], memory[index][0])
                        found = [table["select"](beyond, a, b) for a, b in zip(row, found, strict=True)]
                    memory[target] = found
                case For(int(passes), body, reverse):
                    for k in reversed(range(passes)) if reverse else range(passes):
                        run(body, k)
                case WhileAny(flag, body):
                    while bool(memory[flag][0] != 0.0):
                        run(body, count)
                case _:
                    raise InputError(f"{program.name} cannot run on symbols", got=type(statement).__name__)

    run(program.statements, 0)
    return [memory[b.name] for b in program.buffers if b.store]


# Forward.
def program_tangents(
    code: Code,
    inputs: Sequence[Sequence[Number]],
    directions: Sequence[Sequence[Tangent]],
    table: Table,
    run: Callable[[Code, Sequence[Sequence[Number]]], list[list[Number]]] | None = None,
) -> list[list[Tangent]]:
    """As by :func:`linkwise.trace.derivatives.tangents`, also of programs; ``run`` gives outputs for inputs."""
    if isinstance(code, Block):
        return tangents(code, inputs, directions, table)
    return values_and_tangents(code, inputs, directions, table, run)[1]


def values_and_tangents(
    code: Program,
    inputs: Sequence[Sequence[Number]],
    directions: Sequence[Sequence[Tangent]],
    table: Table,
    run: Callable[[Code, Sequence[Sequence[Number]]], list[list[Number]]] | None = None,
) -> tuple[list[list[Number]], list[list[Tangent]]]:
    """The outputs of a program and their tangents, in one go."""
    along = sorted({k for array in directions for tangent in array for k in tangent})
    moving = [k for k, array in enumerate(directions) if any(array)]
    if not along:
        values = called(code, inputs, table) if run is None else run(code, inputs)
        return values, [[{} for _ in range(spec.size)] for spec in code.outputs]
    moved = _Forward(code, len(along), [b.name for k, b in enumerate(_inputs(code)) if k in moving])
    dense = [[x.get(k, 0.0) for x in directions[array] for k in along] for array in moving]
    given = [*inputs, *dense]
    both = called(moved.program, given, table) if run is None else run(moved.program, given)
    results = both[len(code.outputs) :]
    rates = dict(zip(moved.moving_outputs, results, strict=True))
    found: list[list[Tangent]] = []
    for buffer in _outputs(code):
        flat = rates.get(buffer.name, [])
        found.append([dict(zip(along, flat[e * len(along) :], strict=False)) for e in range(buffer.size)])
    return both[: len(code.outputs)], found


class _Forward:
    """A program with the tangents of what depends on some inputs.

    Its inputs are those of the program, then the tangents of the moving ones; its outputs likewise.
    """

    def __init__(self, program: Program, count: int, moving: Sequence[str]) -> None:
        self.given, self.count = program, count
        self.moving = _reached(program, moving)
        self.moving_outputs = [b.name for b in _outputs(program) if b.name in self.moving]
        buffers = list(program.buffers)
        for b in program.buffers:
            if b.name in self.moving:
                given = b.load and b.name in moving
                buffers.append(Buffer(_d(b.name), b.size * count, load=given, store=b.store, open=b.open))
        wide = count > 1 and len(program.rows) > 0
        initial = [
            Initial(_d(number.buffer), number.offset * count + k, 0.0)
            for number in program.initial
            if number.buffer in self.moving
            for k in range(count)
        ]
        self.program = Program(
            f"{program.name}_along",
            tuple(buffers),
            tuple(self._begin(moving)) + self._all(program.statements),
            rows=np.hstack([program.rows, count * program.rows]) if wide else program.rows,
            ranges=program.ranges,
            parameters=program.parameters,
            initial=(*program.initial, *initial),
        )

    def _begin(self, moving: Sequence[str]) -> list[Statement]:
        """Inputs that begin without tangents, and are given some on the way."""
        own = [b for b in self.given.buffers if b.load and b.name in self.moving and b.name not in moving]
        return [self._nothing(_d(b.name), b.size) for b in own]

    def _all(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(one for statement in statements for one in self._one(statement))

    def _one(self, statement: Statement) -> list[Statement]:
        match statement:
            case Call():
                return self._call(statement)
            case Copy(source, target):
                if buffer_of(target) not in self.moving:
                    return [statement]
                if buffer_of(source) in self.moving:
                    return [statement, Copy(self._place(source), self._place(target))]
                size = self.given.sizes[target] if isinstance(target, str) else self.given.sizes[buffer_of(source)]
                return [statement, self._nothing(self._place(target), size)]
            case Unit(target) if target in self.moving:
                return [statement, self._nothing(_d(target), self.given.sizes[target])]
            case For(_, body) | WhileAny(_, body) | IfAny(_, body):
                return [replace(statement, body=self._all(body))]
            case Switch(_, cases):
                return [replace(statement, cases=tuple(self._all(case) for case in cases))]
            case Unit() | ParameterRow():  # which are the same for all that is near
                return [statement]
            case _:
                raise InputError(
                    f"{self.given.name} has no derivative", got=f"{type(statement).__name__}, which looks things up"
                )

    def _call(self, call: Call) -> list[Statement]:
        given = {k for k, place in enumerate(call.inputs) if buffer_of(place) in self.moving}
        made = [k for k, place in enumerate(call.outputs) if buffer_of(place) in self.moving]
        if not made:
            return [call]
        moving = sorted(given)
        inputs = (*call.inputs, *(self._place(call.inputs[k]) for k in moving))
        if isinstance(call.code, Block):
            outputs = (*call.outputs, *(self._place(call.outputs[k]) for k in made))
            return [Call(_block_along(call.code, self.count, moving, made), inputs, outputs)]
        inner = _Forward(call.code, self.count, [_inputs(call.code)[k].name for k in moving])
        moved = [k for k, b in enumerate(_outputs(call.code)) if b.name in inner.moving_outputs]
        outputs = (*call.outputs, *(self._place(call.outputs[k]) for k in moved))
        rest = [self._nothing(self._place(call.outputs[k]), call.code.outputs[k].size) for k in made if k not in moved]
        return [Call(inner.program, inputs, outputs), *rest]

    def _place(self, place: Place) -> Place:
        """Place of the tangents of a place."""
        match place:
            case Stretch(buffer, column):
                return Stretch(_d(buffer), column + (self.given.rows.shape[1] if self.count > 1 else 0))
            case Slice(buffer, stride):
                return Slice(_d(buffer), stride * self.count)
            case _:
                return _d(place)

    def _nothing(self, place: Place, size: int) -> Call:
        return Call(zeros(size * self.count), (), (place,))


def _d(buffer: str) -> str:
    """The name of the buffer of tangents."""
    head = next((h for h in ("in:", "out:") if buffer.startswith(h)), "")
    return f"{head}d:{buffer.removeprefix(head)}"


def _inputs(program: Program) -> list[Buffer]:
    return [b for b in program.buffers if b.load]


def _outputs(program: Program) -> list[Buffer]:
    return [b for b in program.buffers if b.store]


def _reached(program: Program, moving: Sequence[str]) -> set[str]:
    """The buffers that depend on some of them."""
    found = set(moving)
    before = 0
    while len(found) > before:  # a loop may bring what its last statement makes to its first
        before = len(found)
        for statement in program.walk():
            if isinstance(statement, Call):
                given = {k for k, place in enumerate(statement.inputs) if buffer_of(place) in found}
                found |= {buffer_of(statement.outputs[k]) for k in _moved_outputs(statement.code, given)}
            elif isinstance(statement, Copy) and buffer_of(statement.source) in found:
                found.add(buffer_of(statement.target))
    return found


def _moved_outputs(code: Code, moving: set[int]) -> list[int]:
    """The outputs that depend on some inputs."""
    if isinstance(code, Program):
        reached = _reached(code, [_inputs(code)[k].name for k in sorted(moving)])
        return [k for k, b in enumerate(_outputs(code)) if b.name in reached]
    depends: list[bool] = []
    for op, *arguments in code.nodes:
        if op in ("const", "input"):
            depends.append(op == "input" and arguments[0] in moving)
        else:
            depends.append(op in RULES and any(depends[a] for a in arguments))
    return [k for k, result in enumerate(code.results) if any(depends[n] for n in result)]


def _block_along(block: Block, count: int, moving: Sequence[int], made: Sequence[int]) -> Block:
    """A block that also takes tangents of some inputs, and makes those of some outputs."""
    tracer = Tracer()
    flat = [tracer.input(spec.name, spec.shape) for spec in block.inputs]
    directions: list[list[Tangent]] = [[{} for _ in array] for array in flat]
    for k in moving:
        rates = tracer.input(f"d:{block.inputs[k].name}", (block.inputs[k].size * count,))
        directions[k] = [dict(enumerate(rates[e * count : (e + 1) * count])) for e in range(len(flat[k]))]
    found = values(block, flat)
    outputs = [(s.name, s.shape, [found[n] for n in r]) for s, r in zip(block.outputs, block.results, strict=True)]
    moved = tangents(block, flat, directions)
    for k in made:
        rates_of = [x.get(j, 0.0) for x in moved[k] for j in range(count)]
        outputs.append((f"d:{block.outputs[k].name}", (len(rates_of),), rates_of))
    return tracer.finish(f"{block.name}_along", outputs)


# Reverse.
def program_cotangents(
    code: Code, inputs: Sequence[Sequence[Number]], weights: Sequence[Sequence[Cotangent]], table: Table
) -> list[list[Cotangent]]:
    """Cotangents as by :func:`linkwise.trace.derivatives.cotangents`, also of programs; row by row, for the latter."""
    if isinstance(code, Block):
        return cotangents(code, inputs, weights, table)
    back = _backward(code)
    found: list[list[Cotangent]] = [[{} for _ in range(spec.size)] for spec in code.inputs]
    for row in sorted({k for array in weights for weight in array for k in weight}):
        dense = [[x.get(row, 0.0) for x in array] for array in weights]
        for array, results in zip(found, called(back, [*inputs, *dense], table), strict=True):
            for cotangent, x in zip(array, results, strict=True):
                cotangent[row] = x
    return found


def has_reverse(code: Code) -> bool:
    """Whether there is a reverse mode: blocks, calls of them, counted loops and loops over items."""
    if isinstance(code, Block):
        return True
    if isinstance(code, (CountedLoop, ItemLoop)):
        return has_reverse(code.code)
    if isinstance(code, TableRow):
        return True
    for statement in code.statements:
        if not isinstance(statement, Call):
            return False
        if not all(isinstance(place, str) for place in (*statement.inputs, *statement.outputs)):
            return False
    return all(has_reverse(inner) for inner in code.codes)


def _backward(code: Code) -> Code:
    """Code that takes the inputs and weights of the outputs, and makes the cotangents of the inputs."""
    if isinstance(code, Block):
        return _block_back(code)
    if not has_reverse(code):
        raise InputError(
            f"{code.name} has no derivative in reverse mode",
            got="a loop whose number of passes is not known beforehand",
            do='use forward mode: jacobian(name, mode="forward") or jvp; or lw.loop with a fixed number of passes',
        )
    if isinstance(code, ItemLoop):
        return _items_back(code)
    if isinstance(code, TableRow):
        return _row_back(code)
    return _loop_back(code) if isinstance(code, CountedLoop) else _calls_back(code)


def _block_back(block: Block) -> Block:
    tracer = Tracer()
    flat = [tracer.input(spec.name, spec.shape) for spec in block.inputs]
    weights: list[list[Cotangent]] = []
    for spec in block.outputs:
        weights.append([{0: x} for x in tracer.input(f"w:{spec.name}", spec.shape)])
    back = cotangents(block, flat, weights)
    outputs = [
        (f"w:{spec.name}", spec.shape, [x.get(0, 0.0) for x in array])
        for spec, array in zip(block.inputs, back, strict=True)
    ]
    return tracer.finish(f"{block.name}_back", outputs)


def _row_back(row: TableRow) -> Block:
    place, found = row.inputs[0], replace(row.outputs[0], name="w:row")
    return Block("row_back", (("const", 0.0),), (place, found), (replace(place, name="w:place"),), ((0,),))


@cache
def _sum(size: int) -> Block:
    tracer = Tracer()
    a, b = tracer.input("a", (size,)), tracer.input("b", (size,))
    return tracer.finish("sum", [("sum", (size,), [x + y for x, y in zip(a, b, strict=True)])])


class _Backward:
    """A program that goes back, while it is written."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = list(buffers)
        self.statements: list[Statement] = []

    def own(self, name: str, size: int, *, load: bool = False, store: bool = False) -> str:
        """A buffer."""
        self.buffers.append(Buffer(name, size, load=load, store=store))
        return name

    def clear(self, name: str, size: int) -> None:
        """Set a buffer to zero."""
        self.statements += [Call(zeros(size), (), (name,))] if size else []

    def added(self, total: str, part: str, size: int) -> tuple[Statement, ...]:
        """A part more."""
        both = f"sum:{size}"
        if both not in {b.name for b in self.buffers}:
            self.own(both, size)
        return Call(_sum(size), (total, part), (both,)), Copy(both, total)


def _calls_back(program: Program) -> Program:
    """Calls one after the other, then what each means to its inputs, from the last to the first."""
    made = _Backward([replace(b, store=False) for b in program.buffers])
    made.statements += program.statements
    weight = {}
    for b in program.buffers:
        weight[b.name] = made.own(f"w:{b.name}", b.size, load=b.store)
        if not b.store:
            made.clear(weight[b.name], b.size)
    for number, call in enumerate(reversed(program.statements)):
        assert isinstance(call, Call)
        back = _backward(call.code)
        parts = [made.own(f"part{number}:{k}", spec.size) for k, spec in enumerate(call.code.inputs)]
        weights = tuple(weight[buffer_of(place)] for place in call.outputs)
        made.statements.append(Call(back, (*call.inputs, *weights), tuple(parts)))
        for place, part, spec in zip(call.inputs, parts, call.code.inputs, strict=True):
            if spec.size:
                made.statements += made.added(weight[buffer_of(place)], part, spec.size)
    for b in _inputs(program):
        made.statements.append(Copy(weight[b.name], made.own(f"out:w:{b.label}", b.size, store=True)))
    return Program(f"{program.name}_back", tuple(made.buffers), tuple(made.statements))


def _loop_back(loop: CountedLoop) -> Program:
    """The passes again, with the state that each began with remembered; then the passes from the last to the first."""
    n, m = (spec.size for spec in loop.code.inputs)
    inputs = [Buffer(STATE, n, load=True), Buffer(CAPTURED, m, load=True), Buffer("in:w:state", n, load=True)]
    made = _Backward(inputs)
    for name, size in (("x", n), ("next", n), ("history", n * loop.passes), ("w", n), ("w_next", n), ("part", m)):
        made.own(name, size)
    w_state, w_captured = made.own("out:w:state", n, store=True), made.own("out:w:captured", m, store=True)
    on = (Copy("x", Slice("history", n)), Call(loop.code, ("x", CAPTURED), ("next",)), Copy("next", "x"))
    made.statements += [Copy(STATE, "x"), For(loop.passes, on), Copy("in:w:state", "w")]
    made.clear(w_captured, m)
    back: list[Statement] = [
        Copy(Slice("history", n), "x"),
        Call(_backward(loop.code), ("x", CAPTURED, "w"), ("w_next", "part")),
        Copy("w_next", "w"),
    ]
    back += made.added(w_captured, "part", m) if m else ()
    made.statements += [For(loop.passes, tuple(back), reverse=True), Copy("w", w_state)]
    return Program(f"{loop.name}_back", tuple(made.buffers), tuple(made.statements))


def _items_back(loop: ItemLoop) -> Program:
    """The same of a loop over items; a pass that nobody asked for changes nothing on the way back either."""
    code, back, made_by_pass = loop.code, _backward(loop.code), loop.made
    n, count = code.inputs[0].size, len(loop.columns)
    items, places, rows, parameters = laid_out(loop.columns, (n, made_by_pass))
    around = [b for b in _inputs(loop) if not b.name.startswith("in:items")]
    made = _Backward([*around, *items, Buffer("in:w:state", n, load=True)])
    for name, size in (("x", n), ("next", n), ("history", n * len(rows)), ("w", n), ("w_next", n), ("flag", 1)):
        made.own(name, size)
    weights: list[str | Stretch] = ["w"]
    results: list[str] = ["next"]
    if made_by_pass:
        made.own("in:w:made", made_by_pass * len(rows), load=True)
        weights.append(Stretch("in:w:made", count + 1))
        results.append(made.own("made", made_by_pass))
    spread = Spread(("x", *(b.name for b in around[1:])), places, loop.columns, made.buffers)
    totals = [made.own(f"out:w:{b.label}", b.size, store=True) for b in around]
    for total, b in zip(totals[1:], around[1:], strict=True):
        made.clear(total, b.size)
    parts = [made.own(f"part{k}", spec.size) for k, spec in enumerate(code.inputs) if k]
    returned: list[Statement] = [*spread.call(back, ("w_next", *parts), *weights), Copy("w_next", "w")]
    for total, part, b in zip(totals[1:], parts, around[1:], strict=False):
        returned += made.added(total, part, b.size) if b.size else ()
    for k, (column, part) in enumerate(zip(loop.columns, parts[len(around) - 1 :], strict=True)):
        if column.constants is None:
            total = made.own(f"out:w:items{k}", column.size, store=True)
            made.clear(total, column.size)
            there = Stretch(total, k)
            returned.append(Call(_sum(column.width), (there, part), (there,)))
    on: tuple[Statement, ...] = (*spread.call(code, tuple(results)), Copy("next", "x"))
    for ask in reversed(loop.asks):
        question = spread.call(ask, ("flag",))
        on, returned = (*question, IfAny("flag", on)), [*question, IfAny("flag", tuple(returned))]
    kept = Stretch("history", count)
    made.statements += [
        Copy(STATE, "x"),
        For("items", (Call(as_it_is(n), ("x",), (kept,)), *on)),
        Copy("in:w:state", "w"),
        For("items", (Call(as_it_is(n), (kept,), ("x",)), *returned), reverse=True),
        Copy("w", totals[0]),
    ]
    return Program(
        f"{loop.name}_back",
        tuple(made.buffers),
        tuple(made.statements),
        rows=rows,
        ranges=(("items", 0, len(rows)),),
        parameters=parameters,
    )
