"""Forward dynamics from the sparse system of all bodies and joints, with its perfect elimination order. O(n).

Featherstone 2000 eq. 27 (Baraff 1996): [[I, T], [T*, 0]][a; -β] = [f_a - v ×* Iv; T*a₀]. Its graph is the tree itself,
bodies and joints in turn, so elimination from the tips inwards (body, its joint, the parent's body, …) makes no new
entries:

    body i    Î_i = I_i + Σ T_c N_c⁻¹ T_c*           joint i    N_i = T_i* Î_i⁻¹ T_i

Trees, all joints (with q given as numbers where the joint's axes change with it), bodies with mass, no rotors.
"""

from __future__ import annotations

from linkwise.algorithms.factors import Factor, factorize
from linkwise.algorithms.sweeps import Field, each, inward, outward
from linkwise.classics.bae_haug import actuator_forces
from linkwise.classics.dense import as_inertia, as_rows, inverse
from linkwise.classics.global_bases import checked, constraint_basis, coordinates, force_basis
from linkwise.classics.requirements import own_mass
from linkwise.classics.terms import base_acceleration, spatial_terms
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.matrices import product, times, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot
from linkwise.spatial.vectors import Force, Motion, weighted_sum


@dataclass(frozen=True)
class _Pivot:
    """Pivot that the eliminated joints leave on a body: Î and the right-hand side."""

    I: ArticulatedInertia
    r: Force

    def __add__(self, other: _Pivot) -> _Pivot:
        return _Pivot(self.I + other.I, self.r + other.r)


@dataclass(frozen=True, slots=True)
class _EliminatedBody:
    """Pivots of one body and its joint: factors of Î, Î⁻¹r, T, Î⁻¹T (by columns) and N⁻¹."""

    body: Factor
    free: Motion
    T: list[Force]
    IT: list[Motion]
    N_inverse: Matrix


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """q̈ by elimination inwards and substitution outwards."""
    checked(tree, "sparse KKT")
    own_mass(tree, "sparse KKT")
    terms = spatial_terms(tree, q, v)
    f_a = active_forces(tree, q, tau)

    def eliminate(link: Link, outboard: _Pivot) -> tuple[_Pivot, _EliminatedBody]:
        body = factorize(as_rows(link.inertia.articulated() + outboard.I))
        r = f_a[link] - terms[link].p + outboard.r
        free = Motion.of(body.solve(list(r)))
        T = constraint_basis(link, q)
        IT = [Motion.of(body.solve(list(t))) for t in T]
        N_inverse = inverse([[a.dot(t) for a in IT] for t in T])
        rows = [list(t) for t in T]
        weighted = product(N_inverse, rows) if T else []
        added = [[dot([w[i] for w in weighted], [t[j] for t in rows]) for j in range(6)] for i in range(6)]
        # β = N⁻¹T*(a_p + c - Î⁻¹r); the part without a_p is known
        gap = terms[link].c - free
        known = times(N_inverse, [gap.dot(t) for t in T])
        handed = _Pivot(
            link.phi(q).congruence(as_inertia(added)), -(link.phi(q) @ weighted_sum(T, known, Force.zero()))
        )
        return handed, _EliminatedBody(body, free, T, IT, N_inverse)

    pivots = inward(tree, eliminate, _Pivot(ArticulatedInertia.zero(), Force.zero()))

    def substitute(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        pivot = pivots[link]
        carried = link.phi(q).T @ parent[0] + terms[link].c
        beta = times(pivot.N_inverse, [(carried - pivot.free).dot(t) for t in pivot.T])
        a = pivot.free
        for column, x in zip(pivot.IT, beta, strict=True):
            a = a + column * x
        return a, coordinates(link.S(q), a - carried)

    return tree.generalized(Field([x for _, x in outward(tree, substitute, (base_acceleration(tree), [])).values]))


def active_forces(tree: Tree, q: Flat, tau: Flat) -> Field[Force]:
    """f_a: each joint force acts on its link, and back on the link's parent."""
    f = actuator_forces(tree, q, tau)
    outboard = inward(tree, lambda link, total: (link.phi(q) @ f[link], total), Force.zero())
    return each(tree, lambda link: f[link] - outboard[link])


def kkt_system(tree: Tree, q: Flat, v: Flat, tau: Flat) -> tuple[Matrix, list[Scalar]]:
    """The matrix and right-hand side of eq. 27, written out: for looking at, and for tests."""
    checked(tree, "sparse KKT")
    terms, f_a = spatial_terms(tree, q, v), active_forces(tree, q, tau)
    T = force_basis(tree, q)
    n, m = len(T), len(T[0])
    A = zeros(n + m, n + m)
    right: list[Scalar] = []
    for link in tree:
        for i, row in enumerate(as_rows(link.inertia.articulated())):
            A[6 * link.index + i][6 * link.index : 6 * link.index + 6] = row
        right += list(f_a[link] - terms[link].p)
    for i in range(n):
        for j in range(m):
            A[i][n + j] = A[n + j][i] = T[i][j]
    for link in tree:
        gap = terms[link].c
        if link.parent < 0:
            gap = gap + link.phi(q).T @ base_acceleration(tree)
        right += [gap.dot(t) for t in constraint_basis(link, q)]
    return A, right
