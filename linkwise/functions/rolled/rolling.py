"""Rolled sweeps: the algorithm's text, run once for each kind of link, becomes a program with loops.

Links are of one kind when they have the same joint type and their constants the same shape; what differs between
them (lengths, angles, inertias) becomes a row of a table, except where all links of the kind agree: then it folds like
any constant. What a sweep hands from link to link lives in memory slots that are used again as soon as they are free,
what it keeps lives in one stretch for each link.

A number that every link hands on as the same constant (the zero rate of turn of a sliding chain, the zero row of an
articulated inertia) is found by running the step until nothing changes, and is then not handed on at all.

Where some links deform and others do not, what they hand on has one shape in memory: tails are filled up with zeros to
the longest. What a link gets is cut again to the modes that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np

from linkwise.functions.rolled.finish import Finisher
from linkwise.functions.rolled.link_vectors import (
    BetweenSweeps,
    DualVector,
    Extent,
    FieldVector,
    GlobalInput,
    Stored,
    StoredVector,
    Vector,
    part,
)
from linkwise.functions.rolled.record import OnlyAtField, RecordedSweep, RolledField, SharedField
from linkwise.functions.rolled.symbolic_links import COMPUTED, RolledKind, SymbolicLink, sorted_into_kinds
from linkwise.functions.rolled.systems import FROM, LoopedSystem, Solved
from linkwise.mechanism.tree import Field, Link, Tree
from linkwise.spatial.dual import Dual, new_level, parts_of_level
from linkwise.spatial.flattening import flatten
from linkwise.spatial.flexible import FlexibleForce, FlexibleInertia, FlexibleMotion, FlexibleMoving
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Scalar, Value
from linkwise.spatial.vectors import Force, Motion, Vec
from linkwise.trace.program import Program
from linkwise.trace.tracer import Traced


class NotRolledError(TypeError):
    """A text looked at the links one by one."""


class RolledTree:
    """Stands in for a :class:`Tree` while an algorithm's text runs; records its sweeps as loops.

    ``ground`` is the trace in which run-time parameters live, if the tree has any.
    """

    rolls = True

    def __init__(
        self,
        tree: Tree,
        ground: BetweenSweeps | None = None,
        levels: Sequence[int] = (),
    ) -> None:
        self.tree = tree
        self.links = tree.links
        self.nq, self.nv = tree.nq, tree.nv
        self.gravity, self.root, self.base_inertia = tree.gravity, tree.root, tree.base_inertia
        self.has_mimics, self.has_modes = tree.has_mimics, tree.has_modes
        self.most_modes = max((link.modes for link in tree.links), default=0) if tree.has_modes else 0
        self.constants_are_inputs = False
        self.ground = BetweenSweeps() if ground is None else ground
        self.recorded: list[RecordedSweep | Stored | Solved] = []
        self.constants: list[tuple[Extent, list[float]]] = []
        self.vector_starts: dict[str, str] = {}
        self.stretches_of: dict[str, list[int]] = {}
        """Of spaces that some links have a stretch of their own in: these links. The first is for all others."""
        self.kinds = sorted_into_kinds(tree)
        self._of_parents: dict[tuple[int, ...], tuple[object, RolledField]] = {}
        for kind in self.kinds:
            kind.modes_of_parents = self._modes_of_parents
        self._kind_of: dict[int, RolledKind] = {}
        self._counter = [0]
        self._levels = list(levels)
        """Levels of dual numbers that the text is in, the highest first."""
        self.write(
            [
                (Extent(COMPUTED, member), list(values))
                for kind in self.kinds
                for member, values in zip(kind.members, kind.computed, strict=False)
            ]
        )

    def __iter__(self) -> NoReturn:
        raise NotRolledError("this text goes through the links one by one; a rolled one is made of sweeps")

    def ancestors(self, link: Link) -> NoReturn:
        """No rolled text walks from link to link."""
        raise NotRolledError("this text walks from link to link; a rolled one is made of sweeps")

    inboard = ancestors

    def way_to(self, link: Link) -> RolledTree:
        """All links: a loop goes over them whichever are asked for."""
        return self

    def kind_of(self, link: Link) -> RolledKind:
        """The kind that a link of the tree belongs to."""
        if not self._kind_of:
            self._kind_of.update({member: kind for kind in self.kinds for member in kind.members})
        return self._kind_of[link.index]

    def without_gravity(self) -> RolledTree:
        """The same tree, weightless."""
        same = copy(self)  # what is recorded through either is one record
        same.gravity = Vec.zero()
        if self.has_modes:
            same.kinds = [copy(kind) for kind in self.kinds]
            for kind in same.kinds:
                kind.link = kind.link.relaxed()
        return same

    def _modes_of_parents(self, q: Vector) -> RolledField:
        """For every link the modal coordinates of its parent, filled up with zeros: a sweep hands them outwards."""
        key = (id(q), *self._levels)
        if key not in self._of_parents:
            zeros = [0.0] * self.most_modes

            def step(link: Any, of_parent: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
                return [*link.coordinates(q)[: link.modes], *zeros[link.modes :]], of_parent

            self._of_parents[key] = q, self.outward(step, zeros, keeps=True)
        return self._of_parents[key][1]

    def handed_to(self, thing: Any, modes: int) -> Any:
        """Value that goes to another link, with the tails of the frame that it is in."""
        return with_tails(thing, modes) if self.has_modes else thing

    # Sweeps.
    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> RolledField:
        """Record base-to-tips."""
        space = f"handed:{self.new_number()}"
        most = self.most_modes
        leaves, rebuild = flatten(self.handed_to(root, most), self._levels)

        def run(kind: RolledKind, known: list[float | None]) -> tuple[list[Scalar], Any]:
            above = 0 if kind.link.seat is None else kind.link.seat.modes
            result = step(kind.link, self.handed_to(rebuild(self._handed(kind, space, known)), above))
            handed, kept = result if keeps else (result, result)
            return flatten(self.handed_to(handed, most), self._levels)[0], kept

        known, runs = self._until_stable(run, _constants_of(leaves))
        places = [i for i, c in enumerate(known) if c is None]
        self._start(space, [leaves[i] for i in places])
        return self._record(space, places, runs, reverse=False)

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> RolledField:
        """Record tips-to-base."""
        space = f"handed:{self.new_number()}"
        most = self.most_modes
        leaves, build = flatten(self.handed_to(nothing, most), self._levels)

        def run(kind: RolledKind, known: list[float | None]) -> tuple[list[Scalar], Any]:
            outboard = self.handed_to(build(self._handed(kind, space, known)), kind.link.modes)
            handed, kept = step(kind.link, outboard)
            return ([] if handed is None else flatten(self.handed_to(handed, most), self._levels)[0]), kept

        def rebuild(scalars: Sequence[Scalar]) -> Any:
            return self.handed_to(build(scalars), 0)

        known, runs = self._until_stable(run, _constants_of(leaves))
        places = [i for i, c in enumerate(known) if c is None]
        self._start(space, [leaves[i] for i in places])
        for kind, (handed, _) in zip(self.kinds, runs, strict=True):
            if not kind.first and handed:
                there = kind.array(f"{space}:to", max(1, len(places)))
                for place, i in enumerate(places):
                    handed[i] = handed[i] + there[place]
        made = self._record(space, places, runs, reverse=True)
        return made.with_base([places.index(i) if c is None else c for i, c in enumerate(known)], rebuild)

    def everywhere(self, value: Any) -> Field[Any]:
        """One value in memory that all links read."""
        leaves, rebuild = flatten(value, self._levels)
        space = f"shared:{self.new_number()}"
        self._start(space, leaves)
        return SharedField(self.ground, space, len(leaves), rebuild)

    def only_at(self, values: Sequence[tuple[Link, Any]], elsewhere: Any) -> Field[Any]:
        """Stretches of memory, one for each link that has a value and one that all others read.

        So all links of a kind run the same code, however many of them have a value.
        """
        space = f"only:{self.new_number()}"
        links = self.stretches_of[space] = [link.index for link, _ in values]
        own, rebuild = flatten(self.handed_to(elsewhere, self.most_modes), self._levels)
        traced: list[tuple[Extent, list[Scalar]]] = []
        for number, value in enumerate([None, *(value for _, value in values)]):
            leaves = own if not number else flatten(self.handed_to(value, self.most_modes), self._levels)[0]
            if len(leaves) != len(own):
                raise NotRolledError("the values of some links and that of all others have different shapes")
            for start, is_traced, run in _runs(leaves):
                spot = Extent(space, number, start)
                if is_traced:
                    traced.append((spot, run))
                else:
                    self.constants.append((spot, [float(x) for x in run]))
        self.write(traced)
        return OnlyAtField(self, space, len(own), rebuild, links)

    def looped_system(self, matrix: Sequence[Sequence[Scalar]], diagonal: Sequence[Scalar]) -> LoopedSystem | None:
        """For many unknowns, tasks on tiles of the matrix."""
        return LoopedSystem(self, matrix, diagonal) if len(matrix) >= FROM else None

    # Vectors.
    def generalized(self, field: Any) -> Vector:
        """One number for each freedom; where joints share one, each adds its share."""
        return self._vector(field, "v", self.nv, shares=True)

    def configured(self, field: Any) -> Vector:
        """One configuration from each joint's own coordinates."""
        return self._vector(field, "q", self.nq, shares=False)

    def per_body(self, field: Any, shape: tuple[int, ...]) -> Vector:
        """One entry for each body; two vectors, where the field holds dual numbers."""
        return self._split(field, lambda part: FieldVector(part, "body", (len(self.links), *shape)))

    def elementwise(self, function: Callable[..., Scalar], *vectors: Vector) -> FieldVector:
        """Link by link, each link its own part (that of the joint it follows, for a mimic)."""

        def step(link: SymbolicLink, _: None) -> tuple[None, list[Scalar]]:
            parts = (part(vector, link, link.joint.nv) for vector in vectors)
            return None, [function(*numbers) for numbers in zip(*parts, strict=True)]

        return FieldVector(self.outward(step, None, keeps=True), "v", (self.nv,))

    def along(self, function: Callable[..., Any], at: Sequence[Any], directions: Sequence[Any]) -> tuple[Any, Any]:
        """Value and tangent, with dual numbers in each link's part."""
        level = new_level()
        self._levels.insert(0, level)
        try:
            result = function(*(DualVector(x, d, level) for x, d in zip(at, directions, strict=True)))
        finally:
            self._levels.remove(level)
        return parts_of_result(result, level)

    def _vector(self, field: RolledField, per_link: str, size: int, shares: bool) -> Vector:
        """A vector from a field; two, where the field holds dual numbers."""
        if self._dual_levels(field):
            return self._split(field, lambda part: self._vector(part, per_link, size, shares))
        if not self.has_mimics:
            return FieldVector(field, per_link, (size,))
        space = f"vector:{self.new_number()}"
        self.vector_starts[space] = per_link
        vector = StoredVector(space, per_link, (size,))
        self._store(space, lambda link: None if link.is_mimic else list(field[link]))
        if shares:

            def add(link: SymbolicLink) -> list[Scalar] | None:
                if not link.is_mimic:
                    return None
                there = vector.part(link, link.joint.nv)
                return [x + y * link.multiplier for x, y in zip(there, field[link], strict=True)]

            self._store(space, add)
        return vector

    @staticmethod
    def _dual_levels(field: RolledField) -> set[int]:
        return {x.level for kept in field.kept for x in flatten_but_duals(kept)[0] if isinstance(x, Dual)}

    def _split(self, field: RolledField, vector: Callable[[RolledField], Vector]) -> Vector:
        """A vector from a field, or values and tangents where it holds dual numbers."""
        levels = self._dual_levels(field)
        if not levels:
            return vector(field)
        level = max(levels)

        def half(i: int) -> Vector:
            def kept(link: SymbolicLink, _: None) -> tuple[None, list[Scalar]]:
                return None, parts_of_level(flatten_but_duals(field[link])[0], level)[i]

            return vector(self.outward(kept, None, keeps=True))

        return DualVector(half(0), half(1), level)

    def _store(self, space: str, value: Callable[[SymbolicLink], list[Scalar] | None]) -> None:
        """A pass over the links in which those that have a value store it."""
        stores = [{} if (given := value(kind.link)) is None else {space: given} for kind in self.kinds]
        self.recorded.append(RecordedSweep(self.new_number(), False, stores, None, [[] for _ in self.kinds]))

    # Recording.
    def new_number(self) -> int:
        """One that no sweep or space has yet."""
        self._counter[0] += 1
        return self._counter[0]

    def _start(self, space: str, leaves: list[Scalar]) -> None:
        """Start of a sweep, for its first links: constants, or values computed before it."""
        if not leaves:
            return
        if any(isinstance(x, Traced) for x in leaves):
            self.write([(Extent(space), leaves)])
        else:
            self.constants.append((Extent(space), [float(x) for x in leaves]))

    def write(self, stores: list[tuple[Extent, list[Scalar]]]) -> None:
        """Store values between two sweeps."""
        if stores:
            self.recorded.append(Stored(stores))

    def _handed(self, kind: RolledKind, space: str, known: list[float | None]) -> list[Scalar]:
        """Values that a link receives: constants where every link hands on the same, memory elsewhere."""
        unknown = [i for i, c in enumerate(known) if c is None]
        array = kind.array(f"{space}:from", len(known)) if unknown else []
        values: list[Scalar] = [0.0 if c is None else c for c in known]
        for place, i in enumerate(unknown):
            values[i] = array[place]
        return values

    def _until_stable(
        self, run: Callable[[RolledKind, list[float | None]], tuple[list[Scalar], Any]], known: list[float | None]
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

    def _record(
        self, space: str, places: list[int], runs: list[tuple[list[Scalar], Any]], *, reverse: bool
    ) -> RolledField:
        kept_space = space.replace("handed", "kept")
        stores: list[dict[str, list[Scalar]]] = []
        loop = RecordedSweep(int(space.partition(":")[2]), reverse, stores, space if places else None, [])
        made = RolledField(self, kept_space, loop, [kept for _, kept in runs])
        for (handed, _), (leaves, _) in zip(runs, made.per_kind, strict=True):
            into: dict[str, list[Scalar]] = {}
            if places and handed:
                into[f"{space}:to"] = [handed[i] for i in places]
            into[kept_space] = [leaf for leaf in leaves if isinstance(leaf, Traced)]
            loop.kept.append(into[kept_space])
            stores.append(into)
        self.recorded.append(loop)
        return made

    @staticmethod
    def whole(ground: BetweenSweeps, item: GlobalInput) -> list[Traced]:
        """The numbers of an input that no link owns."""
        return ground.read(Extent(f"in:{item.name}"), item.spec.size)

    # From records to a program.
    def finish(
        self, name: str, inputs: Sequence[GlobalInput], outputs: Mapping[str, object], far: bool = False
    ) -> Program:
        """The program with these inputs and outputs: vectors made by sweeps, or (nested lists of) numbers.

        ``far``: sweeps are joined as :func:`linkwise.functions.rolled.joined_loops.joined` says.
        """
        return Finisher(self, name, inputs, {n: self._as_field(x) for n, x in outputs.items()}, far).program

    def _as_field(self, output: object) -> object:
        """An output that a sweep can store."""
        if not isinstance(output, (StoredVector, GlobalInput)):
            return output
        size = "nv" if output.per_link == "v" else "nq"
        field = self.outward(lambda link, _: (None, output.part(link, getattr(link.joint, size))), None, keeps=True)
        return FieldVector(field, output.per_link, (getattr(self, size),))


def parts_of_result(result: object, level: int) -> tuple[Any, Any]:
    """Result of a text of dual numbers, as values and tangents."""
    if isinstance(result, DualVector):
        return result.value, result.tangent
    leaves, rebuild = flatten_but_duals(result)
    values, tangents = parts_of_level(leaves, level)
    return rebuild(values), rebuild(tangents)


def change_of(result: object, level: int) -> object:
    """The tangents alone; zeros for what does not change."""
    if isinstance(result, FieldVector | StoredVector | GlobalInput):
        shape = result.spec.shape if isinstance(result, GlobalInput) else result.shape
        return np.zeros(shape)
    return parts_of_result(result, level)[1]


def flatten_but_duals(value: object) -> tuple[list[Scalar], Callable[[list[Scalar]], Any]]:
    """Nested lists and values taken apart into scalars, dual numbers left whole."""
    if isinstance(value, (list, tuple, Value)):
        parts = [flatten_but_duals(x) for x in (value.parts() if isinstance(value, Value) else value)]
        counts = [len(leaves) for leaves, _ in parts]

        def rebuild(scalars: list[Scalar]) -> list[Any]:
            rest = iter(scalars)
            return [build([next(rest) for _ in range(n)]) for n, (_, build) in zip(counts, parts, strict=True)]

        return [x for leaves, _ in parts for x in leaves], rebuild
    return [value], lambda scalars: scalars[0]


def _runs(leaves: list[Scalar]) -> list[tuple[int, bool, list[Scalar]]]:
    """Neighbours that are traced, or constant, together: where they begin, which of the two, and what they are."""
    found: list[tuple[int, bool, list[Scalar]]] = []
    for place, leaf in enumerate(leaves):
        is_traced = isinstance(leaf, Traced)
        if found and found[-1][1] == is_traced:
            found[-1][2].append(leaf)
        else:
            found.append((place, is_traced, [leaf]))
    return found


def _constants_of(leaves: list[Scalar]) -> list[float | None]:
    return [float(x) if isinstance(x, (int, float)) else None for x in leaves]


Inertia = RigidInertia | ArticulatedInertia | FlexibleInertia
Change = Callable[[Any, int], Any]


def with_tails(thing: Any, modes: int) -> Any:
    """The same with tails of exactly so many modes: cut, filled up with zeros, or plain where there are to be none."""
    for kinds, change in _CHANGES:
        if isinstance(thing, kinds):
            return change(thing, modes)
    if isinstance(thing, (list, tuple)):
        make = getattr(type(thing), "_make", type(thing))
        return make([with_tails(part, modes) for part in thing])
    if isinstance(thing, Value):
        return type(thing).from_parts([with_tails(part, modes) for part in thing.parts()])
    if is_dataclass(thing) and not isinstance(thing, type):
        made = object.__new__(type(thing))
        for field in fields(thing):
            object.__setattr__(made, field.name, with_tails(getattr(thing, field.name), modes))
        return made
    return thing


def _tail(thing: Force | Motion, modes: int) -> list[Scalar]:
    own = list(getattr(thing, "tail", ()))
    return [*own, *[0.0] * (modes - len(own))][:modes]


def _force(f: Force, modes: int) -> Force:
    return FlexibleForce.with_tail(_tail(f, modes), f) if modes else Force(f.ang, f.lin)


def _motion(V: Motion, modes: int) -> Motion:
    return FlexibleMotion.with_tail(_tail(V, modes), V) if modes else Motion(V.ang, V.lin)


def _inertia(X: Inertia, modes: int) -> Inertia:
    body, rows, coupling = (X.body, X.tail, X.coupling) if isinstance(X, FlexibleInertia) else (X, (), ())
    if not modes:
        return body
    own = len(rows)
    return FlexibleInertia.symmetric(
        modes,
        lambda i, j: rows[i][j] if i < own and j < own else 0.0,
        [coupling[i] if i < own else Force.zero() for i in range(modes)],
        body,
    )


def _moving(motion: RigidMotion | FlexibleMoving, modes: int) -> RigidMotion | FlexibleMoving:
    root, rate, rate_dot = (
        (motion.root, motion.rate, motion.rate_dot) if isinstance(motion, FlexibleMoving) else (motion, (), ())
    )
    if not modes:
        return root
    filled = [tuple([*x, *[0.0] * (modes - len(x))][:modes]) for x in (rate, rate_dot)]
    return FlexibleMoving(root, *filled)


_CHANGES: tuple[tuple[type | tuple[type, ...], Change], ...] = (
    (Force, _force),
    (Motion, _motion),
    ((RigidInertia, ArticulatedInertia, FlexibleInertia), _inertia),
    ((RigidMotion, FlexibleMoving), _moving),
)
