"""From a mechanism to its touches: which shapes may meet, with how many points, of which material."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.algorithms.kinematics import Place, Placed
from linkwise.contact.geometry.pairs import contacts, slots, touchable
from linkwise.contact.geometry.points import Contacts
from linkwise.contact.joint_rows import joint_rows
from linkwise.contact.touching import Touch, rows_of_material
from linkwise.errors import InputError
from linkwise.mechanism.bodies_and_joints import Body, Pose
from linkwise.mechanism.contacts import ContactScene, Ground
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.materials import Material
from linkwise.mechanism.mechanism import Mechanism
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec

if TYPE_CHECKING:
    from linkwise.mechanism.tree import Tree


@dataclass(frozen=True)
class Meeting:
    """Two shapes that may touch, before a tree is laid out: the first on a body, the second on a body or a ground."""

    body: Body
    shape: Geometry
    other: Body | Ground
    other_shape: Geometry
    material: Material

    @property
    def points(self) -> int:
        """Number of contact points."""
        return slots(self.shape, self.other_shape)

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.body.name} on {self.other.name}"


def meetings_of(mechanism: Mechanism) -> tuple[Meeting, ...]:
    """All pairs of shapes that may touch, in the order in which their points stand in results."""
    scene = mechanism.contacts
    if scene is None:
        return ()
    found = tuple(_meetings(mechanism, scene))
    if not found:
        raise InputError(
            f"nothing of {mechanism.name!r} can touch",
            got="no pair of shapes for contact",
            allowed="bodies with collisions=[…], and a ground or other bodies",
            do="give bodies shapes for contact, or load a file that has them",
        )
    return found


def _meetings(mechanism: Mechanism, scene: ContactScene) -> Iterator[Meeting]:
    bodies = [b for b in mechanism.bodies if b.collisions and (scene.only is None or b.name in scene.only)]
    for body in bodies:
        for shape in body.collisions:
            for ground in scene.grounds:
                if touchable(shape, ground.shape):
                    yield Meeting(body, shape, ground, ground.shape, scene.of_pair(body.name, ground))
    for a, b in _pairs(mechanism, scene):
        for shape in a.collisions:
            for other in b.collisions:
                if touchable(shape, other) and meet(shape, other):
                    yield Meeting(a, shape, b, other, scene.of_pair(a.name, b.name))


def _pairs(mechanism: Mechanism, scene: ContactScene) -> Iterator[tuple[Body, Body]]:
    """Bodies that may touch each other."""
    excluded = {frozenset(pair) for pair in scene.exclude}
    if scene.between is not None:
        for first, second in scene.between:
            yield mechanism.body(first), mechanism.body(second)
    elif scene.only is None:
        for b in mechanism.bodies:
            for a in mechanism.bodies[: b.index]:
                if b.parent != a.index and frozenset((a.name, b.name)) not in excluded:
                    yield a, b


def meet(a: Geometry, b: Geometry) -> bool:
    """Whether the masks of two shapes let them touch."""
    return bool(a.contype & b.conaffinity) or bool(b.contype & a.conaffinity)


def rigid_meeting(mechanism: Mechanism) -> Meeting | None:
    """The first pair of shapes whose surfaces do not give way, if there is one."""
    return next((meeting for meeting in meetings_of(mechanism) if meeting.material.is_rigid), None)


def points_of(mechanism: Mechanism) -> int:
    """Number of contact points."""
    return sum(meeting.points for meeting in meetings_of(mechanism))


def rows_of(mechanism: Mechanism) -> int:
    """Number of impulses: those of all points, then those along joints."""
    of_points = sum(meeting.points * rows_of_material(meeting.material) for meeting in meetings_of(mechanism))
    scene = mechanism.contacts
    return of_points + (0 if scene is None else len(joint_rows(mechanism, scene.rules)))


def touches_of(mechanism: Mechanism, tree: Tree) -> list[Touch]:
    """The touches of a mechanism on a tree of its links."""
    return [_touch(meeting, tree) for meeting in meetings_of(mechanism)]


def _touch(meeting: Meeting, tree: Tree) -> Touch:
    def points(a: Placed, b: Placed) -> Contacts:
        return contacts(meeting.shape, a, meeting.other_shape, b)

    other, surface = meeting.other, (0.0,) * 6
    if isinstance(other, Ground):
        b = Place(None, _transform(other.placement).then(_transform(meeting.other_shape.placement)))
        surface = (*other.spin, *other.velocity)
    else:
        b = _on_link(tree, other, meeting.other_shape)
    a = _on_link(tree, meeting.body, meeting.shape)
    return Touch(a, b, points, meeting.points, meeting.material, surface, meeting.name)


def _on_link(tree: Tree, body: Body, shape: Geometry) -> Place:
    """Where a shape is on its link; on a flexible body it moves with the node nearest to its origin."""
    link = tree.links[body.index]
    if body.flexible is None:
        return Place(link, link.to_body.then(_transform(shape.placement)))
    origin = [row[3] for row in shape.placement[:3]]
    away = [math.dist(node.position, origin) for node in body.flexible.nodes]
    number = away.index(min(away))
    off = (x - y for x, y in zip(origin, body.flexible.nodes[number].position.tolist(), strict=True))
    turned = [row[:3] for row in shape.placement[:3]]
    return Place(link, Transform.rigid(Mat3(turned), Vec(*off)), link.seat_at(number))


def _transform(pose: Pose) -> Transform:
    return Transform.rigid(Mat3([row[:3] for row in pose[:3]]), Vec(*(row[3] for row in pose[:3])))
