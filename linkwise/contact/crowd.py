"""Crowds: scenes with so many pairs of shapes that they are gone through in loops, and the nearest points are kept.

Pairs of the same two kinds share one text, a loop over them whose passes differ in numbers only: the sizes of both
shapes, where they are, what is between them. Pairs whose bounding balls, or else whose bounding boxes, are farther
apart than they could come in a step are passed over. Of all points the nearest are kept, each with what a step needs to
know of it; a point is put in by going along those that are there, so they stand in the order of their gaps. What finds
no room is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise.algorithms.kinematics import Placed
from linkwise.algorithms.sweeps import Field
from linkwise.contact.features import Features
from linkwise.contact.geometry.convex_convex import apart_between_axes, convex_convex
from linkwise.contact.geometry.figures import figure, numbers_of
from linkwise.contact.geometry.pairs import PAIRS, contacts, distance
from linkwise.contact.geometry.points import UNUSED_GAP
from linkwise.contact.geometry.supports import radius_about_origin
from linkwise.contact.lifting import masses_that_fly
from linkwise.contact.scene import meetings_of, rounding_of
from linkwise.dataclass import dataclass
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.parameters import Values
from linkwise.mechanism.tree import Tree
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Items, Scalar, absolute, looped_over, maximum, sqrt, where
from linkwise.spatial.vectors import Vec

Flat = Sequence[Scalar]

_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
_GROUNDS = ("plane", "heightfield", "terrain")

REACH = 2e-3
"""m, beside the way that surfaces go past each other in a step: points that are farther are not looked at."""

TOUCHING = 1e-6
"""m: points nearer than this that find no room are counted; others find some in the step in which they are as near."""

WRITTEN_OUT = 16
"""Kept points up to which a point is put in without a loop over them."""

MOVING = 15
"""Numbers of a moving link: origin, ω, u, ω' and a, in the world's axes."""


class Moving(NamedTuple):
    """Links in the middle of a step.

    Args:
        numbers: of each link its origin, ω, u, ω' and a, in the world's axes; then those of the world.
        h: the step, s.
        fastest: more than the speed of any point of a shape, m/s.
    """

    numbers: list[Scalar]
    h: Scalar
    fastest: Scalar


@dataclass(frozen=True)
class KeptPoint:
    """One of the nearest points, over any scalar.

    Args:
        gap: m; means nothing where the point is not used.
        normal: from the second surface to the first.
        point: midway between the surfaces, in the world.
        turning: by how much velocities of both surfaces part in half a step because bodies turn, m/s.
        more: numbers by name: of the pair and point, of both links, and of the material.
    """

    gap: Scalar
    normal: Vec
    point: Vec
    turning: Vec
    more: dict[str, Scalar]

    @classmethod
    def of(cls, numbers: Flat, names: Sequence[str]) -> KeptPoint:
        """From its numbers."""
        a, b, c = (Vec.of(numbers[k : k + 3]) for k in (1, 4, 7))
        return cls(numbers[0], a, b, c, dict(zip(names, numbers[10:], strict=True)))

    @property
    def drift(self) -> tuple[Vec, Vec]:
        """Velocity of the second surface against its body, angular and at the point, in the world's axes."""
        if "drift0" not in self.more:
            return Vec.zero(), Vec.zero()
        own = [self.more[f"drift{k}"] for k in range(6)]
        return Vec.of(own[:3]), Vec.of(own[3:])


