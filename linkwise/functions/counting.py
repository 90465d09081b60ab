"""Operation counts of the algorithms on a serial chain, as the papers print them, and the library's own.

An algorithm is traced, and the operations of its program are counted::

    count("articulated_body", 6)                 # a revolute chain of six links, in DH frames
    count("linkwise_inverse", 6, "regrouped")    # what model.inverse_dynamics runs

The chain is generic: every length, angle, mass and moment of inertia is there, and gravity points anywhere.
Constants (also products of constants) are folded, structural zeros and ones cost nothing, common subexpressions are
shared, signs are free. Divisions count as multiplications, as in the papers; sines, cosines and square roots are
counted apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np

from linkwise.algorithms import articulated, factors, forward_dynamics, inverse_dynamics, mass_matrix
from linkwise.algorithms.differentiated import perturbed_forward, perturbed_inverse
from linkwise.algorithms.linearized_forward import linearized_forward
from linkwise.algorithms.linearized_inverse import linearized_inverse
from linkwise.checks import check_count
from linkwise.classics.linearized import LINEARIZED
from linkwise.classics.registry import ALGORITHMS, Kind, PrintedCount
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, UnknownNameError
from linkwise.joints import Joint, Revolute, Spherical
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.layout import lay_out
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.placement import transform
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Matrix, Scalar, minus
from linkwise.trace.block import Block
from linkwise.trace.readable import Counts
from linkwise.trace.readable import count as count_program
from linkwise.trace.tracer import trace

Frames = Literal["general", "dh", "regrouped"]
FRAMES: dict[Frames, tuple[bool, bool]] = {"general": (False, False), "dh": (True, False), "regrouped": (True, True)}
"""The link frames as the file has them; Denavit and Hartenberg's; these, with inertias regrouped across the joints."""


