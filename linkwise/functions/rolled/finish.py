"""From recorded sweeps to a program with loops: memory laid out, traces cut into bodies, tables written."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.array_types import Array
from linkwise.functions.rolled.joined_loops import JoinedLoop, joined
from linkwise.functions.rolled.link_vectors import BASE, START, Extent, FieldVector, GlobalInput, Stored
from linkwise.functions.rolled.record import RecordedSweep
from linkwise.functions.rolled.symbolic_links import COMPUTED, RolledKind
from linkwise.functions.rolled.systems import Solved, needed
from linkwise.mechanism.layout import numbers_of
from linkwise.spatial.scalar import Scalar
from linkwise.trace.block import ArraySpec
from linkwise.trace.passes import extract, reached
from linkwise.trace.program import (
    PARAMETERS,
    Angles,
    Buffer,
    Call,
    For,
    Initial,
    Place,
    Program,
    Statement,
    Stretch,
    Switch,
    choice,
    input_buffer,
    output_buffer,
)
from linkwise.trace.tracer import Traced

if TYPE_CHECKING:
    from linkwise.functions.rolled.rolling import RolledTree

_LINKS = "links"  # the rows of the table that belong to links


class Finisher:
    """Lays out memory, cuts each kind's trace into bodies, and writes the tables."""

    def __init__(
        self,
        tree: RolledTree,
        name: str,
        inputs: Sequence[GlobalInput],
        outputs: Mapping[str, object],
        far: bool = False,
    ) -> None:
        self.tree = tree
        self.inputs = inputs
        self.kind_of = np.zeros(len(tree.links), np.int64)
        for kind in tree.kinds:
            self.kind_of[kind.members] = kind.index
        self.columns: list[Array] = []
        self.column_of: dict[str, int] = {}
        self.spaces: dict[str, int] = {}
        self.rows: list[list[int]] = []
        self.ranges = [(_LINKS, 0, len(tree.links))]
        vectors = {n: output for n, output in outputs.items() if isinstance(output, FieldVector)}
        results = {n: np.asarray(x, object) for n, x in outputs.items() if n not in vectors}
        for output_name, vector in vectors.items():
            self._add_output(f"out:{output_name}", vector)
        records = list(tree.recorded)
        if results:
            records.append(Stored([(Extent(f"out:{n}"), list(x.reshape(-1))) for n, x in results.items()]))
        records = needed(records, tree.ground)
        self.loops = [record for record in records if isinstance(record, RecordedSweep)]
        self.written = [record for record in records if isinstance(record, Stored)]
        self.solved = [record for record in records if isinstance(record, Solved)]
        self.bodies_of: dict[Hashable, tuple[Call, ...]] = {}
        self.plan = joined(records, tree.kinds, far)
        self.stored_size = self._sizes()
        for item in inputs:
            if item.per_link != "none":
                self._place_array(f"in:{item.name}", item.per_link, item.spec.shape)
        self._parameter_column()
        self._slots()
        self._spreads()
        for output_name, vector in vectors.items():
            self._place_array(f"out:{output_name}", vector.per_link, vector.shape)
        shapes = {n: vector.shape for n, vector in vectors.items()} | {n: x.shape for n, x in results.items()}
        steps = self._steps()
        self.program = Program(
            name,
            (
                *(Buffer(space, size, open=True) for space, size in self.spaces.items()),
                *(input_buffer(i.spec) for i in inputs),
                *(output_buffer(ArraySpec(n, shapes[n])) for n in outputs),
            ),
            steps,
            rows=self._offsets(),
            ranges=tuple(self.ranges),
            parameters=self.parameters,
            initial=tuple(self._constants()),
        )

    def _steps(self) -> tuple[Statement, ...]:
        """The loops and what happens between them; sines and cosines of what is known beforehand come first."""
        hoisted = self._hoisted()
        angles: list[Statement] = []
        if any(hoisted):
            self._angle_space(hoisted)
            kinds = self.tree.kinds
            arguments = [{"angles": list(self._arguments(k, h))} for k, h in zip(kinds, hoisted, strict=True)]
            angles = [
                self._loop_of(arguments, [{}] * len(hoisted), [{}] * len(hoisted), reverse=False),
                Angles("angles", "sines", "cosines"),
            ]
        steps: list[Statement] = []
        for item in self.plan:
            if isinstance(item, JoinedLoop):
                steps.append(self._loop_of(item.stores(), hoisted, item.found(self.tree.kinds), item.reverse))
            elif isinstance(item, Solved):
                steps.append(self._tasks_of(item))
            elif any(self._exists(spot) for spot, _ in item.stores):
                steps.append(self._once_of(item))
        first = 1 if COMPUTED in self.spaces else 0  # link constants are computed before their sines are taken
        whole = [*steps[:first], *angles, *steps[first:]]
        return tuple(step for step in whole if not _is_idle(step))

    def _place_array(self, name: str, per_link: str, shape: tuple[int, ...]) -> None:
        """The beginning of each link's part of an input or an output."""
        width = math.prod(shape[1:])
        attribute = {"q": "q_start", "v": "v_start", "body": "index"}[per_link]
        self._column(name, numbers_of(self.tree.links, attribute) * width)

    def _add_output(self, space: str, output: FieldVector) -> None:
        """The sweep that keeps the field also stores it as a result."""
        for kind, stores in zip(self.tree.kinds, output.field.loop.stores, strict=True):
            stores[space] = list(output.field.per_kind[kind.index][0])

    def _column(self, key: str, values: Array) -> int:
        if key not in self.column_of:
            self.column_of[key] = len(self.columns)
            self.columns.append(np.asarray(values, np.int64))
        return self.column_of[key]

    def _offsets(self) -> Array:
        """A row for each link, then one for each piece of code that runs once."""
        width = max([len(self.columns), *(len(row) for row in self.rows)])
        table = np.zeros((len(self.tree.links) + len(self.rows), width), np.int64)
        if self.columns:
            table[: len(self.tree.links), : len(self.columns)] = np.stack(self.columns, axis=1)
        for number, row in enumerate(self.rows):
            table[len(self.tree.links) + number, : len(row)] = row
        return table

    def _sizes(self) -> dict[str, int]:
        """The largest stretch that is stored in each space."""
        sizes: dict[str, int] = {}
        for loop in self.loops:
            for stores in loop.stores:
                for space, values in stores.items():
                    sizes[space] = max(sizes.get(space, 0), len(values))
        for written in self.written:
            for spot, leaves in written.stores:
                sizes[spot.space] = max(sizes.get(spot.space, 0), spot.start + len(leaves))
        for spot, numbers in self.tree.constants:
            sizes[spot.space] = max(sizes.get(spot.space, 0), spot.start + len(numbers))
        return sizes

    def _parameter_column(self) -> None:
        if self.tree.constants_are_inputs:  # each state brings its own
            self.parameters = np.zeros(1)
            return
        starts = np.zeros(len(self.tree.links), np.int64)
        rows, position = [], 0
        for kind in self.tree.kinds:
            starts[kind.members] = position + kind.rows.shape[1] * np.arange(len(kind.members))
            rows.append(kind.rows.reshape(-1))
            position += kind.rows.size
        self.parameters = np.concatenate([*rows, [0.0]])
        self._column(PARAMETERS, starts)

    def _slots(self) -> None:
        """Memory for what is handed on, used again when its last reader is done; and for what is kept."""
        tree = self.tree
        parents = numbers_of(tree.links, "parent")
        out_from, out_to, out_slots = outward_slots(parents)
        in_from, in_to, in_slots = inward_slots(parents)
        read = {space for item in self.plan if isinstance(item, JoinedLoop) for space in item.needs_memory()}
        read |= {spot.space for spot in tree.ground.spots.values()}
        for loop in self.loops:
            space = f"handed:{loop.number}"
            size = self.stored_size.get(f"{space}:to", 0)
            if size and loop.handed_space:
                source, target, slots = (in_from, in_to, in_slots) if loop.reverse else (out_from, out_to, out_slots)
                self._column(f"{space}:from", size * source)
                self._column(f"{space}:to", size * target)
                self.spaces[space] = size * slots
            kept = f"kept:{loop.number}"
            size = self.stored_size.get(kept, 0)
            if size and kept in read:
                self._per_link(kept, size)
            else:
                for stores in loop.stores:
                    stores.pop(kept, None)

    def _per_link(self, space: str, size: int) -> None:
        self._column(space, size * np.arange(len(self.tree.links)))
        self.spaces[space] = size * len(self.tree.links)

    def _spreads(self) -> None:
        """Memory for what is written between sweeps, and for vectors of which links share parts."""
        for space, size in self.stored_size.items():
            family = space.partition(":")[0]
            if family == "shared":
                self._column(space, np.zeros(len(self.tree.links), np.int64))
                self.spaces[space] = size
            elif family == "only":
                links = self.tree.stretches_of[space]
                starts = np.zeros(len(self.tree.links), np.int64)
                starts[links] = size * (1 + np.arange(len(links)))
                self._column(space, starts)
                self.spaces[space] = size * (1 + len(links))
            elif family == COMPUTED:
                self._per_link(space, size)
            elif family == "system":
                self.spaces[space] = size
        for item in self.solved:
            for array in (*item.program.inputs, *item.program.outputs):
                spot = next(spot for name, spot in item.arrays.items() if name.partition(":")[2] == array.name)
                if spot.space.startswith("system:"):
                    self.stored_size[spot.space] = array.size
                    self.spaces[spot.space] = max(self.spaces.get(spot.space, 0), array.size * (1 + max(spot.at, 0)))
        for space, per_link in self.tree.vector_starts.items():
            self._place_array(space, per_link, (1,))
            self.spaces[space] = self.tree.nv if per_link == "v" else self.tree.nq

    def _offset(self, spot: Extent) -> int:
        if spot.at == START:
            return 0
        if spot.at == BASE:  # slot 1 of an inward sweep's memory
            return self.stored_size[f"{spot.space}:to"] + spot.start
        return self.stored_size[spot.space] * spot.at + spot.start

    def _constants(self) -> Iterator[Initial]:
        for spot, numbers in self.tree.constants:
            if spot.space in self.spaces:
                start = self._offset(spot)
                yield from (Initial(spot.space, start + i, x) for i, x in enumerate(numbers))

    def _hoisted(self) -> list[dict[int, tuple[str, int]]]:
        """For each kind: sines and cosines of what is known before any sweep, and where they will be found."""
        found = []
        for kind in self.tree.kinds:
            before = {name for name in kind.arrays if name in (PARAMETERS, COMPUTED) or name.startswith("in:")}
            early: list[bool] = []
            live = self._live(kind)
            arguments: dict[int, int] = {}
            where: dict[int, tuple[str, int]] = {}
            for number, node in enumerate(kind.tracer.nodes):
                if node[0] == "const":
                    early.append(True)
                elif node[0] == "input":
                    early.append(kind.tracer.inputs[node[1]].name in before)
                else:
                    early.append(all(early[a] for a in node[1:]))
                    if node[0] in ("sin", "cos") and early[-1] and live[number]:
                        place = arguments.setdefault(node[1], len(arguments))
                        where[number] = ("sines" if node[0] == "sin" else "cosines", place)
            found.append(where)
        return found

    def _live(self, kind: RolledKind) -> bytearray:
        """For each node of a kind's trace, whether anything stored or kept is made of it."""
        values = [x for loop in self.loops for stored in loop.stores[kind.index].values() for x in stored]
        values += [x for loop in self.loops for x in loop.kept[kind.index]]
        return reached(kind.tracer.nodes, (x.number for x in values if isinstance(x, Traced)))

    @staticmethod
    def _arguments(kind: RolledKind, hoisted: dict[int, tuple[str, int]]) -> list[Traced]:
        places = {place: kind.tracer.nodes[number][1] for number, (_, place) in hoisted.items()}
        return [Traced(kind.tracer, places[i]) for i in range(len(places))]

    def _angle_space(self, hoisted: list[dict[int, tuple[str, int]]]) -> None:
        counts = np.array([len({place for _, place in h.values()}) for h in hoisted], np.int64)[self.kind_of]
        starts = np.concatenate(([0], np.cumsum(counts)))
        for space in ("angles", "sines", "cosines"):
            self._column(space, starts[:-1])
            self.spaces[space] = int(starts[-1])

    def _loop_of(
        self,
        stores: Sequence[dict[str, list[Scalar]]],
        hoisted: list[dict[int, tuple[str, int]]],
        found: Sequence[dict[int, int]],
        reverse: bool,
    ) -> For:
        bodies = []
        for kind, into, known, same in zip(self.tree.kinds, stores, hoisted, found, strict=True):
            outputs = [(space, values) for space, values in into.items() if values]
            bodies.append(self._body(kind, outputs, known, same) if outputs else None)
        column = self._column("kind", self.kind_of) if len(bodies) > 1 else 0
        return For(_LINKS, choice(bodies, column), reverse)

    def _body(
        self,
        kind: RolledKind,
        outputs: list[tuple[str, list[Scalar]]],
        known: dict[int, tuple[str, int]],
        same: dict[int, int],
    ) -> Call:
        results = [(space, [kind.tracer.number(v) for v in values]) for space, values in outputs]
        program = extract(f"kind{kind.index}", kind.tracer.nodes, kind.tracer.inputs, results, known, same)
        return Call(
            program,
            tuple(self._stretch(spec.name) for spec in program.inputs),
            tuple(self._stretch(spec.name) for spec in program.outputs),
        )

    def _stretch(self, name: str) -> Stretch:
        space = name.rsplit(":", 1)[0] if name.startswith("handed:") else name
        return Stretch(space, self.column_of[name])

    def _once_of(self, written: Stored) -> For:
        ground = self.tree.ground
        stores = [(spot, leaves) for spot, leaves in written.stores if self._exists(spot)]
        results = [(spot.name, [ground.tracer.number(x) for x in leaves]) for spot, leaves in stores]
        program = extract("between", ground.tracer.nodes, ground.tracer.inputs, results, {})
        spots = [ground.spots[spec.name] for spec in program.inputs] + [spot for spot, _ in stores]
        self.rows.append([self._offset(spot) for spot in spots])
        stretches = [Stretch(spot.space, column) for column, spot in enumerate(spots)]
        cut = len(program.inputs)
        return For(self._range(1), (Call(program, tuple(stretches[:cut]), tuple(stretches[cut:])),))

    def _tasks_of(self, item: Solved) -> For:
        """The tasks of a program with one list of them, in the spaces of this one."""
        program = item.program
        (loop,) = program.statements
        assert isinstance(loop, For)
        bodies, kind_column = _bodies(loop)
        names = {name: spot.space for name, spot in item.arrays.items()}
        key = (id(program), *names.values())
        if key not in self.bodies_of:

            def there(places: Sequence[Place]) -> tuple[Place, ...]:
                return tuple(replace(p, buffer=names[p.buffer]) for p in places if isinstance(p, Stretch))

            self.bodies_of[key] = tuple(Call(b.code, there(b.inputs), there(b.outputs)) for b in bodies)
        begin = {spot.space: self._offset(spot) for spot in item.arrays.values()}
        for row in program.rows:
            body = self.bodies_of[key][int(row[kind_column])]
            own = row.tolist()
            for place in {*body.inputs, *body.outputs}:
                if isinstance(place, Stretch):
                    own[place.column] += begin[place.buffer]
            self.rows.append(own)
        return For(self._range(len(program.rows)), choice(self.bodies_of[key], kind_column))

    def _range(self, count: int) -> str:
        """A name for the last rows of the table so far."""
        name = f"rows{len(self.ranges)}"
        self.ranges.append((name, len(self.tree.links) + len(self.rows) - count, count))
        return name

    def _exists(self, spot: Extent) -> bool:
        """Whether anything reads the space."""
        return spot.space in self.spaces or spot.space.startswith("out:")


