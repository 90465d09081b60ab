"""Loops over rows of a table in device memory: what each reads when, and the data that steer a kernel.

What a row says is a **record** of the loop: the kind of a row, and where its stretches of memory begin. Where all rows
are of one sort (links: a column belongs to one buffer, whatever the kind), more is known beforehand, and time is saved.
What is the same for all states, its constants too, is brought to the chip by the whole warp. What others left for a row
can be fetched before its turn comes: **early**. What the loop itself writes is read when the turn has come, from
memory; but what a row hands to the very next one is **carried** in registers, and goes through memory only where a tree
branches.

A list of different tasks (tiles of a matrix, say) has columns that mean something else for each. It is run as it is
written: what it could fetch early are whole tiles, which would leave the loops over links no room on the chip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array, Precision
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.targets.shared_places import lifetimes, places_of_buffers
from linkwise.trace.block import Block
from linkwise.trace.program import (
    PARAMETERS,
    Angles,
    Call,
    For,
    Place,
    Program,
    Statement,
    Stretch,
    Switch,
    buffer_of,
    inside,
    places_of,
)

KIND_BITS = 16
"""The first number of a link's record is its kind; above that, two bits for each carried buffer: see FROM and TO."""

FROM, TO = 0, 1
"""Bits of a carried buffer: it is read from memory, it is written to memory."""

_MOST_CARRIED = (31 - KIND_BITS) // 2


@dataclass(frozen=True)
class Carried:
    """A buffer whose numbers stay in registers from one row to the next."""

    buffer: str
    source: int
    """Column of the stretch that a row reads."""
    target: int
    """Column of the stretch that it writes."""
    size: int


@dataclass(frozen=True)
class RowLoop:
    """A loop over rows as it is written: the records say what happens in which order.

    Args:
        loop: the statement.
        columns: of the table that are in a record as they are: kinds, on which something depends.
        places: the stretches whose beginnings are in a record, after the columns.
    """

    loop: For
    columns: tuple[int, ...]
    places: tuple[Stretch, ...]

    @property
    def integers(self) -> int:
        """Whole numbers of a record."""
        return len(self.columns) + len(self.places)

    def number(self, stretch: Stretch) -> int:
        """Place of the beginning of a stretch in a record."""
        return len(self.columns) + self.places.index(stretch)


@dataclass(frozen=True)
class LinkLoop(RowLoop):
    """A loop over rows of one sort: one call for each kind, whose numbers are fetched ahead and carried.

    Args:
        calls: what is done for each kind, left out where that is nothing.
        carried: what stays in registers.
        constants: for each kind, which of its constants (array, element) are in a record.
        early: for each kind, the numbers (array, element) that are fetched ahead.
        angles: where not the numbers in ``angles.arguments`` are stored but their sines and cosines.
    """

    calls: Mapping[int, Call]
    carried: tuple[Carried, ...]
    constants: Mapping[int, tuple[tuple[int, int], ...]]
    early: Mapping[int, tuple[tuple[int, int], ...]]
    angles: Angles | None = None

    @property
    def reals(self) -> int:
        """Constants of a record, at most."""
        return max((len(chosen) for chosen in self.constants.values()), default=0)

    @property
    def ahead(self) -> int:
        """Numbers fetched ahead, at most."""
        return max((len(chosen) for chosen in self.early.values()), default=0)

    def carries(self, place: Place) -> int | None:
        """Number of the carried buffer that a stretch is read from, if there is one."""
        for number, each in enumerate(self.carried):
            if Stretch(each.buffer, each.source) == place:
                return number
        return None


def elements_read(block: Block) -> list[tuple[int, int]]:
    """The numbers of its inputs that a block reads: (array, element)."""
    return sorted({(node[1], node[2]) for node in block.nodes if node[0] == "input"})


