"""Is this a tree? The links and joints of a description, arranged from the root outwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from linkwise.errors import ModelFileError, UnknownNameError
from linkwise.files.description import Description, JointWritten, LinkWritten

__all__ = ["WORLD", "Tree", "arrange"]

WORLD = "world"
"""The name of the inertial frame. A root link of this name is the inertial frame; no other link may have it."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
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


def arrange(description: Description) -> Tree:
    """Check the names and the connections, and put the joints in order; `ModelFileError` where it is not a tree."""
    file = description.file
    if not description.links:
        _fail("the model has no links", file, description.line)
    links = _links_by_name(description)
    _check_joint_names(description)
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
    return Tree(description, root, links, tuple(ordered))


def _links_by_name(description: Description) -> dict[str, LinkWritten]:
    links: dict[str, LinkWritten] = {}
    for link in description.links:
        first = links.setdefault(link.name, link)
        if first is not link:
            _fail(
                f"two links are named {link.name!r}",
                link.file or description.file,
                link.line,
                got=f"the first is on line {first.line}",
                do="rename or delete one of them",
            )
    return links


def _check_joint_names(description: Description) -> None:
    lines: dict[str, int] = {}
    for joint in description.joints:
        if joint.name in lines:
            _fail(
                f"two joints are named {joint.name!r}",
                joint.file or description.file,
                joint.line,
                got=f"the first is on line {lines[joint.name]}",
                do="rename or delete one of them",
            )
        lines[joint.name] = joint.line


def _inboard_joints(description: Description, links: dict[str, LinkWritten]) -> dict[str, JointWritten]:
    inboard: dict[str, JointWritten] = {}
    for joint in description.joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                unknown = UnknownNameError("link", name, links)
                _fail(
                    f"the {role} of joint {joint.name!r} is a link that does not exist",
                    description.file,
                    joint.line,
                    got=unknown.got,
                    allowed=unknown.allowed,
                    do=unknown.do,
                )
        other = inboard.setdefault(joint.child, joint)
        if other is not joint:
            _fail(
                f"link {joint.child!r} has two parents",
                description.file,
                joint.line,
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
        _fail(
            f"{len(roots)} links have no parent",
            description.file,
            roots[1].line,
            got=shown + (", ..." if len(roots) > 10 else ""),
            allowed="one: the root of the tree",
            do="connect the others with joints (a fixed joint will do), or delete them",
        )
    if WORLD in inboard:
        _fail(
            "only the root link may be named 'world': it is the name of the inertial frame",
            description.file,
            inboard[WORLD].line,
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
    _fail(
        "the links form a circle, so that none of them is the root",
        file,
        last.line,
        got=f"{shown} (parent -> child)",
        do=f"delete a joint of the circle, {last.name!r} for instance",
    )


def _fail(
    what: str, file: str, line: int, *, got: object = None, allowed: object = None, do: object = None
) -> NoReturn:
    raise ModelFileError(what, file=file, line=line, got=got, allowed=allowed, do=do)
