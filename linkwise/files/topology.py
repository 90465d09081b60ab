"""Links and joints of a description as a tree, from the root outwards, if they are one.

Files with loops do not say where to open them. The rule here (:func:`span`): a link hangs on the first joint of the
file that has it as its child, unless that joint would close a loop; what is left over hangs on whatever joint still
connects it, parent and child changed over if need be; every other joint closes a loop. The order of the file decides.

Then: which joints follow which, and where the locked ones stand. A joint that mimics another may itself be mimicked,
and any joint of the chain may be locked. What comes out is flat: each joint is free, or stands at a value, or follows
one free joint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, TypeVar

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelFileError, UnknownNameError
from linkwise.files.file_description import Description, JointWritten, LinkWritten
from linkwise.mechanism.description import Mimic

T = TypeVar("T", LinkWritten, JointWritten)
WORLD = "world"
"""The name of the inertial frame. A root link of this name is the inertial frame; no other link may have it."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkTree:
    """Every link hangs below the root by one chain of joints.

    Args:
        description: what was arranged.
        root: the link that is nobody's child.
        links: the links by name.
        joints: every joint after the one that carries its parent, a whole branch before the next (depth first),
            the joints of one link in the order of the file.
    """

    description: Description
    root: LinkWritten
    links: dict[str, LinkWritten]
    joints: tuple[JointWritten, ...]


def arrange(description: Description) -> LinkTree:
    """Check the names and the connections, and put the joints in order; `ModelFileError` where it is not a tree."""
    file = description.file
    if not description.links:
        raise ModelFileError("the model has no links", file=file, line=description.line)
    links = _by_name("links", description.links, file)
    _by_name("joints", description.joints, file)
    inboard = _inboard_joints(description, links)
    root = _root(description, inboard)

    below: dict[str, list[JointWritten]] = {}
    for joint in description.joints:
        below.setdefault(joint.parent, []).append(joint)
    ordered: list[JointWritten] = []
    stack = below.get(root.name, [])[::-1]
    while stack:
        joint = stack.pop()
        ordered.append(joint)
        stack.extend(reversed(below.get(joint.child, ())))
    if len(ordered) < len(description.joints):
        reached = {root.name, *(joint.child for joint in ordered)}
        lost = next(joint for joint in description.joints if joint.child not in reached)
        _fail_cycle(lost, inboard, file)
    return LinkTree(description, root, links, tuple(ordered))


def _by_name(what: str, written: Iterable[T], file: str) -> dict[str, T]:
    """Links or joints by their names, which must differ."""
    found: dict[str, T] = {}
    for each in written:
        first = found.setdefault(each.name, each)
        if first is not each:
            raise ModelFileError(
                f"two {what} are named {each.name!r}",
                file=each.file or file,
                line=each.line,
                got=f"the first is on line {first.line}",
                do="rename or delete one of them",
            )
    return found


def _inboard_joints(description: Description, links: dict[str, LinkWritten]) -> dict[str, JointWritten]:
    inboard: dict[str, JointWritten] = {}
    for joint in description.joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                unknown = UnknownNameError("link", name, links)
                raise ModelFileError(
                    f"the {role} of joint {joint.name!r} is a link that does not exist",
                    file=description.file,
                    line=joint.line,
                    **unknown.parts,
                )
        other = inboard.setdefault(joint.child, joint)
        if other is not joint:
            raise ModelFileError(
                f"link {joint.child!r} has two parents",
                file=description.file,
                line=joint.line,
                got=f"{other.parent!r} by joint {other.name!r} (line {other.line}), "
                f"{joint.parent!r} by joint {joint.name!r} (line {joint.line})",
                allowed="one: the file must describe a tree",
                do="cut the loop: delete one of the two joints, and close it again with ModelBuilder.add_closure",
            )
    return inboard


