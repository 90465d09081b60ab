"""Mechanisms put together and taken apart: another one, a payload or a frame fixed to this one; a body taken away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.joints import Joint
from linkwise.mechanism.actuation import SENSOR_KINDS, FrameTransmission, JointTransmission, Transmission
from linkwise.mechanism.bodies_and_joints import IDENTITY, Body, Frame, JointInstance, Named, Part, Pose, product
from linkwise.mechanism.body_checks import checked_inertia, checked_mass, checked_pose, checked_vector
from linkwise.mechanism.editing.renaming import renamed
from linkwise.mechanism.editing.taken_apart import MechanismT, Pieces, apart, together
from linkwise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.flexible.structure import NodeKey


def attach(
    mechanism: MechanismT,
    other: Mechanism,
    at: str,
    placement: ArrayLike | None,
    joint: Joint | None,
    prefix: str,
    node: NodeKey | None,
) -> MechanismT:
    """A copy that carries another mechanism; see :meth:`linkwise.Model.attach`."""
    if not isinstance(other, Mechanism):
        raise InputError("what is attached is not a model", got=repr(other)[:80], allowed="a Model")
    if prefix:
        other = renamed(other, lambda name: prefix + name)
    place = mechanism.frame(at, node)
    X = product(place.placement, _pose(placement, f"the placement of {other.name!r}"))
    pieces, theirs = apart(mechanism), apart(other)
    carrier = "world" if place.body < 0 else str(mechanism.bodies[place.body].name)
    seat, on_node = X, place.node
    if joint is not None and joint.nv:
        name = f"{prefix}{other.name}" if not prefix else prefix.rstrip("_/:.-") or other.name
        none = (0.0,) * joint.nv
        nowhere = slice(0, 0)
        instance = JointInstance(f"{name}_joint", 0, joint, nowhere, nowhere, (), none, none, none, None, none, none)
        pieces.bodies.append((replace(theirs.base, name=name, placement=X, node=on_node), carrier, instance))
        carrier, seat, on_node = name, IDENTITY, 0
    else:
        pieces.weld(theirs.base, carrier, X, on_node)
    for body, parent, inboard in theirs.bodies:
        if parent == "world":
            body, parent = replace(body, placement=product(seat, body.placement), node=on_node), carrier
        pieces.bodies.append((body, parent, inboard))
    for frame, on in theirs.frames:
        if on == "world":
            frame, on = replace(frame, placement=product(seat, frame.placement), node=on_node), carrier
        pieces.frames.append((frame, on))
    for closure, a, b in theirs.closures:
        if a == "world":
            closure = replace(closure, placement_a=product(seat, closure.placement_a), node_a=on_node)
        if b == "world":
            closure = replace(closure, placement_b=product(seat, closure.placement_b), node_b=on_node)
        pieces.closures.append((closure, carrier if a == "world" else a, carrier if b == "world" else b))
    pieces.relations += theirs.relations
    pieces.order += theirs.order
    pieces.actuators += theirs.actuators
    pieces.sensors += theirs.sensors
    pieces.springs += theirs.springs
    pieces.contact_excludes += theirs.contact_excludes
    pieces.fields += theirs.fields
    for name, (q, v) in theirs.configurations.items():
        own_q, own_v = pieces.configurations.get(name, ({}, {}))
        pieces.configurations[name] = own_q | q, own_v | v
    return together(mechanism, pieces)


def with_payload(
    mechanism: MechanismT,
    at: str,
    mass: float,
    com: Sequence[float],
    inertia: ArrayLike,
    name: str,
    node: NodeKey | None,
) -> MechanismT:
    """A copy with a mass fixed to a body or frame; see :meth:`linkwise.Model.with_payload`."""
    place = mechanism.frame(at, node)
    part = Part(
        str(name),
        place.placement,
        checked_mass(mass, name),
        checked_vector(com, f"the mass centre of {name!r}"),
        checked_inertia(inertia, name),
        place.node,
    )
    changed = with_frame(mechanism, name, at, None, node)
    if place.body < 0:
        return replace(changed, base_parts=(*changed.base_parts, part))
    bodies = list(changed.bodies)
    bodies[place.body] = replace(bodies[place.body], parts=(*bodies[place.body].parts, part))
    return replace(changed, bodies=Named(bodies))


def with_frame(
    mechanism: MechanismT, name: str, at: str, placement: ArrayLike | None, node: NodeKey | None
) -> MechanismT:
    """A copy with one more named place; see :meth:`linkwise.Model.with_frame`."""
    taken = ["world", *(body.name for body in mechanism.bodies), *(frame.name for frame in mechanism.frames)]
    if str(name) in taken:
        raise InputError(f"the name {name!r} is taken", allowed="a name unlike any other body or frame")
    place = mechanism.frame(at, node)
    X = product(place.placement, _pose(placement, f"the placement of frame {name!r}"))
    return replace(mechanism, frames=(*mechanism.frames, Frame(str(name), place.body, X, place.node)))


def _pose(placement: ArrayLike | None, what: str) -> Pose:
    return IDENTITY if placement is None else checked_pose(placement, what)


def without(mechanism: MechanismT, names: tuple[str, ...]) -> MechanismT:
    """A copy without some bodies; see :meth:`linkwise.Model.without`."""
    pieces = apart(mechanism)
    parts = {part.name for body in mechanism.bodies for part in body.parts} | {p.name for p in mechanism.base_parts}
    bodies = {str(body.name) for body in mechanism.bodies}
    for name in names:
        if name not in bodies | parts:
            raise UnknownNameError("body", name, [*(body.name for body in mechanism.bodies), *sorted(parts - bodies)])
    gone = set(names) & bodies
    for body, parent, _ in pieces.bodies:
        if parent in gone:
            gone.add(body.name)
    welded = set(names) - gone
    _drop_parts(pieces, welded)
    joints_gone = {joint.name for body, _, joint in pieces.bodies if body.name in gone}
    _check_followers(pieces, gone, joints_gone)
    places_gone = gone | welded | {frame.name for frame, on in pieces.frames if on in gone}
    pieces.bodies = [each for each in pieces.bodies if each[0].name not in gone]
    pieces.frames = [each for each in pieces.frames if each[1] not in gone and each[0].name not in welded]
    joints_gone |= {each.name for each, a, b in pieces.closures if {a, b} & gone}
    pieces.closures = [each for each in pieces.closures if each[1] not in gone and each[2] not in gone]
    for name, relation in pieces.relations:
        if relation.joints is None:
            raise ModelError(
                f"the constraint {name!r} is a function of all coordinates, and some would be gone",
                do=f"take it away first: model.without({name!r})",
            )
    pieces.relations = [
        (n, relation) for n, relation in pieces.relations if not set(relation.joints or ()) & joints_gone
    ]

    def stays(transmission: Transmission) -> bool:
        if isinstance(transmission, JointTransmission):
            return not set(transmission.joints) & joints_gone
        frames = (transmission.frame,) if isinstance(transmission, FrameTransmission) else transmission.frames
        return not set(frames) & places_gone

    pieces.actuators = [each for each in pieces.actuators if stays(each.transmission)]
    pieces.springs = [each for each in pieces.springs if stays(each.transmission)]
    pieces.fields = [each for each in pieces.fields if each.frame not in places_gone]
    pieces.sensors = [
        each
        for each in pieces.sensors
        if SENSOR_KINDS[each.kind][0] != "frame" or not {each.target, each.reference} & places_gone
    ]
    return together(mechanism, pieces)


def _drop_parts(pieces: Pieces, names: set[str]) -> None:
    """Take away what is welded to bodies that stay, with its shapes."""
    if not names:
        return

    def left(body: Body) -> Body:
        return replace(
            body,
            parts=tuple(part for part in body.parts if part.name not in names),
            visuals=tuple(shape for shape in body.visuals if shape.name not in names),
            collisions=tuple(shape for shape in body.collisions if shape.name not in names),
        )

    pieces.base = left(pieces.base)
    pieces.bodies = [(left(body), parent, joint) for body, parent, joint in pieces.bodies]


def _check_followers(pieces: Pieces, gone: set[str], joints_gone: set[str]) -> None:
    for body, _, joint in pieces.bodies:
        if body.name not in gone and joint.mimic is not None and joint.mimic.joint in joints_gone:
            raise ModelError(
                f"joint {joint.name!r} follows {joint.mimic.joint!r}, which would be gone",
                do=f"take {body.name!r} away too, or lock the joint first: model.locked([{joint.name!r}])",
            )
