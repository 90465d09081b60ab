"""Loops found in straight-line programs: what is done alike for many numbers is written once.

Without its inputs and constants, and without what all of it shares, the graph of a program falls apart: the sums of a
Runge–Kutta stage into one piece for each number of the state, joint forces into one for each joint. Pieces of the same
form become one body that runs for each of them; where its numbers lie, and constants in which the pieces differ, are
data. So a program for many joints compiles as fast as one for a few. Arithmetic and its order stay as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from linkwise.dataclass import dataclass, field
from linkwise.trace.block import OPS, ArraySpec, Block, Node, is_truth
from linkwise.trace.passes import extract
from linkwise.trace.program import (
    PARAMETERS,
    Buffer,
    Call,
    For,
    Program,
    Statement,
    Stretch,
    choice,
    input_buffer,
    output_buffer,
)

_SMALL = 8  # numbers of an input that every piece may look at: times, step sizes, flags
_MANY = 32  # uses of a value that make it shared
_SHARED = "shared"
_SHORT = 200  # nodes of a program that is left as it is


def rerolled(program: Block) -> Block | Program:
    """The program with loops, or as it is where it does not repeat itself."""
    if len(program.nodes) < _SHORT:
        return program
    found = _TakenApart(program)
    kinds = found.kinds()
    length = len(found.shared) + sum(len(kind.form) for kind in kinds)
    return program if 2 * length > len(program.nodes) else _looped(program, found, kinds)


Leaf = tuple[str, int]
"""A number in memory: the space and the place in it."""


@dataclass
class _FormMember:
    """One piece: where it reads, its constants in the order of their use, where it writes."""

    leaves: list[Leaf]
    constants: list[float]
    outputs: list[Leaf]


@dataclass
class _Form:
    """Pieces of one form: nodes over ("leaf", i), ("constant", i) and nodes before; the values that are results."""

    form: tuple[Node, ...]
    results: tuple[int, ...]
    members: list[_FormMember] = field(default_factory=list)


class _TakenApart:
    """A program taken apart."""

    def __init__(self, program: Block) -> None:
        self.program, self.nodes = program, program.nodes
        self.operation = [node[0] not in ("const", "input") for node in self.nodes]
        early = self._early()
        self.inside = [operation and not first for operation, first in zip(self.operation, early, strict=True)]
        """Whether a node belongs to one of the pieces."""
        used = {a for inside, node in zip(self.inside, self.nodes, strict=True) if inside for a in node[1:]}
        used |= {number for numbers in program.results for number in numbers}
        self.shared = [n for n in sorted(used) if early[n] and self.operation[n]]
        self.shared_place = {number: place for place, number in enumerate(self.shared)}
        self.arguments = self._arguments()

    def _early(self) -> list[bool]:
        """Mask of what is computed before the pieces: values of small inputs alone, and values that many others use."""
        small = [spec.size <= _SMALL for spec in self.program.inputs]
        uses = [0] * len(self.nodes)
        early = []
        for node in self.nodes:
            if node[0] == "const":
                early.append(True)
            elif node[0] == "input":
                early.append(small[node[1]])
            else:
                early.append(all(early[a] for a in node[1:]))
                for a in set(node[1:]):
                    uses[a] += 1
        for number in reversed(range(len(self.nodes))):
            if self.operation[number] and (early[number] or uses[number] >= _MANY):
                early[number] = True
                for a in self.nodes[number][1:]:
                    early[a] = True
        return early

    def _arguments(self) -> list[tuple[int, ...]]:
        """Arguments of each node inside, of sums and products in an order that all pieces share: by their form."""
        known: dict[Hashable, int] = {}
        classes: list[int] = []
        found: list[tuple[int, ...]] = []
        for number, node in enumerate(self.nodes):
            arguments: tuple[int, ...] = ()
            key: Hashable = node[:2] if node[0] == "input" else node[0] if node[0] == "const" else _SHARED
            if self.inside[number]:
                arguments = node[1:]
                if len(arguments) == 2 and OPS[node[0]].commutes and classes[arguments[1]] < classes[arguments[0]]:
                    arguments = arguments[::-1]
                key = (node[0], *[classes[a] for a in arguments])
            found.append(arguments)
            classes.append(known.setdefault(key, len(known)))
        return found

    def kinds(self) -> list[_Form]:
        """The pieces, sorted by their form."""
        found: dict[Hashable, _Form] = {}
        for roots in self._components():
            form, results, member = self._form(roots)
            spaces = tuple(space for space, _ in (*member.leaves, *member.outputs))
            found.setdefault((form, results, spaces), _Form(form, results)).members.append(member)
        return list(found.values())

    def _components(self) -> list[list[tuple[Leaf, int]]]:
        """The results of each piece, in the order of their places, with their nodes."""
        leader = list(range(len(self.nodes)))

        def find(x: int) -> int:
            while leader[x] != x:
                leader[x] = leader[leader[x]]
                x = leader[x]
            return x

        for number, node in enumerate(self.nodes):
            if self.inside[number]:
                for a in node[1:]:
                    if self.inside[a]:
                        leader[find(a)] = find(number)
        pieces: dict[Hashable, list[tuple[Leaf, int]]] = {}
        for spec, numbers in zip(self.program.outputs, self.program.results, strict=True):
            for element, number in enumerate(numbers):
                place = (f"out:{spec.name}", element)  # what is only handed on is a piece by itself
                pieces.setdefault(find(number) if self.inside[number] else place, []).append((place, number))
        return list(pieces.values())

    def _form(self, roots: list[tuple[Leaf, int]]) -> tuple[tuple[Node, ...], tuple[int, ...], _FormMember]:
        """A piece in terms of its own leaves and constants."""
        form: list[Node] = []
        leaves: dict[Leaf, int] = {}
        constants: list[float] = []
        local: dict[int, int] = {}
        inside = self.inside

        def reference(number: int) -> int:
            if inside[number]:
                return local[number]
            node = self.nodes[number]
            if node[0] == "const":  # each use by itself: others may have different ones there
                form.append(("constant", len(constants)))
                constants.append(node[1])
                return len(form) - 1
            is_input = node[0] == "input"
            leaf = (f"in:{self.program.inputs[node[1]].name}", node[2]) if is_input else self._in_shared(number)
            if leaf not in leaves:
                form.append(("leaf", len(leaves)))
                if is_truth(node):
                    form.extend([("const", 0.0), ("lt", len(form), len(form) - 1)])
                leaves[leaf] = len(form) - 1
            return leaves[leaf]

        for _, root in roots:
            todo = [root] if inside[root] else []
            while todo:
                number = todo[-1]
                if number in local:
                    todo.pop()
                    continue
                arguments = self.arguments[number]
                waiting = [a for a in arguments if inside[a] and a not in local]
                if waiting:
                    todo.extend(reversed(waiting))
                    continue
                todo.pop()
                node = (self.nodes[number][0], *[reference(a) for a in arguments])
                local[number] = len(form)
                form.append(node)
        results = tuple(reference(root) for _, root in roots)
        return tuple(form), results, _FormMember(list(leaves), constants, [place for place, _ in roots])

    def _in_shared(self, number: int) -> Leaf:
        return _SHARED, self.shared_place[number]


def _looped(program: Block, found: _TakenApart, kinds: Sequence[_Form]) -> Program:
    rows: list[list[int]] = []
    parameters: list[float] = []
    bodies = [_body(f"form{k}", kind, rows, parameters) for k, kind in enumerate(kinds)]
    members = len(rows)
    kind_column = max(len(row) for row in rows)
    statements: list[Statement] = [For("pieces", choice(bodies, kind_column))]
    ranges = [("pieces", 0, members)]
    own = []
    if found.shared:
        nodes = [*program.nodes, ("const", 1.0), ("const", 0.0)]
        yes, no = len(program.nodes), len(program.nodes) + 1
        numbers = list(found.shared)
        for place, number in enumerate(found.shared):
            if is_truth(program.nodes[number]):  # in memory as a number
                numbers[place] = len(nodes)
                nodes.append(("select", number, yes, no))
        first = extract(_SHARED, nodes, program.inputs, [(_SHARED, numbers)], {})
        statements.insert(0, Call(first, tuple(f"in:{spec.name}" for spec in first.inputs), (_SHARED,)))
        own.append(Buffer(_SHARED, len(found.shared), open=True))
    table = np.zeros((members, kind_column + 1), np.int64)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    table[:, kind_column] = np.repeat(np.arange(len(kinds)), [len(kind.members) for kind in kinds])
    inputs, outputs = map(input_buffer, program.inputs), map(output_buffer, program.outputs)
    return Program(
        program.name,
        (*own, *inputs, *outputs),
        tuple(statements),
        rows=table,
        ranges=tuple(ranges),
        parameters=np.array([*parameters, 0.0]),
    )


def _body(name: str, kind: _Form, rows: list[list[int]], parameters: list[float]) -> Call:
    """The body of a kind; appends a row of offsets for each member, and the constants in which they differ."""
    constants = np.array([member.constants for member in kind.members]).reshape(len(kind.members), -1)
    varying = np.flatnonzero((constants != constants[0]).any(axis=0))
    inputs, column_of = _stretches([member.leaves for member in kind.members])
    outputs, _ = _stretches([member.outputs for member in kind.members], gapless=True)
    nodes: list[Node] = []
    for node in kind.form:
        if node[0] == "leaf":
            nodes.append(("input", *column_of[node[1]]))
        elif node[0] == "constant" and node[1] in varying:
            nodes.append(("input", len(inputs), int(np.searchsorted(varying, node[1]))))
        elif node[0] == "constant":
            nodes.append(("const", float(constants[0, node[1]])))
        else:
            nodes.append(node)
    for number, member in enumerate(constants):
        starts = [int(stretch.starts[number]) for stretch in (*inputs, *outputs)]
        rows.append([*starts, len(parameters)])
        parameters.extend(member[varying].tolist())
    specs = [ArraySpec(f"x{k}", (stretch.size,)) for k, stretch in enumerate(inputs)]
    places = [Stretch(stretch.space, k) for k, stretch in enumerate(inputs)]
    if len(varying):
        specs.append(ArraySpec("constants", (len(varying),)))
        places.append(Stretch(PARAMETERS, len(inputs) + len(outputs)))
    results, done = [], 0
    for stretch in outputs:
        results.append(kind.results[done : done + stretch.size])
        done += stretch.size
    made = [ArraySpec(f"y{k}", (stretch.size,)) for k, stretch in enumerate(outputs)]
    program = Block(name, tuple(nodes), tuple(specs), tuple(made), tuple(results))
    into = tuple(Stretch(stretch.space, len(inputs) + k) for k, stretch in enumerate(outputs))
    return Call(program, tuple(places), into)


@dataclass
class _AlignedNumbers:
    """Numbers that lie alike in all members of a kind: where each member's begin, and how many there are."""

    space: str
    starts: Any
    size: int


def _stretches(
    members: Sequence[Sequence[Leaf]], gapless: bool = False
) -> tuple[list[_AlignedNumbers], list[tuple[int, int]]]:
    """Places of numbers as few stretches, and for each number its stretch and its place in it.

    ``gapless``: stretches of numbers that follow each other, in their order.
    """
    found: list[_AlignedNumbers] = []
    where: list[tuple[int, int]] = []
    for i, (space, _) in enumerate(members[0]):
        starts = np.array([member[i][1] for member in members])
        for k, stretch in enumerate(found):
            ahead = starts - stretch.starts
            adjoins = ahead[0] == stretch.size if gapless else 0 <= ahead[0] < 2 * _SMALL
            if (
                stretch.space == space
                and adjoins
                and (ahead == ahead[0]).all()
                and not (gapless and k + 1 < len(found))
            ):
                stretch.size = max(stretch.size, int(ahead[0]) + 1)
                where.append((k, int(ahead[0])))
                break
        else:
            where.append((len(found), 0))
            found.append(_AlignedNumbers(space, starts, 1))
    return found, where
