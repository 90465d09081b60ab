"""Rows of a crowd's kept points: motions of joint axes at points, and impulses that points remember and pass on."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.kinematics import Placed, placed
from linkwise.algorithms.sweeps import Field
from linkwise.contact.crowd import Crowd, KeptPoint, outboard
from linkwise.contact.features import Features
from linkwise.contact.geometry.points import FAR, choose, on_second_surface, tangents
from linkwise.contact.point_laws import over_used
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Items, Scalar, looped_over, minimum, where
from linkwise.spatial.vectors import Motion, Vec

Flat = Sequence[Scalar]


def crowd_push(crowd: Crowd, q: Flat, impulses: Flat) -> list[Scalar]:
    """Joint impulses J*λ of the kept points, from impulses of a step."""
    frames = placed(crowd.tree, q)
    slots, _ = crowd.nearest(frames)
    columns, folded = columns_of(crowd.tree, frames, q), Folded(crowd.tree)
    own = remembered(slots, crowd.features.rows, impulses)

    def step(total: Flat, slot: Flat, grip: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
        point = KeptPoint.of(slot, crowd.names)
        arms, found = [arm_of(column, point, Vec.of(grip)) for column in columns], list(total)
        for (moment, force), x in zip(ways(crowd.features, point), own, strict=True):
            along = folded([moment.dot(arm.ang) + force.dot(arm.lin) for arm in arms])
            found = [a + x * b for a, b in zip(found, along, strict=True)]
        return found, []

    rows = [own[k : k + crowd.features.rows] for k in range(0, len(own), crowd.features.rows)]
    return looped_over([slots, grips_of(crowd, slots), Items.rows(rows)], step, [0.0] * folded.count)[0]


def used_of(slots: Items) -> Items:
    """Of each kept point its number, which is zero where it is not used."""
    return Items(slots.numbers, [start + 10 for start in slots.starts], 1)


def grips_of(crowd: Crowd, slots: Items) -> Items:
    """Where forces act at each kept point: see :func:`linkwise.contact.touching.shifts`."""
    used = used_of(slots)

    def one(_: Flat, slot: Flat) -> tuple[list[Scalar], list[Scalar]]:
        point = KeptPoint.of(slot, crowd.names)
        first, second = point.more["first"], point.more["second"]

        def nearer(least: Flat, other: Flat) -> tuple[list[Scalar], list[Scalar]]:
            there = KeptPoint.of(other, crowd.names)
            same = same_number(there.more["first"], first) & same_number(there.more["second"], second)
            return [where(same & (there.gap < least[0]), there.gap, least[0])], []

        nearest = over_used(used, [slots], nearer, [minimum(point.gap, FAR)])[0][0]
        shift = nearest * where(second < -0.5, 1.0, 0.5)
        grip = on_second_surface(point.point, point.normal, point.gap) + point.normal * shift
        return [], list(choose(point.more["stiffness"] > 0.0, point.point, grip) if crowd.features.gives else grip)

    return Items.rows(over_used(used, [slots], one, [])[1])


def remembered(slots: Items, rows: int, impulses: Flat) -> list[Scalar]:
    """Impulses of the step before, each where its point is now."""
    count, used = len(slots.starts), used_of(slots)
    of_joints, numbers = impulses[count * rows : len(impulses) - count], impulses[len(impulses) - count :]

    def step(_: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
        found: list[Scalar] = [0.0] * rows
        for k, number in enumerate(numbers):
            same = same_number(own[0], number)
            found = [where(same, a, b) for a, b in zip(impulses[k * rows : (k + 1) * rows], found, strict=True)]
        return [], found

    made = over_used(used, [used], step, [])[1]
    found = [where(used.of(k)[0] > 0.0, x, 0.0) for k, row in enumerate(made) for x in row]
    return [*found, *of_joints]


class Folded:
    """Numbers of freedoms from those of joint axes: those of joints that follow others count for these."""

    def __init__(self, tree: Tree) -> None:
        self.axes = [
            (link.v_start + i, link.multiplier if link.is_mimic else None)
            for link in tree.links
            for i in range(link.joint.nv)
        ]
        self.count = sum(scale is None for _, scale in self.axes)

    def __call__(self, of_axes: Flat) -> list[Scalar]:
        """Of a number for each axis."""
        return [x for (x,) in self.rows([[x] for x in of_axes])]

    def rows(self, of_axes: Sequence[Flat]) -> list[list[Scalar]]:
        """Of several numbers for each axis."""
        found: list[list[Scalar]] = [[] for _ in range(self.count)]
        for (place, scale), row in zip(self.axes, of_axes, strict=True):
            if scale is None:
                found[place] = list(row)
        for (place, scale), row in zip(self.axes, of_axes, strict=True):
            if scale is not None:
                found[place] = [a + scale * b for a, b in zip(found[place], row, strict=True)]
        return found


def columns_of(tree: Tree, frames: Field[Placed], q: Flat) -> list[list[Scalar]]:
    """Of each joint axis the axis in the world, [ω; v] at its origin, and the links that move with it."""
    found = []
    ranges = outboard(tree)
    for link in tree.links:
        frame = frames[link]
        for axis in link.S(q):
            omega = frame.R @ axis.ang
            found.append([*omega, *(frame.R @ axis.lin + frame.p.cross(omega)), *ranges[link.index]])
    return found


def ways(features: Features, point: KeptPoint) -> list[tuple[Vec, Vec]]:
    """Of each row of a point the moment and the force, unit vectors or zero, in the world's axes."""
    none, along = Vec.zero(), tangents(point.normal)
    found = [(none, point.normal), *((none, t) for t in along)]
    if features.torsion:
        found.append((point.normal, none))
    if features.rolling:
        found += [(t, none) for t in along]
    return found


def same_number(a: Scalar, b: Scalar) -> Scalar:
    """Whether two whole numbers are the same."""
    return (a - b > -0.5) & (a - b < 0.5)


def arm_of(column: Flat, point: KeptPoint, grip: Vec) -> Motion:
    """How the first surface moves against the second where forces act, in the world's axes, for a freedom's motion."""
    omega, v, (first, last) = Vec.of(column[:3]), Vec.of(column[3:6]), column[6:]
    sides = []
    for name in ("first", "second"):
        number = point.more[name]
        sides.append(where((number > first - 0.5) & (number < last + 0.5), 1.0, 0.0))
    sign = sides[0] - sides[1]
    return Motion(omega * sign, (v + omega.cross(grip)) * sign)
