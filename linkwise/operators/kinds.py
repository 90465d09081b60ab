"""Links of one kind as one link: the same joint and other numbers, so that a link's text runs once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.model.tree import Link, Tree
from linkwise.operators.lanes import Lanes
from linkwise.operators.links import RigidLinks, blocks_of, width
from linkwise.spatial.structure import flatten
from linkwise.spatial.transforms import Rotation, Shift, Transform

Array = Any


@dataclass(frozen=True)
class Kind:
    """Links with the same joint.

    Args:
        indices: the links, by their number in the tree.
        link: stands for all of them: where their numbers differ it has lanes (m, 1), and it reads q and v from index 0.
        q: (m, nq) where the links' coordinates are in q.
        v: (m, nv) where their velocities are in v.
    """

    indices: Array
    link: Link
    q: Array
    v: Array

    def at(self, q: Array, v: Array | None) -> RigidLinks:
        """The blocks of these links, over lanes (m, B), for states (B, nq) and (B, nv)."""
        return blocks_of(self.link)(self.indices, self.link, _lanes(q, self.q), v if v is None else _lanes(v, self.v))


def kinds(tree: Tree) -> tuple[Kind, ...]:
    """The kinds of a tree's links."""
    groups: dict[Any, list[Link]] = {}
    for link in tree:
        # An axis is turned into z by the layout, so joints that differ in the axis only are of one kind.
        constants = tuple(item for item in link.joint._key() if item[0] != "axis" or link.joint.axis is None)
        beside = 0 if link.parent < 0 else width(tree.links[link.parent])
        key = (type(link), type(link.joint), constants, bool(link.tail.factors), width(link), beside)
        groups.setdefault(key, []).append(link)
    return tuple(_kind(links) for links in groups.values())


def _kind(links: Sequence[Link]) -> Kind:
    first = links[0]
    parts = [flatten(_alike(link)) for link in links]
    rebuild = parts[0][1]
    together: Link = rebuild([_lane(column) for column in zip(*(leaves for leaves, _ in parts), strict=True)])
    return Kind(
        np.array([link.index for link in links]),
        together,
        _places([link.q_start for link in links], first.joint.nq),
        _places([link.v_start for link in links], first.joint.nv),
    )


def _alike(link: Link) -> Link:
    """The link with all that says which one it is taken off, and its transforms in one form."""
    return replace(
        link,
        placement=_whole(link.placement),
        tail=_whole(link.tail) if link.tail.factors else link.tail,
        to_body=Transform(),
        q_start=0,
        v_start=0,
    )


def _whole(transform: Transform) -> Transform:
    """A shift and a rotation, also where one of them is the identity."""
    R, l = transform.matrix()
    return Transform(Shift(l), Rotation(R))


def _lane(column: Sequence[Any]) -> Any:
    """What all links have, or the numbers of all of them."""
    if not isinstance(column[0], (float, int, np.floating)) or all(x == column[0] for x in column):
        return column[0]
    return Lanes(np.array(column, float)[:, None])


def _places(starts: Sequence[int], size: int) -> Array:
    return np.array(starts)[:, None] + np.arange(size)


def _lanes(state: Array, places: Array) -> list[Lanes]:
    return [Lanes(state[:, column].T) for column in places.T]
