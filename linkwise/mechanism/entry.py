"""Bodies as they were added to a builder, one by one or from arrays, and the checks of what is given with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, make_dataclass
from itertools import repeat, starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelError
from linkwise.joints import Joint
from linkwise.mechanism.bodies_and_joints import IDENTITY, Part, Pose
from linkwise.mechanism.body_checks import (
    checked_inertias,
    checked_masses,
    checked_poses,
    checked_vectors,
    for_each,
    for_each_freedom,
    per_freedom,
)
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


T = TypeVar("T")
Columns = dict[str, Sequence[object]]
"""Fields of many objects by name, an entry for each."""

_VERY_MANY = 2000


def checked_bodies(
    names: str | Sequence[str],
    parents: Sequence[int] | Array,
    joints: Joint | Sequence[Joint] | type[Joint],
    placements: ArrayLike,
    masses: ArrayLike,
    coms: ArrayLike,
    inertias: ArrayLike,
    axes: ArrayLike | None,
    armature: ArrayLike,
    damping: ArrayLike,
    friction: ArrayLike,
    check_inertia: bool,
    root: str,
) -> list[Entry]:
    """The bodies that the arguments of ``add_bodies`` describe, each checked as ``add_body`` would."""
    above = _parents(parents)
    n = len(above)
    known = [f"{names}{k}" for k in range(n)] if isinstance(names, str) else [str(name) for name in names]
    if len(known) != n:
        raise InputError("names do not fit the bodies", got=f"{len(known)} names, {n} parents", allowed="one for each")
    if len(set(known)) != n:
        twice = next(name for k, name in enumerate(known) if name in known[:k])
        raise ModelError(f"the name {twice!r} is given twice", allowed="a name unlike any other body or frame")
    types = _joints(joints, axes, known)
    counts = [joint.nv for joint in types]
    joint_names = [f"{name}_joint" for name in known]
    parts: Columns = {
        "name": known,
        "mass": checked_masses(masses, known),
        "com": checked_vectors(coms, known, "the mass centre"),
        "inertia": checked_inertias(inertias, known, check_inertia),
    }
    none = {count: (0.0,) * count for count in set(counts)}
    own: Columns = {
        "name": known,
        "parent": [known[k] if k >= 0 else root for k in above],
        "joint": types,
        "joint_name": joint_names,
        "placement": checked_poses(placements, known, "the placement"),
        "armature": for_each_freedom(armature, joint_names, counts, "the armature"),
        "damping": for_each_freedom(damping, joint_names, counts, "the damping"),
        "friction": for_each_freedom(friction, joint_names, counts, "the friction"),
        "stiffness": [none[count] for count in counts],
        "rest": [none[count] for count in counts],
        "part": made(Part, parts, placement=IDENTITY, node=0),
    }
    same = {"limits": (), "mimic": None, "visuals": (), "collisions": (), "joint_frame": IDENTITY}
    return made(Entry, own, **same, flexible=None, node=0)


def made(kind: type[T], columns: Columns, **same: object) -> list[T]:
    """One object of a frozen dataclass for each row of the columns.

    Where there are very many, they are made of a twin that is not frozen: in a third of the time.
    """
    names = [field.name for field in fields(cast(Any, kind))]
    rows = zip(*(columns[name] if name in columns else repeat(same[name]) for name in names), strict=False)
    if len(next(iter(columns.values()))) < _VERY_MANY:
        return list(starmap(kind, rows))
    twin = make_dataclass(kind.__name__, names, slots=True)
    found: list[Any] = list(starmap(twin, rows))
    for each in found:
        each.__class__ = kind
    return found


def of_each(objects: Sequence[object], *names: str) -> Columns:
    """Some fields of many objects."""
    return {name: [*map(attrgetter(name), objects)] for name in names}


def all_of_each(kind: type[T], objects: Sequence[T]) -> Columns:
    """All fields of many objects of a dataclass."""
    return of_each(objects, *(field.name for field in fields(cast(Any, kind))))


def _parents(parents: Sequence[int] | Array) -> list[int]:
    """Each an earlier body, or -1."""
    above = np.asarray(parents)
    whole = above.ndim == 1 and (above.dtype.kind in "iu" or not above.size)
    if not whole or ((above < -1) | (above >= np.arange(len(above)))).any():
        raise InputError(
            "parents are not places of earlier bodies",
            got=repr(parents)[:80],
            allowed="for each body the place of one before it, or -1 for root",
            do="sort the bodies, parents first",
        )
    return [int(k) for k in above.tolist()]


def _joints(joints: Joint | Sequence[Joint] | type[Joint], axes: ArrayLike | None, names: Sequence[str]) -> list[Joint]:
    if isinstance(joints, type) and issubclass(joints, Joint):
        if axes is None:
            return [joints()] * len(names)
        along: Callable[..., Joint] = joints
        given = for_each(axes, len(names), (3,), "axes")
        if np.shape(axes) == (3,):
            return [along(axis=given[0].tolist())] * len(names) if len(names) else []
        return [along(axis=axis) for axis in given.tolist()]
    if axes is not None:
        raise InputError(
            "axes go with a class of joints", got=f"joints={joints!r}"[:80], allowed="e.g. joints=lw.Revolute, axes=…"
        )
    each = [joints] * len(names) if isinstance(joints, Joint) else list(joints)
    if len(each) != len(names) or not all(isinstance(joint, Joint) for joint in each):
        raise InputError(
            f"joints do not fit {len(names)} bodies",
            got=repr(joints)[:80],
            allowed="a joint such as lw.Revolute((0, 0, 1)), one for each body, or a class with axes=…",
        )
    return each
