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
from linkwise.spatial.transforms import Transform

Array = Any


@dataclass(frozen=True)
class Kind:
    """Links with the same joint.

    Args:
        indices: the links, by their number in the tree.
        link: stands for all of them: where their numbers differ it has lanes (m, 1), and it reads q and v from index 0.
        q: (m, count) which coordinates they read.
        v: (m, count) which velocities they read.
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
        groups.setdefault((type(link), type(link.joint), constants, width(link)), []).append(link)
    return tuple(_kind(links) for links in groups.values())


def _kind(links: Sequence[Link]) -> Kind:
    none = Transform()
    bare = [replace(link, placement=none, tail=none, to_body=none, q_start=0, v_start=0) for link in links]
    leaves = [flatten(link) for link in bare]
    rebuild = leaves[0][1]
    together: Link = replace(
        rebuild([_lane(column) for column in zip(*(numbers for numbers, _ in leaves), strict=True)]),
        placement=_stacked([link.placement for link in links]),
        tail=_stacked([link.tail for link in links]),
    )
    reads = [blocks_of(link).reads(link) for link in links]
    q, v = (np.array([list(read[i]) for read in reads], int) for i in range(2))
    return Kind(np.array([link.index for link in links]), together, q, v)


def _stacked(transforms: Sequence[Transform]) -> Transform:
    """The transforms of several links as one; no factors where none has any."""
    if not any(t.factors for t in transforms):
        return Transform()
    leaves = zip(*(flatten(t.matrix())[0] for t in transforms), strict=True)
    R, l = flatten(transforms[0].matrix())[1]([_lane(column) for column in leaves])
    return Transform.rigid(R, l)


def _lane(column: Sequence[Any]) -> Any:
    """What all links have, or the numbers of all of them."""
    if not isinstance(column[0], (float, int, np.floating)) or all(x == column[0] for x in column):
        return column[0]
    return Lanes(np.array(column, float)[:, None])


def _lanes(state: Array, places: Array) -> list[Lanes]:
    return [Lanes(state[:, column].T) for column in places.T]
