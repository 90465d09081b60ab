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
from linkwise.trace.passes import needed

FUSED = ("fma", "fms", "fnma", "fnms")
"""a b + c, a b - c, c - a b, -a b - c."""


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
        live = needed(program)
        self.uses = self._count(program, live)
        ready = [0] * len(nodes)  # operations that must come before a value is there, one behind the other
        for number, node in enumerate(nodes):
            op = node[0]
            if op == "const" or op == "input" or not live[number]:
                continue
            if op == "add" or op == "sub":
                node = nodes[number] = self._fuse(*self._without_negations(op, node[1], node[2]), ready)
            latest = ready[node[1]]
            if len(node) > 2:
                if ready[node[2]] > latest:
                    latest = ready[node[2]]
                if len(node) > 3 and ready[node[3]] > latest:
                    latest = ready[node[3]]
            ready[number] = latest + 1

    def _count(self, program: Block, live: bytearray) -> list[int]:
        """How often each value is read; a result counts as if it were read twice."""
        uses = [0] * len(self.nodes)
        for row in program.results:
            for value in row:
                uses[value] += 2
        for node, alive in zip(self.nodes, live, strict=True):
            if alive and node[0] != "const" and node[0] != "input":
                for a in node[1:]:
                    uses[a] += 1
        return uses

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

    def _fuse(self, op: str, a: int, b: int, ready: list[int]) -> Node:
        nodes = self.nodes
        first, second = self._is_own(a, "mul"), self._is_own(b, "mul")
        if first and second:
            first = max(ready[x] for x in nodes[a][1:]) >= max(ready[x] for x in nodes[b][1:])
        if first:
            return ("fma" if op == "add" else "fms"), *nodes[a][1:], b
        if second:
            return ("fma" if op == "add" else "fnma"), *nodes[b][1:], a
        if op == "sub" and self._is_own(a, "neg") and self._is_own(nodes[a][1], "mul"):
            return "fnms", *nodes[nodes[a][1]][1:], b
        return op, a, b

    def _is_own(self, number: int, op: str) -> bool:
        """Whether a value is made by an operation, and read once."""
        return self.uses[number] == 1 and self.nodes[number][0] == op
