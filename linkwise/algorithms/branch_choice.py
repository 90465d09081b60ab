"""Which closures hold a branch of their own, so that :mod:`linkwise.algorithms.branches` may take it first.

Decided from what hangs where, and from numbers at the neutral configuration and beside it: a branch must be able to
move the place where it is held in every direction that the closure forbids, by freedoms of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.branches import Branch
from linkwise.algorithms.configuration import integrate
from linkwise.algorithms.equations import Between, Constraint, equations
from linkwise.algorithms.sparse_factor import factorize
from linkwise.algorithms.sweeps import configured, each
from linkwise.mechanism.tree import Tree

Branching = list[list[int]]
"""For each closure the indices of the links that it holds."""

STIFF = 1e3
"""The largest inverse pivot of a branch's Λ, its diagonal made one, that is far enough from a lost direction."""

_ASIDE = 0.3  # rad or m


def branching(tree: Tree, constraints: Sequence[Constraint]) -> Branching | None:
    """The branch of each closure; None where some closure has none, or may not have it somewhere."""
    if tree.has_mimics or tree.has_modes:
        return None
    found = _branches(tree, constraints)
    if found is None or not all(_move_freely(tree, constraints, found, aside) for aside in (0.0, _ASIDE)):
        return None
    return found


def _branches(tree: Tree, constraints: Sequence[Constraint]) -> Branching | None:
    """By what hangs where: each closure takes the smaller of the branches at its ends that no other one touches."""
    root = [min(link.index for link in tree.ancestors(link)) for link in tree.links]
    links: dict[int, list[int]] = {}
    for index, own in enumerate(root):
        links.setdefault(own, []).append(index)
    touched: list[list[int]] = []
    for constraint in constraints:
        if not isinstance(constraint, Between) or constraint.a.link is None or constraint.b.link is None:
            return None
        touched.append([root[constraint.a.link.index], root[constraint.b.link.index]])
    times = [own for ends in touched for own in set(ends)]
    found, taken = [], set[int]()
    for ends in touched:
        alone = [own for own in ends if times.count(own) == 1 and own not in taken]
        if not alone or len(set(ends)) < 2:  # shared with another closure, or within one branch
            return None
        own = min(alone, key=lambda own: (len(links[own]), own))
        found.append(links[own])
        taken.update(ends)
    return found


def _move_freely(tree: Tree, constraints: Sequence[Constraint], found: Branching, aside: float) -> bool:
    q = configured(tree, each(tree, lambda link: list(link.joint.neutral())))
    if aside:
        q = integrate(tree, q, [aside * (1.0 - 2.0 * ((i * 0.618) % 1.0)) for i in range(tree.nv)])
    found_equations, _ = equations(tree, q, [0.0] * tree.nv, constraints, 0.0, closed=True)
    for own, e in zip(found, found_equations, strict=True):
        branch = Branch(tree, q, [tree.links[k] for k in own], e)
        Lambda = branch.pulled.Lambda
        if not all(Lambda[i][i] > 0.0 for i in range(e.count)):
            return False
        size = [Lambda[i][i] ** 0.5 for i in range(e.count)]
        n = range(e.count)
        pivots = factorize([[Lambda[i][j] / (size[i] * size[j]) for j in n] for i in n]).d_inverse
        if not all(0.0 < x < STIFF for x in pivots):
            return False
    return True
