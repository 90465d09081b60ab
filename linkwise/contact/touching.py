"""Contacts of a mechanism at one configuration: points, directions, and the pulls that they amount to.

A *touch* is a pair of shapes on two links (or on a link and the world) with a fixed number of points. Each point has a
row along the normal, two along tangents, and one to three more where the material resists turning. Rows act on links:
one after the other as pulls of their own, or, where a link has so many rows that this is cheaper, through the six
components of the link's twist at one of its points, in the world's axes, which its rows then share: on level ground
most of C is zero or one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from linkwise.algorithms.kinematics import Place, Placed
from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import Field, each, only_at
from linkwise.contact.cones import Row
from linkwise.contact.geometry.points import FAR, Contacts, in_plane, on_second_surface, tangents
from linkwise.dataclass import dataclass
from linkwise.mechanism.materials import Material
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, minimum, waypoint
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True, eq=False)
class Touch:
    """Two shapes that may touch.

    Args:
        a: the place of the first shape, on a moving link.
        b: that of the second, on a link or in the world.
        points: the points for the frames of the two shapes in the world; always as many.
        count: how many.
        material: of the pair.
        surface: how the second surface moves in its own frame, as on a belt or a turntable: [ω; v] at its origin.
        name: of the pair, for people.
        is_plane: whether the second shape is a plane, z = 0 in its own frame.
        friction: factor on that of the material.
        along: the place whose axes the direction of friction is in; that of the second shape if not given.
        mass: of all bodies of the mechanism, kg.
        size: m, how far what touches on the smaller of the two bodies extends.
    """

    a: Place
    b: Place
    points: Callable[[Placed, Placed], Contacts]
    count: int
    material: Material
    surface: tuple[float, ...] = (0.0,) * 6
    name: str = ""
    is_plane: bool = False
    friction: Scalar = 1.0
    along: Place | None = None
    mass: float = 0.0
    size: float = 0.1

    @property
    def rows(self) -> int:
        """Rows of a point: normal, tangents, spin, rolling."""
        return rows_of_material(self.material)

    @property
    def links(self) -> list[Link]:
        """The links that move."""
        return [place.link for place in (self.a, self.b) if place.link is not None]


def rows_of_material(m: Material) -> int:
    """Rows of a point between surfaces: normal, tangents, spin, rolling."""
    return 1 + 2 * (max(m.coefficients) > 0.0) + (m.torsion > 0.0) + 2 * (m.rolling > 0.0)


@dataclass(frozen=True)
class PlacedPoint:
    """A contact point with its axes and what its second surface does there."""

    touch: Touch
    gap: Scalar
    point: Vec
    grip: Vec
    """Where forces act: of surfaces that give way, midway between them, as the point is; else :func:`shifts`."""
    normal: Vec
    tangents: tuple[Vec, Vec]
    drift: Motion
    """Velocity of the second surface against its body, where forces act, in the world's axes."""

    def directions(self) -> Iterator[tuple[Vec, Vec]]:
        """Of each row the moment and the force, unit vectors or zero, in the world's axes."""
        m, none = self.touch.material, Vec.zero()
        yield none, self.normal
        if max(m.coefficients) > 0.0:
            scales = (1.0, 1.0) if m.is_isotropic else m.coefficients
            yield from ((none, t * s) for t, s in zip(self.tangents, scales, strict=True))
        if m.torsion > 0.0:
            yield self.normal, none
        if m.rolling > 0.0:
            yield from ((t, none) for t in self.tangents)

    def drifts(self) -> list[Scalar]:
        """How fast the second surface moves along each row."""
        return [moment.dot(self.drift.ang) + force.dot(self.drift.lin) for moment, force in self.directions()]


def placed_points(
    touches: Sequence[Touch], frames: Field[Placed], q: Sequence[Scalar]
) -> tuple[list[PlacedPoint], Scalar]:
    """All points of all touches, and how many found no room."""
    found = []
    overflow: Scalar = 0.0
    placements = [(touch.a.within(frames, q), touch.b.within(frames, q)) for touch in touches]
    made = [touch.points(a, b) for touch, (a, b) in zip(touches, placements, strict=True)]
    shifted = shifts(touches, made)
    for touch, (_, b), contacts, shift in zip(touches, placements, made, shifted, strict=True):
        spin, speed = b.R @ Vec.of(touch.surface[:3]), b.R @ Vec.of(touch.surface[3:])
        along = None
        if not touch.material.is_isotropic:
            along = (touch.along or touch.b).within(frames, q).R @ Vec.of(touch.material.direction)
        overflow = overflow + contacts.overflow
        for gap, normal, point in contacts.points:
            grip = point
            if touch.material.is_rigid:
                grip = in_plane(point, b) if touch.is_plane else on_second_surface(point, normal, gap)
                grip = grip + normal * shift
            drift = Motion(spin, speed + spin.cross(grip - b.p))
            found.append(PlacedPoint(touch, gap, point, grip, normal, tangents(normal, along), drift))
    return found, overflow


def shifts(touches: Sequence[Touch], contacts: Sequence[Contacts]) -> list[Scalar]:
    """How far from the second surfaces forces act, along normals: as far as the nearest point of the same two links is.

    All points of a foot are in one plane then (:func:`linkwise.contact.geometry.points.on_second_surface`), and the arm
    of a blow is what it is when surfaces touch, though in the middle of the step they are up to half a step's way
    apart: that of a ball is its radius. Where both links move that plane is midway, so that it is the same for both.
    """
    both = [tuple(link.index for link in touch.links) for touch in touches]
    nearest: dict[tuple[int, ...], Scalar] = dict.fromkeys(both, FAR)
    for links, own in zip(both, contacts, strict=True):
        for point in own.points:
            nearest[links] = minimum(nearest[links], point.gap)
    return [nearest[links] * (0.5 if len(links) > 1 else 1.0) for links in both]