@dataclass
class LoopPlans:
    """The loops over rows of a program, each known by its statement.

    Where a loop does nothing but find angles, their sines and cosines are taken at once. The angles themselves are not
    stored then, so nothing else may ask for them.
    """

    program: Program
    loops: dict[int, RowLoop] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    """Statements :class:`Angles` that a loop before them does."""
    parameters: bool = False
    """Whether parameters are read elsewhere than from records."""

    def __post_init__(self) -> None:
        statements = list(self.program.walk())
        asked = Counter(s.arguments for s in statements if isinstance(s, Angles))
        self._writers = Counter(name for s in statements for name in {buffer_of(place) for place in places_of(s)[1]})
        read = {buffer_of(place) for s in statements for place in _read(s)}
        own = {b.name for b in self.program.buffers if not (b.load or b.store)}
        self._passing = {name for name in own - read if asked[name] == 1}
        self._sequence(self.program.statements)

    @property
    def spared(self) -> set[str]:
        """Buffers that need no memory."""
        return {each.angles.arguments for each in self.loops.values() if isinstance(each, LinkLoop) and each.angles}

    @property
    def made_early(self) -> set[str]:
        """Buffers of sines and cosines that the loop before their statement makes."""
        taken = [each.angles for each in self.loops.values() if isinstance(each, LinkLoop) and each.angles]
        return {name for angles in taken for name in (angles.sines, angles.cosines)}

    def _sequence(self, statements: Sequence[Statement]) -> None:
        for statement, following in zip(statements, (*statements[1:], None), strict=False):
            if isinstance(statement, For) and isinstance(statement.over, str):
                plan = self.loops[id(statement)] = self._planned(statement, following)
                if isinstance(plan, LinkLoop):
                    self.taken |= set() if plan.angles is None else {id(following)}
                    continue
            self.parameters = self.parameters or any(buffer_of(place) == PARAMETERS for place in _read(statement))
            for body in statement.cases if isinstance(statement, Switch) else (inside(statement),):
                self._sequence(body)

    def _planned(self, loop: For, following: Statement | None) -> RowLoop:
        calls = self._calls_of_links(loop)
        if calls is not None:
            written = {buffer_of(place) for call in calls.values() for place in call.outputs}
            if isinstance(following, Angles) and written == {following.arguments} and written <= self._passing:
                alone = self._writers[following.arguments] == len(calls)
                return _link_loop(loop, calls, following if alone else None)
            return _link_loop(loop, calls, None)
        found = list(_of_this_loop(loop.body))
        columns = [statement.column for statement in found if isinstance(statement, Switch)]
        places = [p for s in found for p in (*_read(s), *places_of(s)[1]) if isinstance(p, Stretch)]
        return RowLoop(loop, tuple(dict.fromkeys(columns)), tuple(dict.fromkeys(places)))

    def _calls_of_links(self, loop: For) -> dict[int, Call] | None:
        """Call for each kind of row, where all rows are of one sort; None where they are not."""
        cases = [loop.body]
        if len(loop.body) == 1 and isinstance(loop.body[0], Switch):
            cases = list(loop.body[0].cases)
        calls: dict[int, Call] = {}
        for kind, case in enumerate(cases):
            if case and not (len(case) == 1 and isinstance(case[0], Call) and isinstance(case[0].code, Block)):
                return None
            calls.update((kind, call) for call in case if isinstance(call, Call))
        places = [place for call in calls.values() for place in (*call.inputs, *call.outputs)]
        stretches = {place for place in places if isinstance(place, Stretch)}
        alike = len({stretch.column for stretch in stretches}) == len(stretches)
        once = self.program.range_of[str(loop.over)][1] == 1
        return calls if alike and not once and all(isinstance(place, Stretch) for place in places) else None


