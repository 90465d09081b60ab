"""A body as it was added to a builder, and the checks of what is given with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelError
from linkwise.joints import Joint
from linkwise.mechanism.bodies_and_joints import Part, Pose
from linkwise.mechanism.checks import per_freedom
from linkwise.mechanism.description import Geometry, JointLimits, Mimic
from linkwise.mechanism.shapes import BodyShape

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody


@dataclass(frozen=True, slots=True)
class Entry:
    """One ``add_body`` call, checked."""

    name: str
    parent: str
    joint: Joint
    joint_name: str
    placement: Pose
    part: Part
    limits: tuple[JointLimits, ...]
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    mimic: Mimic | None
    visuals: tuple[Geometry, ...]
    collisions: tuple[Geometry, ...]
    joint_frame: Pose
    stiffness: tuple[float, ...]
    rest: tuple[float, ...]
    flexible: FlexibleBody | None = None
    node: int = 0


def checked_mimic(mimic: Mimic | None, joint: Joint, joint_name: str) -> Mimic | None:
    """Mimic of a joint, if it follows another and can."""
    if mimic is not None and (joint.nq != 1 or joint.nv != 1):
        raise ModelError(
            f"joint {joint_name!r} cannot follow another", got=repr(joint), allowed="a joint with one freedom"
        )
    if mimic is not None and not (math.isfinite(mimic.multiplier) and math.isfinite(mimic.offset)):
        raise ModelError(f"the mimic of joint {joint_name!r} is not finite", got=repr(mimic))
    return mimic


def checked_limits(
    limits: JointLimits | Sequence[JointLimits] | None, joint: Joint, joint_name: str
) -> tuple[JointLimits, ...]:
    """One for each freedom, or none at all."""
    listed = tuple(limits or ()) if isinstance(limits, Iterable | None) else (limits,)
    each = (limits,) * joint.nv if isinstance(limits, JointLimits) else listed
    if not all(isinstance(limit, JointLimits) for limit in each):
        raise InputError(
            f"the limits of joint {joint_name!r} are not limits",
            got=repr(limits),
            allowed="lw.JointLimits(lower, upper, velocity, effort), or a list of them",
        )
    if each and len(each) != joint.nv:
        raise InputError(
            f"joint {joint_name!r} has {joint.nv} freedoms",
            got=f"{len(each)} limits",
            allowed="one for each freedom, or one for all",
        )
    bounded = [limit for limit in each if math.isfinite(limit.lower) or math.isfinite(limit.upper)]
    if bounded and joint.nq != joint.nv:
        raise InputError(
            f"the position of joint {joint_name!r} cannot be limited: a freedom of it has no coordinate of its own",
            got=f"{bounded[0]!r} for {joint!r}",
            allowed="limits of velocity and effort",
            do="drop lower and upper, or build the joint from Revolute and Prismatic ones",
        )
    return each


def checked_springs(
    stiffness: float | Sequence[float], rest: float | Sequence[float], joint: Joint, joint_name: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """One stiffness and one place of rest for each freedom."""
    if isinstance(stiffness, float) and isinstance(rest, float) and stiffness == 0.0 == rest:  # most joints
        return (0.0,) * joint.nv, (0.0,) * joint.nv
    springs = per_freedom(stiffness, joint.nv, f"the stiffness of joint {joint_name!r}")
    try:
        relaxed = np.broadcast_to(np.asarray(rest, float), (joint.nv,))
    except (TypeError, ValueError):
        relaxed = np.full(1, np.nan)
    if not np.isfinite(relaxed).all():
        raise InputError(
            f"the springs of joint {joint_name!r} have no place of rest",
            got=f"rest={rest!r}",
            allowed=f"one finite number, or {joint.nv}",
        )
    if any(springs) and joint.nq != joint.nv:
        raise InputError(
            f"joint {joint_name!r} cannot have a spring: a freedom of it has no coordinate of its own",
            got=f"stiffness={stiffness!r} for {joint!r}",
            do="use lw.JointSprings in the simulation",
        )
    return springs, tuple(relaxed.tolist())


def checked_flexible(
    flexible: object, name: str, mass: ArrayLike, com: ArrayLike, inertia: ArrayLike, mimic: Mimic | None
) -> FlexibleBody | None:
    """Flexible body, if there is one and nothing contradicts it."""
    if flexible is None:
        return None
    from linkwise.flexible.body import FlexibleBody

    if not isinstance(flexible, FlexibleBody):
        raise InputError(
            f"body {name!r} was given a flexible body that is none",
            got=repr(flexible),
            allowed="e.g. lw.FlexibleBody.beam(…)",
        )
    if not flexible.modes:
        raise ModelError(
            f"the flexible body {name!r} has no modes: it is rigid",
            got=repr(flexible),
            do="give mass=flexible.mass, com=flexible.com and inertia=flexible.inertia instead, or keep some modes",
        )
    if np.any(np.asarray(mass)) or np.any(np.asarray(com)) or np.any(np.asarray(inertia)):
        raise ModelError(
            f"the mass of the flexible body {name!r} is its own",
            got="mass, com or inertia beside flexible",
            do="weld what is rigid to one of its nodes: add_body(…, parent=…, at=…)",
        )
    if mimic is not None:
        raise ModelError(
            f"the joint of the flexible body {name!r} cannot follow another",
            got=repr(mimic),
            do="let a rigid body follow and weld the flexible one to it",
        )
    return flexible


def check_shape(shape: object, name: str, mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> None:
    """Refuse what is no shape of a body, and a mass beside it."""
    if not isinstance(shape, BodyShape):
        raise InputError(
            f"the shape of body {name!r} is none",
            got=repr(shape)[:80],
            allowed="e.g. lw.shapes.box((1, 1, 1), density=600)",
            do="give Geometry objects as visuals=[…] and collisions=[…]",
        )
    if np.any(np.asarray(mass)) or np.any(np.asarray(com)) or np.any(np.asarray(inertia)):
        raise ModelError(
            f"the mass of body {name!r} is that of its shape",
            got="mass, com or inertia beside shape",
            do="say it there, lw.shapes.box(…, mass=…), or give visuals=shape.visuals, collisions=shape.collisions",
        )
