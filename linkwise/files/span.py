"""A graph of links and joints to a tree from the world outwards, and the joints that close its loops.

Files with loops do not say where to open them. The rule here: a link hangs on the first joint of the file that has it
as its child, unless that joint would close a loop; what is left over hangs on whatever joint still connects it, parent
and child changed over if need be; every other joint closes a loop. The order of the file decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.files.description import JointWritten
from linkwise.files.tree import WORLD

__all__ = ["Spanned", "span"]


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
    """Which links are connected (union and find)."""

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
