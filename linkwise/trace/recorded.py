"""Traces as they were recorded, whole: straight-line nodes, and calls of programs with loops between them.

What runs is cut into pieces (:mod:`linkwise.trace.calls`); what is differentiated is better left whole. Directions then
stay sparse across calls, and a call through which no derivative goes, since all it reads or all that it makes is held
(the operation ``hold``), is called for its values alone: of a solver's loop no derivative is ever taken where the text
says how the solution depends on what it is the solution of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.trace.block import ArraySpec, Block, Node
from linkwise.trace.calls import CallingTracer, is_waypoint
from linkwise.trace.derivatives import RULES, Cotangent, Meaning, Tangent, behind, is_zero, one_cotangent, one_tangent
from linkwise.trace.jacobian_products import Waypoints
from linkwise.trace.passes import reached
from linkwise.trace.program import Program
from linkwise.trace.program_derivatives import (
    called,
    has_reverse,
    program_cotangents,
    program_tangents,
    values_and_tangents,
)
from linkwise.trace.replay import Table
from linkwise.trace.tracer import Number, Traced


class SecondDerivativeError(InputError):
    """A derivative of a derivative was asked for that there is not."""


@dataclass(frozen=True)
class RecordedCall:
    """A call of a trace: its arguments as numbers of nodes, and the arrays that hold its results.

    Without a program the results are the arguments.
    """

    program: Program | None
    arguments: tuple[tuple[int, ...], ...]
    arrays: tuple[int, ...]
    is_waypoint: bool = False


@dataclass(frozen=True, eq=False)
class Recorded:
    """A whole trace: nodes as of a :class:`~linkwise.trace.block.Block`; some arrays are results of calls."""

    name: str
    nodes: tuple[Node, ...] = field(repr=False)
    arrays: tuple[ArraySpec, ...]
    own: tuple[int, ...]
    """The arrays that are inputs of the whole."""
    outputs: tuple[ArraySpec, ...]
    results: tuple[tuple[int, ...], ...] = field(repr=False)
    calls: tuple[RecordedCall, ...] = field(repr=False)

    @property
    def inputs(self) -> tuple[ArraySpec, ...]:
        """Name and shape of each input."""
        return tuple(self.arrays[k] for k in self.own)

    @cached_property
    def call_of(self) -> dict[int, tuple[int, int]]:
        """Of each array that a call makes, the number of the call and of its result."""
        return {array: (k, i) for k, call in enumerate(self.calls) for i, array in enumerate(call.arrays)}

    @cached_property
    def live(self) -> bytearray:
        """Of each node whether the outputs need it."""
        return self._back_from_outputs(lambda op: True)

    @cached_property
    def matters(self) -> bytearray:
        """Of each node whether the outputs change where it does: not if it is only held."""
        return self._back_from_outputs(lambda op: op in RULES)

    def _back_from_outputs(self, passes: Callable[[str], bool]) -> bytearray:
        asked: set[int] = set()

        def behind(_: int, node: Node) -> Sequence[int]:
            op, *arguments = node
            if op != "input":
                return arguments if passes(op) else ()
            k = self.call_of.get(arguments[0], (-1, 0))[0]
            if k < 0 or k in asked:
                return ()
            asked.add(k)
            return [a for numbers in self.calls[k].arguments for a in numbers]

        return reached(self.nodes, (number for result in self.results for number in result), behind)

    @cached_property
    def calls_that_matter(self) -> set[int]:
        """The numbers of the calls whose results the outputs change with."""
        nodes = (
            node[1] for node, matters in zip(self.nodes, self.matters, strict=True) if matters and node[0] == "input"
        )
        return {self.call_of[array][0] for array in nodes if array in self.call_of}

    def moved_by(self, moving: Sequence[bool]) -> list[bool]:
        """Of each node whether it changes where some inputs do."""
        found: list[bool] = []
        place = {array: k for k, array in enumerate(self.own)}
        for op, *arguments in self.nodes:
            if op == "const":
                found.append(False)
            elif op != "input":
                found.append(op in RULES and any(found[a] for a in arguments))
            elif arguments[0] in place:
                found.append(moving[place[arguments[0]]])
            elif arguments[0] in self.call_of:
                call = self.calls[self.call_of[arguments[0]][0]]
                found.append(any(found[a] for numbers in call.arguments for a in numbers))
            else:
                found.append(False)  # of the body of a loop
        return found


Code = Block | Program | Recorded
Run = Callable[[Program, Sequence[Sequence[Number]]], list[list[Number]]]


def recorded(
    tracer: CallingTracer, name: str, outputs: Sequence[tuple[str, tuple[int, ...], Sequence[Number]]]
) -> Recorded:
    """The whole trace that makes ``outputs``: (name, shape, flat values) each."""
    specs = tuple(ArraySpec(output, shape) for output, shape, _ in outputs)
    results = tuple(tuple(tracer.number(x) for x in values) for _, _, values in outputs)
    place = {spec.name: k for k, spec in enumerate(tracer.inputs)}
    calls = tuple(
        RecordedCall(call.program, call.arguments, tuple(place[spec.name] for spec in call.results), is_waypoint(call))
        for call in tracer.calls
    )
    return Recorded(name, tuple(tracer.nodes), tuple(tracer.inputs), tuple(tracer.own_inputs), specs, results, calls)


def _once_only(code: Recorded, inputs: Sequence[Sequence[Number]]) -> None:
    """Refuse to be differentiated again: what is held has a right first derivative, and says nothing of a second."""
    for x in (x for array in inputs for x in array if isinstance(x, Traced)):
        x.tracer.was_held = True
        if x.tracer.holds:
            refuse_again(code.name)


def refuse_again(name: str) -> NoReturn:
    """Raise the error of second derivatives."""
    raise SecondDerivativeError(
        f"{name} has no second derivatives",
        got="a derivative of a function that holds values: the solution of a contact step, or lw.math.hold",
        allowed="first derivatives, in both modes",
        do="finite differences of the first derivatives",
    )


class _TraceValues:
    """The values of a trace on some scalars; with tangents, if directions are given.

    With ``waypoints`` there are new directions from each of them on.
    """

    def __init__(
        self,
        code: Recorded,
        inputs: Sequence[Sequence[Number]],
        table: Table,
        directions: Sequence[Sequence[Tangent]] | None = None,
        run: Run | None = None,
        waypoints: Waypoints | None = None,
    ) -> None:
        self.code, self.table, self.run, self.waypoints = code, table, run, waypoints
        self.found: list[Number] = [0.0] * len(code.nodes)
        self.moved: list[Tangent] = [{} for _ in code.nodes]
        self.made: dict[int, tuple[list[list[Number]], list[list[Tangent]] | None]] = {}
        place = {array: k for k, array in enumerate(code.own)}
        for number, (op, *arguments) in enumerate(code.nodes):
            if not code.live[number]:
                continue
            if op == "const":
                self.found[number] = arguments[0]
            elif op != "input":
                self.found[number] = table[op](*(self.found[a] for a in arguments))
                if op in RULES and code.matters[number] and any(self.moved[a] for a in arguments):
                    self.moved[number] = one_tangent(code.nodes, number, self.found, self.moved, table)
            elif arguments[0] in place:
                k, element = place[arguments[0]], arguments[1]
                self.found[number] = inputs[k][element]
                if directions is not None and code.matters[number]:
                    self.moved[number] = {j: x for j, x in directions[k][element].items() if not is_zero(x)}
            else:
                k, result = code.call_of[arguments[0]]
                values, rates = self._call(k)
                self.found[number] = values[result][arguments[1]]
                if rates is not None and code.matters[number]:
                    self.moved[number] = rates[result][arguments[1]]

    def _call(self, k: int) -> tuple[list[list[Number]], list[list[Tangent]] | None]:
        if k not in self.made:
            call = self.code.calls[k]
            given = [[self.found[a] for a in numbers] for numbers in call.arguments]
            along = [[self.moved[a] for a in numbers] for numbers in call.arguments]
            moving = k in self.code.calls_that_matter and any(tangent for array in along for tangent in array)
            if call.program is None:
                passed = moving and call.is_waypoint and self.waypoints is not None
                self.made[k] = given, [self.waypoints.add(along[0])] if passed and self.waypoints else along
            elif moving:
                self.made[k] = values_and_tangents(call.program, given, along, self.table)
            elif self.run is not None:
                self.made[k] = self.run(call.program, given), None
            else:
                self.made[k] = called(call.program, given, self.table), None
        return self.made[k]


def code_values(
    code: Code, inputs: Sequence[Sequence[Number]], table: Table, run: Run | None = None
) -> list[list[Number]]:
    """The outputs of any code for flat inputs of any scalars; ``run`` runs the programs that a trace calls."""
    if not isinstance(code, Recorded):
        return called(code, inputs, table)
    found = _TraceValues(code, inputs, table, run=run).found
    return [[found[number] for number in result] for result in code.results]


def code_tangents(
    code: Code, inputs: Sequence[Sequence[Number]], directions: Sequence[Sequence[Tangent]], table: Table
) -> list[list[Tangent]]:
    """The tangents of all outputs of any code, as by :func:`linkwise.trace.derivatives.tangents`."""
    if not isinstance(code, Recorded):
        return program_tangents(code, inputs, directions, table)
    _once_only(code, inputs)
    moved = _TraceValues(code, inputs, table, directions).moved
    return [[moved[number] for number in result] for result in code.results]


def code_jacobian(
    code: Code, inputs: Sequence[Sequence[Number]], directions: Sequence[Sequence[Tangent]], table: Table
) -> list[list[Tangent]]:
    """The same for many directions, in which what lies between waypoints of a trace is multiplied together."""
    if not isinstance(code, Recorded):
        return program_tangents(code, inputs, directions, table)
    _once_only(code, inputs)
    waypoints = Waypoints(1 + max((k for array in directions for x in array for k in x), default=-1))
    moved = _TraceValues(code, inputs, table, directions, waypoints=waypoints).moved
    return waypoints.multiplied([[moved[number] for number in result] for result in code.results])


def code_has_reverse(code: Code) -> bool:
    """Whether there is a reverse mode."""
    if not isinstance(code, Recorded):
        return has_reverse(code)
    moving = code.moved_by([True] * len(code.own))
    for k in code.calls_that_matter:
        call = code.calls[k]
        on_the_way = any(moving[a] for numbers in call.arguments for a in numbers)
        if on_the_way and call.program is not None and not has_reverse(call.program):
            return False
    return True


def code_cotangents(
    code: Code, inputs: Sequence[Sequence[Number]], weights: Sequence[Sequence[Cotangent]], table: Table
) -> list[list[Cotangent]]:
    """The cotangents of all inputs of any code, as by :func:`linkwise.trace.derivatives.cotangents`."""
    if not isinstance(code, Recorded):
        return program_cotangents(code, inputs, weights, table)
    _once_only(code, inputs)
    values = _TraceValues(code, inputs, table)
    moving = code.moved_by([True] * len(code.own))
    meaning = [Meaning() for _ in code.nodes]
    for result, row in zip(code.results, weights, strict=True):
        for number, weight in zip(result, row, strict=True):
            meaning[number].add(weight, True, table)
    place = {array: k for k, array in enumerate(code.own)}
    back = [[dict[int, Number]() for _ in range(spec.size)] for spec in code.inputs]
    first: dict[int, int] = {}
    for number, (op, *arguments) in enumerate(code.nodes):
        if op == "input" and code.live[number] and arguments[0] in code.call_of:
            first.setdefault(code.call_of[arguments[0]][0], number)
    begins = {number: k for k, number in first.items()}
    of_calls: dict[int, list[list[Cotangent]]] = {
        k: [[{} for _ in range(code.arrays[a].size)] for a in call.arrays] for k, call in enumerate(code.calls)
    }
    for number in reversed(range(len(code.nodes))):
        op, *arguments = code.nodes[number]
        own = meaning[number]
        if own.rows and moving[number]:
            if op != "input":
                one_cotangent(code.nodes, number, values.found, meaning, table)
            elif arguments[0] in place:
                there = back[place[arguments[0]]][arguments[1]]
                for k, x in behind(own.rows, own.guard, table).items():
                    there[k] = there[k] + x if k in there else x
            else:
                which, output = code.call_of[arguments[0]]
                of_calls[which][output][arguments[1]] = behind(own.rows, own.guard, table)
        own.rows = {}
        if number in begins:
            _call_back(code.calls[begins[number]], of_calls[begins[number]], values.found, meaning, table)
    return back


def _call_back(
    call: RecordedCall,
    weights: list[list[Cotangent]],
    found: Sequence[Number],
    meaning: list[Meaning],
    table: Table,
) -> None:
    if not any(weight for array in weights for weight in array):
        return
    parts = weights
    if call.program is not None:
        if not has_reverse(call.program):
            raise InputError(
                f"{call.program.name} has no derivative in reverse mode",
                got="a loop whose number of passes is not known beforehand",
                do='use forward mode: jacobian(name, mode="forward") or jvp; or lw.loop with a fixed number of passes',
            )
        given = [[found[a] for a in numbers] for numbers in call.arguments]
        parts = program_cotangents(call.program, given, weights, table)
    for numbers, array in zip(call.arguments, parts, strict=True):
        for a, rows in zip(numbers, array, strict=True):
            meaning[a].add(rows, True, table)
