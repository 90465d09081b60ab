"""The bodies to be built: a tree with its root held or freed, its locked joints made fixed, its followers resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.files.description import JointWritten, LinkWritten
from linkwise.files.followers import Coordinate, locked_values, resolve
from linkwise.files.tree import WORLD, LinkTree
from linkwise.mechanism.placement import axis_rotation, inverse_pose, pose


@dataclass(frozen=True, slots=True, eq=False)
class CarriedLink:
    """A link together with the joint that carries it.

    Args:
        link: the link as written.
        joint: its joint as it is to be built: of type "fixed" where it is locked, its placement moved to that value.
        locked: the value at which it is locked, or None.
    """

    link: LinkWritten
    joint: JointWritten
    locked: float | None = None

    @property
    def at_rest(self) -> FloatArray:
        """The link's frame in the parent's, with the joint at its zero position."""
        return self.joint.placement @ inverse_pose(self.joint.joint_frame)


def bodies_of(
    tree: LinkTree,
    *,
    floating: bool = False,
    locked: Iterable[str] | Mapping[str, float | None] = (),
    mimic: bool = True,
) -> tuple[CarriedLink, ...]:
    """The bodies, each after its parent.

    A root link named "world" is the inertial frame and gives no body. `floating` frees the root link; where that is
    the inertial frame, it frees the links that only stand on it, or else the one link fixed to it instead, so that at
    the neutral position everything is where it is without `floating`.
    """
    joints = tree.joints
    values = locked_values(locked, tree.description.joints)
    coordinates = resolve(joints, values, tree.description.file) if mimic else {}
    freed = set(map(id, _freed_joints(tree))) if floating and tree.root.name == WORLD else ()
    root_joint = unused("root_joint", {joint.name for joint in joints if not joint.holds_root})

    bodies: list[CarriedLink] = []
    if tree.root.name != WORLD:
        root = tree.root
        kind = "free" if floating else "fixed"
        bodies.append(CarriedLink(root, JointWritten(root_joint, root.line, kind, WORLD, root.name)))
    for joint in joints:
        link = tree.links[joint.child]
        if id(joint) in freed:
            name = joint.name if joint.holds_root else root_joint
            bodies.append(CarriedLink(link, replace(joint, name=name, type="free")))
            continue
        coordinate = coordinates.get(joint.name, Coordinate(locked=values.get(joint.name)))
        bodies.append(_body(joint, link, coordinate))
    return tuple(bodies)


def _body(joint: JointWritten, link: LinkWritten, coordinate: Coordinate) -> CarriedLink:
    if coordinate.locked is None or joint.type == "fixed":
        return CarriedLink(link, replace(joint, mimic=coordinate.mimic))
    still = JointWritten(
        joint.name,
        joint.line,
        "fixed",
        joint.parent,
        joint.child,
        joint.placement @ _moved(joint, coordinate.locked),
        joint_frame=joint.joint_frame,
        file=joint.file,
    )
    return CarriedLink(link, still, coordinate.locked)


def _moved(joint: JointWritten, value: float) -> FloatArray:
    """The pose of the joint's outer side in its inner side; the value is 0 for joints of more than one coordinate."""
    if value == 0.0:
        return pose()
    if joint.type == "prismatic":
        return pose([value * part for part in joint.axis])
    return pose([joint.pitch * value * part for part in joint.axis], axis_rotation(joint.axis, value))


def _freed_joints(tree: LinkTree) -> tuple[JointWritten, ...]:
    """The joints that hold the mechanism to a root link named "world"."""
    roots = tuple(joint for joint in tree.joints if joint.holds_root)
    if roots:
        return roots
    holding = [joint for joint in tree.joints if joint.parent == WORLD]
    if len(holding) != 1 or holding[0].type != "fixed":
        raise InputError(
            "floating=True needs one link to free, but the root link of this file is the world itself",
            got=", ".join(f"joint {joint.name!r} ({joint.type})" for joint in holding[:5]) or "no joints below 'world'",
            allowed="one fixed joint below the link 'world'",
            do="load it with floating=False, or rename the root link in the file",
        )
    return tuple(holding)


def unused(name: str, taken: set[str]) -> str:
    """The name, or with a number after it where it is taken already; it is taken then."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate
