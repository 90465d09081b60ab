"""Rows along joints that may act in a step of a crowd, gathered from all that there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise.contact.crowd import REACH
from linkwise.contact.crowd_rows import same_number
from linkwise.spatial.scalar import Items, Scalar, looped_over, minimum, where

if TYPE_CHECKING:
    from linkwise.contact.crowd_step import MiddleOfCrowd
    from linkwise.contact.primal import Along

Flat = Sequence[Scalar]


class Factors(NamedTuple):
    """Rows a and b of groups, one after the other, W = a*b: the same, or J and 𝓜⁻¹J*; and the numbers of a row."""

    left: Flat
    right: Flat
    width: int


class Ends(NamedTuple):
    """Rows along joints in groups.

    Args:
        factors: of W.
        laws: of each group the lower ends, the upper ends, the radii (negative for ranges, of friction h times its
            force), which rows are used, and the signs of the ends that smoothed laws speak of.
        used: of each group one where it is used, else zero.
        numbers: velocities without impulses, those with the impulses to begin with, and these, of all rows.
    """

    factors: Factors
    laws: Items
    used: list[Scalar]
    numbers: list[list[Scalar]]


NOTHING = Ends(Factors((), (), 0), Items((), (), 0), [], [[], [], []])


UNREACHED = 1e9
"""m/s, of an end that is not there."""

NO_LAW = UNREACHED, UNREACHED, -1.0
"""Lower end, upper end and radius of a place without a row."""


def _law(one: Along) -> list[Scalar]:
    """Of a row the lower end, the upper end, and the radius."""
    ends = [UNREACHED if x is None else x for x in one.cone.ends]
    return [*ends, one.cone.radius if one.cone.kind == "disk" else -1.0]


class NearEnds:
    """Ends of ranges that joints may reach in a step, and dry friction, numbered one after the other.

    Args:
        middle: of the step.
        near: which rows along joints these are.
    """

    def __init__(self, middle: MiddleOfCrowd, near: Sequence[Any]) -> None:
        self.middle = middle
        self.count: Scalar = 0.0
        self.places: list[list[Scalar]] = []
        """Of each row along joints its place, -1 where it is not near."""
        for one in near:
            self.places.append([where(one, self.count, -1.0)])
            self.count = self.count + where(one, 1.0, 0.0)

    @classmethod
    def at_first(cls, middle: MiddleOfCrowd) -> NearEnds:
        """Those near which joints are, for the speed that they have."""
        joints, h = middle.joints, middle.h
        near: list[Any] = []
        for ends, rate in zip(joints.ends, joints.before, strict=True):
            gaps = [gap for gap in ends if gap is not None]
            nearer = gaps[0] if len(gaps) == 1 else minimum(*gaps) if gaps else -1.0
            near.append(nearer < REACH + 2.0 * h * abs(rate) if gaps else True)
        return cls(middle, near)

    def of_near(self, impulses: Flat) -> list[Scalar]:
        """Impulses along joints without those of rows that are not near."""
        return [where(place > -0.5, x, 0.0) for (place,), x in zip(self.places, impulses, strict=True)]

    def gathered(self, speeds: tuple[Flat, Flat], impulses: Flat, size: int, most: int | None = None) -> Ends:
        """The near ones, in groups of some size.

        Args:
            speeds: velocities without impulses, and with those to begin with.
            impulses: along joints, to begin with.
            size: rows of a group.
            most: groups; None: as many as there are.
        """
        middle, n = self.middle, self.middle.n
        along, room = middle.primal.along, -(-len(self.places) // size)
        count = (room if most is None else min(room, most)) * size
        if not count:
            return NOTHING

        def row_at(state: Flat, place: Flat) -> tuple[list[Scalar], list[Scalar]]:
            row: list[Scalar] = [0.0] * n
            others: list[Scalar] = [*NO_LAW, 0.0]
            for one, (there,), x in zip(along, self.places, impulses, strict=True):
                here = same_number(there, place[0])
                for j, slope in one.row.items():
                    row[j] = row[j] + where(here, slope, 0.0)
                found = (*_law(one), x)
                others = [where(here, a, b) for a, b in zip(found, others, strict=True)]
            own = (sum((a * b for a, b in zip(row, v, strict=True)), 0.0) for v in speeds)
            return list(state), [*row, *own, others[3], *others[:3]]

        def asks(state: Flat, place: Flat) -> Any:
            return place[0] < state[0] - 0.5

        places = Items.rows([[float(k)] for k in range(count)])
        made = looped_over([places], row_at, [self.count], (asks,), True)[1]
        flat, width = [x for row in made for x in row], n + 6
        starts = range(0, count * width, width)
        flags = [where(float(k) < self.count - 0.5, 1.0, 0.0) for k in range(count)]
        used = Items(flags, range(count), 1)
        rows = Items(flat, starts, n)
        groups = [range(k, k + size) for k in range(0, count, size)]
        # Chosen, not taken as they are: a state that goes on beside others takes these along, and not all rows.
        *numbers, lows, highs, radii = (
            [where(used > 0.0, row[n + j], other) for used, row in zip(flags, made, strict=True)]
            for j, other in enumerate((0.0, 0.0, 0.0, *NO_LAW))
        )
        parts = lows, highs, radii, flags, [1.0] * count
        laws = [[x for part in parts for x in part[group.start : group.stop]] for group in groups]
        firsts = [flags[group[0]] for group in groups]  # those that are used come first
        # Groups that are used may have rows that are not.
        return Ends(middle.halves(rows, used, zeros=True), Items.rows(laws), firsts, numbers)

    def spread(self, impulses: Flat) -> list[Scalar]:
        """Of all rows along joints the impulses, from those of the places."""

        def own(_: Flat, place: Flat) -> tuple[list[Scalar], list[Scalar]]:
            found: Scalar = 0.0
            for k, x in enumerate(impulses):
                found = where(same_number(place[0], float(k)), x, found)
            return [], [found]

        if not self.places:
            return []
        return [x for (x,) in looped_over([Items.rows(self.places)], own, [])[1]]
