"""How a program with loops becomes a kernel: what each loop reads when, and the tables that steer it.

A link's numbers are of three sorts. What is the same for all states (its constants, where its stretches of memory
begin) is a **record** of the loop, brought to the chip by the whole warp. What other loops left for it can be fetched
before its turn comes: **early**. What the loop itself writes is read when the turn has come, from memory; but
what a link hands to the very next one is **carried** in registers, and goes through memory only where a tree branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.tracing.block import Block
from linkwise.tracing.program import PARAMETERS, Angles, Loop, LoopBody, Once, Program, Stretch, Tasks

KIND_BITS = 16
"""The first number of a record is the link's kind; above that, two bits for each carried space: see FROM and TO."""

FROM, TO = 0, 1
"""What a bit of a carried space says: it is read from memory, it is written to memory."""

_MOST_CARRIED = (31 - KIND_BITS) // 2


@dataclass(frozen=True)
class Carried:
    """A space whose numbers stay in registers from one link to the next."""

    space: str
    source: int
    """Column of the stretch that a link reads."""
    target: int
    """Column of the stretch that it writes."""
    size: int


@dataclass(frozen=True)
class LoopPlan:
    """One pass over the links, or over none: the bodies by kind, and what their records hold."""

    loop: Loop
    bodies: Mapping[int, LoopBody]
    places: tuple[Stretch, ...]
    """The stretches whose beginnings are in a record, after its first number."""
    carried: tuple[Carried, ...]
    constants: Mapping[int, tuple[tuple[int, int], ...]]
    """For each kind, which of its link constants (array, element) are in a record."""
    early: Mapping[int, tuple[tuple[int, int], ...]]
    """For each kind, the numbers (array, element) that are fetched ahead."""
    angles: Angles | None = None
    """Where not the numbers in ``angles.arguments`` are stored but their sines and cosines."""

    @property
    def integers(self) -> int:
        """Whole numbers of a record."""
        return 1 + len(self.places)

    @property
    def reals(self) -> int:
        """Link constants of a record, at most."""
        return max((len(chosen) for chosen in self.constants.values()), default=0)

    @property
    def ahead(self) -> int:
        """Numbers fetched ahead, at most."""
        return max((len(chosen) for chosen in self.early.values()), default=0)

    def carries(self, stretch: Stretch) -> int | None:
        """Which of the carried spaces a stretch is read from, if it is one."""
        for number, each in enumerate(self.carried):
            if (each.space, each.source) == (stretch.space, stretch.column):
                return number
        return None


PlannedStep = LoopPlan | Angles | Once | Tasks


def task_width(tasks: Tasks) -> int:
    """Whole numbers of a task's record: which body it runs, and where its arrays begin."""
    return 1 + max(len(body.inputs) + len(body.outputs) for body in tasks.bodies)


def elements_read(program: Block) -> list[tuple[int, int]]:
    """The numbers of its inputs that a program reads: (array, element)."""
    return sorted({(node[1], node[2]) for node in program.nodes if node[0] == "input"})


def planned(program: Program) -> list[PlannedStep]:
    """The steps; where a loop does nothing but find angles, their sines and cosines are taken at once.

    The angles themselves are not stored then, so nothing else may ask for them.
    """
    made: list[PlannedStep] = []
    steps = list(program.steps)
    read = {s.space for body in program.bodies for s in body.inputs}
    taken = Counter(step.arguments for step in steps if isinstance(step, Angles))
    passing = {space for space, times in taken.items() if times == 1 and space in program.spaces} - read
    while steps:
        step = steps.pop(0)
        if not isinstance(step, Loop):
            made.append(step)
            continue
        following = steps[0] if steps else None
        written = {s.space for body in step.bodies if body for s in body.outputs}
        if isinstance(following, Angles) and written == {following.arguments} and written <= passing:
            made.append(_loop_plan(step, following))
            steps.pop(0)
        else:
            made.append(_loop_plan(step, None))
    return made


def _loop_plan(loop: Loop, angles: Angles | None) -> LoopPlan:
    bodies = {kind: body for kind, body in enumerate(loop.bodies) if body is not None}
    written = {s.space for body in bodies.values() for s in body.outputs}
    carried = tuple(_carried(bodies, written))[:_MOST_CARRIED]
    stretches = [s for body in bodies.values() for s in (*body.inputs, *body.outputs) if s.space != PARAMETERS]
    if angles is not None:  # found under the same column in the spaces of sines and cosines
        kept = [s for s in stretches if s.space != angles.arguments]
        found = [s.column for s in stretches if s.space == angles.arguments]
        stretches = kept + [Stretch(space, column) for space in (angles.sines, angles.cosines) for column in found]
    constants, early = {}, {}
    for kind, body in bodies.items():
        read = elements_read(body.program)
        constants[kind] = tuple((a, e) for a, e in read if body.inputs[a].space == PARAMETERS)
        early[kind] = tuple((a, e) for a, e in read if body.inputs[a].space not in {PARAMETERS, *written})
    return LoopPlan(loop, bodies, tuple(dict.fromkeys(stretches)), carried, constants, early, angles)