class Kind:
    """Pairs of the same kinds of shapes: what they share, and the numbers in which they differ."""

    def __init__(self, crowd: Crowd, numbers: Sequence[int]) -> None:
        self.crowd, self.numbers = crowd, list(numbers)
        places = [[crowd.ordered[k][i] for k in numbers] for i in (0, 1)]
        self.first, self.second = (max((crowd.shapes[k][1] for k in own), key=_radius) for own in places)
        self.is_field = self.second.kind in ("heightfield", "terrain")
        kinds = self.first.kind, self.second.kind
        self.is_supported = PAIRS[kinds].function is convex_convex and "convex" not in kinds
        """Whether the nearest points are found from supports, by many passes; of hulls few would be long too."""
        constants = []
        for number in numbers:
            sides, ordered = crowd.sides[number], crowd.ordered[number]
            links = (crowd.order[crowd.shapes[side][0]] for side in sides)
            row = [1.0 if sides == ordered else -1.0, 8.0 * number + 1.0, *links]
            constants.append([*row, *crowd.features.of_pair(crowd.meetings[number])])
        self.constants = [Items.rows(constants), *(self._shapes(each) for each in places)]
        """Of each pair its own numbers, then those of both shapes."""

    def _shapes(self, places: Sequence[int]) -> Items:
        """The numbers of shapes, each of which is there once."""
        shapes = {place: self.crowd.shapes[place][1] for place in places}
        most = max(len(shape.vertices) if shape.kind == "convex" else 0 for shape in shapes.values())
        rows = [numbers_of(shape, _radius(shape), most) for shape in shapes.values()]
        width, table = len(rows[0]), {place: k for k, place in enumerate(shapes)}
        return Items([x for row in rows for x in row], [width * table[place] for place in places], width)

    def shapes(self, first: Flat, second: Flat) -> tuple[Any, Any]:
        """Both shapes of a pair, from their numbers."""
        return figure(self.first, list(first)), self.second if self.is_field else figure(self.second, list(second))

    def balls_are_near(self, A: Placed, a: Any, B: Placed, b: Any, reach: Scalar) -> Scalar:
        """Whether the balls around two shapes, or the one around a shape and a plane, are nearer than a distance."""
        between = A.p - B.p
        if self.is_field:
            return reach > -UNUSED_GAP
        if self.second.kind == "plane":
            return B.R.column(2).dot(between) < a.radius + reach
        far = a.radius + b.radius + reach
        return between.dot(between) < far * far

    def apart(self, A: Placed, a: Any, B: Placed, b: Any) -> Scalar:
        """Less than the distance of two shapes: that of the boxes around them along the six axes of both."""
        if self.is_field:
            return -UNUSED_GAP
        first = [A.R.column(k) for k in range(3)]
        middle = A.p + A.R @ Vec.of(a.middle)
        if self.second.kind == "plane":
            n = B.R.column(2)
            return n.dot(middle - B.p) - sum((h * absolute(n.dot(x)) for h, x in zip(a.half, first, strict=True)), 0.0)
        second = [B.R.column(k) for k in range(3)]
        between = middle - (B.p + B.R @ Vec.of(b.middle))
        cosines = [[absolute(x.dot(y)) for y in second] for x in first]
        gaps = []
        for k in range(3):
            across = sum((h * c for h, c in zip(b.half, cosines[k], strict=True)), 0.0)
            gaps.append(absolute(first[k].dot(between)) - a.half[k] - across)
            across = sum((h * cosines[i][k] for i, h in enumerate(a.half)), 0.0)
            gaps.append(absolute(second[k].dot(between)) - b.half[k] - across)
        found = gaps[0]
        for gap in gaps[1:]:
            found = maximum(found, gap)
        return found

    def columns(self, numbers: Flat, width: int, places: Sequence[int] | None = None) -> list[Items]:
        """Numbers of both shapes for each pair, so many each; of their links, with the places of these."""
        both = ([self.crowd.ordered[k][i] for k in self.numbers] for i in (0, 1))
        return [Items(numbers, [width * (k if places is None else places[k]) for k in own], width) for own in both]


