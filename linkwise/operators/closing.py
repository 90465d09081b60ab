"""What closes a mechanism, as 004 §2.3 has it: points of closure, rows A on their motions, and A J v̇ = U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.kinematics import Place
from linkwise.algorithms.sparse_factor import factorize
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Tree
from linkwise.operators.spaces import Space
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force

Flat = Sequence[Scalar]


@dataclass(frozen=True)
class Closing:
    """The closures of one state (or of many, in lanes)."""

    places: Sequence[Place]
    """The points of closure, those on the world left out."""
    A: Sequence[Flat]
    """m × 6c."""
    U: Flat
    """m."""
    counts: tuple[int, ...]
    """The number of equations of each closure; they add up to m."""

    @property
    def constraints(self) -> Space:
        """One block for each closure."""
        return Space("constraints", self.counts, is_small=True)

    @property
    def points(self) -> Space:
        """One block for each point of closure."""
        return Space("points of closure", (6,) * len(self.places), of_points=True)


def closing(tree: Tree, q: Flat, v: Flat | None, constraints: Sequence[Constraint], t: Scalar) -> Closing:
    """The points, the rows and U of all constraints, from the same equations that the solvers take."""
    each, _ = equations(tree, q, [0.0] * tree.nv if v is None else v, constraints, t)
    counts = tuple(e.count for e in each)
    columns: list[tuple[Place, list[Flat]]] = []
    for k, e in enumerate(each):
        before, after = sum(counts[:k]), sum(counts[k + 1 :])
        _refuse_flexible([at for link, _ in e.efforts for at in (link, _parent(tree, link)) if at and at.modes])
        across = [pair for link, axes in e.efforts for pair in _across_joint(tree, q, link, axes)]
        for place, forces in (*((_fixed(place, q), forces) for place, forces in e.points), *across):
            columns.append((place, [*[[0.0] * 6] * before, *map(list, forces), *[[0.0] * 6] * after]))
    places = [place for place, _ in columns]
    A = [[x for _, rows in columns for x in rows[r]] for r in range(sum(counts))]
    return Closing(places, A, [-x for e in each for x in e.bias], counts)


def _fixed(place: Place, q: Flat) -> Place:
    """The place as it is at q, on its link itself: a node of a flexible body where its deformation has taken it."""
    return place if place.seat is None else Place(place.link, place.phi(q))


def _across_joint(tree: Tree, q: Flat, link: Link, axes: Sequence[Flat]) -> list[tuple[Place, list[Force]]]:
    """Efforts c on a joint's axes, one for each equation, as forces between the two links that it joins.

    The joint's rates are those of the relative motion, β = S⁺(V(k) - φ*(p,k)V(p)), so that a force S⁺*c on the link,
    and its opposite on the parent, have the power c*β.
    """
    S = [Force.of(list(s)) for s in link.S(q)]
    gram = factorize([[a.dot(b) for b in S] for a in link.S(q)])
    forces = []
    for efforts in zip(*axes, strict=True):
        total = Force.zero()
        for s, weight in zip(S, gram.solve(efforts), strict=True):
            total = total + s * weight
        forces.append(total)
    found = [(Place(link, Transform()), forces)]
    parent = _parent(tree, link)
    if parent is not None:
        phi = link.phi(q)
        found.append((Place(parent, Transform()), [-(phi @ f) for f in forces]))
    return found


def _parent(tree: Tree, link: Link) -> Link | None:
    return None if link.parent < 0 else tree.links[link.parent]


def _refuse_flexible(links: Sequence[Link | None]) -> None:
    """Rates of joints on a flexible body are more than motions of its frame."""
    names = [repr(link.name) for link in links if link is not None]
    if names:
        raise InputError(
            "the operators of closures need rigid bodies where couplings of joints are",
            got=f"a coupling at the flexible body {', '.join(names)}",
            do="use model.constraint_jacobian, constraint_bias and forward_dynamics",
        )
