"""Gearboxes to couplings of joints.

A gearbox is written as a joint between two links, and means: θ₂ = -ratio θ₁, where θ₁ is the angle from the reference
body to the parent about ``axis``, θ₂ the angle from the reference body to the child about ``axis2``. Each angle is the
sum of the joints on the way between the two links, if these are all hinges about parallel axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.files.description import CouplingWritten, JointWritten
from linkwise.files.sdf.joints import Ends, axis_of
from linkwise.files.sdf.places import Place, body_of, world_pose
from linkwise.files.tree import WORLD
from linkwise.files.values import Values, shown

__all__ = ["couplings_of"]

_PARALLEL = 1e-6  # sine of the angle between axes that are meant to be one; files have six digits


@dataclass(frozen=True, slots=True, eq=False)
class _Forest:
    """Which joint carries each link, and where everything stands."""

    inboard: Mapping[str, JointWritten]
    poses: Mapping[str, FloatArray]

    def way(self, link: str) -> list[JointWritten]:
        """The joints from the link to the world."""
        joints = []
        while link in self.inboard:
            joints.append(self.inboard[link])
            link = joints[-1].parent
        return joints

    def direction(self, joint: JointWritten) -> FloatArray:
        X = self.poses[joint.child] @ joint.joint_frame
        return np.asarray(X[:3, :3] @ joint.axis)


def couplings_of(
    gearboxes: Sequence[tuple[Place, Ends, str | None]], joints: Sequence[JointWritten], links: Sequence[Place]
) -> list[CouplingWritten]:
    """A coupling for each gearbox; `joints` are those of the forest."""
    forest = _Forest(
        {joint.child: joint for joint in joints},
        {WORLD: np.eye(4), **{link.name: world_pose(link) for link in links}} if gearboxes else {},
    )
    return [_coupling(place, ends, file, forest) for place, ends, file in gearboxes]


def _coupling(place: Place, ends: Ends, file: str | None, forest: _Forest) -> CouplingWritten:
    values, of = place.scope.values, f"gearbox {shown(place.name)}"
    ratio = values.child_number(place.at, "gearbox_ratio", 1.0, of=of)
    if ratio == 0.0:
        values.fail(f"{of} has a ratio of zero", place.at, allowed="any other number")
    at = values.required_child(place.at, "gearbox_reference_body", of=of)
    name = values.content(at, of=of)
    reference = body_of(place.scope.find(name, at, f"the reference body of {of}"))
    turn = world_pose(place)[:3, :3]
    theta_1 = _angle(reference, ends.parent, turn @ axis_of(place, "axis", of), place, of, forest)
    theta_2 = _angle(reference, ends.child, turn @ axis_of(place, "axis2", of), place, of, forest)
    terms = {joint: ratio * theta_1.get(joint, 0.0) + theta_2.get(joint, 0.0) for joint in (*theta_2, *theta_1)}
    terms = {joint: c for joint, c in terms.items() if c != 0.0}
    if not terms:
        values.fail(f"{of} couples nothing: its links do not turn against the reference body", place.at)
    return CouplingWritten(place.name, place.at.line, terms, file=file)


def _angle(
    reference: Place, link: Place, direction: FloatArray, place: Place, of: str, forest: _Forest
) -> dict[str, float]:
    """The angle from the reference body to a link as a sum of joint coordinates: the factor of each."""
    ups, downs = forest.way(reference.name), forest.way(link.name)
    while ups and downs and ups[-1] is downs[-1]:
        ups.pop()
        downs.pop()
    values: Values = place.scope.values
    terms: dict[str, float] = {}
    for joint, sign in (*((joint, 1.0) for joint in downs), *((joint, -1.0) for joint in ups)):
        if joint.type == "fixed":
            continue
        axis = forest.direction(joint)
        if joint.type not in ("revolute", "helical") or np.linalg.norm(np.cross(axis, direction)) > _PARALLEL:
            values.fail(
                f"{of} cannot be read: the links turn about other axes as well",
                place.at,
                got=f"joint {joint.name!r} ({joint.type}) between {reference.name!r} and {link.name!r}",
                allowed="hinges about the axis of the gearbox on the way from the reference body",
            )
        terms[joint.name] = sign if float(axis @ direction) > 0.0 else -sign
    return terms
