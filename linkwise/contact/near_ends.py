"""Ends of joints' ranges that may be reached in a step of a crowd, gathered from all that there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from linkwise.contact.crowd import REACH
from linkwise.contact.crowd_rows import same_number
from linkwise.contact.few import SIZES, TOGETHER, Groups
from linkwise.spatial.scalar import Items, Scalar, looped_over, where

if TYPE_CHECKING:
    from linkwise.contact.crowd_step import MiddleOfCrowd

Flat = Sequence[Scalar]


class NearEnds:
    """Ends of ranges that joints may reach in a step, gathered in some places, one after the other."""

    def __init__(self, middle: MiddleOfCrowd, free: Flat, impulses: Flat) -> None:
        along, h, n = middle.primal.along, middle.h, middle.n
        self.count: Scalar = 0.0
        self.places: list[list[Scalar]] = []
        """Of each row along joints its place, -1 where it is not near."""
        for gap, rate in zip(middle.joints.gaps, middle.joints.before, strict=True):
            assert gap is not None
            near = gap < REACH + 2.0 * h * abs(rate)
            self.places.append([where(near, self.count, -1.0)])
            self.count = self.count + where(near, 1.0, 0.0)
        places = -(-min(max(ends for _, ends in SIZES[True]), len(along)) // TOGETHER) * TOGETHER

        def gathered(_: Flat, place: Flat) -> tuple[list[Scalar], list[Scalar]]:
            row: list[Scalar] = [0.0] * n
            others: list[Scalar] = [0.0, 0.0]
            for one, (own,), x in zip(along, self.places, impulses, strict=True):
                here = same_number(own, place[0])
                for j, slope in one.row.items():
                    row[j] = row[j] + where(here, slope, 0.0)
                others = [where(here, a, b) for a, b in zip((one.cone.bias[0], x), others, strict=True)]
            speed = sum((a * b for a, b in zip(row, free, strict=True)), 0.0)
            return [], [*row, speed, *others, where(place[0] < self.count - 0.5, 1.0, 0.0)]

        def asks(_: Flat, place: Flat) -> Any:
            return place[0] < self.count - 0.5

        numbers = Items.rows([[float(k)] for k in range(places)]) if places else Items((), (), 1)
        made = looped_over([numbers], gathered, [], (asks,))[1] if places else []
        flat, width = [x for row in made for x in row], n + 4
        rows = Items(flat, range(0, places * width, width), n)
        used = Items(flat, range(n + 3, places * width, width), 1)
        left, right = middle.halves(rows, used, TOGETHER) if places else (rows, rows)
        self.groups = Groups(left, right, used._replace(starts=used.starts[::TOGETHER]), TOGETHER)
        self.free, self.biases, self.begin, self.used = ([row[n + k] for row in made] for k in range(4))

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
