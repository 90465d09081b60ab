"""Bodies from arrays, checked together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, make_dataclass
from itertools import repeat, starmap
from operator import attrgetter
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, ModelError
from linkwise.joints import Joint
from linkwise.mechanism.bodies_and_joints import IDENTITY, Part
from linkwise.mechanism.checks import (
    checked_inertias,
    checked_masses,
    checked_poses,
    checked_vectors,
    for_each,
    for_each_freedom,
)
from linkwise.mechanism.entry import Entry

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
