"""Rolled sweeps: the algorithm's text, run once for each kind of link, becomes a program with loops.

Links are of one kind when they have the same joint type and their placements the same shape; what differs between
them (lengths, angles, inertias) becomes a row of a table, except where all links of the kind agree: then it folds like
any constant. What a sweep hands from link to link lives in memory slots that are used again as soon as they are free,
what it keeps lives in one stretch for each link.

A number that every link hands on as the same constant (the zero rate of turn of a sliding chain, the zero row of an
articulated inertia) is found by running the step until nothing changes, and is then not handed on at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.model.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.structure import Rebuild, flatten
from linkwise.spatial.transforms import Factor, Rotation, Shift, Transform, Turn
from linkwise.spatial.vectors import Vec
from linkwise.tracing.passes import extract
from linkwise.tracing.program import ArraySpec, Program
from linkwise.tracing.rolled_program import (
    PARAMETERS,
    Angles,
    Constant,
    Loop,
    LoopBody,
    RolledProgram,
    Stretch,
    int_table,
)
from linkwise.tracing.tracer import Traced, Tracer

_TRIG = "angles"  # the array of hoisted sines and cosines in a kind's tracer, by space


@dataclass
class _Kind:
    """One kind of link: a tracer of its own, shared by all loops, so that what they have in common is one node."""

    index: int
    template: Link
    first: bool
    """Whether links of this kind are the first child to add to their parent's sum (else they add to what is there)."""
    members: list[int] = field(default_factory=list)
    tracer: Tracer = field(default_factory=Tracer)
    arrays: dict[str, list[Traced]] = field(default_factory=dict)
    link: Any = None

    def array(self, name: str, size: int) -> list[Traced]:
        """An input array of the bodies of this kind."""
        if name not in self.arrays:
            self.arrays[name] = self.tracer.input(name, (size,))
        return self.arrays[name]


@dataclass(frozen=True, eq=False)
class _SymbolicLink(Link):
    """A link that stands for all of its kind; reads its part of q and v from the loop's arrays."""

    kind: _Kind = None  # type: ignore[assignment]

    def coordinates(self, q: Sequence[Scalar]) -> list[Scalar]:
        return self._part(q, self.joint.nq)

    def rates(self, v: Sequence[Scalar]) -> list[Scalar]:
        return self._part(v, self.joint.nv)

    def _part(self, whole: Any, size: int) -> list[Scalar]:
        if not isinstance(whole, GlobalInput):
            if all(isinstance(x, (int, float)) and x == 0.0 for x in whole):
                return [0.0] * size
            raise InputError("a rolled sweep reads inputs and zeros only", got=type(whole).__name__)
        return list(self.kind.array(f"in:{whole.name}", size))


@dataclass(frozen=True)
class GlobalInput:
    """An input array of the whole program, read link by link."""

    name: str
    spec: ArraySpec
    per_link: str  # "q", "v" or "body": where a link's part begins


@dataclass
class _Recorded:
    """One recorded sweep: for each kind the values it stores, by space."""

    reverse: bool
    stores: list[dict[str, list[Scalar]]]
    handed_space: str | None


class RolledField:
    """What a rolled sweep kept: one stretch of memory for each link."""

    def __init__(self, space: str, loop: _Recorded, per_kind: list[tuple[list[Scalar], Rebuild]]) -> None:
        self.space = space
        self.loop = loop
        self.per_kind = per_kind

    def __getitem__(self, link: _SymbolicLink) -> Any:
        leaves, rebuild = self.per_kind[link.kind.index]
        stored = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Traced)]
        array = link.kind.array(self.space, max(1, len(stored)))
        values = list(leaves)
        for place, i in enumerate(stored):
            values[i] = array[place]
        return rebuild(values)

    def stored(self, kind: int) -> list[Traced]:
        return [leaf for leaf in self.per_kind[kind][0] if isinstance(leaf, Traced)]


class Output:
    """A field that is a result of the program."""

    def __init__(self, field_: RolledField, per_link: str) -> None:
        self.field = field_
        self.per_link = per_link