def _link_loop(loop: For, calls: dict[int, Call], angles: Angles | None) -> LinkLoop:
    written = {buffer_of(place) for call in calls.values() for place in call.outputs}
    places = [p for c in calls.values() for p in (*c.inputs, *c.outputs) if buffer_of(p) != PARAMETERS]
    stretches = [place for place in places if isinstance(place, Stretch)]
    if angles is not None:  # found under the same column in the buffers of sines and cosines
        kept = [s for s in stretches if s.buffer != angles.arguments]
        found = [s.column for s in stretches if s.buffer == angles.arguments]
        stretches = kept + [Stretch(name, column) for name in (angles.sines, angles.cosines) for column in found]
    constants, early = {}, {}
    for kind, call in calls.items():
        read = [(buffer_of(call.inputs[a]), a, e) for a, e in elements_read(_block(call))]
        constants[kind] = tuple((a, e) for name, a, e in read if name == PARAMETERS)
        early[kind] = tuple((a, e) for name, a, e in read if name not in {PARAMETERS, *written})
    carried = tuple(_carried(calls, written))[:_MOST_CARRIED]
    column = loop.body[0].column if isinstance(loop.body[0], Switch) else -1
    return LinkLoop(loop, (column,), tuple(dict.fromkeys(stretches)), calls, carried, constants, early, angles)


def _block(call: Call) -> Block:
    assert isinstance(call.code, Block)
    return call.code


def _carried(calls: Mapping[int, Call], written: set[str]) -> Iterator[Carried]:
    """Buffers that every row writes at one place and reads at another."""
    for name in sorted(written):
        targets = {
            (place.column, spec.size)
            for call in calls.values()
            for place, spec in zip(call.outputs, call.code.outputs, strict=True)
            if isinstance(place, Stretch) and place.buffer == name
        }
        places = [place for call in calls.values() for place in call.inputs]
        sources = {place.column for place in places if isinstance(place, Stretch) and place.buffer == name}
        sources -= {column for column, _ in targets}
        if len(targets) != 1 or len(sources) != 1:
            continue
        ((target, size),) = targets
        (source,) = sources
        read = [e for c in calls.values() for a, e in elements_read(_block(c)) if buffer_of(c.inputs[a]) == name]
        if max(read, default=0) < size:
            yield Carried(name, source, target, size)


def _of_this_loop(statements: Sequence[Statement]) -> Iterator[Statement]:
    """All statements to which the rows of a loop belong: not those in another loop over rows."""
    for statement in statements:
        yield statement
        if not (isinstance(statement, For) and isinstance(statement.over, str)):
            yield from _of_this_loop(inside(statement))


def _read(statement: Statement) -> Sequence[Place]:
    """The places that a statement reads, but angles."""
    return () if isinstance(statement, Angles) else places_of(statement)[0]


def programs_of(program: Program) -> list[Program]:
    """A program and all that are called from it, each once and behind those that call it."""
    found: dict[int, Program] = {}

    def visit(each: Program) -> None:
        for code in each.codes:
            if isinstance(code, Program) and id(code) not in found:
                visit(code)
        found[id(each)] = each

    visit(program)
    return list(found.values())[::-1]


def copied_arguments(whole: Program) -> set[tuple[int, str]]:
    """Buffers of called programs that are not simply where the caller has its numbers.

    They are loaded and written to, or what they are given is not a state's own.
    """
    found = set()
    for program in programs_of(whole):
        found |= {(id(program), b.name) for b in program.buffers if b.load and (b.store or b.name in program.written)}
        found |= {(id(program), number.buffer) for number in program.initial}
        for call in program.walk():
            if isinstance(call, Call) and isinstance(call.code, Program):
                loaded = [buffer.name for buffer in call.code.buffers if buffer.load]
                given = zip(loaded, call.inputs, strict=True)
                found |= {(id(call.code), name) for name, place in given if buffer_of(place) == PARAMETERS}
    return found


