"""A body and what hangs on it taken away."""

from __future__ import annotations

from dataclasses import replace

from linkwise.errors import ModelError, UnknownNameError
from linkwise.mechanism.actuation import SENSOR_KINDS, FrameTransmission, JointTransmission, Transmission
from linkwise.mechanism.bodies_and_joints import Body
from linkwise.mechanism.editing.taken_apart import MechanismT, Pieces, apart, together


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
