"""Bodies from arrays, checked together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import InputError, ModelError
from linkwise.joints import Joint
from linkwise.mechanism.checked_arrays import (
    checked_inertias,
    checked_masses,
    checked_poses,
    checked_vectors,
    for_each,
    for_each_freedom,
)
from linkwise.mechanism.entry import Entry
from linkwise.mechanism.pieces import IDENTITY, Part

Numbers = Sequence[tuple[float, ...]]


@dataclass(frozen=True)
class ManyBodies:
    """What one ``add_bodies`` call says, checked: lists with an entry for each body."""

    names: list[str]
    joint_names: list[str]
    parents: list[int]
    joints: list[Joint]
    placements: list[Any]
    masses: list[float]
    coms: list[tuple[float, float, float]]
    inertias: list[Any]
    armature: Numbers
    damping: Numbers
    friction: Numbers

    def entries(self, root: str) -> Iterator[Entry]:
        """The bodies as the builder keeps them. Their fields are set at once, which a constructor would do singly."""
        same: dict[str, Any] = {"limits": (), "mimic": None, "visuals": (), "collisions": (), "joint_frame": IDENTITY}
        same |= {"flexible": None, "node": 0}
        names = self.names
        columns = zip(
            names, self.joint_names, self.parents, self.joints, self.placements, self.masses, self.coms, self.inertias,
            self.armature, self.damping, self.friction, strict=True,
        )  # fmt: skip
        none: dict[int, tuple[float, ...]] = {}
        for name, joint_name, parent, joint, placement, mass, com, inertia, armature, damping, friction in columns:
            relaxed = none.setdefault(joint.nv, (0.0,) * joint.nv)
            part = object.__new__(Part)
            vars(part).update(name=name, placement=IDENTITY, mass=mass, com=com, inertia=inertia, node=0)
            entry = object.__new__(Entry)
            vars(entry).update(
                same, name=name, parent=names[parent] if parent >= 0 else root, joint=joint, joint_name=joint_name,
                placement=placement, part=part, armature=armature, damping=damping, friction=friction,
                stiffness=relaxed, rest=relaxed,
            )  # fmt: skip
            yield entry


def checked_bodies(
    names: str | Sequence[str],
    parents: Any,
    joints: Any,
    placements: Any,
    masses: Any,
    coms: Any,
    inertias: Any,
    axes: Any,
    armature: Any,
    damping: Any,
    friction: Any,
    check_inertia: bool,
) -> ManyBodies:
    """The arguments of ``add_bodies``, each checked as ``add_body`` would."""
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
    return ManyBodies(
        known,
        joint_names,
        above,
        types,
        checked_poses(placements, known, "the placement"),
        checked_masses(masses, known),
        checked_vectors(coms, known, "the mass centre"),
        checked_inertias(inertias, known, check_inertia),
        for_each_freedom(armature, joint_names, counts, "the armature"),
        for_each_freedom(damping, joint_names, counts, "the damping"),
        for_each_freedom(friction, joint_names, counts, "the friction"),
    )


def _parents(parents: Any) -> list[int]:
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


def _joints(joints: Any, axes: Any, names: Sequence[str]) -> list[Joint]:
    if isinstance(joints, type) and issubclass(joints, Joint):
        if axes is None:
            return [joints()] * len(names)
        given = for_each(axes, len(names), (3,), "axes")
        if np.shape(axes) == (3,):
            return [joints(axis=given[0].tolist())] * len(names) if len(names) else []  # type: ignore[call-arg]
        return [joints(axis=axis) for axis in given.tolist()]  # type: ignore[call-arg]
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
