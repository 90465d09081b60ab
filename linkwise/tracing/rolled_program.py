"""A program with loops: what a sweep over many links becomes when its step is traced once for each kind of link.

Memory is a set of **spaces**, arrays of values (a value is one number, or a vector of one number of many states).
A **loop** runs over the links in order or in reverse; for link ``k`` it runs the straight-line body of the link's kind,
whose inputs and outputs are stretches of the spaces. Where each stretch begins is data: column ``c`` of row ``k`` of
``offsets``. So one piece of code serves any tree, and only tables grow with the number of links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.once import cached_property
from linkwise.tracing.interpreter import interpret
from linkwise.tracing.program import ArraySpec, Program

PARAMETERS = "parameters"
"""The space of link constants: plain numbers, the same for all states."""


@dataclass(frozen=True)
class Stretch:
    """Where a body's array lies: ``spaces[space]`` from ``offsets[k, column]`` on."""

    space: str
    column: int


@dataclass(frozen=True)
class LoopBody:
    """The step of one kind of link: a program, and where each of its arrays lies."""

    program: Program
    inputs: tuple[Stretch, ...]
    outputs: tuple[Stretch, ...]


@dataclass(frozen=True)
class Loop:
    """One pass over the links. ``bodies[i]`` is for links of kind ``i``; None: nothing to do there."""

    bodies: tuple[LoopBody | None, ...]
    reverse: bool = False


@dataclass(frozen=True)
class Angles:
    """sin and cos of a whole space at once, between two loops."""

    arguments: str
    sines: str
    cosines: str


@dataclass(frozen=True)
class Constant:
    """A value stored before the loops: in ``spaces[space][offset]``."""

    space: str
    offset: int
    value: float


@dataclass(frozen=True)
class Once:
    """A straight-line body that runs once; its offsets are row ``row`` of the table, counted after the links'."""

    body: LoopBody
    row: int


@dataclass(frozen=True)
class Tasks:
    """A list of straight-line bodies to run one after the other: ``count`` rows of the table from ``first`` on.

    Rows are counted after the links', as those of :class:`Once`. The number in column ``kind`` of a row says which of
    the bodies runs.
    """

    bodies: tuple[LoopBody, ...]
    first: int
    count: int
    kind: int


Step = Loop | Angles | Once | Tasks


@dataclass(frozen=True, eq=False)
class RolledProgram:
    """Loops, their memory, and the tables that steer them."""

    name: str
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    kinds: Any = field(repr=False)
    """Kind of each link, int64 (n,)."""
    offsets: Any = field(repr=False)
    """int64 (n + rows of :class:`Once` and :class:`Tasks`, columns)."""
    parameters: Any = field(repr=False)
    """float64: the space PARAMETERS."""
    spaces: dict[str, int] = field(repr=False)
    """Sizes of the working spaces, in values. Inputs and outputs are spaces under ``in:name`` and ``out:name``."""
    constants: tuple[Constant, ...] = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    in_lanes: frozenset[str] = frozenset()
    """Inputs that come with the states of each block already in lanes, (blocks, size, lanes), not state by state."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the code; tables and sizes are data and do not count."""
        arrays = [[array.name for array in arrays] for arrays in (self.inputs, self.outputs)]
        return hashlib.sha256(repr((self.name, arrays, self._structure)).encode()).hexdigest()

    @property
    def _structure(self) -> Any:
        found = []
        for step in self.steps:
            if isinstance(step, Angles):
                found.append(repr(step))
                continue
            bodies = [b and (b.program.fingerprint, b.inputs, b.outputs) for b in _bodies(step)]
            if isinstance(step, Tasks):
                how: Any = (step.first, step.count, step.kind)
            else:
                how = step.reverse if isinstance(step, Loop) else step.row
            found.append(repr((type(step).__name__, how, bodies)))
        return (tuple(self.spaces), self.offsets.shape[1], tuple(found), sorted(self.in_lanes))

    @property
    def length(self) -> int:
        """Nodes that one evaluation passes through."""
        members = [int(n) for n in np.bincount(self.kinds)] if len(self.kinds) else []
        total = 0
        for step in self.steps:
            if isinstance(step, Tasks):
                total += sum(len(task.program.nodes) for task, _ in self.tasks(step))
                continue
            for body, times in zip(_bodies(step), members if isinstance(step, Loop) else [1], strict=False):
                total += times * len(body.program.nodes) if body else 0
        return total

    def tasks(self, step: Tasks) -> Iterator[tuple[LoopBody, int]]:
        """The bodies of a list of tasks in their order, each with its row of ``offsets``."""
        start = len(self.kinds) + step.first
        for row in range(start, start + step.count):
            yield step.bodies[int(self.offsets[row, step.kind])], row

    @property
    def bodies(self) -> list[LoopBody]:
        """Those of all steps, in their order."""
        return [body for step in self.steps for body in _bodies(step) if body is not None]

    @property
    def operations(self) -> int:
        """Nodes over all bodies: what there is to compile, whatever the number of links."""
        return sum(len(body.program.nodes) for body in self.bodies)


def interpret_rolled(program: RolledProgram, inputs: list[list[float]]) -> list[list[float]]:
    """The definition: one state, one link after the other, in Python."""
    import math

    spaces: dict[str, list[float]] = {name: [math.nan] * size for name, size in program.spaces.items()}
    spaces[PARAMETERS] = [float(x) for x in program.parameters]
    for spec, values in zip(program.inputs, inputs, strict=True):
        spaces[f"in:{spec.name}"] = [float(x) for x in values]
    for spec in program.outputs:
        spaces[f"out:{spec.name}"] = [math.nan] * spec.size
    for constant in program.constants:
        spaces[constant.space][constant.offset] = constant.value
    for step in program.steps:
        if isinstance(step, Angles):
            spaces[step.sines] = [math.sin(x) for x in spaces[step.arguments]]
            spaces[step.cosines] = [math.cos(x) for x in spaces[step.arguments]]
            continue
        if isinstance(step, Once):
            _run_body(step.body, program.offsets[len(program.kinds) + step.row], spaces)
            continue
        if isinstance(step, Tasks):
            for task, row in program.tasks(step):
                _run_body(task, program.offsets[row], spaces)
            continue
        order = range(len(program.kinds))
        for k in reversed(order) if step.reverse else order:
            body = step.bodies[int(program.kinds[k])]
            if body is not None:
                _run_body(body, program.offsets[k], spaces)
    return [spaces[f"out:{spec.name}"] for spec in program.outputs]


def _run_body(body: LoopBody, row: Any, spaces: dict[str, list[float]]) -> None:
    arrays = []
    for stretch, spec in zip(body.inputs, body.program.inputs, strict=True):
        start = int(row[stretch.column])
        arrays.append(spaces[stretch.space][start : start + spec.size])
    for stretch, values in zip(body.outputs, interpret(body.program, arrays), strict=True):
        start = int(row[stretch.column])
        spaces[stretch.space][start : start + len(values)] = values


def _bodies(step: Step) -> tuple[LoopBody | None, ...]:
    if isinstance(step, Angles):
        return ()
    return (step.body,) if isinstance(step, Once) else step.bodies
