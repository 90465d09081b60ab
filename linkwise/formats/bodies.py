"""The bodies to be built: a tree with its root held or freed, its locked joints made fixed, its followers resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linkwise.errors import InputError
from linkwise.formats.description import JointType, JointWritten, LinkWritten
from linkwise.formats.followers import Coordinate, locked_values, resolve
from linkwise.formats.tree import WORLD, Tree
from linkwise.model.description import JointLimits, Mimic
from linkwise.model.placement import Array, axis_rotation, pose

__all__ = ["Body", "bodies_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A link together with the joint that carries it.

    Args:
        link: the link as written.
        parent: the name of the body that carries it, or "world".
        joint_name: the name of its joint.
        type: the joint's type; "fixed" also where a joint is locked.
        placement: the joint's frame in the parent's frame, with the locked value where there is one.
        line: where the joint was written, or the link where the file has no joint for it.
        locked: whether it is fixed only because its joint is locked.
    """

    link: LinkWritten
    parent: str
    joint_name: str
    type: JointType
    placement: Array
    line: int
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: JointLimits | None = None
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    locked: bool = False


def bodies_of(
    tree: Tree,
    *,
    floating: bool = False,
    locked: Iterable[str] | Mapping[str, float | None] = (),
    mimic: bool = True,
) -> tuple[Body, ...]:
    """The bodies, each after its parent.

    A root link named "world" is the inertial frame and gives no body. `floating` frees the root link; where that is
    the inertial frame, it frees the one link fixed to it instead, so that at the neutral position everything is where
    it is without `floating`.
    """
    joints = tree.joints
    values = locked_values(locked, tree.description.joints)
    coordinates = resolve(joints, values, tree.description.file) if mimic else {}
    freed = _freed_joint(tree) if floating and tree.root.name == WORLD else None
    root_joint = _unused("root_joint", {joint.name for joint in joints})

    bodies: list[Body] = []
    if tree.root.name != WORLD:
        kind: JointType = "floating" if floating else "fixed"
        bodies.append(Body(tree.root, WORLD, root_joint, kind, pose(), tree.root.line))
    for joint in joints:
        link = tree.links[joint.child]
        if joint is freed:
            bodies.append(Body(link, WORLD, root_joint, "floating", joint.placement, joint.line))
            continue
        coordinate = coordinates.get(joint.name, Coordinate(locked=values.get(joint.name)))
        bodies.append(_body(joint, link, coordinate))
    return tuple(bodies)


def _body(joint: JointWritten, link: LinkWritten, coordinate: Coordinate) -> Body:
    if coordinate.locked is not None and joint.type != "fixed":
        placement = joint.placement @ _moved(joint, coordinate.locked)
        return Body(link, joint.parent, joint.name, "fixed", placement, joint.line, locked=True)
    return Body(
        link,
        joint.parent,
        joint.name,
        joint.type,
        joint.placement,
        joint.line,
        axis=joint.axis,
        limits=joint.limits,
        damping=joint.damping,
        friction=joint.friction,
        mimic=coordinate.mimic,
    )


def _moved(joint: JointWritten, value: float) -> Array:
    """The pose of the joint's outer side in its inner side; the value is 0 for joints of more than one coordinate."""
    if value == 0.0:
        return pose()
    if joint.type == "prismatic":
        return pose([value * part for part in joint.axis])
    return pose(R=axis_rotation(joint.axis, value))


def _freed_joint(tree: Tree) -> JointWritten:
    """The one joint that holds the mechanism to a root link named "world"."""
    holding = [joint for joint in tree.joints if joint.parent == WORLD]
    if len(holding) != 1 or holding[0].type != "fixed":
        raise InputError(
            "floating=True needs one link to free, but the root link of this file is the world itself",
            got=", ".join(f"joint {joint.name!r} ({joint.type})" for joint in holding[:5]) or "no joints below 'world'",
            allowed="one fixed joint below the link 'world'",
            do="load it with floating=False, or rename the root link in the file",
        )
    return holding[0]


def _unused(name: str, taken: set[str]) -> str:
    """The name, or with a number after it where the file has it already."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    return candidate
