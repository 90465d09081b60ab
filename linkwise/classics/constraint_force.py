"""The constraint-force algorithm: solve for the forces in the joints first (Fijany, Sharf and D'Eleuterio 1995).

Featherstone 2000 eq. 28: T*I⁻¹T β = T*a₀ - T*I⁻¹(f_a - v ×* Iv). For a serial chain the matrix is block tridiagonal,

    A(i, i) = T_i*(I_i⁻¹ + φ*I_{i-1}⁻¹φ)T_i,    A(i, i+1) = -T_i* I_i⁻¹ φ T_{i+1},

and odd-even reduction halves the chain in each round: O(log n) rounds on O(n) processors, O(n) operations in all.
I⁻¹ is constant in a link's own coordinates. Serial chains, bodies with mass, no rotors; joints as in sparse_kkt.
"""

from __future__ import annotations

from linkwise.algorithms.sparse_factor import factorize
from linkwise.algorithms.sweeps import Field, each
from linkwise.classics.dense import (
    Matrix,
    as_rows,
    inverse,
    matrix_minus,
    minus,
    negative,
    plus,
    product,
    times,
    transposed,
    zeros,
)
from linkwise.classics.global_bases import checked, constraint_basis, coordinates
from linkwise.classics.requirements import own_mass, serial
from linkwise.classics.sparse_kkt import active_forces
from linkwise.classics.terms import Flat, base_acceleration, spatial_terms
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Motion


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """q̈: constraint forces from eq. 28, then every body's acceleration by itself."""
    checked(tree, "constraint force")
    serial(tree, "constraint force")
    own_mass(tree, "constraint force")
    terms = spatial_terms(tree, q, v)
    f_a = active_forces(tree, q, tau)
    bodies = each(tree, lambda link: factorize(as_rows(link.inertia.articulated())))
    T = [constraint_basis(link, q) for link in tree]
    free = [Motion.of(bodies[link].solve(list(f_a[link] - terms[link].p))) for link in tree]
    base = base_acceleration(tree)

    diagonal, beside, right = [], [], []
    for link in tree:
        k, phi = link.index, link.phi(q)
        own = [Motion.of(bodies[link].solve(list(t))) for t in T[k]]
        block = [[a.dot(t) for a in own] for t in T[k]]
        gap = terms[link].c - free[k]
        if k == 0:
            gap = gap + phi.T @ base
        else:
            inner = bodies.values[k - 1]
            seen = [phi @ t for t in T[k]]  # the reaction on the body below
            below = [Motion.of(inner.solve(list(f))) for f in seen]
            block = [plus(row, [a.dot(f) for a in below]) for row, f in zip(block, seen, strict=True)]
            beside.append([[-a.dot(t) for a in below] for t in T[k - 1]])
            gap = gap + phi.T @ free[k - 1]
        diagonal.append(block)
        right.append([gap.dot(t) for t in T[k]])
    beta = odd_even_reduction(diagonal, beside, right)

    through = [_sum(columns, x) for columns, x in zip(T, beta, strict=True)]
    qddot: list[list[Scalar]] = []
    before = base
    for link in tree:
        f = through[link.index]
        if link.index + 1 < len(through):
            f = f - tree.links[link.index + 1].phi(q) @ through[link.index + 1]
        a = free[link.index] + Motion.of(bodies[link].solve(list(f)))
        qddot.append(coordinates(link.S(q), a - link.phi(q).T @ before - terms[link].c))
        before = a
    return tree.generalized(Field(qddot))


def odd_even_reduction(diagonal: list[Matrix], beside: list[Matrix], right: list[list[Scalar]]) -> list[list[Scalar]]:
    """Solve a symmetric positive block-tridiagonal system; ``beside[i]`` is the block (i, i + 1).

    Eliminating every other unknown leaves a system of the same form and half the length. Blocks may differ in size.
    """
    n = len(diagonal)
    if n == 0:
        return []
    if n == 1:
        return [times(inverse(diagonal[0]), right[0])]
    inverses = {i: inverse(diagonal[i]) for i in range(0, n, 2)}
    kept = range(1, n, 2)
    new_diagonal, new_beside, new_right = [], [], []
    for i in kept:
        D, b = diagonal[i], right[i]
        for j, link in _neighbours(i, diagonal, beside):  # link: the block (i, j)
            weighted = _product(link, inverses[j], len(diagonal[j]))
            D = matrix_minus(D, _product(weighted, transposed(link, len(diagonal[j])), len(D)))
            b = minus(b, times(weighted, right[j]))
        new_diagonal.append(D)
        new_right.append(b)
        if i + 2 < n:
            outer = _product(beside[i], inverses[i + 1], len(diagonal[i + 1]))
            new_beside.append(negative(_product(outer, beside[i + 1], len(diagonal[i + 2]))))
    solved = dict(zip(kept, odd_even_reduction(new_diagonal, new_beside, new_right), strict=True))
    for j, D_inverse in inverses.items():
        b = right[j]
        for i, link in _neighbours(j, diagonal, beside):
            b = minus(b, times(link, solved[i]))
        solved[j] = times(D_inverse, b)
    return [solved[i] for i in range(n)]


def _neighbours(i: int, diagonal: list[Matrix], beside: list[Matrix]) -> list[tuple[int, Matrix]]:
    """The unknowns beside i, and the blocks (i, j) that lead to them."""
    result = []
    if i > 0:
        result.append((i - 1, transposed(beside[i - 1], len(diagonal[i]))))
    if i + 1 < len(diagonal):
        result.append((i + 1, beside[i]))
    return result


def _product(A: Matrix, B: Matrix, columns: int) -> Matrix:
    """A B, also where the inner size is zero."""
    return product(A, B) if A and B else zeros(len(A), columns)


def _sum(columns: list[Force], x: list[Scalar]) -> Force:
    total = Force.zero()
    for column, value in zip(columns, x, strict=True):
        total = total + column * value
    return total