class RolledTree:
    """Stands in for a :class:`Tree` while an algorithm's text runs; records its sweeps as loops."""

    def __init__(self, tree: Tree) -> None:
        if tree.has_mimics:
            raise InputError("mimic joints couple links that no sweep passes between", do='use sweeps="unrolled"')
        self.tree = tree
        self.links = tree.links
        self.nq, self.nv = tree.nq, tree.nv
        self.gravity, self.root, self.base_inertia = tree.gravity, tree.root, tree.base_inertia
        self.has_mimics = False
        self._recorded: list[_Recorded] = []
        self._constants: list[tuple[str, int, float]] = []
        self._parameter_rows: list[Any] = []
        self.kinds = self._sorted_into_kinds()

    # What sweeps.py asks for.
    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> RolledField:
        """Record base-to-tips."""
        number = len(self._recorded)
        space = f"handed:{number}"
        root_leaves, rebuild = flatten(root)
        known = _constants_of(root_leaves)

        def run(kind: _Kind, known: list[float | None]) -> tuple[list[Scalar], Any]:
            result = step(kind.link, rebuild(self._handed(kind, space, known)))
            handed, kept = result if keeps else (result, result)
            return flatten(handed)[0], kept

        known, runs = self._until_stable(run, known)
        places = [i for i, c in enumerate(known) if c is None]
        for place, i in enumerate(places):
            self._constants.append((space, place, float(root_leaves[i])))
        return self._record(space, places, runs, reverse=False)

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> RolledField:
        """Record tips-to-base."""
        number = len(self._recorded)
        space = f"handed:{number}"
        leaves, rebuild = flatten(nothing)
        known = _constants_of(leaves)

        def run(kind: _Kind, known: list[float | None]) -> tuple[list[Scalar], Any]:
            handed, kept = step(kind.link, rebuild(self._handed(kind, space, known)))
            return ([] if handed is None else flatten(handed)[0]), kept

        known, runs = self._until_stable(run, known)
        places = [i for i, c in enumerate(known) if c is None]
        for place, i in enumerate(places):
            self._constants.append((space, place, float(leaves[i])))
        for kind, (handed, _) in zip(self.kinds, runs, strict=True):
            if not kind.first:
                there = kind.array(f"{space}:to", max(1, len(places)))
                for place, i in enumerate(places):
                    handed[i] = handed[i] + there[place]
        return self._record(space, places, runs, reverse=True)

    def generalized_output(self, field_: RolledField) -> Output:
        """A field with one number for each joint axis, as a result with nv numbers."""
        return Output(field_, "v")

    def _handed(self, kind: _Kind, space: str, known: list[float | None]) -> list[Scalar]:
        """What a link receives: constants where every link hands on the same, memory elsewhere."""
        unknown = [i for i, c in enumerate(known) if c is None]
        array = kind.array(f"{space}:from", len(known)) if unknown else []
        values: list[Scalar] = [0.0 if c is None else c for c in known]
        for place, i in enumerate(unknown):
            values[i] = array[place]
        return values

    def _until_stable(
        self, run: Callable[[_Kind, list[float | None]], tuple[list[Scalar], Any]], known: list[float | None]
    ) -> tuple[list[float | None], list[tuple[list[Scalar], Any]]]:
        while True:
            runs = [run(kind, known) for kind in self.kinds]
            merged = list(known)
            for handed, _ in runs:
                for i, leaf in enumerate(handed):
                    if known[i] is not None and (isinstance(leaf, Traced) or leaf != known[i]):
                        merged[i] = None
            if merged == known:
                return known, runs
            known = merged

    def _record(self, space: str, places: list[int], runs: list[tuple[list[Scalar], Any]], *, reverse: bool) -> RolledField:
        kept_space = space.replace("handed", "kept")
        stores: list[dict[str, list[Scalar]]] = []
        per_kind = []
        loop = _Recorded(reverse, stores, space if places else None)
        for handed, kept in runs:
            flat = flatten(kept)
            per_kind.append(flat)
            into: dict[str, list[Scalar]] = {}
            if places and handed:
                into[f"{space}:to"] = [handed[i] for i in places]
            into[kept_space] = [leaf for leaf in flat[0] if isinstance(leaf, Traced)]
            stores.append(into)
        self._recorded.append(loop)
        return RolledField(kept_space, loop, per_kind)

    # Kinds and their constants.
    def _sorted_into_kinds(self) -> list[_Kind]:
        found: dict[Any, _Kind] = {}
        self.kind_of = np.zeros(len(self.links), np.int64)
        last_child = {link.parent: link.index for link in reversed(self.links)}
        last_child = {}
        for link in self.links:
            last_child[link.parent] = link.index  # inward sweeps meet the last child first
        for link in self.links:
            first = last_child[link.parent] == link.index
            key = (type(link.joint), _joint_key(link), _pattern(link), any(link.armature), first)
            kind = found.setdefault(key, _Kind(len(found), link, first))
            kind.members.append(link.index)
            self.kind_of[link.index] = kind.index
        kinds = list(found.values())
        for kind in kinds:
            self._make_symbolic(kind)
        return kinds

    def _make_symbolic(self, kind: _Kind) -> None:
        """The kind's link: constants that all members share as floats, the others as entries of the parameter row."""
        rows = np.array([_constants(self.links[k]) for k in kind.members])
        shared = (rows == rows[0]).all(axis=0)
        varying = np.flatnonzero(~shared)
        self._parameter_rows.append(rows[:, varying])
        array = kind.array(PARAMETERS, max(1, len(varying)))
        values: list[Scalar] = [float(x) for x in rows[0]]
        for place, i in enumerate(varying):
            values[i] = array[place]
        kind.link = _with_constants(kind, values)

    # From records to a program.
    def finish(self, name: str, inputs: Sequence[GlobalInput], outputs: Sequence[tuple[str, tuple[int, ...], Output]]) -> RolledProgram:
        """The program with these inputs and outputs."""
        return _Finisher(self, name, inputs, outputs).program


