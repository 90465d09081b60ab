"""Global analysis (Featherstone 2000 §3.5): separate bodies, the bases S of motions and T of constraint forces.

a = a₀ + Sq̈ (eq. 24), f_c = Tβ, T*S = 0. For a tree S = P⁻¹H and T = P*diag(T_i), P the incidence matrix (eq. 29) and
T_i a basis of the forces that joint i can transmit without doing work. Here in link coordinates: P's blocks are 1 and
-φ*. All quantities are spatial accelerations.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.factors import factorize
from linkwise.classics.requirements import no_armature, no_mimics
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import coordinate_axis
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force, Motion


def constraint_basis(link: Link, q: Flat) -> list[Force]:
    """T_i, column by column: 6 - d forces f with h*f = 0. Unit forces where h is made of coordinate directions."""
    S = link.S(q)
    free = [coordinate_axis(s) for s in S]
    if None not in free:
        return [_unit(i) for i in range(6) if i not in free]
    return _null_space(link, [list(s) for s in S])


def _null_space(link: Link, rows: Matrix) -> list[Force]:
    """Forces at right angles to the rows, by elimination with the largest pivots: needs numbers to compare."""
    if not all(isinstance(x, (int, float)) for row in rows for x in row):
        raise InputError(
            "the basis of constraint forces of this joint changes with q, and q has no value here",
            got=f"{link.joint!r} of {link.name!r} on symbols",
            allowed="joints with axes fixed in their links, or numbers for q",
            do='use another method, e.g. "articulated_body"',
        )
    pivots: list[int] = []
    for i, row in enumerate(rows):
        pivot = max((j for j in range(6) if j not in pivots), key=[abs(x) for x in row].__getitem__)
        pivots.append(pivot)
        rows[i] = [x / row[pivot] for x in row]
        for k, other in enumerate(rows):
            if k != i:
                rows[k] = [x - other[pivot] * y for x, y in zip(other, rows[i], strict=True)]
    basis = []
    for j in range(6):
        if j not in pivots:
            column = [0.0] * 6
            column[j] = 1.0
            for row, pivot in zip(rows, pivots, strict=True):
                column[pivot] = -row[j]
            basis.append(Force.of(column))
    return basis


def _unit(i: int) -> Force:
    return Force.of([1.0 if i == j else 0.0 for j in range(6)])


def motion_basis(tree: Tree, q: Flat) -> Matrix:
    """S = P⁻¹H, 6n × nv (eq. 24, 29)."""
    S = zeros(6 * len(tree.links), tree.nv)
    for j in tree:
        for column, s in enumerate(j.S(q), start=j.v_start):
            moved: dict[int, Motion] = {j.index: s}
            for link in tree.links[j.index + 1 :]:
                if link.parent in moved:
                    moved[link.index] = link.phi(q).T @ moved[link.parent]
            for index, motion in moved.items():
                for r in range(6):
                    S[6 * index + r][column] = motion[r]
    return S


def force_basis(tree: Tree, q: Flat) -> Matrix:
    """T = P*diag(T_i), 6n × (6n - nv)."""
    columns = []
    for link in tree:
        for t in constraint_basis(link, q):
            column: list[Scalar] = [0.0] * (6 * len(tree.links))
            column[6 * link.index : 6 * link.index + 6] = list(t)
            if link.parent >= 0:
                column[6 * link.parent : 6 * link.parent + 6] = list(-(link.phi(q) @ t))
            columns.append(column)
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(6 * len(tree.links))]


def checked(tree: Tree, method: str) -> None:
    """Check of what every method of this family asks for."""
    no_mimics(tree, method)
    no_armature(tree, method)


def coordinates(S: Sequence[Motion], across: Motion) -> list[Scalar]:
    """q̈ with S q̈ = across, by least squares: exact, since the rest has been solved for."""
    gram = [[sum_of_products(s, t) for t in S] for s in S]
    return factorize(gram).solve([sum_of_products(s, across) for s in S])


def sum_of_products(a: Motion, b: Motion) -> Scalar:
    """Σ of the products of components."""
    return a.dot(Force(b.ang, b.lin))
