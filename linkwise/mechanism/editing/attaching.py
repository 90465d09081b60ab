"""Another mechanism, a payload or a frame, fixed to this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.joints import Joint
from linkwise.mechanism.bodies_and_joints import IDENTITY, Frame, JointInstance, Named, Part, Pose, product
from linkwise.mechanism.checks import checked_inertia, checked_mass, checked_pose, checked_vector
from linkwise.mechanism.editing.renaming import renamed
from linkwise.mechanism.editing.taken_apart import MechanismT, apart, together
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
    for name, coordinates in theirs.configurations.items():
        pieces.configurations[name] = pieces.configurations.get(name, {}) | coordinates
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
