"""From recorded sweeps to a program with loops: memory laid out, traces cut into bodies, tables written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.model.tree import Link
from linkwise.rolled.kinds import GlobalInput, Kind
from linkwise.rolled.record import BaseOutput, Output
from linkwise.spatial.scalar import Scalar
from linkwise.tracing.passes import extract
from linkwise.tracing.program import ArraySpec
from linkwise.tracing.rolled_program import (
    PARAMETERS,
    Angles,
    Constant,
    Copy,
    Loop,
    LoopBody,
    RolledProgram,
    Stretch,
    int_table,
)
from linkwise.tracing.tracer import Traced


class Finisher:
    """Lays out memory, cuts each kind's trace into bodies, and writes the tables."""

    def __init__(
        self,
        tree: Any,
        name: str,
        inputs: Sequence[GlobalInput],
        outputs: Mapping[str, Output | BaseOutput],
    ) -> None:
        self.tree = tree
        self.inputs = inputs
        self.kind_of = np.zeros(len(tree.links), np.int64)
        for kind in tree.kinds:
            self.kind_of[kind.members] = kind.index
        self.columns: list[list[int]] = []
        self.column_of: dict[str, int] = {}
        self.spaces: dict[str, int] = {}
        for output_name, output in outputs.items():
            if isinstance(output, Output):
                self._add_output(f"out:{output_name}", output)
        self.stored_size = self._sizes()
        self._input_columns()
        self._parameter_column()
        self._slots()
        for output_name, output in outputs.items():
            if isinstance(output, Output):
                self._place_array(f"out:{output_name}", output.per_link, output.shape)
        hoisted = self._hoisted()
        steps: list[Loop | Angles | Copy | Constant] = []
        if any(hoisted):
            self._angle_space(hoisted)
            arguments = [{"angles": list(self._arguments(k, h))} for k, h in zip(tree.kinds, hoisted, strict=True)]
            steps.append(self._loop_of(arguments, [{}] * len(hoisted), reverse=False))
            steps.append(Angles("angles", "sines", "cosines"))
        for loop in tree.recorded:
            steps.append(self._loop_of(loop.stores, hoisted, loop.reverse))
        self.program = RolledProgram(
            name,
            tuple(i.spec for i in inputs),
            tuple(ArraySpec(n, output.shape) for n, output in outputs.items()),
            self.kind_of,
            int_table(self.columns) if self.columns else np.zeros((len(tree.links), 0), np.int64),
            self.parameters,
            self.spaces,
            tuple(Constant(s, i, float(x)) for s, i, x in tree.starts if s in self.spaces and _is_number(x)),
            (*self._given(), *steps, *self._brought(outputs)),
        )

    def _place_array(self, name: str, per_link: str, shape: tuple[int, ...]) -> None:
        """Where each link's part of an input or an output begins."""
        width = math.prod(shape[1:])
        if per_link in ("none", "last"):  # not divided; of values stored in one place, the last link's stays
            self._column(name, [0] * len(self.tree.links))
            return
        attribute = {"q": "q_start", "v": "v_start", "body": "index"}[per_link]
        self._column(name, [getattr(link, attribute) * width for link in self.tree.links])

    def _given(self) -> list[Copy]:
        """What the base or the tips are given by inputs."""
        starts = [(s, i, x) for s, i, x in self.tree.starts if s in self.spaces and not _is_number(x)]
        return [Copy(f"in:{x.name}", x.element, s, i) for s, i, x in starts]

    def _brought(self, outputs: Mapping[str, Output | BaseOutput]) -> list[Copy | Constant]:
        """What inward sweeps brought to the base: slot 1 of their memory."""
        found: list[Copy | Constant] = []
        for name, output in outputs.items():
            if isinstance(output, BaseOutput):
                space = output.field.space.replace("kept", "handed")
                size = self.stored_size[f"{space}:to"]
                for i, leaf in enumerate(output.field.handed):
                    if isinstance(leaf, int):
                        found.append(Copy(space, size + leaf, f"out:{name}", i))
                    else:
                        found.append(Constant(f"out:{name}", i, leaf))
        return found

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
        for loop in self.tree.recorded:
            for stores in loop.stores:
                for space, values in stores.items():
                    sizes[space] = max(sizes.get(space, 0), len(values))
        return sizes

    def _input_columns(self) -> None:
        for item in self.inputs:
            self._place_array(f"in:{item.name}", item.per_link, item.spec.shape)

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
        self._column(PARAMETERS, starts.tolist())

    def _slots(self) -> None:
        """Memory for what is handed on, used again when its last reader is done; and for what is kept."""
        tree = self.tree
        out_from, out_to, out_slots = outward_slots(tree.links)
        in_from, in_to, in_slots = inward_slots(tree.links)
        read = {space for kind in tree.kinds for space in kind.arrays}
        for number, loop in enumerate(tree.recorded):
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
    def _arguments(kind: Kind, hoisted: dict[int, tuple[str, int]]) -> list[Traced]:
        places = {place: kind.tracer.nodes[number][1] for number, (_, place) in hoisted.items()}
        return [Traced(kind.tracer, places[i]) for i in range(len(places))]

    def _angle_space(self, hoisted: list[dict[int, tuple[str, int]]]) -> None:
        counts = np.array([len({place for _, place in h.values()}) for h in hoisted], np.int64)[self.kind_of]
        starts = np.concatenate(([0], np.cumsum(counts)))
        for space in ("angles", "sines", "cosines"):
            self._column(space, starts[:-1].tolist())
            self.spaces[space] = int(starts[-1])

    def _loop_of(
        self,
        stores: Sequence[dict[str, list[Scalar]]],
        hoisted: list[dict[int, tuple[str, int]]],
        reverse: bool,
    ) -> Loop:
        bodies = []
        for kind, into, known in zip(self.tree.kinds, stores, hoisted, strict=True):
            outputs = [(space, values) for space, values in into.items() if values]
            bodies.append(self._body(kind, outputs, known) if outputs else None)
        return Loop(tuple(bodies), reverse)

    def _body(self, kind: Kind, outputs: list[tuple[str, list[Scalar]]], known: dict[int, tuple[str, int]]) -> LoopBody:
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


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float))


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
    """For each link the slot it reads (its children's sum; 0 for none) and its parent's slot (1 for the root's)."""
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
