"""The definition of the program language: what a block computes, and what every statement does.

A block is evaluated one value after another, in Python. A program is stepped through statement by statement with
NumPy, all states of a batch side by side; its blocks are evaluated as the definition says, or by whoever is asked to
(compiled code, where a program waits for Python functions and cannot be compiled as a whole).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

import numpy as np
from numpy.typing import DTypeLike

from linkwise.array_types import Array
from linkwise.trace.block import OPS, Block
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
    Slice,
    Statement,
    Stretch,
    Switch,
    Unit,
    WhileAny,
    copied,
)

Numbers = Array
Rows = Mapping[str, Numbers]
Evaluate = Callable[[Block | Program, Sequence[Numbers], Sequence[Numbers], int], None]
"""``evaluate(code, inputs, outputs, count)`` fills outputs, both ``(count, size)`` arrays."""


def interpret(code: Block | Program, inputs: Sequence[Sequence[float]]) -> list[list[float]]:
    """Run a block, or a program that needs nothing but inputs, on flat arrays of one state; flat output arrays."""
    if isinstance(code, Program):
        outputs = [np.full((1, spec.size), np.nan) for spec in code.outputs]
        evaluate_in_python(code, [np.array([values], float) for values in inputs], outputs, 1)
        return [array[0].tolist() for array in outputs]
    values: list[float] = []
    for op, *arguments in code.nodes:
        if op == "const":
            values.append(arguments[0])
        elif op == "input":
            values.append(float(inputs[arguments[0]][arguments[1]]))
        else:
            values.append(OPS[op].define(*(values[a] for a in arguments)))
    return [[values[number] for number in result] for result in code.results]


def evaluate_in_python(
    code: Block | Program, inputs: Sequence[Numbers], outputs: Sequence[Numbers], count: int
) -> None:
    """The definition, state by state; of a called program, statement by statement."""
    if isinstance(code, Program):
        given, filled = iter(inputs), iter(outputs)
        rows = {b.name: next(given) for b in code.buffers if b.load}
        for buffer in code.buffers:
            if buffer.store:
                made = next(filled)
                if buffer.load:  # overwritten where the results are wanted
                    made[...] = rows[buffer.name]
                rows[buffer.name] = made
        Interpreter(code, np.float64).run(rows, {}, {}, count)
        return
    for state in range(count):
        results = interpret(code, [array[state].tolist() for array in inputs])
        for array, values in zip(outputs, results, strict=True):
            array[state] = values


class Interpreter:
    """A program that is stepped through.

    Args:
        program: it may call Python functions.
        dtype: of the buffers.
        evaluate: what evaluates blocks and called programs.
    """

    def __init__(
        self, program: Program, dtype: DTypeLike = np.float64, evaluate: Evaluate = evaluate_in_python
    ) -> None:
        self.program, self.dtype, self.evaluate = program, np.dtype(dtype), evaluate

    def run(self, rows: Rows, tables: Rows, records: Rows, count: int) -> None:
        """Run to the end, for ``count`` states.

        Args:
            rows: for each buffer that is loaded or stored ``(count, size)``; those that are stored are overwritten.
            tables: for each table its numbers, for each curve and series what :class:`Program` says.
            records: for each record ``(count, capacity, size)``.
            count: states.
        """
        _Interpretation(self, rows, tables, records, count).whole()


class _Interpretation:
    """One run of a program: its memory, and where the loops are."""

    def __init__(self, interpreter: Interpreter, rows: Rows, tables: Rows, records: Rows, count: int) -> None:
        self.program, self.evaluate = interpreter.program, interpreter.evaluate
        self.rows, self.tables, self.records, self.count = rows, tables, records, count
        program, dtype = self.program, interpreter.dtype
        # Nobody may rely on what was never written.
        self.memory = {buffer.name: np.full((count, buffer.size), np.nan, dtype) for buffer in program.buffers}
        shared = np.asarray(program.parameters, dtype)
        self.memory[PARAMETERS] = np.broadcast_to(shared, (count, len(shared)))
        for number in program.initial:
            self.memory[number.buffer][:, number.offset] = number.value
        for buffer in program.buffers:
            if buffer.load:
                given = rows[buffer.name]
                self.memory[buffer.name][...] = given.reshape(count, buffer.size)
        self.row: Numbers = np.zeros(0, np.int64)
        self.pass_number = 0

    def whole(self) -> None:
        try:
            self.all(self.program.statements)
        finally:  # an interrupt between two statements leaves the last whole state
            for buffer in self.program.buffers:
                if buffer.store:
                    self.rows[buffer.name].reshape(self.count, buffer.size)[...] = self.memory[buffer.name]

    def place(self, place: Place, size: int) -> Numbers:
        """Numbers of a place, so many, for every state."""
        match place:
            case Stretch(buffer, column):
                start = int(self.row[column])
                return self.memory[buffer][:, start : start + size]
            case Slice(buffer, stride):
                return self.memory[buffer][:, stride * self.pass_number : stride * self.pass_number + size]
            case _:
                return self.memory[place][:, :size]

    def index(self, name: str) -> Numbers:
        """A buffer of one number, each state's own place in a table."""
        return self.memory[name][:, 0].astype(np.int64)

    def all(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.one(statement)

    def one(self, statement: Statement) -> None:
        memory, tables, states = self.memory, self.tables, np.arange(self.count)
        match statement:
            case Call(code, inputs, outputs):
                given = [self.place(p, spec.size) for p, spec in zip(inputs, code.inputs, strict=True)]
                made = [np.empty((self.count, spec.size), a.dtype) for spec, a in self._results(code, outputs)]
                self.evaluate(code, [np.ascontiguousarray(a) for a in given], made, self.count)
                for values, (_, target) in zip(made, self._results(code, outputs), strict=True):
                    target[...] = values
            case Host(function, inputs, outputs):
                results = function(*(memory[name] for name in inputs))
                for name, result in zip(outputs, results, strict=True):
                    memory[name][...] = result
            case Copy(source, target):
                size = copied(self.program, statement)
                self.place(target, size)[...] = self.place(source, size)
            case Unit(target):
                memory[target][...] = 0.0
                memory[target][:, self.pass_number] = 1.0
            case Angles(arguments, sines, cosines):
                memory[sines][...] = np.sin(memory[arguments])
                memory[cosines][...] = np.cos(memory[arguments])
            case Lookup(table, index, target):
                memory[target][:, 0] = tables[table][self.index(index)]
            case ParameterRow(index, target, count, stride):
                wanted = np.nan_to_num(memory[index][:, 0], nan=0.0, posinf=count, neginf=0.0)
                own = np.clip(wanted, 0, count - 1).astype(np.int64)
                memory[target][:, 0] = own
                for k in range(memory[target].shape[1] - 1):
                    memory[target][:, 1 + k] = self.program.parameters[stride * own + k]
            case Seek(curve, at, target, offset):
                rows = tables[curve]
                part = memory[target][:, offset : offset + rows.shape[2]]
                for k, now in enumerate(memory[at][:, 0]):
                    if not part[k, 0] <= now < part[k, 1]:
                        own = rows[k if len(rows) > 1 else 0]
                        part[k] = own[max(0, int(np.count_nonzero(own[:, 0] <= now)) - 1)]
            case Read(series, index, target):
                given_rows = tables[series]
                own_rows = states if len(given_rows) > 1 else np.zeros(self.count, int)
                memory[target][...] = given_rows[own_rows, self.index(index)]
            case Record(record, value, index, mask):
                chosen = memory[mask][:, 0] != 0.0
                self.records[record][states[chosen], self.index(index)[chosen]] = memory[value][chosen]
            case For():
                self.repeat(statement)
            case Switch(column, cases):
                self.all(cases[int(self.row[column])])
            case WhileAny(flag, body):
                while (memory[flag] != 0.0).any():
                    self.all(body)
            case IfAny(flag, body):
                if (memory[flag] != 0.0).any():
                    self.all(body)
            case _:
                assert_never(statement)

    def _results(self, code: Block | Program, outputs: Sequence[Place]) -> list[tuple[Any, Numbers]]:
        return [(spec, self.place(p, spec.size)) for p, spec in zip(outputs, code.outputs, strict=True)]

    def repeat(self, loop: For) -> None:
        around = self.row, self.pass_number
        if isinstance(loop.over, int):
            for self.pass_number in reversed(range(loop.over)) if loop.reverse else range(loop.over):
                self.all(loop.body)
        else:
            first, count = self.program.range_of[loop.over]
            rows = range(first, first + count)
            for k in reversed(rows) if loop.reverse else rows:
                self.row = self.program.rows[k]
                self.all(loop.body)
        self.row, self.pass_number = around
