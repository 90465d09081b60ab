"""The linearised forward dynamics δv̇ = 𝓜⁻¹ δτ - A_C δv - B_C δq: all three matrices together.

A_C = 𝓜⁻¹A_D and B_C = 𝓜⁻¹B_D (Jain 1993 lemma 4.1), with A_D and B_D of :mod:`linkwise.algorithms.linearized_inverse`
at the v̇ that τ causes. Two ways, the same numbers; the shape of the tree chooses:

* recursions alone (:mod:`linkwise.algorithms.linearized_recursion`): neither 𝓜 nor A_D and B_D. O(n²).
* 𝓜 = LᵀDL, which A_D's composite bodies give at no extra cost, and products with its inverse, or with its factors
  where these have more zeros. O(n² · depth), but with so small a factor that it is the cheaper way up to some nine
  freedoms inboard of each other, or on many short branches (a Panda 30 %, a G1 on a fixed base 20 % fewer operations;
  a free G1 takes 20 % fewer by recursion).

A ``solver`` of one's own, articulated bodies for one, serves where modes or joints that follow others are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.algorithms import linearized_recursion
from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.linearized_inverse import in_link_frames, linearized_inverse, multiplications
from linkwise.algorithms.solver import Solver, many_sided_solver
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat


class LinearizedForward(NamedTuple):
    """v̇ (nv) and its derivatives (nv × nv each): dq = ∂v̇/∂q = -B_C, dv = ∂v̇/∂v = -A_C, dtau = ∂v̇/∂τ = 𝓜⁻¹."""

    vdot: Any
    dq: Any
    dv: Any
    dtau: Any


def linearized_forward(
    tree: Tree,
    q: Flat,
    v: Flat,
    tau: Flat,
    f_ext: Forces = None,
    *,
    solver: Solver | None = None,
) -> LinearizedForward:
    """v̇, ∂v̇/∂q, ∂v̇/∂v and 𝓜⁻¹. ``f_ext``: forces fixed in link frames, one for each link.

    ``solver``: what 𝓜⁻¹ is applied with; None chooses the way by the shape of the tree.
    """
    if solver is None and not (tree.has_mimics or tree.has_modes or factors_are_cheaper(tree, q)):
        return LinearizedForward(*linearized_recursion.linearize(tree, q, v, tau, f_ext))
    by = many_sided_solver(tree, q) if solver is None else solver
    vdot = by.accelerations(tau, needed_forces(tree, q, v, None, f_ext))
    inverse = linearized_inverse(tree, q, v, vdot, f_ext, way=in_link_frames)  # shares its composite bodies with 𝓜
    dq, dv = (by.columns([[-x for x in row] for row in matrix]) for matrix in (inverse.dq, inverse.dv))
    return LinearizedForward(vdot, dq, dv, by.inverse())


def factors_are_cheaper(tree: Tree, q: Flat) -> bool:
    """Whether the factors of 𝓜 take fewer multiplications than the recursion, by an estimate of both.

    Few freedoms inboard of one speak for the factors, whose additions are fewer, too: hence the 1.11.
    """
    inboard = {link.index: sum(a.joint.nv for a in tree.inboard(link)) for link in tree}
    outboard = dict.fromkeys(inboard, 0)
    root = {link.index: list(tree.ancestors(link))[-1].index for link in tree}
    size, lower = dict.fromkeys(inboard, 0), dict.fromkeys(inboard, 0)
    for link in tree:
        n = link.joint.nv
        size[root[link.index]] += n
        lower[root[link.index]] += n * inboard[link.index] + n * (n - 1) // 2
        for ancestor in tree.inboard(link):
            outboard[ancestor.index] += n
    if max(size.values(), default=0) < 9:
        return True
    factored, recursion = multiplications(tree, q)[0] + 195.0 * tree.nv, 600.0 * tree.nv
    for link in tree:
        n, rows, pairs = link.joint.nv, size[root[link.index]], lower[root[link.index]]
        column = inboard[link.index] + n + outboard[link.index]
        factored += n * (2.0 * min(rows * column, rows + 2 * pairs) + pairs)
        if link.parent < 0:
            recursion += 57.0 * pairs + 48.0 * (rows * (rows - 1) // 2 - pairs) - 1000.0
    return factored <= 1.11 * recursion
