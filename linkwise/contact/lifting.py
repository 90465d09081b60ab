"""Surfaces that overlap at the end of a step: bodies that fly are shifted until they only touch.

A step knows gaps in its middle, their rates, and how turning changes these. That leaves an error of second order where
a blow changes how bodies turn, and a larger one where another point of a rim or an edge comes lowest. So gaps are
looked at once more at the end, and what flies is shifted along normals: as a whole, with all that hangs on it, by what
is missing and no more. Deep overlaps that a motion begins with part with velocities, at most as fast as
``ContactRules.recovery`` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkwise.algorithms.kinematics import Placed, placed
from linkwise.algorithms.sweeps import Field
from linkwise.contact.geometry.points import length
from linkwise.contact.touching import PlacedPoint, Touch, frames_passed, placed_points
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar, by_digits, is_zero, maximum, waypoint, where
from linkwise.spatial.vectors import Vec

Flat = Sequence[Scalar]

CLOSE, CLOSE_SINGLE = 1e-12, 1e-7
"""m, by which surfaces may overlap at the end of a step: with sixteen digits, and with seven."""

PUT_THERE, PUT_THERE_SINGLE = 1e-9, 1e-6
"""m, from which on an overlap at the start of a step counts: steps leave none as large to what flies."""

PASSES = 10
"""Over all points, where two bodies that fly may touch each other."""

NEAR, FIRM = 1e-6, 30.0
"""m, from which on a body has come to the ground, and how many times as heavy each such point makes it."""

LEAST_WITHIN, LEAST_HELD = 1e-3, 1e-6
"""How far a normal answers to an impulse at the least, beside all the mass: between two links of what flies, and of
what joints hold to the world.

They can press on each other at a dead centre: nothing there moves along the normal (a wheel on its hinge, the face of a
turntable), and impulses would be without bounds.
"""


class Lifted(NamedTuple):
    """Shifts of bodies at the end of a step.

    Args:
        by_root: of links that fly, in the world's axes, m.
        gaps: of all points after them, m.
    """

    by_root: dict[int, Vec]
    gaps: list[Scalar]

    def added_to(self, way: Flat, tree: Tree, frames: Field[Placed]) -> list[Scalar]:
        """A way (nv), with the shifts added in the axes of some frames."""
        found = list(way)
        for root, shift in self.by_root.items():
            link = tree.links[root]
            for k, x in enumerate(frames[link].R.transpose_times(shift), start=link.v_start + 3):
                found[k] = found[k] + x
        return found

    def most_work(self, tree: Tree) -> Scalar:
        """The most that the shifts can do against gravity, J."""
        total: Scalar = 0.0
        for root, mass in masses_that_fly(tree).items():
            total = total + mass * length(self.by_root[root]) if root in self.by_root else total
        return total * length(tree.gravity)


def overlaps_of(points: Sequence[PlacedPoint], h: Scalar) -> list[Scalar]:
    """Of each point the largest overlap of its pair of rigid surfaces, m; zero where it is what steps of h s leave."""
    most: dict[int, Scalar] = {}
    least = by_digits(h, PUT_THERE, PUT_THERE_SINGLE)
    for point in points:
        if point.touch.material.is_rigid:
            most[id(point.touch)] = maximum(most.get(id(point.touch), least), -point.gap)
    found = {key: where(x > least, x, 0.0) for key, x in most.items()}
    return [found.get(id(point.touch), 0.0) for point in points]


def can_be_lifted(tree: Tree, touches: Sequence[Touch]) -> bool:
    """Whether of all that may touch one side flies, and not both together."""
    masses = masses_that_fly(tree)
    return all(_sides(tree, touch, masses) for touch in touches)


def lifted_out(tree: Tree, touches: Sequence[Touch], q: Flat, left: Flat, close: Scalar) -> Lifted:
    """Shifts after which no rigid surfaces overlap.

    Points are gone through one after the other. Where two bodies that fly may touch each other, some times: those that
    have come to the ground count as many times as heavy, so that they stay there.

    Args:
        tree: of links.
        touches: what may touch.
        q: configuration at the end of the step.
        left: of each point, the overlap that is left to later steps, m.
        close: by how much more surfaces may overlap, m.
    """
    points, _ = placed_points(touches, frames_passed(tree, touches, placed(tree, q)), q)
    masses = masses_that_fly(tree)
    sides = [_sides(tree, point.touch, masses) for point in points]
    shifts: dict[int, Vec] = {}
    between = any(len(both) > 1 for both in sides)
    if between:
        for point, both in zip(points, sides, strict=True):
            if len(both) == 1 and point.touch.material.is_rigid:
                ((root, _),) = both
                masses[root] = masses[root] * where(point.gap < NEAR, FIRM, 1.0)
    for _ in range(PASSES if between else 1):
        for point, both, most in zip(points, sides, left, strict=True):
            if point.touch.material.is_rigid:
                missing = maximum(-_gap(point, both, shifts) - (most + close), 0.0)
                total = sum((1.0 / masses[root] for root, _ in both), 0.0)
                for root, sign in both:
                    share = 1.0 if len(both) == 1 else 1.0 / (masses[root] * total)
                    shift = point.normal * (missing * (sign * share))
                    shifts[root] = shifts[root] + shift if root in shifts else shift
    shifts = {root: Vec.of(waypoint([*shift])) for root, shift in shifts.items()}
    return Lifted(shifts, [_gap(point, both, shifts) for point, both in zip(points, sides, strict=True)])


def _gap(point: PlacedPoint, sides: Sequence[tuple[int, float]], shifts: dict[int, Vec]) -> Scalar:
    gap = point.gap
    for root, sign in sides:
        if root in shifts:
            gap = gap + point.normal.dot(shifts[root]) * sign
    return gap


def _sides(tree: Tree, touch: Touch, masses: dict[int, Scalar]) -> list[tuple[int, float]]:
    """The links that fly on whose trees the two surfaces are, and which side that is; none if it is one tree."""
    places = ((touch.a, 1.0), (touch.b, -1.0))
    roots = [(root_of(tree, place.link).index, sign) for place, sign in places if place.link is not None]
    if len({root for root, _ in roots}) < len(roots):
        return []
    return [(root, sign) for root, sign in roots if root in masses]


def root_of(tree: Tree, link: Link) -> Link:
    """The link on the world that another hangs on."""
    *_, root = tree.ancestors(link)
    return root


def least_responses(tree: Tree, touches: Sequence[Touch], q: Flat) -> dict[int, Scalar]:
    """How far a normal answers to an impulse at the least, 1/kg, by the identity of what may touch.

    To what does not hang on it, what flies always answers as its whole mass does or more, and so does what slides two
    ways before it turns, as planar walkers do. These are left out.
    """
    masses, found = masses_that_fly(tree), {}
    for touch in touches:
        roots = [root_of(tree, link).index for link in touch.links]
        is_one_tree = len(roots) == 2 and roots[0] == roots[1]
        if is_one_tree and roots[0] in masses:
            found[id(touch)] = LEAST_WITHIN / masses[roots[0]]
        elif is_one_tree or not any(
            root in masses or _slides(tree, link, q) > 1 for root, link in zip(roots, touch.links, strict=True)
        ):
            found[id(touch)] = LEAST_HELD / max(touch.mass, 1e-30)
    return found


def _slides(tree: Tree, link: Link, q: Flat) -> int:
    """Freedoms from the world on along which a link and all before it slide, up to the first joint that turns."""
    count = 0
    for up in reversed(list(tree.ancestors(link))):
        turns = [not all(is_zero(x) for x in column.ang) for column in up.S(q)]
        count += turns.count(False)
        if any(turns):
            break
    return count


def masses_that_fly(tree: Tree) -> dict[int, Scalar]:
    """By links that fly, the mass of all that hangs on them, kg."""
    found: dict[int, Scalar] = {}
    for link in tree:
        root = root_of(tree, link)
        if root.joint.flies and not root.is_mimic:
            found[root.index] = found.get(root.index, 0.0) + link.rigid_part.m
    return found