def _bodies(loop: For) -> tuple[list[Call], int]:
    """Bodies of a loop for each kind of row, and the column of the kind."""
    (statement,) = loop.body
    if isinstance(statement, Switch):
        return [one for case in statement.cases for one in case if isinstance(one, Call)], statement.column
    assert isinstance(statement, Call)
    return [statement], -1


def _is_idle(statement: Statement) -> bool:
    """Whether a loop does nothing for any kind of link."""
    inner = statement.body[0] if isinstance(statement, For) else statement
    return isinstance(inner, Switch) and not any(inner.cases)


def outward_slots(parents: Array) -> tuple[Array, Array, int]:
    """For each link the slot it reads (its parent's state) and the slot it writes; slot 0 is the root's."""
    n = len(parents)
    if _is_chain(parents):  # the two after the root's, in turn
        slot_of = 1 + np.arange(n) % 2
        return np.append(0, slot_of)[:n], slot_of, 1 + min(n, 2)
    left = np.bincount(parents[parents >= 0], minlength=n).tolist()
    free: list[int] = []
    slots = 1
    slot = [0] * (n + 1)  # the root's is the last
    source = []
    for k, parent in enumerate(parents.tolist()):
        source.append(slot[parent])
        if free:
            own = free.pop()
        else:
            own, slots = slots, slots + 1
        slot[k] = own
        if left[k] == 0:
            free.append(own)
        if parent >= 0:
            left[parent] -= 1
            if left[parent] == 0:
                free.append(slot[parent])
    return np.array(source, np.int64), np.array(slot[:n], np.int64), slots


def inward_slots(parents: Array) -> tuple[Array, Array, int]:
    """For each link the slot it reads (its children's sum; 0 for none) and its parent's slot (1 for the root's)."""
    n = len(parents)
    if _is_chain(parents):  # the two after the root's, in turn
        slot_of = np.append(1, 2 + np.arange(1, n + 1)[::-1] % 2)  # of each one's parent
        slot_of[-1] = 0
        return slot_of[1:], slot_of[:n] if n else slot_of[:0], 2 + min(max(n - 1, 0), 2)
    free: list[int] = []
    slots = 2
    slot: dict[int, int] = {}
    source, target = [0] * n, [1] * n
    above = parents.tolist()
    for k in range(n - 1, -1, -1):
        parent = above[k]
        if parent >= 0:
            if parent not in slot:
                if free:
                    slot[parent] = free.pop()
                else:
                    slot[parent], slots = slots, slots + 1
            target[k] = slot[parent]
        if k in slot:
            source[k] = slot.pop(k)
            free.append(source[k])
    return np.array(source, np.int64), np.array(target, np.int64), slots


def _is_chain(parents: Array) -> bool:
    return len(parents) > 1 and bool((parents == np.arange(len(parents)) - 1).all())