class Tables:
    """Tables that steer a kernel: whole numbers (a head of fixed size, then records), and numbers in its precision.

    The head is: the numbers of a tile's memory for each lane; for each buffer its size and its beginning; for each
    program where its parameters are, how many initial numbers there are, and where their places and values are; for
    each loop over rows how many records there are, and where the two halves of these begin.

    Args:
        program: and all those that it calls.
        plans: their loops.
    """

    def __init__(self, program: Program, plans: Sequence[LoopPlans]) -> None:
        self.whole, self.plans = program, plans
        self.copied = copied_arguments(program)
        self.starts, self.size = self._places()
        self.head_at: dict[tuple[int, str], int] = {}
        """Places in the head where things of a program begin: buffers, parameters, initial numbers, loops."""
        self.head: list[int] = [self.size]
        self.integers: list[Array] = []
        self.reals: list[Array] = []
        self._integers_at, self._reals_at = self._head_size(), 0
        for each in plans:
            owner = id(each.program)
            for buffer in each.program.buffers:
                self._add((owner, buffer.name), [buffer.size, self.starts.get((owner, buffer.name), 0)])
            self.starts[owner, PARAMETERS] = self._add_reals(each.program.parameters if each.parameters else ())
            initial = [n for n in each.program.initial if (owner, n.buffer) in self.starts]
            places = [self.starts[owner, number.buffer] + number.offset for number in initial]
            values = self._add_reals([number.value for number in initial])
            self._add((owner, PARAMETERS), [self.starts[owner, PARAMETERS]])
            self._add((owner, "initial"), [len(places), self._add_integers(places), values])
            for loop in each.loops.values():
                self._add((owner, f"loop {id(loop.loop)}"), self._records(each.program, loop))

    def _head_size(self) -> int:
        return 1 + sum(2 * len(each.program.buffers) + 4 + 3 * len(each.loops) for each in self.plans)

    def _add(self, key: tuple[int, str], numbers: Sequence[int]) -> None:
        self.head_at[key] = len(self.head)
        self.head += numbers

    @property
    def whole_numbers(self) -> Array:
        """Head and records, int32."""
        return np.concatenate([np.array(self.head, np.int32), *self.integers]).astype(np.int32)

    def numbers(self, dtype: Precision) -> Array:
        """Constants of the rows, parameters, and what buffers hold at first."""
        return np.concatenate([*self.reals, np.zeros(1)]).astype(dtype)

    def _places(self) -> tuple[dict[tuple[int, str], int], int]:
        """Beginning of each buffer in the memory of a state, and the size of all.

        Those of called programs are behind those of all that call them, as on a stack.
        """
        starts: dict[tuple[int, str], int] = {}
        begin = dict.fromkeys((id(each.program) for each in self.plans), 0)
        size = 0
        for each in self.plans:
            program, first = each.program, begin[id(each.program)]
            sizes = {}
            for buffer in program.buffers:
                kept = buffer.load or buffer.store
                passed = kept and program is not self.whole and (id(program), buffer.name) not in self.copied
                if buffer.name not in each.spared and not buffer.in_lanes and not passed:
                    sizes[buffer.name] = buffer.size
            lives = lifetimes(program)
            for name in each.made_early:
                lives[name] = max(0, lives[name][0] - 1), lives[name][1]
            own = places_of_buffers(sizes, lives)
            starts |= {(id(program), name): first + start for name, start in own.items()}
            end = first + max((start + sizes[name] for name, start in own.items()), default=0)
            for code in program.codes:
                if isinstance(code, Program):
                    begin[id(code)] = max(begin[id(code)], end)
            size = max(size, end)
        if size >= 2**31:
            raise InputError(
                f"{self.whole.name} needs too much memory for each state on a GPU",
                got=f"{size} numbers",
                allowed="fewer than 2³¹",
            )
        return starts, size

    def _add_integers(self, values: ArrayLike) -> int:
        self.integers.append(np.asarray(values, np.int32).reshape(-1))
        self._integers_at += self.integers[-1].size
        return self._integers_at - int(self.integers[-1].size)

    def _add_reals(self, values: ArrayLike) -> int:
        self.reals.append(np.asarray(values, np.float64).reshape(-1))
        self._reals_at += self.reals[-1].size
        return self._reals_at - int(self.reals[-1].size)

    def _records(self, program: Program, plan: RowLoop) -> list[int]:
        """Number of rows, and the beginnings of the two halves of their records; in the order of the loop."""
        first, count = program.range_of[str(plan.loop.over)]
        chosen = np.arange(first, first + count)
        if isinstance(plan, LinkLoop) and plan.columns[0] >= 0:
            chosen = chosen[np.isin(program.rows[chosen, plan.columns[0]], list(plan.calls))]
        if plan.loop.reverse:
            chosen = chosen[::-1]
        rows = program.rows[chosen]
        records = np.zeros((len(rows), plan.integers), np.int64)
        for number, column in enumerate(plan.columns):
            records[:, number] = rows[:, column] if column >= 0 else 0
        for number, stretch in enumerate(plan.places, len(plan.columns)):
            records[:, number] = rows[:, stretch.column] + self.starts.get((id(program), stretch.buffer), 0)
        reals = np.zeros((len(rows), 0))
        if isinstance(plan, LinkLoop):
            kinds = records[:, 0].copy()
            records[:, 0] |= _flags(plan, kinds, rows) << KIND_BITS
            reals = np.zeros((len(rows), plan.reals))
            for kind, elements in plan.constants.items():
                own = np.flatnonzero(kinds == kind)
                if elements and own.size:
                    columns = [_column(plan.calls[kind].inputs[array]) for array, _ in elements]
                    places = rows[own][:, columns] + np.array([element for _, element in elements])
                    reals[own, : len(elements)] = np.asarray(program.parameters)[places]
        return [len(rows), self._add_integers(records), self._add_reals(reals)]


