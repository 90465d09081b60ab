"""Operation counts of the linearised models of 001 beside what the paper prints, and the library's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms.differentiated import perturbed_forward, perturbed_inverse
from linkwise.algorithms.linearized_forward import linearized_forward
from linkwise.algorithms.linearized_inverse import linearized_inverse
from linkwise.classics.linearized_registry import LINEARIZED
from linkwise.functions.counting.dynamics import chain
from linkwise.joints import Revolute
from linkwise.mechanism.layout import lay_out
from linkwise.mechanism.tree import Tree
from linkwise.trace.counts import Counts, count
from linkwise.trace.tracer import trace

OWN: dict[int, tuple[Callable[..., Any], int]] = {
    1: (lambda tree, q, v, x, dq, dv, dx: (perturbed_inverse(tree, q, v, x, dq, dv, dx),), 6),
    2: (lambda tree, q, v, x: linearized_inverse(tree, q, v, x)[1:], 3),
    5: (lambda tree, q, v, x, dq, dv, dx: (perturbed_forward(tree, q, v, x, dq, dv, dx),), 6),
    6: (lambda tree, q, v, x: linearized_forward(tree, q, v, x)[1:], 3),
}
"""The library's own way to what an algorithm of 001 computes, and how many vectors it takes (forward: from τ)."""


@dataclass(frozen=True)
class Row:
    """One algorithm on a chain of n hinges: M and A as printed, as counted, and of the library's own."""

    number: int
    what: str
    n: int
    printed: tuple[float, float]
    counted: tuple[int, int]
    own: tuple[int, int] | None


def linearized_counts(n: int) -> list[Row]:
    """The six algorithms for a generic chain of n revolute joints (Denavit–Hartenberg frames; own: regrouped)."""
    rows = []
    for algorithm in LINEARIZED:
        counts = _count(algorithm.function, 3 + len(algorithm.changes), n, regroup=False)
        own = OWN.get(algorithm.number)
        ours = None if own is None else _count(*own, n, regroup=True)
        rows.append(
            Row(
                algorithm.number,
                algorithm.what,
                n,
                (algorithm.M(n), algorithm.A(n)),
                (counts.M, counts.A),
                None if ours is None else (ours.M, ours.A),
            )
        )
    return rows


def _count(function: Callable[..., Any], vectors: int, n: int, regroup: bool) -> Counts:
    tree: Tree = lay_out(chain(n, Revolute(axis=(0.0, 0.0, 1.0))), regroup=regroup)

    def text(*flat: Any) -> Any:
        results = function(tree, *flat)
        arrays = results if isinstance(results, tuple) else (results,)
        return [(f"out{i}", (len(x),), x) for i, x in enumerate(_flattened(array) for array in arrays)]

    return count(trace("counted", text, [(f"x{i}", (n,)) for i in range(vectors)]))


def _flattened(array: Any) -> list[Any]:
    return [x for row in array for x in row] if isinstance(array[0], list) else list(array)
