"""Products and sums that become one operation, rounded once.

The rule is ours, not LLVM's, so a result has the same bits wherever it is computed: in first calls and in optimised
code, in batches and for single states, in one piece or in several, whatever waits in memory on its way. A product that
nothing but one sum or difference reads becomes part of it. Of two such products it is the one that is ready last: the
other one then has its turn before, and the way to the sum is an operation shorter.

A negated value is subtracted where it would be added, and the other way round, which changes no rounding.
"""

from __future__ import annotations

from linkwise.targets.llvm.binding import Machine
from linkwise.trace.block import Block, Node

FUSED = ("fma", "fms", "fnma", "fnms")
"""a b + c, a b - c, c - a b, -a b - c."""

_TAKEN = frozenset(("mul", "neg"))  # operations that a sum or difference may take in


def fused(program: Block, machine: Machine) -> Block:
    """The block with fused operations; the same one if the machine has none."""
    if not machine.fma:
        return program
    nodes = _Fusion(program).nodes
    return Block(program.name, tuple(nodes), program.inputs, program.outputs, program.results)


class _Fusion:
    """Goes through the nodes once. Products that have become part of others stay, but nothing reads them."""

    def __init__(self, program: Block) -> None:
        self.nodes = nodes = list(program.nodes)
        self.uses = uses = _uses(program)
        self.ready = ready = [0] * len(nodes)  # operations that come before a value is there, one behind the other
        for number, node in enumerate(program.nodes):
            op = node[0]
            if op == "const" or op == "input" or not uses[number]:
                continue
            if (op == "add" or op == "sub") and (nodes[node[1]][0] in _TAKEN or nodes[node[2]][0] in _TAKEN):
                node = nodes[number] = self._fused(*self._without_negations(op, node[1], node[2]))
            latest = ready[node[1]]
            if len(node) > 2:
                if ready[node[2]] > latest:
                    latest = ready[node[2]]
                if len(node) > 3 and ready[node[3]] > latest:
                    latest = ready[node[3]]
            ready[number] = latest + 1

    def _without_negations(self, op: str, a: int, b: int) -> tuple[str, int, int]:
        """A sum or difference that adds or subtracts no negated value."""
        nodes = self.nodes
        if nodes[b][0] == "neg":
            return ("sub" if op == "add" else "add"), a, self._positive(b)
        if op == "add" and nodes[a][0] == "neg":
            return "sub", b, self._positive(a)
        return op, a, b

    def _positive(self, number: int) -> int:
        """The value that was negated, which is now read in place of the negated one."""
        inside: int = self.nodes[number][1]
        self.uses[number] -= 1
        self.uses[inside] += self.uses[number] > 0
        return inside

    def _fused(self, op: str, a: int, b: int) -> Node:
        nodes, uses, ready = self.nodes, self.uses, self.ready
        one, two = nodes[a], nodes[b]
        first, second = one[0] == "mul" and uses[a] == 1, two[0] == "mul" and uses[b] == 1
        if first and second:
            first = max(ready[one[1]], ready[one[2]]) >= max(ready[two[1]], ready[two[2]])
        if first:
            return ("fma" if op == "add" else "fms"), one[1], one[2], b
        if second:
            return ("fma" if op == "add" else "fnma"), two[1], two[2], a
        if op == "sub" and one[0] == "neg" and uses[a] == 1:
            product = nodes[one[1]]
            if product[0] == "mul" and uses[one[1]] == 1:
                return "fnms", product[1], product[2], b
        return op, a, b


def _uses(program: Block) -> list[int]:
    """Number of times that each value is read by what a result depends on; a result counts as if it were read twice."""
    nodes = program.nodes
    uses = [0] * len(nodes)
    for row in program.results:
        for value in row:
            uses[value] += 2
    for number in range(len(nodes) - 1, -1, -1):
        if uses[number]:
            node = nodes[number]
            if node[0] != "const" and node[0] != "input":
                uses[node[1]] += 1
                if len(node) > 2:
                    uses[node[2]] += 1
                    if len(node) > 3:
                        uses[node[3]] += 1
    return uses