def _constants_of(leaves: list[Scalar]) -> list[float | None]:
    return [float(x) if isinstance(x, (int, float)) else None for x in leaves]


def _joint_key(link: Link) -> Any:
    """The constants of a joint apart from its axis, which is z in a laid-out tree."""
    return tuple((name, value) for name, value in link.joint._key() if name != "axis")


def _pattern(link: Link) -> Any:
    return tuple(
        ("shift",) if isinstance(f, Shift) else ("turn", f.axis) if isinstance(f, Turn) else ("rotation",)
        for f in _padded(link)
    )


def _padded(link: Link) -> tuple[Factor, ...]:
    """A placement in the one shape that nearly all have: a shift, a turn about z if there is one, a turn about x."""
    factors = link.placement.factors
    shift: Factor = Shift(Vec.zero())
    rest = list(factors)
    if rest and isinstance(rest[0], Shift):
        shift = rest.pop(0)
    turn_z = [f for f in rest[:1] if isinstance(f, Turn) and f.axis == 2]
    rest = rest[len(turn_z) :]
    turn_x: Factor = Turn(0, 1.0, 0.0)
    if rest and isinstance(rest[0], Turn) and rest[0].axis == 0:
        turn_x = rest.pop(0)
    return (shift, *turn_z, turn_x, *rest)


def _whole(transform: Transform) -> Transform:
    """A constant transform with both its factors, also where one is the identity."""
    R, p = transform.matrix()
    return Transform(Shift(p), Rotation(R))


def _constants(link: Link) -> list[float]:
    numbers = [*flatten(list(_padded(link)))[0], link.lead, *flatten(link.inertia)[0], *link.armature]
    numbers += flatten(_whole(link.to_body))[0]
    if not all(isinstance(x, (int, float)) for x in numbers):
        raise InputError("rolled sweeps take no run-time parameters", do='use sweeps="unrolled"')
    return [float(x) for x in numbers]


def _with_constants(kind: _Kind, values: list[Scalar]) -> _SymbolicLink:
    link = kind.template
    rest = iter(values)

    def take(value: Any) -> Any:
        leaves, rebuild = flatten(value)
        return rebuild([next(rest) for _ in leaves])

    factors = take(list(_padded(link)))
    lead = next(rest)
    inertia: RigidInertia = take(link.inertia)
    armature = tuple(next(rest) for _ in link.armature)
    to_body = take(_whole(link.to_body))
    if link.tail.factors:
        raise InputError("rolled sweeps need aligned frames")
    own = {f: getattr(link, f) for f in Link.__dataclass_fields__}
    own |= {"placement": Transform(*factors), "lead": lead, "inertia": inertia, "armature": armature, "to_body": to_body}
    return _SymbolicLink(**own, kind=kind)


