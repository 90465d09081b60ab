"""A straight-line block: the leaf of every program, which tracing makes and every target runs.

``nodes[i]`` is the value with number ``i``; its arguments have smaller numbers. A node is

* ``("const", value)``             a real constant,
* ``("input", array, element)``    element ``element`` of input array number ``array``,
* ``(op, a, b, ...)``              an operation of :data:`linkwise.trace.ops.OPS` on earlier values.

``results[j]`` lists, in row-major order, the numbers of the values that fill output array ``j``.
"""

from __future__ import annotations

import marshal
import math
from typing import Any

from linkwise.dataclass import dataclass, field
from linkwise.memoized import cached_property

Node = tuple[Any, ...]

_NO_REFERENCES = (
    2  # the version of Python's own format that writes equal values alike, whether or not they are one object
)


def arguments(node: Node) -> tuple[int, ...]:
    """Numbers of the values a node reads."""
    return () if node[0] in ("const", "input") else node[1:]


@dataclass(frozen=True)
class ArraySpec:
    """Name and shape of one array of a block or a program, batch axes left out."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Block:
    """Nodes in dependency order, the input arrays they read and the output arrays they fill."""

    name: str
    nodes: tuple[Node, ...] = field(repr=False)
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    results: tuple[tuple[int, ...], ...] = field(repr=False)

    @property
    def length(self) -> int:
        """Nodes that one evaluation passes through."""
        return len(self.nodes)

    @cached_property
    def arrays_read(self) -> frozenset[int]:
        """Numbers of the input arrays of which a node reads something."""
        return frozenset(node[1] for node in self.nodes if node[0] == "input")

    @property
    def live(self) -> list[int]:
        """Numbers of the nodes that a result depends on, in order."""
        wanted = {value for row in self.results for value in row}
        for number in range(len(self.nodes) - 1, -1, -1):
            if number in wanted:
                wanted.update(arguments(self.nodes[number]))
        return sorted(wanted)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides what the block computes."""
        import hashlib  # takes milliseconds, and is not needed before something is compiled

        arrays = [(array.name, array.shape) for array in (*self.inputs, *self.outputs)]
        everything = (self.name, self.nodes, len(self.inputs), arrays, self.results)
        return hashlib.sha256(marshal.dumps(everything, _NO_REFERENCES)).hexdigest()