def _column(place: Place) -> int:
    assert isinstance(place, Stretch)
    return place.column


def _flags(plan: LinkLoop, kinds: Array, rows: Array) -> Array:
    """Flags of each row, in order: carried buffers that it reads from memory, and those that it writes there."""
    flags = np.zeros(len(rows), np.int64)
    for number, each in enumerate(plan.carried):
        from_memory, to_memory = through_memory(plan, each, kinds, rows)
        flags |= (from_memory << (2 * number + FROM)) | (to_memory << (2 * number + TO))
    return flags


def _reads(stretch: Stretch, call: Call) -> bool:
    return stretch in call.inputs


def through_memory(plan: LinkLoop, each: Carried, kinds: Array, rows: Array) -> tuple[Array, Array]:
    """Masks of the rows, in the order of the loop, that read what is carried from memory, and that write it there."""

    def of_kind(test: Callable[[Call], bool]) -> Array:
        known = np.zeros(int(kinds.max(initial=0)) + 1, bool)
        for kind, call in plan.calls.items():
            if kind < len(known):
                known[kind] = test(call)
        return known[kinds]

    stretches = [Stretch(each.buffer, each.source), Stretch(each.buffer, each.target)]
    reads, adds = (of_kind(partial(_reads, s)) for s in stretches)
    writes = of_kind(lambda call: stretches[1] in call.outputs)
    source, target = (rows[:, s.column] for s in stretches)
    at_hand = np.zeros(len(rows), bool)
    at_hand[1:] = reads[1:] & writes[:-1] & (source[1:] == target[:-1])
    from_memory = reads & ~at_hand
    # A write is wanted in memory if it is the last one to its place, or the last one before a read from memory.
    count = len(rows) + 1
    order = np.arange(len(rows))
    written = np.flatnonzero(writes)
    keys = np.sort(target[written] * count + order[written])
    to_memory = np.zeros(len(rows), bool)
    last = np.append(np.diff(keys // count) != 0, True)[: len(keys)]
    to_memory[keys[last] % count] = True
    for there, which in ((source, from_memory), (target, adds)):
        found = np.searchsorted(keys, there[which] * count + order[which]) - 1
        found = found[(found >= 0) & (keys[found] // count == there[which])] if len(keys) else found[:0]
        to_memory[keys[found] % count] = True
    return from_memory.astype(np.int64), to_memory.astype(np.int64)