class _Finisher:
    """Lays out memory, cuts each kind's trace into bodies, and writes the tables."""

    def __init__(
        self,
        tree: RolledTree,
        name: str,
        inputs: Sequence[GlobalInput],
        outputs: Sequence[tuple[str, tuple[int, ...], Output]],
    ) -> None:
        self.tree = tree
        self.inputs = inputs
        self.columns: list[list[int]] = []
        self.column_of: dict[str, int] = {}
        self.spaces: dict[str, int] = {}
        for output_name, _, output in outputs:
            self._add_output(f"out:{output_name}", output)
        self.stored_size = self._sizes()
        self._input_columns()
        self._parameter_column()
        self._slots()
        for output_name, _, output in outputs:
            self._column(f"out:{output_name}", [self._start(link, output.per_link) for link in tree.links])
        hoisted = self._hoisted()
        steps: list[Loop | Angles] = []
        if any(hoisted):
            self._angle_space(hoisted)
            steps += [self._loop_of([{"angles": list(self._arguments(k, h))} for k, h in zip(tree.kinds, hoisted, strict=True)], hoisted, False, before_angles=True)]
            steps += [Angles("angles", "sines", "cosines")]
        for loop in tree._recorded:
            steps.append(self._loop_of(loop.stores, hoisted, loop.reverse))
        self.program = RolledProgram(
            name,
            tuple(i.spec for i in inputs),
            tuple(ArraySpec(n, shape) for n, shape, _ in outputs),
            tree.kind_of,
            int_table(self.columns) if self.columns else np.zeros((len(tree.links), 0), np.int64),
            self.parameters,
            self.spaces,
            tuple(Constant(s, place, value) for s, place, value in tree._constants if s in self.spaces),
            tuple(steps),
        )

    def _start(self, link: Link, per_link: str) -> int:
        return {"q": link.q_start, "v": link.v_start, "body": link.index}[per_link]

    def _add_output(self, space: str, output: Output) -> None:
        """The sweep that keeps the field also stores it as a result."""
        for kind, stores in zip(self.tree.kinds, output.field.loop.stores, strict=True):
            stores[space] = list(output.field.per_kind[kind.index][0])

    def _column(self, key: str, values: Sequence[int]) -> int:
        if key not in self.column_of:
            self.column_of[key] = len(self.columns)
            self.columns.append([int(v) for v in values])
        return self.column_of[key]

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for loop in self.tree._recorded:
            for stores in loop.stores:
                for space, values in stores.items():
                    sizes[space] = max(sizes.get(space, 0), len(values))
        return sizes

    def _input_columns(self) -> None:
        for item in self.inputs:
            self._column(f"in:{item.name}", [self._start(link, item.per_link) for link in self.tree.links])

    def _parameter_column(self) -> None:
        starts = np.zeros(len(self.tree.links), np.int64)
        rows, position = [], 0
        for kind, table in zip(self.tree.kinds, self.tree._parameter_rows, strict=True):
            starts[kind.members] = position + table.shape[1] * np.arange(len(kind.members))
            rows.append(table.reshape(-1))
            position += table.size
        self.parameters = np.concatenate([*rows, [0.0]])
        self._column(PARAMETERS, starts.tolist())

    def _slots(self) -> None:
        """Memory for what is handed on, used again when its last reader is done; and for what is kept."""
        tree = self.tree
        out_from, out_to, out_slots = outward_slots(tree.links)
        in_from, in_to, in_slots = inward_slots(tree.links)
        read = {space for kind in tree.kinds for space in kind.arrays}
        for number, loop in enumerate(tree._recorded):
            space = f"handed:{number}"
            size = self.stored_size.get(f"{space}:to", 0)
            if size and loop.handed_space:
                source, target, slots = (in_from, in_to, in_slots) if loop.reverse else (out_from, out_to, out_slots)
                self._column(f"{space}:from", [size * s for s in source])
                self._column(f"{space}:to", [size * s for s in target])
                self.spaces[space] = size * slots
            kept = f"kept:{number}"
            size = self.stored_size.get(kept, 0)
            if size and kept in read:
                self._column(kept, [size * link.index for link in tree.links])
                self.spaces[kept] = size * len(tree.links)
            else:
                for stores in loop.stores:
                    stores.pop(kept, None)

    def _hoisted(self) -> list[dict[int, tuple[str, int]]]:
        """For each kind: sines and cosines of what is known before any sweep, and where they will be found."""
        found = []
        for kind in self.tree.kinds:
            before = {name for name in kind.arrays if name == PARAMETERS or name.startswith("in:")}
            early: list[bool] = []
            arguments: dict[int, int] = {}
            where: dict[int, tuple[str, int]] = {}
            for number, node in enumerate(kind.tracer.nodes):
                if node[0] == "const":
                    early.append(True)
                elif node[0] == "input":
                    early.append(kind.tracer.inputs[node[1]].name in before)
                else:
                    early.append(all(early[a] for a in node[1:]))
                    if node[0] in ("sin", "cos") and early[-1]:
                        place = arguments.setdefault(node[1], len(arguments))
                        where[number] = ("sines" if node[0] == "sin" else "cosines", place)
            found.append(where)
        return found

    @staticmethod
    def _arguments(kind: _Kind, hoisted: dict[int, tuple[str, int]]) -> list[Traced]:
        places = {place: kind.tracer.nodes[number][1] for number, (_, place) in hoisted.items()}
        return [Traced(kind.tracer, places[i]) for i in range(len(places))]

    def _angle_space(self, hoisted: list[dict[int, tuple[str, int]]]) -> None:
        counts = np.array([len({place for _, place in h.values()}) for h in hoisted], np.int64)[self.tree.kind_of]
        starts = np.concatenate(([0], np.cumsum(counts)))
        for space in ("angles", "sines", "cosines"):
            self._column(space, starts[:-1].tolist())
            self.spaces[space] = int(starts[-1])

    def _loop_of(
        self,
        stores: Sequence[dict[str, list[Scalar]]],
        hoisted: list[dict[int, tuple[str, int]]],
        reverse: bool,
        before_angles: bool = False,
    ) -> Loop:
        bodies = []
        for kind, into, known in zip(self.tree.kinds, stores, hoisted, strict=True):
            outputs = [(space, values) for space, values in into.items() if values]
            bodies.append(self._body(kind, outputs, {} if before_angles else known) if outputs else None)
        return Loop(tuple(bodies), reverse)

    def _body(self, kind: _Kind, outputs: list[tuple[str, list[Scalar]]], known: dict[int, tuple[str, int]]) -> LoopBody:
        results = [(space, [kind.tracer.number(v) for v in values]) for space, values in outputs]
        program = extract(f"kind{kind.index}", kind.tracer.nodes, kind.tracer.inputs, results, known)
        return LoopBody(
            program,
            tuple(self._stretch(spec.name) for spec in program.inputs),
            tuple(self._stretch(spec.name) for spec in program.outputs),
        )

    def _stretch(self, name: str) -> Stretch:
        space = name.rsplit(":", 1)[0] if name.startswith("handed:") else name
        return Stretch(space, self.column_of[name])


