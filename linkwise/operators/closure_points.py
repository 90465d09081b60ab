"""Points on the mechanism: those that users name, and those of closure with what closes there (Rodriguez 1989 §2.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.factors import factorize
from linkwise.algorithms.kinematics import Place
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Tree
from linkwise.operators.blocks import Space
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Force, Vec

Point = str | tuple[str, Sequence[float]]
"""The name of a body or frame, alone or with a position in it."""


def places(points: Point | Sequence[Point], find: Callable[[str], Place]) -> tuple[str, list[Place]]:
    """The name of the points, and their places on the links."""
    listed = [points] if isinstance(points, str) or _is_pair(points) else list(points)
    found, labels = [], []
    for point in listed:
        name, offset = (point, None) if isinstance(point, str) else _pair(point)
        place = find(name)
        if place.link is None:
            raise InputError(
                f"the point on {name!r} does not move",
                got="a point fixed to the world",
                allowed="points on moving bodies",
            )
        if place.seat is not None:
            raise InputError(
                f"the point on {name!r} is on a flexible body",
                got=repr(point),
                allowed="points on rigid bodies",
                do="use model.jacobian(q, body, node=…)",
            )
        if offset is not None:
            place = Place(place.link, place.offset.then(Transform(Shift(Vec.of(offset)))))
        found.append(place)
        labels.append(name if offset is None else f"{name}{tuple(offset)}")
    return ", ".join(labels), found


def _is_pair(point: object) -> TypeGuard[tuple[str, Sequence[float]]]:
    return isinstance(point, tuple) and len(point) == 2 and isinstance(point[0], str) and not isinstance(point[1], str)


def _pair(point: object) -> tuple[str, list[float]]:
    if not _is_pair(point) or len(list(point[1])) != 3:
        raise InputError(
            "a point is a name, or a name and a position in that frame",
            got=repr(point),
            allowed='"hand", or ("hand", (0.0, 0.0, 0.1))',
        )
    return point[0], list(point[1])


@dataclass(frozen=True)
class ClosingEquations:
    """Constraints of a mechanism in one state (or many, in lanes): points, rows A on their motions, and A J v̇ = U."""

    places: Sequence[Place]
    """The points of closure, those on the world left out."""
    A: Sequence[Flat]
    """m × 6c."""
    U: Flat
    """m."""
    counts: tuple[int, ...]
    """The number of equations of each closure; they add up to m."""
    names: tuple[str, ...]
    """Of all links."""

    @property
    def constraints(self) -> Space:
        """One block for each closure."""
        return Space("constraints", self.counts, is_small=True)

    @property
    def points(self) -> Space:
        """One block for each point of closure."""
        return Space("points of closure", (6,) * len(self.places), of_points=True)


def closing(tree: Tree, q: Flat, v: Flat | None, constraints: Sequence[Constraint], t: Scalar) -> ClosingEquations:
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
    return ClosingEquations(places, A, [-x for e in each for x in e.bias], counts, tuple(link.name for link in tree))


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
            do="use model.constraints.jacobian, model.constraints.bias and model.forward_dynamics",
        )