def _solve(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    return articulated.solve(tree, q, articulated.articulate(tree, q), tau, None)


def _composite(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    bias = inverse_dynamics.bias_force(tree, q, v)
    rest = minus(tau, bias)
    return factors.factorize(mass_matrix.mass_matrix(tree, q)).solve(rest)


OWN: dict[str, tuple[Kind, Callable[..., Any]]] = {
    "linkwise_inverse": ("inverse", inverse_dynamics.inverse_dynamics),
    "linkwise_forward": ("forward", forward_dynamics.forward_dynamics),
    "linkwise_solve": ("forward", _solve),
    "linkwise_composite_forward": ("forward", _composite),
    "linkwise_mass_matrix": ("mass matrix", mass_matrix.mass_matrix),
}
"""The library's own algorithms, which the model's methods compile. "linkwise_solve" is 𝓜⁻¹T̄ for a given T̄;
"linkwise_composite_forward" is what forward dynamics runs where joints follow others: composite bodies, 𝓜 = L*DL."""


def count(name: str, n: int, kind: Frames = "dh") -> Counts:
    """Operations of a classical algorithm (or of one of :data:`OWN`) on a serial chain of n links.

    Args:
        name: of the algorithm: see ``linkwise.classics.ALGORITHMS`` and :data:`OWN`.
        n: number of links, each on a revolute joint ("armstrong": on a spherical joint).
        kind: of link frames: "general", "dh" or "regrouped".
    """
    check_name(name)
    if kind not in FRAMES:
        raise InputError("no such kind of frames", got=repr(kind), allowed=", ".join(map(repr, FRAMES)))
    check_count(n=n)
    joint = Spherical() if name == "armstrong" else Revolute(axis=(0.0, 0.0, 1.0))
    align, regroup = FRAMES[kind]
    return count_on(name, lay_out(chain(n, joint), align=align, regroup=regroup))


def count_on(name: str, tree: Tree) -> Counts:
    """Operations of an algorithm on a tree of your own."""
    check_name(name)
    if name in OWN:
        quantity, function = OWN[name]
    else:
        quantity, function = ALGORITHMS[name].kind, ALGORITHMS[name].function
    return count_program(_program(name, quantity, function, tree))


def check_name(name: str) -> None:
    """Refuse what is not an algorithm, before anything is built for it."""
    if name not in OWN and name not in ALGORITHMS:
        raise UnknownNameError("algorithm", name, [*OWN, *ALGORITHMS])


def _program(name: str, quantity: Kind, function: Callable[..., Any], tree: Tree) -> Block:
    nq, nv = (tree.nq,), (tree.nv,)
    if quantity == "mass matrix":
        return trace(name, lambda q: [("out", (*nv, *nv), [x for row in function(tree, q) for x in row])], [("q", nq)])
    return trace(name, lambda q, v, x: [("out", nv, function(tree, q, v, x))], [("q", nq), ("v", nv), ("x", nv)])


@cache
def chain(n: int, joint: Joint) -> Mechanism:
    """A generic serial chain: no two axes parallel or crossing, nothing zero; the same for the same n."""
    rng = np.random.default_rng(20)
    builder = Builder(f"chain of {n}", gravity=(1.0, 2.0, -9.0))
    parent = "world"
    for k in range(n):
        points = rng.normal(size=(4, 3)) * 0.2
        inertia = sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points)
        builder.add_body(
            f"link{k + 1}",
            parent=parent,
            joint=joint,
            placement=transform(xyz=rng.uniform(0.1, 0.5, size=3).tolist(), rpy=rng.uniform(0.3, 1.2, size=3).tolist()),
            mass=float(rng.uniform(1.0, 2.0)),
            com=rng.uniform(0.05, 0.3, size=3).tolist(),
            inertia=inertia,
        )
        parent = f"link{k + 1}"
    return Mechanism(**builder.mechanism())


@dataclass(frozen=True)
class Published:
    """Counts printed in a paper, for a revolute chain of n links; ``remark`` says what they cannot include."""

    name: str
    kind: Kind
    source: str
    M: PrintedCount
    A: PrintedCount
    remark: str = ""


def _published(name: str, kind: Kind, M: str, A: str, remark: str = "") -> Published:
    table = "Saha 1999 table 1" if kind == "inverse" else "Saha 1999 table 2"
    return Published(name, kind, table, PrintedCount(M), PrintedCount(A), remark)


PUBLISHED: tuple[Published, ...] = (
    _published("Hollerbach 1980", "inverse", "412n - 277", "320n - 201"),
    _published("Luh, Walker, Paul 1980", "inverse", "150n - 48", "131n + 48"),
    _published("Walker, Orin 1982", "inverse", "137n - 22", "101n - 11"),
    _published("Saha 1999 (RIDIM)", "inverse", "120n - 44", "97n - 55"),
    _published("Khalil et al. 1986", "inverse", "105n - 92", "94n - 86"),
    _published("Angeles et al. 1989", "inverse", "105n - 109", "90n - 105"),
    _published("Balafoutis et al. 1988", "inverse", "93n - 69", "81n - 65"),
    _published("Saha 1999 (RFDSIM)", "forward", "201n - 335", "193n - 361", "bias force given"),
    _published("Featherstone 1983", "forward", "199n - 198", "174n - 173"),
    _published(
        "Walker, Orin 1982", "forward", "n³/6 + 23n²/2 + 115n/3 - 47", "n³/6 + 7n² + 233n/6 - 46", "bias force given"
    ),
)
"""The rows of Saha 1999's tables. Row order checked against the columns for n = 6, of table 2 also for 12."""


OWN_LINEARIZED: dict[int, tuple[Callable[..., Any], int]] = {
    1: (lambda tree, q, v, x, dq, dv, dx: (perturbed_inverse(tree, q, v, x, dq, dv, dx),), 6),
    2: (lambda tree, q, v, x: linearized_inverse(tree, q, v, x)[1:], 3),
    5: (lambda tree, q, v, x, dq, dv, dx: (perturbed_forward(tree, q, v, x, dq, dv, dx),), 6),
    6: (lambda tree, q, v, x: linearized_forward(tree, q, v, x)[1:], 3),
}
"""The library's own way to what an algorithm of Jain 1993 computes, and how many vectors it takes (forward: from τ)."""


@dataclass(frozen=True)
class LinearizedCount:
    """One algorithm on a chain of n hinges: M and A as printed, as counted, and of the library's own."""

    number: int
    what: str
    n: int
    printed: tuple[float, float]
    counted: tuple[int, int]
    own: tuple[int, int] | None


def linearized_counts(n: int) -> list[LinearizedCount]:
    """The six algorithms for a generic chain of n revolute joints (Denavit–Hartenberg frames; own: regrouped)."""
    rows = []
    for algorithm in LINEARIZED:
        counts = _linearized_count(algorithm.function, 3 + len(algorithm.changes), n, regroup=False)
        own = OWN_LINEARIZED.get(algorithm.number)
        ours = None if own is None else _linearized_count(*own, n, regroup=True)
        rows.append(
            LinearizedCount(
                algorithm.number,
                algorithm.what,
                n,
                (algorithm.M(n), algorithm.A(n)),
                (counts.M, counts.A),
                None if ours is None else (ours.M, ours.A),
            )
        )
    return rows


def _linearized_count(function: Callable[..., Any], vectors: int, n: int, regroup: bool) -> Counts:
    tree: Tree = lay_out(chain(n, Revolute(axis=(0.0, 0.0, 1.0))), regroup=regroup)

    def text(*flat: Flat) -> list[tuple[str, tuple[int, ...], list[Scalar]]]:
        results = function(tree, *flat)
        arrays = results if isinstance(results, tuple) else (results,)
        return [(f"out{i}", (len(x),), x) for i, x in enumerate(_flattened(array) for array in arrays)]

    return count_program(trace("counted", text, [(f"x{i}", (n,)) for i in range(vectors)]))


def _flattened(array: Flat | Matrix) -> list[Scalar]:
    return [x for row in array for x in row] if isinstance(array[0], list) else list(array)
