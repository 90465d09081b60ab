"""The constraint-force algorithm: solve for the forces in the joints first (Fijany, Sharf and D'Eleuterio 1995).

Featherstone 2000 eq. 28: T*I⁻¹T β = T*a₀ - T*I⁻¹(f_a - v ×* Iv). For a serial chain the matrix is block tridiagonal,

    A(i, i) = T_i*(I_i⁻¹ + φ*I_{i-1}⁻¹φ)T_i,    A(i, i+1) = -T_i* I_i⁻¹ φ T_{i+1},

and odd-even reduction halves the chain in each round: O(log n) rounds on O(n) processors, O(n) operations in all.
On a tree the joints on one body feel each other, too: A(i, j) = T_i*φ_i* I_p⁻¹ φ_jT_j for i and j on p. The equations
of closed loops stand beside those of the joints and are eliminated last: then those that say the same twice do no harm.
I⁻¹ is constant in a link's own coordinates. Bodies with mass, no rotors; joints as in sparse_kkt.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.equations import Constraint
from linkwise.algorithms.factors import Multipliers, factorize
from linkwise.algorithms.sweeps import Field, each
from linkwise.classics.dense import as_rows, inverse, matrix_minus, negative
from linkwise.classics.global_bases import checked, constraint_basis, coordinates
from linkwise.classics.requirements import own_mass
from linkwise.classics.sparse_kkt import active_forces
from linkwise.classics.terms import Loop, base_acceleration, loops, spatial_terms
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import product, times, transposed, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus, plus
from linkwise.spatial.vectors import Force, Motion, weighted_sum


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat, constraints: Sequence[Constraint] = ()) -> list[Scalar]:
    """q̈: constraint forces from eq. 28, then every body's acceleration by itself.

    ``constraints``: closed loops, if the mechanism has any.
    """
    checked(tree, "constraint force")
    own_mass(tree, "constraint force")
    terms = spatial_terms(tree, q, v)
    f_a = active_forces(tree, q, tau)
    bodies = each(tree, lambda link: factorize(as_rows(link.inertia.articulated())))
    T = [constraint_basis(link, q) for link in tree]
    free = [Motion.of(bodies[link].solve(list(f_a[link] - terms[link].p))) for link in tree]
    base = base_acceleration(tree)

    diagonal, right = [], []
    beside: dict[tuple[int, int], Matrix] = {}
    for link in tree:
        k, p, phi = link.index, link.parent, link.phi(q)
        own = [Motion.of(bodies[link].solve(list(t))) for t in T[k]]
        block = [[a.dot(t) for a in own] for t in T[k]]
        gap = terms[link].c - free[k]
        if p < 0:
            gap = gap + phi.T @ base
        else:
            inner = bodies.values[p]
            seen = [phi @ t for t in T[k]]  # the reaction on the body below
            below = [Motion.of(inner.solve(list(f))) for f in seen]
            block = [plus(row, [a.dot(f) for a in below]) for row, f in zip(block, seen, strict=True)]
            beside[p, k] = [[-a.dot(t) for a in below] for t in T[p]]
            for other in tree.links[:k]:
                if other.parent == p:  # two joints on one body feel each other through it
                    beside[other.index, k] = [[a.dot(other.phi(q) @ t) for a in below] for t in T[other.index]]
            gap = gap + phi.T @ free[p]
        diagonal.append(block)
        right.append([gap.dot(t) for t in T[k]])

    def joint_forces(right: Sequence[list[Scalar]]) -> dict[int, list[Scalar]]:
        return reduction(dict(enumerate(diagonal)), beside, dict(enumerate(right)))

    beta = joint_forces(right)
    on_body = [Force.zero() for _ in tree]
    for loop in _together(loops(tree, q, v, terms, constraints)):
        pushed = {k: [Motion.of(bodies.values[k].solve(list(f))) for f in own] for k, own in loop.forces.items()}
        asked = []  # of the joints, by a unit of each loop force
        for i in range(len(loop.u)):
            moved = {k: motions[i] for k, motions in pushed.items()}
            asked.append([[_across(link, q, moved).dot(t) for t in T[link.index]] for link in tree])
        answers = [joint_forces(column) for column in asked]
        Lambda = [
            [
                sum((pushed[k][j].dot(own[i]) for k, own in loop.forces.items()), 0.0)
                - sum((dot(asked[i][k], answers[j][k]) for k in beta), 0.0)
                for j in range(len(loop.u))
            ]
            for i in range(len(loop.u))
        ]
        left = [
            loop.u[i]
            - sum((free[k].dot(own[i]) for k, own in loop.forces.items()), 0.0)
            - sum((dot(asked[i][k], beta[k]) for k in beta), 0.0)
            for i in range(len(loop.u))
        ]
        nu = Multipliers(Lambda).solve(left)
        for k in beta:
            for answer, x in zip(answers, nu, strict=True):
                beta[k] = minus(beta[k], [x * y for y in answer[k]])
        for k, pulls in loop.forces.items():
            on_body[k] = weighted_sum(pulls, nu, Force.zero())

    through = [weighted_sum(columns, beta[k], Force.zero()) for k, columns in enumerate(T)]
    on_body = [a + b for a, b in zip(on_body, through, strict=True)]
    for link in tree:
        if link.parent >= 0:
            on_body[link.parent] = on_body[link.parent] - link.phi(q) @ through[link.index]
    qddot: Matrix = []
    accelerations: list[Motion] = []
    for link in tree:
        before = base if link.parent < 0 else accelerations[link.parent]
        alpha = free[link.index] + Motion.of(bodies[link].solve(list(on_body[link.index])))
        qddot.append(coordinates(link.S(q), alpha - link.phi(q).T @ before - terms[link].c))
        accelerations.append(alpha)
    return tree.generalized(Field(qddot))


def _across(link: Link, q: Flat, a: dict[int, Motion]) -> Motion:
    """a of a link less that of its parent, zero where none is given."""
    own = a.get(link.index, Motion.zero())
    return own - link.phi(q).T @ a[link.parent] if link.parent in a else own


def _together(closed: Sequence[Loop]) -> list[Loop]:
    """All loops as one, if there are any."""
    count = sum(len(loop.u) for loop in closed)
    forces: dict[int, list[Force]] = {}
    start = 0
    for loop in closed:
        for k, own in loop.forces.items():
            forces.setdefault(k, [Force.zero()] * count)[start : start + len(own)] = own
        start += len(loop.u)
    return [Loop(forces, [x for loop in closed for x in loop.u])] if count else []


def odd_even_reduction(diagonal: list[Matrix], beside: list[Matrix], right: Matrix) -> Matrix:
    """Solve a symmetric positive block-tridiagonal system; ``beside[i]`` is the block (i, i + 1)."""
    blocks = {(i, i + 1): block for i, block in enumerate(beside)}
    solved = reduction(dict(enumerate(diagonal)), blocks, dict(enumerate(right)))
    return [solved[i] for i in range(len(diagonal))]


def reduction(
    diagonal: dict[int, Matrix], beside: dict[tuple[int, int], Matrix], right: dict[int, list[Scalar]]
) -> dict[int, list[Scalar]]:
    """Solve a symmetric positive block system; ``beside[i, j]``, i < j, are the blocks that are not zero.

    Each round eliminates, at once, unknowns no two of which feel each other: every other one of a chain, which leaves a
    system of the same form and half the length. Blocks may differ in size.
    """
    if not diagonal:
        return {}
    near: dict[int, dict[int, Matrix]] = {i: {} for i in diagonal}
    for (i, j), block in beside.items():
        near[i][j], near[j][i] = block, transposed(block, len(diagonal[j]))
    gone: set[int] = set()
    for i in diagonal:
        if not gone & near[i].keys():
            gone.add(i)
    inverses = {i: inverse(diagonal[i]) for i in gone}
    kept = {i: diagonal[i] for i in diagonal if i not in gone}
    rest = {i: right[i] for i in kept}
    blocks = {pair: block for pair, block in beside.items() if not gone & set(pair)}
    for j in sorted(gone):
        around = sorted(near[j])
        for i in around:
            weighted = _product(near[i][j], inverses[j], len(diagonal[j]))
            rest[i] = minus(rest[i], times(weighted, right[j]))
            kept[i] = matrix_minus(kept[i], _product(weighted, near[j][i], len(kept[i])))
            for k in (k for k in around if k > i):
                felt = _product(weighted, near[j][k], len(diagonal[k]))
                blocks[i, k] = matrix_minus(blocks[i, k], felt) if (i, k) in blocks else negative(felt)
    solved = reduction(kept, blocks, rest)
    for j in gone:
        b = right[j]
        for i, block in near[j].items():
            b = minus(b, times(block, solved[i]))
        solved[j] = times(inverses[j], b)
    return solved


def _product(A: Matrix, B: Matrix, columns: int) -> Matrix:
    """A B, also where the inner size is zero."""
    return product(A, B) if A and B else zeros(len(A), columns)