class Crowd:
    """All pairs of a mechanism's shapes, by their kinds.

    Args:
        mechanism: with a scene.
        tree: of its links.
        kept: how many points are kept.
        p: values of its run-time parameters.
    """

    def __init__(self, mechanism: Mechanism, tree: Tree, kept: int, p: Flat | None) -> None:
        self.meetings = meetings_of(mechanism)
        self.friction = Values(mechanism, p).friction()
        self.tree, self.kept, self.mass = tree, kept, mechanism.mass
        self.features = Features.of(self.meetings)
        self.names = self.features.names
        self.width = 10 + len(self.names)
        self.shapes: list[tuple[int, Geometry]] = []
        self.sides: list[tuple[int, int]] = []
        """Of each pair its two shapes."""
        self.ordered: list[tuple[int, int]] = []
        """The same in the order in which a function of pairs takes them."""
        known: dict[tuple[int, int], int] = {}
        for meeting in self.meetings:
            pair = []
            for body, shape in ((meeting.body, meeting.shape), (meeting.other, meeting.other_shape)):
                index = -1 if body is None else body.index
                if (index, id(shape)) not in known:
                    known[index, id(shape)] = len(self.shapes)
                    self.shapes.append((index, shape))
                pair.append(known[index, id(shape)])
            self.sides.append((pair[0], pair[1]))
        self.reaches: dict[int, float] = {}
        """Of each link with shapes, the distance of their farthest points from its origin, m."""
        for index, shape in self.shapes:
            if index >= 0:
                offset = _offset(tree, index, shape)[9:]
                far = float(np.linalg.norm([float(x) for x in offset])) + _radius(shape)
                self.reaches[index] = max(self.reaches.get(index, 0.0), far)
        self.carriers = {up.index for index in self.reaches for up in tree.ancestors(tree.links[index])}
        """Links that move shapes: those with some, and all that carry these."""
        self.order = _depth_first(tree)
        by_kind: dict[Any, list[int]] = {}
        for k, m in enumerate(self.meetings):
            a, b = m.shape, m.other_shape
            ground = b if b.kind in ("heightfield", "terrain") else None
            is_swapped = (a.kind, b.kind) not in PAIRS
            self.ordered.append(self.sides[k][::-1] if is_swapped else self.sides[k])
            by_kind.setdefault(((b.kind, a.kind) if is_swapped else (a.kind, b.kind), ground), []).append(k)
        self.kinds = [Kind(self, numbers) for numbers in by_kind.values()]

    def placed(self, frames: Field[Placed]) -> list[Scalar]:
        """Frames of all shapes in the world, twelve numbers each."""
        links = [*(x for link in self.tree.links for x in _numbers(frames[link])), *_IDENTITY]
        offsets = [_offset(self.tree, index, shape) for index, shape in self.shapes]
        world = 12 * len(self.tree.links)

        def step(state: Flat, on: Flat, offset: Flat) -> tuple[list[Scalar], list[Scalar]]:
            X, Y = _frame(on), _frame(offset)
            return [], _numbers(Placed(X.R.times(Y.R), X.p + X.R @ Y.p))

        starts = [12 * index if index >= 0 else world for index, _ in self.shapes]
        made = looped_over([Items(links, starts, 12), Items.rows(offsets)], step, [])[1]
        return [x for row in made for x in row]

    def nearest(self, frames: Field[Placed], moving: Moving | None = None) -> tuple[Items, Scalar]:
        """The numbers of the nearest points, in order, those that are used first, and how many found no room.

        Args:
            frames: of links.
            moving: for what turning does to points in half a step, and so that only those are kept that surfaces may
                reach in a step; None: nothing, and however far they are.
        """
        reach = 0.5 * UNUSED_GAP if moving is None else REACH + 2.0 * moving.h * moving.fastest
        nothing = [reach, 0.0, 0.0, 1.0, *[0.0] * 6, 0.0, -1.0, -1.0, *[0.0] * (len(self.names) - 3)]
        state: list[Scalar] = [*nothing * self.kept, 0.0]
        poses = self.placed(frames)
        for kind in self.kinds:
            state = self._gone_through(kind, poses, moving, reach, state)
        return Items(state, range(0, self.kept * self.width, self.width), self.width), state[-1]

    def _gone_through(
        self, kind: Kind, poses: Flat, moving: Moving | None, reach: Scalar, state: list[Scalar]
    ) -> list[Scalar]:
        """The kept points once those of one kind of pairs are among them."""
        columns = [*kind.constants, *kind.columns(poses, 12)]
        rounding = rounding_of(kind.first, kind.second) is not None
        h: Scalar = 0.0
        if moving is not None:
            world = len(self.tree.links)
            links = [world if index < 0 else index for index, _ in self.shapes]
            h, columns = moving.h, [*columns, *kind.columns(moving.numbers, MOVING, links)]
        farthest = (self.kept - 1) * self.width

        def balls_are_near(state: Flat, own: Flat, first: Flat, second: Flat, A: Flat, B: Flat, *_: Flat) -> Any:
            a, b = kind.shapes(first, second)
            # Where points are counted, those that find no room are too.
            return kind.balls_are_near(_frame(A), a, _frame(B), b, state[farthest] if moving is None else reach)

        def far(state: Flat, a: Any, A: Placed, both: Sequence[Flat]) -> Scalar:
            """The distance from which on two shapes are passed over."""
            if not both:
                return state[farthest]
            # The speed of the second surface past the first is at most this wherever the first may be.
            past, turns = _past(both, A.p), Vec.of(both[0][3:6]) - Vec.of(both[1][3:6])
            return REACH + h * (long(past) + long(turns) * a.radius)

        def are_near(state: Flat, own: Flat, first: Flat, second: Flat, A: Flat, B: Flat, *both: Flat) -> Any:
            (a, b), X = kind.shapes(first, second), _frame(A)
            return kind.apart(X, a, _frame(B), b) < far(state, a, X, both)

        def are_close(state: Flat, own: Flat, first: Flat, second: Flat, A: Flat, B: Flat, *both: Flat) -> Any:
            (a, b), X = kind.shapes(first, second), _frame(A)
            limit = far(state, a, X, both)
            return apart_between_axes(a, X, b, _frame(B)) < limit

        def step(
            state: Flat, own: Flat, first: Flat, second: Flat, A: Flat, B: Flat, *both: Flat
        ) -> tuple[list[Scalar], list[Scalar]]:
            (a, b), (way, *rest) = kind.shapes(first, second), own
            X, Y = _frame(A), _frame(B)
            limit = far(state, a, X, both)
            found = contacts(a, X, b, Y, within=limit)
            asked = are_near(state, own, first, second, A, B, *both)
            rows = []
            for k, one in enumerate(found.points):
                turned = Vec.zero()
                if rounding and both:
                    round_by = one.normal * rounding_of(a, kind.second)
                    kept = one.point + one.normal * (0.5 * one.gap) + round_by
                    spun = Vec.of(both[0][9:12]).cross(round_by)  # what rolls keeps its normal, not its corner
                    turned = (_acceleration(both[0], kept) - spun - _acceleration(both[1], kept)) * (0.5 * h * way)
                more = [rest[0] + float(k), *rest[1:]]
                past = _past(both, one.point) if both else Vec.zero()
                if self.features.drifts:
                    spin, speed = Y.R @ Vec.of(more[-6:-3]), Y.R @ Vec.of(more[-3:])
                    slide = speed + spin.cross(one.point - Y.p)
                    turned, past = turned - spin.cross(slide) * (0.5 * h) if rounding else turned, past - slide
                    more = [*more[:-6], *spin, *slide]
                # Twice as far as surfaces that go straight at each other come in the other half of the step.
                near = asked & (one.gap < REACH + 0.5 * h * (long(past) - past.dot(one.normal))) if both else asked
                gap = where(near, one.gap, UNUSED_GAP)
                rows.append([gap, *(one.normal * way), *one.point, *turned, *more])
            return self._with(rows, found.overflow, reach, state), []

        asks = (balls_are_near, are_near, are_close) if kind.is_supported else (balls_are_near, are_near)
        return looped_over(columns, step, state, asks)[0]

    def _with(self, rows: Sequence[Flat], over: Scalar, reach: Scalar, state: Flat) -> list[Scalar]:
        """The kept points with some more, and with those counted that found no room before."""

        def passed(new: Flat, slot: Flat) -> tuple[list[Scalar], list[Scalar]]:
            nearer = new[0] < slot[0]
            both = list(zip(new, slot, strict=True))
            return [where(nearer, b, a) for a, b in both], [where(nearer, a, b) for a, b in both]

        def put_in(state: Flat, row: Flat) -> tuple[list[Scalar], list[Scalar]]:
            left, slots = list(row[:-1]), Items(state, range(0, len(state) - 1, self.width), self.width)
            made: list[list[Scalar]] = []
            if self.kept > WRITTEN_OUT:
                left, made = looped_over([slots], passed, left)
            else:  # in one piece: it changes them where they are, while loops in loops move all of them
                for k in range(self.kept):
                    left, slot = passed(left, slots.of(k))
                    made.append(slot)
            lost = where(left[0] < TOUCHING, 1.0, 0.0)
            return [*(x for slot in made for x in slot), state[-1] + lost + row[-1]], []

        with_over = [[*row, over if k == 0 else 0.0] for k, row in enumerate(rows)]
        if len(rows) == 1:
            return put_in(state, with_over[0])[0]
        asks = (lambda state, row: (row[0] < reach) | (row[-1] > 0.0),)
        return looped_over([Items.rows(with_over)], put_in, state, asks)[0]

    def distances(self, frames: Field[Placed]) -> list[Scalar]:
        """Of each pair, m."""
        poses = self.placed(frames)
        found: list[Scalar] = [0.0] * len(self.meetings)
        for kind in self.kinds:

            def step(
                state: Flat, first: Flat, second: Flat, A: Flat, B: Flat, kind: Kind = kind
            ) -> tuple[list[Scalar], Any]:
                a, b = kind.shapes(first, second)
                return [], [distance(a, _frame(A), b, _frame(B))]

            made = looped_over([*kind.constants[1:], *kind.columns(poses, 12)], step, [])[1]
            for k, (x,) in zip(kind.numbers, made, strict=True):
                found[k] = x
        return found


