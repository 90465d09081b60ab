"""Rewrites of whole programs. Each takes a program and returns an equivalent one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress

from linkwise.trace.block import ArraySpec, Block, Node

LONG = 8000
"""Nodes beyond which a program may keep the order in which it was traced."""

_FEWER = 0.75  # of the values that wait in the traced order, from which on another is the better one


def remove_dead(program: Block, side_by_side: bool = False) -> Block:
    """Keep only what the outputs need, in an order in which few values wait.

    Walking back from the outputs depth first puts each value next to its first use, which keeps few values alive at a
    time. Not so for many long programs with many outputs (matrices of derivatives by recursion): what they share is
    then computed early and kept long. There the order of the text, which follows the links, is the better one by a
    tenth. It is not always where columns of derivatives were carried through a text ``side_by_side``: there both orders
    are looked at, which takes as long again as all else that a program goes through here.
    """
    if len(program.nodes) <= LONG:
        return _by_demand(program)
    traced = _in_traced_order(program)
    if not side_by_side:
        return traced
    demanded = _by_demand(traced)
    return demanded if _waiting(demanded) < _FEWER * _waiting(traced) else traced


def _waiting(program: Block) -> int:
    """Sum over all values of how long each is kept, in operations: their mean number times the program's length."""
    last = list(range(len(program.nodes)))
    for number, node in enumerate(program.nodes):
        if node[0] not in ("const", "input"):
            for a in node[1:]:
                last[a] = number
    return sum(end - begin for begin, end in enumerate(last) if program.nodes[begin][0] not in ("const", "input"))


def _by_demand(program: Block) -> Block:
    """Block of what the outputs need only, in the order in which they come to need it."""
    nodes = program.nodes
    new_number = [-1] * len(nodes)
    kept: list[Node] = []
    stack = [number for result in reversed(program.results) for number in reversed(result)]
    push, pop = stack.append, stack.pop
    while stack:
        number = pop()
        if new_number[number] >= 0:
            continue
        node = nodes[number]
        op = node[0]
        if op == "const" or op == "input":
            pass
        elif len(node) == 3:  # most have two arguments
            _, i, j = node
            a, b = new_number[i], new_number[j]
            if a < 0 or b < 0:
                push(number)  # again, after those that it waits for
                if b < 0:
                    push(j)
                if a < 0:
                    push(i)
                continue
            node = (op, a, b)
        else:
            arguments = [new_number[a] for a in node[1:]]
            if min(arguments) < 0:
                push(number)
                stack.extend(a for a in reversed(node[1:]) if new_number[a] < 0)
                continue
            node = (op, *arguments)
        new_number[number] = len(kept)
        kept.append(node)
    results = tuple(tuple(new_number[number] for number in result) for result in program.results)
    return Block(program.name, tuple(kept), program.inputs, program.outputs, results)


def _in_traced_order(program: Block) -> Block:
    """Block of what the outputs need only, otherwise as it was."""
    live = needed(program)
    if 0 not in live:
        return program
    new_number = [0] * len(live)
    kept: list[Node] = []
    keep = kept.append
    for number in compress(range(len(live)), live):
        node = program.nodes[number]
        new_number[number] = len(kept)
        op = node[0]
        if op == "const" or op == "input":
            keep(node)
        elif len(node) == 3:
            keep((op, new_number[node[1]], new_number[node[2]]))
        else:
            keep((op, *(new_number[a] for a in node[1:])))
    results = tuple(tuple(new_number[number] for number in result) for result in program.results)
    return Block(program.name, tuple(kept), program.inputs, program.outputs, results)


def needed(program: Block) -> bytearray:
    """For each node 1 if a result depends on it, else 0."""
    nodes = program.nodes
    live = bytearray(len(nodes))
    for result in program.results:
        for number in result:
            live[number] = 1
    number = live.rfind(1)
    while number >= 0:
        node = nodes[number]
        op = node[0]
        if op != "const" and op != "input":
            live[node[1]] = 1
            if len(node) > 2:
                live[node[2]] = 1
                if len(node) > 3:
                    live[node[3]] = 1
        number -= 1
        if number >= 0 and not live[number]:  # perhaps a part of a long trace: few of many
            number = live.rfind(1, 0, number)
    return live


def reached(
    nodes: Sequence[Node],
    wanted: Iterable[int],
    behind: Callable[[int, Node], Sequence[int]] | None = None,
) -> bytearray:
    """For each node of a trace 1 if some values are made of it, else 0.

    ``behind`` gives the nodes that a node, by its number, is made of: the arguments of operations if not given; inputs
    that are results of calls may be made of others too.
    """
    found = bytearray(len(nodes))
    todo = list(wanted)
    while todo:
        number = todo.pop()
        if not found[number]:
            found[number] = 1
            node = nodes[number]
            op = node[0]
            if op != "const":
                if behind is not None:
                    todo.extend(behind(number, node))
                elif op != "input":
                    todo.extend(node[1:])
    return found


def extract(
    name: str,
    nodes: Sequence[Node],
    inputs: Sequence[ArraySpec],
    outputs: Sequence[tuple[str, Sequence[int]]],
    known: Mapping[int, tuple[str, int]],
    same: Mapping[int, int] | None = None,
    known_sizes: Mapping[str, int] | None = None,
    side_by_side: bool = False,
) -> Block:
    """The part of a trace that some of its values need, as a program of its own with only the inputs it reads.

    Args:
        name: of the new program.
        nodes: the whole trace.
        inputs: its input arrays.
        outputs: name and node numbers of each output array.
        known: nodes that are found in memory instead of computed: input array name and element.
        same: nodes that are another, earlier node.
        known_sizes: sizes of the arrays in which they are found; as large as these nodes need if not given.
        side_by_side: as of :func:`remove_dead`.
    """
    found = {array: i for i, array in enumerate(dict.fromkeys(where for where, _ in known.values()))}
    sizes = dict(known_sizes or {}) or {a: 1 + max(e for b, e in known.values() if a == b) for a in found}
    every = [*inputs, *(ArraySpec(array, (sizes[array],)) for array in found)]
    replaced = list(nodes)
    for number, (array, element) in known.items():
        replaced[number] = ("input", len(inputs) + found[array], element)
    if same:
        number_of = _followed(same)
        replaced = [
            node if node[0] in ("const", "input") else (node[0], *(number_of.get(a, a) for a in node[1:]))
            for node in replaced
        ]
        outputs = [(output, [number_of.get(n, n) for n in numbers]) for output, numbers in outputs]
    specs = tuple(ArraySpec(output, (len(numbers),)) for output, numbers in outputs)
    whole = Block(name, tuple(replaced), tuple(every), specs, tuple(tuple(numbers) for _, numbers in outputs))
    return remove_unused_inputs(remove_dead(whole, side_by_side))


def _followed(same: Mapping[int, int]) -> dict[int, int]:
    """Last stand-in of each node: one may itself stand for another."""
    ends: dict[int, int] = {}
    for number, stand_in in same.items():
        while stand_in in same:
            stand_in = same[stand_in]
        ends[number] = stand_in
    return ends


def remove_unused_inputs(program: Block) -> Block:
    """Drop the input arrays that no node reads."""
    used = sorted({node[1] for node in program.nodes if node[0] == "input"})
    new = {old: i for i, old in enumerate(used)}
    nodes = tuple(("input", new[node[1]], node[2]) if node[0] == "input" else node for node in program.nodes)
    inputs = tuple(program.inputs[i] for i in used)
    return Block(program.name, nodes, inputs, program.outputs, program.results)
