"""The bodies to be built: a tree with its root held or freed, its locked joints made fixed, its followers resolved.

Whether their masses can exist is asked here, too. A rigid body's inertia about its mass centre has principal moments
that are not negative and of which none exceeds the sum of the other two. Published files break both rules: by rounding,
by signs lost in a CAD export, by numbers that were never meant. What matters for the motion is not a link but what
moves as one, all links joined by fixed joints together: a sensor's odd inertia drowns in the trunk that carries it. So
the links are warned about, and only a rigid group whose inertia is clearly negative is refused: its kinetic energy
would be too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError, ModelFileError, ModelWarning
from linkwise.files.file_description import JointWritten, LinkWritten
from linkwise.files.topology import WORLD, Coordinate, LinkTree, locked_values, resolve
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


_NOISE = 1e-6  # relative to the largest moment: the rounding of numbers written with seven digits
_STRONG = 1e-3  # beyond this it is no rounding
_GYRATION = 1e-10  # m²: moments below mass times this are zero for any purpose


def check_inertias(bodies: Sequence[CarriedLink], file: str, *, allow_unphysical: bool = False) -> list[ModelWarning]:
    """Warnings about inertias; `ModelFileError` for a moving group of links whose inertia is clearly negative."""
    negative: list[LinkWritten] = []
    lopsided: list[LinkWritten] = []
    pointless: list[LinkWritten] = []
    for body in bodies:
        link = body.link
        small, middle, large = _moments(link.inertia)
        noise = _NOISE * abs(large) + _GYRATION * link.mass
        if link.mass == 0.0 and link.inertia.any():
            pointless.append(link)
        if small < -noise:
            negative.append(link)
        elif large > small + middle + noise:
            lopsided.append(link)

    for group in _groups(bodies):
        first = group[0][0].joint
        if first.parent == WORLD and first.type == "fixed":
            continue  # it does not move
        mass, inertia = _together([(each.link, X) for each, X in group])
        small, _, large = _moments(inertia)
        if small < -(_STRONG * abs(large) + _GYRATION * mass) and not allow_unphysical:
            at = next((each.link for each, _ in group if each.link in negative), group[0][0].link)
            raise ModelFileError(
                f"the inertia of link {at.name!r} is negative about some axis: no body has that",
                file=at.file or file,
                line=at.line,
                got="principal moments " + ", ".join(f"{moment:.6g}" for moment in _moments(at.inertia)),
                allowed="moments >= 0, none larger than the sum of the other two",
                do="correct the <inertia>, or load(..., allow_unphysical=True) to keep it as it is",
            )

    return [
        *_warning("there are links with an inertia that has a negative principal moment", negative, file),
        *_warning(
            "there are links with an inertia that no body can have: one moment exceeds the others' sum", lopsided, file
        ),
        *_warning("there are links with an inertia but no mass", pointless, file),
    ]


def _moments(inertia: FloatArray) -> tuple[float, float, float]:
    small, middle, large = np.linalg.eigvalsh(inertia)
    return float(small), float(middle), float(large)


def _groups(bodies: Sequence[CarriedLink]) -> list[list[tuple[CarriedLink, FloatArray]]]:
    """The bodies that move as one, each with its pose in the first of them."""
    groups: list[list[tuple[CarriedLink, FloatArray]]] = []
    place: dict[str, tuple[int, FloatArray]] = {}
    for body in bodies:
        if body.joint.type == "fixed" and body.joint.parent in place:
            index, X_parent = place[body.joint.parent]
            X = X_parent @ body.at_rest
            groups[index].append((body, X))
        else:
            index, X = len(groups), pose()
            groups.append([(body, X)])
        place[body.link.name] = index, X
    return groups


def _together(parts: Sequence[tuple[LinkWritten, FloatArray]]) -> tuple[float, FloatArray]:
    """The mass of several links, and their inertia about the common mass centre in the axes of the first."""
    mass = sum(link.mass for link, _ in parts)
    centres = [X[:3, :3] @ link.com + X[:3, 3] for link, X in parts]
    centre = np.zeros(3)
    if mass > 0.0:
        centre = sum((link.mass / mass * c for (link, _), c in zip(parts, centres, strict=True)), centre)
    inertia = np.zeros((3, 3))
    for (link, X), c in zip(parts, centres, strict=True):
        d = c - centre
        R = X[:3, :3]
        inertia = inertia + R @ link.inertia @ R.T + link.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, (inertia + inertia.T) / 2


def _warning(what: str, links: Sequence[LinkWritten], file: str) -> list[ModelWarning]:
    if not links:
        return []
    shown = ", ".join(f"{link.name!r} (line {link.line})" if not link.file else f"{link.name!r}" for link in links[:5])
    more = f", and {len(links) - 5} more" if len(links) > 5 else ""
    return [ModelWarning(f"{file}: {what}", got=shown + more, do="check the <inertial> of these links")]