def _root(description: Description, inboard: dict[str, JointWritten]) -> LinkWritten:
    roots = [link for link in description.links if link.name not in inboard]
    if not roots:
        _fail_cycle(description.joints[0], inboard, description.file)
    if len(roots) > 1:
        shown = ", ".join(f"{link.name!r} (line {link.line})" for link in roots[:10])
        raise ModelFileError(
            f"{len(roots)} links have no parent",
            file=description.file,
            line=roots[1].line,
            got=shown + (", ..." if len(roots) > 10 else ""),
            allowed="one: the root of the tree",
            do="connect the others with joints (a fixed joint will do), or delete them",
        )
    if WORLD in inboard:
        raise ModelFileError(
            "only the root link may be named 'world': it is the name of the inertial frame",
            file=description.file,
            line=inboard[WORLD].line,
            got=f"'world' hangs from {inboard[WORLD].parent!r} by joint {inboard[WORLD].name!r}",
            do="rename this link",
        )
    return roots[0]


def _fail_cycle(joint: JointWritten, inboard: dict[str, JointWritten], file: str) -> NoReturn:
    """Walk from the joint towards a root that is not there until a link comes back, and show that circle."""
    seen: dict[str, int] = {}
    path = [joint.child]
    while path[-1] not in seen:
        seen[path[-1]] = len(path) - 1
        path.append(inboard[path[-1]].parent)
    circle = path[seen[path[-1]] :][::-1]
    shown = " -> ".join(map(repr, circle if len(circle) <= 8 else [*circle[:7], "...", circle[-1]]))
    last = inboard[circle[0]]
    raise ModelFileError(
        "the links form a circle, so that none of them is the root",
        file=file,
        line=last.line,
        got=f"{shown} (parent -> child)",
        do=f"delete a joint of the circle, {last.name!r} for instance",
    )


@dataclass(frozen=True, slots=True, eq=False)
class Spanned:
    """A forest, and what closes loops over it.

    Args:
        joints: those of the forest, in the order of the file, each from the root outwards.
        roots: links that no joint carries, in the order of the file.
        closing: the joints that close loops, in the order of the file.
    """

    joints: tuple[JointWritten, ...]
    roots: tuple[str, ...]
    closing: tuple[JointWritten, ...]


def span(links: Sequence[str], joints: Sequence[JointWritten], loops: Sequence[JointWritten] = ()) -> Spanned:
    """Choose the joints of the forest.

    Args:
        links: the links, in the order of the file.
        joints: the joints, in the order in which they are to be preferred.
        loops: joints that close a loop if there is one.
    """
    groups = _Groups()
    inboard: set[str] = set()
    chosen: list[JointWritten] = []
    for joint in joints:
        if joint.child not in inboard and groups.join(joint.parent, joint.child):
            inboard.add(joint.child)
            chosen.append(joint)
    taken = set(map(id, chosen))
    closing: list[JointWritten] = []
    for joint in (*joints, *loops):
        if id(joint) not in taken:
            (chosen if groups.join(joint.parent, joint.child) else closing).append(joint)

    at: dict[str, list[JointWritten]] = {}
    for joint in chosen:
        at.setdefault(joint.parent, []).append(joint)
        at.setdefault(joint.child, []).append(joint)
    outward: dict[int, JointWritten] = {}
    roots: list[str] = []
    reached: set[str] = set()
    # Links that are nobody's child are the natural roots; a circle of parents and children has none of these.
    for start in (WORLD, *(link for link in links if link not in inboard), *links):
        if start in reached:
            continue
        reached.add(start)
        if start != WORLD:
            roots.append(start)
        stack = [start]
        while stack:
            link = stack.pop()
            for joint in at.get(link, ()):
                other = joint.child if joint.parent == link else joint.parent
                if other not in reached:
                    reached.add(other)
                    outward[id(joint)] = joint if joint.parent == link else joint.reversed()
                    stack.append(other)
    ordered = tuple(outward[id(joint)] for joint in (*joints, *loops) if id(joint) in outward)
    return Spanned(ordered, tuple(roots), tuple(closing))


class _Groups:
    """Groups of connected links (union and find)."""

    def __init__(self) -> None:
        self.leader: dict[str, str] = {}

    def join(self, a: str, b: str) -> bool:
        """Connect two links; False where they were connected already."""
        a, b = self._of(a), self._of(b)
        self.leader[a] = b
        return a != b

    def _of(self, link: str) -> str:
        path = []
        while (up := self.leader.get(link, link)) != link:
            path.append(link)
            link = up
        for each in path:
            self.leader[each] = link
        return link


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Source of a joint's coordinate.

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
    """The source of every joint's coordinate, chains of mimics multiplied out; `ModelFileError` where they cannot.

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