def outward_slots(links: Sequence[Link]) -> tuple[list[int], list[int], int]:
    """For each link the slot it reads (its parent's state) and the slot it writes; slot 0 is the root's."""
    children_left = [0] * len(links)
    for link in links:
        if link.parent >= 0:
            children_left[link.parent] += 1
    free: list[int] = []
    slots = 1
    slot = [0] * len(links)
    source = []
    for link in links:
        source.append(0 if link.parent < 0 else slot[link.parent])
        if free:
            own = free.pop()
        else:
            own, slots = slots, slots + 1
        slot[link.index] = own
        if children_left[link.index] == 0:
            free.append(own)
        if link.parent >= 0:
            children_left[link.parent] -= 1
            if children_left[link.parent] == 0:
                free.append(slot[link.parent])
    return source, slot, slots


def inward_slots(links: Sequence[Link]) -> tuple[list[int], list[int], int]:
    """For each link the slot it reads (its children's sum; slot 0 for none) and its parent's slot (1 for the root's)."""
    free: list[int] = []
    slots = 2
    slot: dict[int, int] = {}
    source, target = [0] * len(links), [1] * len(links)
    for link in reversed(links):
        if link.parent >= 0:
            if link.parent not in slot:
                if free:
                    slot[link.parent] = free.pop()
                else:
                    slot[link.parent], slots = slots, slots + 1
            target[link.index] = slot[link.parent]
        if link.index in slot:
            source[link.index] = slot.pop(link.index)
            free.append(source[link.index])
    return source, target, slots


__all__ = ["GlobalInput", "Output", "Program", "RolledField", "RolledTree", "replace"]