def _radius(shape: Geometry) -> float:
    return 0.0 if shape.kind in _GROUNDS else float(radius_about_origin(shape))


def _depth_first(tree: Tree) -> dict[int, float]:
    """A number for each link, such that those outboard of a link, itself included, are numbered without a gap."""
    children: dict[int, list[int]] = {}
    for link in tree.links:
        children.setdefault(link.parent, []).append(link.index)
    order, todo = {-1: -1.0}, list(reversed(children.get(-1, [])))
    while todo:
        index = todo.pop()
        order[index] = float(len(order) - 1)
        todo += reversed(children.get(index, []))
    return order


def outboard(tree: Tree) -> dict[int, tuple[float, float]]:
    """Of each link the first and the last number, by depth, of those that move with it."""
    order = _depth_first(tree)
    last = dict(order)
    for link in reversed(tree.links):
        if link.parent >= 0:
            last[link.parent] = max(last[link.parent], last[link.index])
    return {link.index: (order[link.index], last[link.index]) for link in tree.links}


def is_held(tree: Tree, first: Scalar, second: Scalar) -> Scalar:
    """Whether joints or the world hold two links, by their numbers, to each other: neither flies without the other."""
    apart: Scalar = 0.0
    ranges = outboard(tree)
    for root in masses_that_fly(tree):
        low, high = ranges[root]
        a, b = (where((x > low - 0.5) & (x < high + 0.5), 1.0, 0.0) for x in (first, second))
        apart = apart + (a - b) * (a - b)
    return apart < 0.5


