"""From a mechanism to its touches: which shapes may meet, with how many points, of which material."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from linkwise.algorithms.kinematics import Place, Placed
from linkwise.contact.choice import freedoms_are_cheaper, loops_are_cheaper, room_for
from linkwise.contact.features import Features
from linkwise.contact.geometry.pairs import contacts
from linkwise.contact.geometry.points import Contacts
from linkwise.contact.geometry.selection import meetings
from linkwise.contact.geometry.supports import radius_about_origin
from linkwise.contact.joint_rows import joint_rows
from linkwise.contact.touching import Touch, rows_of_material
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.mechanism.bodies_and_joints import Body, Pose
from linkwise.mechanism.contacts import ContactScene, Ground
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.materials import Material
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.parameters import Values
from linkwise.memoized import Memory, once
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec

if TYPE_CHECKING:
    from linkwise.mechanism.tree import Tree

T = TypeVar("T")


@dataclass(frozen=True)
class Meeting:
    """Two shapes that may touch, with what is between them; the first is on a body, the second on a body or fixed.

    Args:
        body: of the first shape.
        shape: in the body's frame.
        other: body of the second shape; None where it is fixed to the world.
        other_shape: in that body's frame, or the world's.
        points: number of contact points.
        material: of the pair.
        ground: the ground that the second shape is, if it is one.
        along_first: whether the direction of friction is one of the first shape.
    """

    body: Body
    shape: Geometry
    other: Body | None
    other_shape: Geometry
    points: int
    material: Material
    ground: Ground | None = None
    along_first: bool = False

    @property
    def names(self) -> tuple[str, str]:
        """Of the body, and of what it touches."""
        on = self.ground or self.other
        return self.body.name, self.other_shape.name if on is None else on.name

    @property
    def surfaces(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """All names that the two shapes answer to; what is fixed to the world is ``"ground"`` as well."""
        if self.other is not None:
            second = self.other_shape.names_on(self.other.name)
        else:
            second = *self.other_shape.names_on(None), "ground"
        return self.shape.names_on(self.body.name), second

    @property
    def name(self) -> str:
        """For people."""
        return " on ".join(self.names)


_LISTED = 6


def excluding(meetings: Iterable[Meeting]) -> str:
    """The argument that leaves pairs out, with their names to be copied; of many the first."""
    names = list(dict.fromkeys(meeting.names for meeting in meetings))
    more = ", …" if len(names) > _LISTED else ""
    return f"exclude=[{', '.join(map(repr, names[:_LISTED]))}{more}]"


def _worked_out_once(work: Callable[[Mechanism], T]) -> Callable[[Mechanism], T]:
    """Decorator of what every call about a mechanism with contacts asks for, and a robot has hundreds of pairs."""

    @wraps(work)
    def known(mechanism: Mechanism) -> T:
        return once(Memory.of(mechanism).table("contacts"), work.__name__, lambda: work(mechanism))

    return known


@_worked_out_once
def meetings_of(mechanism: Mechanism) -> tuple[Meeting, ...]:
    """All pairs of shapes that may touch, in the order in which their points stand in results."""
    scene = mechanism._contact_scene
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
    grounds = {_fixed(ground): ground for ground in scene.grounds}
    for pair in meetings(mechanism, ground=list(grounds), asked=scene.may_touch):
        a, b = pair.a, pair.b
        body, other = mechanism.bodies[a.body], mechanism.bodies[b.body] if b.body >= 0 else None
        ground = grounds.get(b.shape) if other is None else None
        surfaces = body.name, a.shape, ground if other is None else other.name, b.shape
        material, along_first = scene.of_pair(*surfaces), scene.rubs_along_first(*surfaces)
        yield Meeting(body, a.shape, other, b.shape, pair.slots, material, ground, along_first)


def _fixed(ground: Ground) -> Geometry:
    """The shape of a ground, in the world."""
    X, Y = (np.array(pose) for pose in (ground.placement, ground.shape.placement))
    return replace(ground.shape, placement=tuple(map(tuple, (X @ Y).tolist())), name=ground.name)


def rigid_meeting(mechanism: Mechanism) -> Meeting | None:
    """The first pair of shapes whose surfaces do not give way, if there is one."""
    return next((meeting for meeting in meetings_of(mechanism) if meeting.material.is_rigid), None)


CROWD = 40
"""Points of all pairs beyond which distances are found in loops over pairs."""


MOST = 400
"""Points that have places of their own in a step, each written out: more would take minutes to compile."""


def is_crowded(mechanism: Mechanism) -> bool:
    """Whether the pairs of a mechanism are so many that distances are found in loops."""
    deforms = any(body.flexible is not None for body in mechanism.bodies)
    return not deforms and sum(meeting.points for meeting in meetings_of(mechanism)) > CROWD


def _usual_points(mechanism: Mechanism, pairs: tuple[Meeting, ...]) -> int:
    """How many points of a crowd are kept where nothing is said: enough for feet and hands, or for a stack of boxes."""
    return max(room_for(pairs), 8 * _flying(mechanism))


def _flying(mechanism: Mechanism) -> int:
    """How many bodies move freely."""
    return sum(
        joint.type.flies and parent < 0 for joint, parent in zip(mechanism.joints, mechanism.parents, strict=True)
    )


def _are_alone_on_hills(mechanism: Mechanism, pairs: tuple[Meeting, ...]) -> bool:
    """Whether all bodies move freely, over facets: with few points, all are written out, and create no energy."""
    is_hilly = any(meeting.other_shape.kind in ("heightfield", "terrain") for meeting in pairs)
    return is_hilly and _flying(mechanism) == len(mechanism.bodies) and sum(m.points for m in pairs) <= CROWD


@_worked_out_once
def kept_points(mechanism: Mechanism) -> int | None:
    """How many points of a crowd are kept; None where a scene is none, and all points have places of their own."""
    scene = mechanism._contact_scene
    if scene is None or scene.rules.solver == "dual":
        return None
    pairs = meetings_of(mechanism)
    points = sum(meeting.points for meeting in pairs)
    kept = min(_usual_points(mechanism, pairs) if scene.rules.points is None else scene.rules.points, points)
    alone = scene.rules.points is None and _are_alone_on_hills(mechanism, pairs)
    if scene.rules.solver == "auto" and (alone or not loops_are_cheaper(pairs, kept, mechanism.nv)):
        return None
    hindered = _hindered(mechanism, pairs)
    if not hindered:
        return kept
    if scene.rules.solver == "auto":
        if points <= MOST:
            return None
        raise InputError(
            f"{mechanism.name!r} touches at too many points for steps with {hindered}",
            got=f"{points} points of {len(pairs)} pairs",
            allowed=f"{MOST} points; any number for rigid bodies with isotropic friction and Newton's impacts",
            do="only=[…] the bodies that touch, or exclude=[…]; "
            'rules=lw.ContactRules(solver="dual") compiles them all, in minutes',
        )
    raise InputError(
        f"the primal contact solver is not for {mechanism.name!r}",
        got=hindered,
        allowed="rigid bodies, friction that is the same in all directions, Newton's impacts",
        do='rules=lw.ContactRules(solver="dual"), and only=[…] the bodies that touch',
    )


def goes_along_freedoms(mechanism: Mechanism) -> bool:
    """Whether Newton steps of a crowd are on velocities of the freedoms: where that is named, or takes less."""
    scene = mechanism._contact_scene
    if scene is None:
        return False
    ends = len(joint_rows(mechanism, scene.rules))
    rows = Features.of(meetings_of(mechanism)).rows
    return scene.rules.solver == "primal" or freedoms_are_cheaper(rows, ends, mechanism.nv)


def _hindered(mechanism: Mechanism, pairs: tuple[Meeting, ...]) -> str:
    """Something of a mechanism that crowds do not have, for people; empty if there is nothing."""
    if any(body.flexible is not None for body in mechanism.bodies):
        return "bodies that deform"
    for meeting in pairs:
        m = meeting.material
        if not m.is_isotropic:
            return f"{meeting.name}: friction {m.friction}"
        if m.restitution > 0.0 and m.impact == "poisson":
            return f"{meeting.name}: impacts by Poisson's law"
    return ""


@_worked_out_once
def points_of(mechanism: Mechanism) -> int:
    """Number of contact points."""
    kept = kept_points(mechanism)
    return sum(meeting.points for meeting in meetings_of(mechanism)) if kept is None else kept


def numbers_of(mechanism: Mechanism) -> list[float]:
    """Numbers of all points where each has a place of its own, as :class:`~linkwise.contact.crowd.Crowd` has them."""
    pairs = enumerate(meetings_of(mechanism))
    return [8.0 * k + 1.0 + i for k, meeting in pairs for i in range(meeting.points)]


def pair_places(numbers: Any) -> Any:
    """Places of pairs from numbers of their points, integers of the same shape; -1 for none."""
    return (np.asarray(np.nan_to_num(numbers), int) - 1) // 8


@_worked_out_once
def rows_of(mechanism: Mechanism) -> int:
    """Number of impulses: those of all points, then those along joints; of a crowd, then the numbers of its points."""
    scene, kept = mechanism._contact_scene, kept_points(mechanism)
    along = 0 if scene is None else len(joint_rows(mechanism, scene.rules))
    if kept is not None:
        return kept * (Features.of(meetings_of(mechanism)).rows + 1) + along
    return along + sum(meeting.points * rows_of_material(meeting.material) for meeting in meetings_of(mechanism))


def touches_of(mechanism: Mechanism, tree: Tree, p: Flat | None = None) -> list[Touch]:
    """The touches of a mechanism on a tree of its links, for values of its run-time parameters."""
    friction = Values(mechanism, p).friction()
    return [_touch(meeting, tree, friction, mechanism.mass) for meeting in meetings_of(mechanism)]


def _touch(meeting: Meeting, tree: Tree, friction: Scalar, mass: float) -> Touch:
    def points(a: Placed, b: Placed) -> Contacts:
        return contacts(meeting.shape, a, meeting.other_shape, b)

    other, surface = meeting.other, (0.0,) * 6
    if meeting.ground is not None:
        surface = (*meeting.ground.spin, *meeting.ground.velocity)
    b = (
        Place(None, _transform(meeting.other_shape.placement))
        if other is None
        else _on_link(tree, other, meeting.other_shape)
    )
    a = _on_link(tree, meeting.body, meeting.shape)
    is_plane = meeting.other_shape.kind == "plane"
    along = a if meeting.along_first else b
    size = min(_extent(body) for body in (meeting.body, other) if body is not None)
    given = a, b, points, meeting.points, meeting.material, surface, meeting.name, is_plane, friction, along, mass, size
    return Touch(*given)


def _extent(body: Body) -> float:
    """Distance of the farthest point of a body's shapes from the middle of their origins, m."""
    places = np.array([[row[3] for row in shape.placement[:3]] for shape in body.collisions])
    radii = [float(radius_about_origin(shape)) for shape in body.collisions]
    return float((np.linalg.norm(places - places.mean(axis=0), axis=1) + radii).max())