def frames_passed(tree: Tree, touches: Sequence[Touch], frames: Field[Placed]) -> Field[Placed]:
    """Frames of links; those of links that touch are a waypoint of Jacobians."""

    def numbers(frame: Placed) -> list[Scalar]:
        return [*(x for row in frame.R.m for x in row), *frame.p]

    def rebuilt(n: Sequence[Scalar]) -> Placed:
        return Placed(Mat3([list(n[k : k + 3]) for k in (0, 3, 6)]), Vec.of(n[9:]))

    return _passed(tree, touches, frames, numbers, rebuilt)


def twists_passed(tree: Tree, touches: Sequence[Touch], twists: Field[Motion]) -> Field[Motion]:
    """Velocities of links, likewise."""
    return _passed(tree, touches, twists, lambda twist: [*twist.ang, *twist.lin], Motion.of)


def _passed(
    tree: Tree,
    touches: Sequence[Touch],
    field: Field[Any],
    numbers: Callable[[Any], list[Scalar]],
    rebuilt: Callable[[Sequence[Scalar]], Any],
) -> Field[Any]:
    rigid = {link.index: link for touch in touches for link in touch.links if not link.modes}
    flat = {k: numbers(field[link]) for k, link in rigid.items()}
    kept = iter(waypoint([x for own in flat.values() for x in own]))
    found = {k: rebuilt([next(kept) for _ in own]) for k, own in flat.items()}
    return each(tree, lambda link: found.get(link.index, field[link]))


@dataclass(frozen=True)
class Pulled:
    """Rows of contacts as pulls on links."""

    pulls: Pulls
    rows: list[Row]
    """Of each row of each point, in order."""
    forces: list[list[tuple[Link, Force]]]
    """Of each pull, on which links it acts and how."""

    def velocities(self, twists: Field[Motion]) -> list[Scalar]:
        """J v, the velocity along each pull, from the links' own."""
        found = []
        for on in self.forces:
            total: Scalar = 0.0
            for link, force in on:
                total = total + twists[link].dot(force)
            found.append(total)
        return found


def shared_links(touches: Sequence[Touch]) -> set[int]:
    """The links whose rows go through their twists, so that there are fewest pulls in all."""
    chosen: set[int] = set()

    def count(shared: set[int]) -> int:
        own = sum(t.count * t.rows for t in touches if not all(link.index in shared for link in t.links))
        return own + 6 * len(shared)

    rigid = [t for t in touches if not any(link.modes for link in t.links)]
    while True:
        options = [{*chosen, *(link.index for link in t.links)} for t in rigid]
        best = min(options, key=count, default=chosen)
        if count(best) >= count(chosen):
            return chosen
        chosen = best


def pulled(
    tree: Tree, touches: Sequence[Touch], points: Sequence[PlacedPoint], frames: Field[Placed], q: Sequence[Scalar]
) -> Pulled:
    """The pulls of all rows of some points.

    Twists of links are those at the first point of each: the arms of all points in one plane are in that plane.
    """
    shared = shared_links(touches)
    forces: list[list[tuple[Link, Force]]] = []
    first: dict[int, int] = {}
    origins: dict[int, Vec] = {}
    for point in points:
        for link in point.touch.links:
            origins.setdefault(link.index, point.grip)
    for index in sorted(shared):
        first[index], link, none = len(forces), tree.links[index], Vec.zero()
        axes = [frames[link].R.transpose_times(Vec.unit(k)) for k in range(3)]
        arm = frames[link].R.transpose_times(origins[index] - frames[link].p)
        forces += [
            [(link, force)] for force in (*(Force(x, none) for x in axes), *(Force(arm.cross(x), x) for x in axes))
        ]
    rows = []
    for point in points:
        both = ((point.touch.a, 1.0), (point.touch.b, -1.0))
        sides = [(place, place.link, s) for place, s in both if place.link is not None]
        through_twists = all(link.index in shared for _, link, _ in sides)
        for moment, force in point.directions():
            if through_twists:
                numbers = tuple(first[link.index] + k for _, link, _ in sides for k in range(6))
                arms = ((point.grip - origins[link.index], s) for _, link, s in sides)
                rows.append(Row(numbers, tuple(x * s for r, s in arms for x in (*(moment + r.cross(force)), *force))))
            else:
                rows.append(Row((len(forces),), (1.0,)))
                at = point.grip
                forces.append([(link, _on_link(a, frames, q, at, moment * s, force * s)) for a, link, s in sides])
    return Pulled(_as_pulls(tree, forces), rows, forces)


def _on_link(place: Place, frames: Field[Placed], q: Sequence[Scalar], point: Vec, moment: Vec, force: Vec) -> Force:
    """A moment and a force at a point of the world, on a link: in its axes and at its origin; on a node, with modes."""
    assert place.link is not None
    frame = frames[place.link] if place.seat is None else place.within(frames, q)
    f = frame.R.transpose_times(force)
    found = Force(frame.R.transpose_times(moment + (point - frame.p).cross(force)), f)
    return found if place.seat is None else place.phi(q) @ found


def _as_pulls(tree: Tree, forces: Sequence[Sequence[tuple[Link, Force]]]) -> Pulls:
    count = len(forces)
    still = Force.zero()
    by_link: dict[int, list[Any]] = {}
    for k, on in enumerate(forces):
        for link, force in on:
            by_link.setdefault(link.index, [still] * count)[k] = force
    places = [(tree.links[index], tuple(row)) for index, row in by_link.items()]
    return Pulls(count, [only_at(tree, places, (still,) * count)] if places else [])