def _offset(tree: Tree, index: int, shape: Geometry) -> list[Scalar]:
    rows = np.array(shape.placement)
    own = Placed(Mat3([row[:3] for row in rows.tolist()[:3]]), Vec.of(rows[:3, 3].tolist()))
    if index < 0:
        return _numbers(own)
    on = tree.links[index].to_body.carry(Placed(Mat3.identity(), Vec.zero()))
    return _numbers(Placed(on.R.times(own.R), on.p + on.R @ own.p))


def _numbers(frame: Placed) -> list[Scalar]:
    return [*(x for row in frame.R.m for x in row), *frame.p]


def _frame(numbers: Flat) -> Placed:
    return Placed(Mat3([list(numbers[3 * k : 3 * k + 3]) for k in range(3)]), Vec.of(numbers[9:12]))


def _past(both: Sequence[Flat], point: Vec) -> Vec:
    """The velocity of a point on the first of two moving links against the second."""
    first, second = (Vec.of(one[6:9]) + Vec.of(one[3:6]).cross(point - Vec.of(one[:3])) for one in both)
    found: Vec = first - second
    return found


def long(v: Vec) -> Scalar:
    """The length of a vector."""
    return sqrt(v.dot(v))


def _acceleration(moving: Flat, point: Vec) -> Vec:
    p, omega, _, omega_dot, a = (Vec.of(moving[k : k + 3]) for k in range(0, MOVING, 3))
    arm = point - p
    found: Vec = a + omega_dot.cross(arm) + omega.cross(omega.cross(arm))
    return found