_FLAT = ("plane", "box", "convex", "heightfield", "terrain")


def rounding_of(shape: Geometry, other: Geometry) -> float | None:
    """The radius about corners or centres of a shape where it touches what is flat; None for other shapes."""
    if other.kind not in _FLAT:
        return None
    if shape.kind in ("sphere", "capsule"):
        return shape.size[0]
    return 0.0 if shape.kind in ("box", "convex") else None


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


def thinnest(mechanism: Mechanism) -> float:
    """The least :func:`thickness` of all pairs, m."""
    return min(map(thickness, meetings_of(mechanism)))


def thickness(meeting: Meeting) -> float:
    """Of two shapes the mean of their smallest sizes, m; infinite where one of them has no other side."""
    return 0.5 * sum(map(_smallest, (meeting.shape, meeting.other_shape)))


def _smallest(shape: Geometry) -> float:
    size = shape.size
    if shape.kind in ("plane", "heightfield", "terrain"):
        return math.inf
    if shape.kind == "convex":
        return float(np.ptp(np.array(shape.vertices), axis=0).min())
    if shape.kind == "box":
        return min(size)
    return (
        min(2.0 * size[0], size[1])
        if shape.kind == "cylinder"
        else 2.0 * min(size if shape.kind == "ellipsoid" else size[:1])
    )
