"""Rewrites of whole programs. Each takes a program and returns an equivalent one."""

from __future__ import annotations

from linkwise.tracing.program import Node, Program


def remove_dead(program: Program) -> Program:
    """Keep only what the outputs need, in the order in which they come to need it.

    Walking back from the outputs depth first puts each value next to its first use, which keeps few
    values alive at a time.
    """
    nodes = program.nodes
    new_number: dict[int, int] = {}
    kept: list[Node] = []
    for wanted in (number for result in program.results for number in result):
        stack = [wanted]
        while stack:
            number = stack[-1]
            if number in new_number:
                stack.pop()
                continue
            node = nodes[number]
            if node[0] in ("const", "input"):
                stack.pop()
                new_number[number] = len(kept)
                kept.append(node)
                continue
            waiting = [a for a in node[1:] if a not in new_number]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            new_number[number] = len(kept)
            kept.append((node[0], *(new_number[a] for a in node[1:])))
    results = tuple(tuple(new_number[number] for number in result) for result in program.results)
    return Program(program.name, tuple(kept), program.inputs, program.outputs, results)
