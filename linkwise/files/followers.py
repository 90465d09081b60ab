"""Which joints follow which, and where the locked ones stand.

A joint that mimics another may itself be mimicked, and any joint of the chain may be locked. What comes out is flat:
each joint is free, or stands at a value, or follows one free joint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelFileError, UnknownNameError
from linkwise.files.description import JointWritten
from linkwise.mechanism.description import Mimic


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Where a joint gets its coordinate from.

    Args:
        locked: the value it stands at, or None.
        mimic: the free joint that it follows, or None. Never given together with `locked`.
    """

    locked: float | None = None
    mimic: Mimic | None = None


def locked_values(
    locked: Iterable[str] | Mapping[str, float | None], joints: Sequence[JointWritten]
) -> dict[str, float]:
    """The argument `locked` of `load`, checked: a value for each name, 0 where only names are given."""
    if isinstance(locked, (str, bytes)):
        raise InputError("locked must be a list of joint names, or a dict", got=repr(locked), do=f"locked=[{locked!r}]")
    by_name = {joint.name: joint for joint in joints}
    pairs = locked.items() if isinstance(locked, Mapping) else [(name, None) for name in locked]
    values: dict[str, float] = {}
    for name, given in pairs:
        if name not in by_name:
            raise UnknownNameError("joint", name, by_name)
        try:
            value = 0.0 if given is None else float(given)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise InputError(
                f"the value at which joint {name!r} is locked must be a finite number",
                got=repr(given),
                do=f"locked={{{name!r}: 0.0}}",
            )
        if value != 0.0 and not by_name[name].single:
            raise InputError(
                f"joint {name!r} cannot be locked at a value",
                got=f"{value} for a joint of type {by_name[name].type!r}",
                allowed="0: its neutral position",
            )
        values[name] = value
    return values


def resolve(joints: Sequence[JointWritten], locked: Mapping[str, float], file: str) -> dict[str, Coordinate]:
    """Where every joint gets its coordinate from, chains of mimics multiplied out; `ModelFileError` where they cannot.

    A joint that follows a locked one is locked with it. A locked joint no longer follows.
    """
    by_name = {joint.name: joint for joint in joints}
    for joint in joints:
        if joint.mimic is not None:
            _check(joint, by_name, file)
    found: dict[str, Coordinate] = {}
    for joint in joints:
        chain: list[JointWritten] = []
        on_chain: set[str] = set()
        at = joint
        while at.name not in found and at.name not in locked and at.mimic is not None:
            if at.name in on_chain:
                _fail_circle(at, by_name, file)
            chain.append(at)
            on_chain.add(at.name)
            at = by_name[at.mimic.joint]
        if at.name not in found:
            found[at.name] = Coordinate(locked=locked.get(at.name))
        for follower in reversed(chain):
            found[follower.name] = _after(found[at.name], at.name, follower, file)
            at = follower
    return found


def _after(leader: Coordinate, leader_name: str, follower: JointWritten, file: str) -> Coordinate:
    mimic = follower.mimic
    assert mimic is not None  # only followers are on the chain
    first = Mimic(leader_name, 0.0, leader.locked) if leader.locked is not None else leader.mimic or Mimic(leader_name)
    multiplier = mimic.multiplier * first.multiplier
    offset = mimic.multiplier * first.offset + mimic.offset
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        raise ModelFileError(
            f"the numbers by which joint {follower.name!r} follows {first.joint!r} are too large",
            file=follower.file or file,
            line=follower.line,
            got=f"multiplier {multiplier}, offset {offset}",
        )
    if multiplier == 0.0:
        return Coordinate(locked=offset)
    return Coordinate(mimic=Mimic(first.joint, multiplier, offset))


def _check(joint: JointWritten, by_name: Mapping[str, JointWritten], file: str) -> None:
    mimic = joint.mimic
    assert mimic is not None  # the caller looked
    ignore = "correct the <mimic>, or load(..., mimic=False) to give every joint its own coordinate"
    if mimic.joint not in by_name:
        unknown = UnknownNameError("joint", mimic.joint, by_name)
        raise ModelFileError(
            f"joint {joint.name!r} mimics a joint that does not exist",
            file=joint.file or file,
            line=joint.line,
            got=unknown.got,
            allowed=unknown.allowed,
            do=f"{unknown.do}\n{ignore}" if unknown.do else ignore,
        )
    if mimic.joint == joint.name:
        raise ModelFileError(f"joint {joint.name!r} mimics itself", file=joint.file or file, line=joint.line, do=ignore)
    for role, other in (("mimics another", joint), ("is mimicked", by_name[mimic.joint])):
        if not other.single:
            raise ModelFileError(
                f"joint {other.name!r} {role}, but a joint of type {other.type!r} cannot",
                file=joint.file or file,
                line=joint.line,
                got=f"joint {joint.name!r} mimics {mimic.joint!r}",
                allowed="joints with one coordinate: revolute, continuous, prismatic",
                do=ignore,
            )


def _fail_circle(joint: JointWritten, by_name: Mapping[str, JointWritten], file: str) -> NoReturn:
    names = [joint.name]
    while len(names) == 1 or names[-1] != joint.name:
        mimic = by_name[names[-1]].mimic
        assert mimic is not None  # every joint of a circle follows the next
        names.append(mimic.joint)
    shown = names if len(names) <= 8 else [*names[:7], "...", names[-1]]
    raise ModelFileError(
        "the joints mimic each other in a circle, so that none of them leads",
        file=joint.file or file,
        line=joint.line,
        got=" -> ".join(map(repr, shown)),
        do="take the <mimic> away from one of them",
    )
