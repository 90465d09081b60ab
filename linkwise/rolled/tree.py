"""Rolled sweeps: the algorithm's text, run once for each kind of link, becomes a program with loops.

Links are of one kind when they have the same joint type and their placements the same shape; what differs between
them (lengths, angles, inertias) becomes a row of a table, except where all links of the kind agree: then it folds like
any constant. What a sweep hands from link to link lives in memory slots that are used again as soon as they are free,
what it keeps lives in one stretch for each link.

A number that every link hands on as the same constant (the zero rate of turn of a sliding chain, the zero row of an
articulated inertia) is found by running the step until nothing changes, and is then not handed on at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from linkwise.errors import InputError
from linkwise.model.tree import Tree
from linkwise.rolled.finish import Finisher
from linkwise.rolled.kinds import GlobalInput, InputElement, Kind, sorted_into_kinds
from linkwise.rolled.record import BaseOutput, Output, Recorded, RolledField
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.structure import flatten
from linkwise.spatial.vectors import Vec
from linkwise.tracing.rolled_program import RolledProgram
from linkwise.tracing.tracer import Traced


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
        self.constants_are_inputs = False
        self.recorded: list[Recorded] = []
        self.starts: list[tuple[str, int, float | InputElement]] = []
        self.kinds = sorted_into_kinds(tree)

    # What sweeps.py asks for.
    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> RolledField:
        """Record base-to-tips."""
        number = len(self.recorded)
        space = f"handed:{number}"
        root_leaves, rebuild = flatten(root)
        known = _constants_of(root_leaves)

        def run(kind: Kind, known: list[float | None]) -> tuple[list[Scalar], Any]:
            result = step(kind.link, rebuild(self._handed(kind, space, known)))
            handed, kept = result if keeps else (result, result)
            return flatten(handed)[0], kept

        known, runs = self._until_stable(run, known)
        places = [i for i, c in enumerate(known) if c is None]
        self.starts += [(space, place, root_leaves[i]) for place, i in enumerate(places)]
        return self._record(space, places, runs, reverse=False)

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> RolledField:
        """Record tips-to-base."""
        number = len(self.recorded)
        space = f"handed:{number}"
        leaves, rebuild = flatten(nothing)
        known = _constants_of(leaves)

        def run(kind: Kind, known: list[float | None]) -> tuple[list[Scalar], Any]:
            handed, kept = step(kind.link, rebuild(self._handed(kind, space, known)))
            return ([] if handed is None else flatten(handed)[0]), kept

        known, runs = self._until_stable(run, known)
        places = [i for i, c in enumerate(known) if c is None]
        self.starts += [(space, place, leaves[i]) for place, i in enumerate(places)]
        for kind, (handed, _) in zip(self.kinds, runs, strict=True):
            if not kind.first:
                there = kind.array(f"{space}:to", max(1, len(places)))
                for place, i in enumerate(places):
                    handed[i] = handed[i] + there[place]
        made = self._record(space, places, runs, reverse=True)
        made.handed = [places.index(i) if c is None else c for i, c in enumerate(known)]
        return made

    def output(self, field_: RolledField, per_link: str, shape: int | tuple[int, ...]) -> Output:
        """A field as a result: placed by each link's part of q or of v, or one after another by body."""
        return Output(field_, per_link, (shape,) if isinstance(shape, int) else shape)

    def base_output(self, field_: RolledField, size: int) -> BaseOutput:
        """What an inward sweep brought to the base, as a result."""
        return BaseOutput(field_, (size,))

    def without_gravity(self) -> RolledTree:
        """The same tree, weightless."""
        same = copy(self)  # what is recorded through either is one record
        same.gravity = Vec.zero()
        return same

    def _handed(self, kind: Kind, space: str, known: list[float | None]) -> list[Scalar]:
        """What a link receives: constants where every link hands on the same, memory elsewhere."""
        unknown = [i for i, c in enumerate(known) if c is None]
        array = kind.array(f"{space}:from", len(known)) if unknown else []
        values: list[Scalar] = [0.0 if c is None else c for c in known]
        for place, i in enumerate(unknown):
            values[i] = array[place]
        return values

    def _until_stable(
        self, run: Callable[[Kind, list[float | None]], tuple[list[Scalar], Any]], known: list[float | None]
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
        per_kind = []
        loop = Recorded(reverse, stores, space if places else None)
        for handed, kept in runs:
            flat = flatten(kept)
            per_kind.append(flat)
            into: dict[str, list[Scalar]] = {}
            if places and handed:
                into[f"{space}:to"] = [handed[i] for i in places]
            into[kept_space] = [leaf for leaf in flat[0] if isinstance(leaf, Traced)]
            stores.append(into)
        self.recorded.append(loop)
        return RolledField(kept_space, loop, per_kind)

    # From records to a program.
    def finish(
        self, name: str, inputs: Sequence[GlobalInput], outputs: Mapping[str, Output | BaseOutput]
    ) -> RolledProgram:
        """The program with these inputs and outputs."""
        return Finisher(self, name, inputs, outputs).program


def _constants_of(leaves: list[Scalar]) -> list[float | None]:
    return [float(x) if isinstance(x, (int, float)) else None for x in leaves]