def _carried(bodies: Mapping[int, LoopBody], written: set[str]) -> Iterator[Carried]:
    """Spaces that every link writes at one place and reads at another."""
    for space in sorted(written):
        targets = {
            (s.column, spec.size)
            for body in bodies.values()
            for s, spec in zip(body.outputs, body.program.outputs, strict=True)
            if s.space == space
        }
        sources = {s.column for body in bodies.values() for s in body.inputs if s.space == space}
        sources -= {column for column, _ in targets}
        if len(targets) != 1 or len(sources) != 1:
            continue
        ((target, size),) = targets
        (source,) = sources
        read = [e for body in bodies.values() for a, e in elements_read(body.program) if body.inputs[a].space == space]
        if max(read, default=0) < size:
            yield Carried(space, source, target, size)


@dataclass
class Tables:
    """What steers a kernel: whole numbers (a head of fixed size, then records), and numbers in the kernel's precision.

    The head is: the numbers of a tile's memory for each lane; size and beginning of each array; how many constants
    there are and where their places and values are; for each step, its links and where its records are.
    """

    program: Program
    steps: Sequence[PlannedStep]
    head: list[int] = field(default_factory=list)
    integers: list[Any] = field(default_factory=list)
    reals: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts, self.size = self._places()
        self._integers_at, self._reals_at = head_size(self.program, self.steps), 0
        self.head = [self.size]
        for name, size in _arrays(self.program):
            self.head += [size, self.starts.get(name, 0)]
        places = [self.starts[c.space] + c.offset for c in self.program.constants if c.space in self.starts]
        values = [c.value for c in self.program.constants if c.space in self.starts]
        self.head += [len(places), self._add_integers(places), self._add_reals(values)]
        for step in self.steps:
            self.head += self._step(step)

    @property
    def whole_numbers(self) -> Any:
        """Head and records, int32."""
        return np.concatenate([np.array(self.head, np.int32), *self.integers]).astype(np.int32)

    def numbers(self, dtype: np.dtype[Any]) -> Any:
        """Link constants and values that loops begin with."""
        return np.concatenate([*self.reals, np.zeros(1)]).astype(dtype)

    def _places(self) -> tuple[dict[str, int], int]:
        """Where each space begins in the memory of a state, and how much there is."""
        spared = {step.angles.arguments for step in self.steps if isinstance(step, LoopPlan) and step.angles}
        starts, position = {}, 0
        laned = {f"in:{name}" for name in self.program.in_lanes}
        for name, size in [*self.program.spaces.items(), *_arrays(self.program)]:
            if name not in spared and name not in laned:
                starts[name] = position
                position += size
        if position >= 2**31:
            raise InputError(
                f"{self.program.name} needs too much memory for each state on a GPU",
                got=f"{position} numbers",
                allowed="fewer than 2³¹",
            )
        return starts, position

    def _add_integers(self, values: Any) -> int:
        self.integers.append(np.asarray(values, np.int32).reshape(-1))
        self._integers_at += self.integers[-1].size
        return self._integers_at - int(self.integers[-1].size)

    def _add_reals(self, values: Any) -> int:
        self.reals.append(np.asarray(values, np.float64).reshape(-1))
        self._reals_at += self.reals[-1].size
        return self._reals_at - int(self.reals[-1].size)

    def _step(self, step: PlannedStep) -> list[int]:
        if isinstance(step, Angles):
            spaces = (step.arguments, step.sines, step.cosines)
            return [self.program.spaces[step.arguments], *(self.starts[space] for space in spaces)]
        if isinstance(step, Once):
            row = self.program.offsets[len(self.program.kinds) + step.row]
            stretches = (*step.body.inputs, *step.body.outputs)
            return [self._add_integers([int(row[s.column]) + self.starts.get(s.space, 0) for s in stretches])]
        if isinstance(step, Tasks):
            return [step.count, self._add_integers(self._task_records(step))]
        return self._records(step)

    def _task_records(self, step: Tasks) -> Any:
        records = np.zeros((step.count, task_width(step)), np.int64)
        for record, (body, at) in zip(records, self.program.tasks(step), strict=True):
            row = self.program.offsets[at]
            stretches = (*body.inputs, *body.outputs)
            places = [int(row[s.column]) + self.starts.get(s.space, 0) for s in stretches]
            record[: 1 + len(places)] = [row[step.kind], *places]
        return records

    def _records(self, plan: LoopPlan) -> list[int]:
        """How many links, and where the two halves of their records begin; in the order in which they are passed."""
        kinds = np.asarray(self.program.kinds)
        links = np.flatnonzero(np.isin(kinds, list(plan.bodies)))
        if plan.loop.reverse:
            links = links[::-1]
        rows = np.empty((len(links), plan.integers), np.int64)
        rows[:, 0] = kinds[links] | self._flags(plan, links) << KIND_BITS
        for column, stretch in enumerate(plan.places):
            rows[:, 1 + column] = self.program.offsets[links, stretch.column] + self.starts.get(stretch.space, 0)
        reals = np.zeros((len(links), plan.reals))
        for kind, chosen in plan.constants.items():
            own = np.flatnonzero(kinds[links] == kind)
            if chosen and own.size:
                reals[own, : len(chosen)] = self._constants(plan.bodies[kind], links[own], chosen)
        return [len(links), self._add_integers(rows), self._add_reals(reals)]

    def _constants(self, body: LoopBody, links: Any, chosen: tuple[tuple[int, int], ...]) -> Any:
        columns = [body.inputs[array].column for array, _ in chosen]
        places = self.program.offsets[links][:, columns] + np.array([element for _, element in chosen])
        return np.asarray(self.program.parameters)[places]

    def _flags(self, plan: LoopPlan, links: Any) -> Any:
        """For each link, in order, which carried spaces it reads from memory and which it writes there."""
        flags = np.zeros(len(links), np.int64)
        for number, each in enumerate(plan.carried):
            from_memory, to_memory = self._through_memory(plan, each, links)
            flags |= (from_memory << (2 * number + FROM)) | (to_memory << (2 * number + TO))
        return flags

    def _through_memory(self, plan: LoopPlan, each: Carried, links: Any) -> tuple[Any, Any]:
        kinds = np.asarray(self.program.kinds)[links]

        def of_kind(test: Any) -> Any:
            known = np.zeros(int(kinds.max(initial=0)) + 1, bool)
            for kind, body in plan.bodies.items():
                if kind < len(known):
                    known[kind] = test(body)
            return known[kinds]

        stretches = [Stretch(each.space, each.source), Stretch(each.space, each.target)]
        reads, adds = (of_kind(lambda body, s=s: s in body.inputs) for s in stretches)
        writes = of_kind(lambda body: stretches[1] in body.outputs)
        source, target = (self.program.offsets[links, s.column] for s in stretches)
        at_hand = np.zeros(len(links), bool)
        at_hand[1:] = reads[1:] & writes[:-1] & (source[1:] == target[:-1])
        from_memory = reads & ~at_hand
        # A write is wanted in memory if it is the last one to its place, or the last one before a read from memory.
        count = len(links) + 1
        order = np.arange(len(links))
        written = np.flatnonzero(writes)
        keys = np.sort(target[written] * count + order[written])
        to_memory = np.zeros(len(links), bool)
        last = np.append(np.diff(keys // count) != 0, True)[: len(keys)]
        to_memory[keys[last] % count] = True
        for there, which in ((source, from_memory), (target, adds)):
            found = np.searchsorted(keys, there[which] * count + order[which]) - 1
            found = found[(found >= 0) & (keys[found] // count == there[which])] if len(keys) else found[:0]
            to_memory[keys[found] % count] = True
        return from_memory.astype(np.int64), to_memory.astype(np.int64)


def head_size(program: Program, steps: Sequence[PlannedStep]) -> int:
    """Whole numbers of the head."""
    return 1 + 2 * len(_arrays(program)) + 3 + sum(step_size(step) for step in steps)


def step_size(step: PlannedStep) -> int:
    """Whole numbers of the head for one step."""
    return {LoopPlan: 3, Angles: 4, Once: 1, Tasks: 2}[type(step)]


def _arrays(program: Program) -> list[tuple[str, int]]:
    """Inputs and outputs as spaces, with their sizes."""
    inputs = [(f"in:{a.name}", a.size) for a in program.inputs]
    return inputs + [(f"out:{a.name}", a.size) for a in program.outputs]
