"""A straight-line block, the leaf of every program, which tracing makes and every target runs; and its operations.

``nodes[i]`` is the value with number ``i``; its arguments have smaller numbers. A node is

* ``("const", value)``             a real constant,
* ``("input", array, element)``    element ``element`` of input array number ``array``,
* ``(op, a, b, ...)``              an operation of :data:`OPS` on earlier values.

``results[j]`` lists, in row-major order, the numbers of the values that fill output array ``j``.

The set of operations is closed. Each is one row: its name, how many arguments it takes, what kind of value each
argument and the result is (``R`` a real number, ``B`` a truth value), and the Python function that *defines* it. Every
target (LLVM, CUDA, C) is a table over these same names, and agrees with the definition here to rounding.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Callable
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


def _divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _quiet(function: Callable[[float], float]) -> Callable[[float], float]:
    """IEEE behaviour instead of Python's exceptions: out of domain is NaN, overflow is infinity."""

    def quiet(a: float) -> float:
        try:
            return function(a)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return quiet


def _log(a: float) -> float:
    return -math.inf if a == 0.0 else math.log(a)


def _minimum(a: float, b: float) -> float:
    return a if a < b else b


def _maximum(a: float, b: float) -> float:
    return a if a > b else b


@dataclass(frozen=True)
class Op:
    """One operation: its signature and its definition."""

    name: str
    arguments: str  # one letter for each argument: R real, B truth value
    result: str
    define: Callable[..., Any]
    commutes: bool = False

    @property
    def arity(self) -> int:
        return len(self.arguments)


OPS: dict[str, Op] = {
    op.name: op
    for op in (
        Op("add", "RR", "R", lambda a, b: a + b, commutes=True),
        Op("sub", "RR", "R", lambda a, b: a - b),
        Op("mul", "RR", "R", lambda a, b: a * b, commutes=True),
        Op("div", "RR", "R", _divide),
        Op("neg", "R", "R", lambda a: -a),
        Op("abs", "R", "R", abs),
        Op("sqrt", "R", "R", _quiet(math.sqrt)),
        Op("sin", "R", "R", _quiet(math.sin)),
        Op("cos", "R", "R", _quiet(math.cos)),
        Op("atan2", "RR", "R", math.atan2),
        Op("exp", "R", "R", _quiet(math.exp)),
        Op("log", "R", "R", _quiet(_log)),
        # min and max take the second argument when the comparison is false, so min(NaN, b) is b:
        # the semantics of the vector instructions, and of C's ``a < b ? a : b``.
        Op("min", "RR", "R", _minimum),
        Op("max", "RR", "R", _maximum),
        Op("lt", "RR", "B", lambda a, b: a < b),
        Op("le", "RR", "B", lambda a, b: a <= b),
        Op("eq", "RR", "B", lambda a, b: a == b, commutes=True),
        Op("and", "BB", "B", lambda a, b: a and b, commutes=True),
        Op("or", "BB", "B", lambda a, b: a or b, commutes=True),
        Op("not", "B", "B", lambda a: not a),
        Op("hold", "R", "R", lambda a: a),  # the number itself; its derivative is zero
        Op("select", "BRR", "R", lambda c, a, b: a if c else b),
    )
}


def is_truth(node: tuple[object, ...]) -> bool:
    """Whether a node of a program is a truth value."""
    return node[0] in OPS and OPS[node[0]].result == "B"
