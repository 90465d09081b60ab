"""Rows along joint axes, in the same list of cones as contacts: ends of a joint's range, and dry friction.

The range of a coordinate is one row with a half line for each end: impulses are positive at the lower one. Dry friction
is a disk of fixed size, an interval: it holds a joint still, exactly, until what acts exceeds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import only_at
from linkwise.contact.cones import Cone, Row
from linkwise.dataclass import dataclass
from linkwise.joints import Joint
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.contacts import ContactRules
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar, maximum

Flat = Sequence[Scalar]

Ends = tuple[Scalar | None, Scalar | None]
"""Numbers of the lower and of the upper end of a range; None where there is none."""


@dataclass(frozen=True, eq=False)
class RangeOf:
    """The range of one coordinate of a joint."""

    joint: JointInstance
    coordinate: int
    low: float
    high: float

    def placed(self, link: Link, q: Flat) -> tuple[Ends, list[Scalar]]:
        """How far the coordinate is from each end, and how it grows with each axis of the joint."""
        hinge = link.hinge
        own = hinge.coordinates(q)
        x = own[self.coordinate]
        ends = None if math.isinf(self.low) else x - self.low, None if math.isinf(self.high) else self.high - x
        return ends, _slopes(hinge.joint, own, self.coordinate)


@dataclass(frozen=True, eq=False)
class FrictionOf:
    """Dry friction of one axis of a joint, N m or N."""

    joint: JointInstance
    axis: int
    force: float


JointRow = RangeOf | FrictionOf


def joint_rows(mechanism: Mechanism, rules: ContactRules) -> tuple[JointRow, ...]:
    """All rows along joints that the rules ask for, in the order in which their impulses follow those of contacts."""
    return tuple(_rows(mechanism, rules))


def _rows(mechanism: Mechanism, rules: ContactRules) -> Iterator[JointRow]:
    for joint in mechanism.joints:
        if rules.joint_limits and joint.nv and len(joint.limits) == joint.nq:
            for k, limit in enumerate(joint.limits):
                low, high = float(limit.lower), float(limit.upper)
                if math.isfinite(low) or math.isfinite(high):
                    yield RangeOf(joint, k, low, high)
        if rules.joint_friction and len(joint.friction) == joint.nv:
            for k, force in enumerate(joint.friction):
                if force > 0.0:
                    yield FrictionOf(joint, k, float(force))


def slopes_of(row: JointRow, tree: Tree, q: Flat) -> list[Scalar]:
    """How fast the coordinate or the angle of a row changes with each axis of its joint."""
    if isinstance(row, RangeOf):
        return row.placed(tree.links[row.joint.index], q)[1]
    return [1.0 if i == row.axis else 0.0 for i in range(row.joint.nv)]


def _slopes(kind: Joint, own: Flat, coordinate: int) -> list[Scalar]:
    """How a coordinate changes with the velocity of each axis."""
    units = [[1.0 if i == j else 0.0 for i in range(kind.nv)] for j in range(kind.nv)]
    if not kind.quasi_velocities:
        return list(units[coordinate])
    return [kind.rate(own, unit)[coordinate] for unit in units]


class JointCones:
    """Rows along joints at one configuration: their pulls, the velocities along them, and their cones.

    Args:
        tree: of links.
        rows: which.
        bodies: of each row, the number of its link.
        q: configuration in the middle of a step.
        v: velocity at its start, in the axes of the middle.
        h: s.
    """

    def __init__(self, tree: Tree, rows: Sequence[JointRow], q: Flat, v: Flat, h: Scalar) -> None:
        self.rows, self.h = list(rows), h
        count = len(self.rows)
        self.ends: list[Ends] = []
        """How far each row is from the ends of its range, as it would be at the start of the step."""
        self.before: list[Scalar] = []
        efforts: dict[int, list[list[Scalar]]] = {}
        most = max((tree.links[row.joint.index].joint.nv for row in self.rows), default=0)
        for k, row in enumerate(self.rows):
            link = tree.links[row.joint.index]
            skipped = link.joint.nv - row.joint.nv  # modes
            ends: Ends = None, None
            if isinstance(row, RangeOf):
                ends, slopes = row.placed(link, q)
            else:
                slopes = slopes_of(row, tree, q)
            own = efforts.setdefault(link.index, [[0.0] * count for _ in range(most)])
            rate: Scalar = 0.0
            for i, (slope, speed) in enumerate(zip(slopes, link.rates(v)[skipped:], strict=True), skipped):
                own[i][k] = slope
                rate = rate + slope * speed
            self.before.append(rate)
            low, high = ends
            way = 0.5 * h * rate
            self.ends.append((None if low is None else low - way, None if high is None else high + way))
        fields = [(tree.links[index], wide) for index, wide in efforts.items()]
        still = [[0.0] * count for _ in range(most)]
        self.pulls = Pulls(count, (), [only_at(tree, fields, still)] if fields else [])

    def cones(self, first: int, recovery: float) -> Iterator[Cone]:
        """One for each row, whose pulls are numbered from ``first`` on."""
        for k, (row, (low, high)) in enumerate(zip(self.rows, self.ends, strict=True), first):
            along = (Row((k,), (1.0,)),)
            if isinstance(row, FrictionOf):
                yield Cone(along, (0.0,), "disk", self.h * row.force)
            else:
                of_low, of_high = (None if x is None else maximum(x / self.h, -recovery) for x in (low, high))
                yield Cone(along, (0.0,), "range", ends=(of_low, of_high))

    def gaps(self, rates: Sequence[Flat]) -> Iterator[tuple[Scalar, list[Scalar]]]:
        """Of each end of a range how far it is at the start of the step, and by some rates of rows how fast that grows.

        Args:
            rates: of all rows along joints, several times.
        """
        for (low, high), *own in zip(self.ends, *rates, strict=True):
            if low is not None:
                yield low, list(own)
            if high is not None:
                yield high, [-x for x in own]
