"""Links of one kind as one link: the same joint and other numbers, so that a link's text runs once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from linkwise.mechanism.tree import Link, Tree
from linkwise.operators.lanes import Lanes
from linkwise.operators.links import RigidLinks, blocks_of, width
from linkwise.spatial.flattening import flatten
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec

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
        key = (type(link), type(link.joint), constants, width(link), link.deforming)
        groups.setdefault(key, []).append(link)
    return tuple(_kind(links) for links in groups.values())


_TRANSFORMS = ("placement", "tail")
_ITSELF = ("index", "name", "joint_name", "parent", "joint", "to_body", "q_start", "v_start")
"""What says which link it is, and what no block is made of."""
_DEFORMING = ("seat", "deformation")
"""What all links of a kind share, and no number is made of."""


def _kind(links: Sequence[Link]) -> Kind:
    names = [field.name for field in fields(links[0]) if field.name not in (*_ITSELF, *_DEFORMING, *_TRANSFORMS)]
    parts = [flatten([getattr(link, name) for name in names]) for link in links]
    values = parts[0][1]([_lane(column) for column in zip(*(numbers for numbers, _ in parts), strict=True)])
    own = dict(zip(names, values, strict=True))
    own |= {name: _stacked([getattr(link, name) for link in links]) for name in _TRANSFORMS}
    together = replace(links[0], **own).alone()
    reads = [blocks_of(link).reads(link) for link in links]
    q, v = (np.array([list(read[i]) for read in reads], int) for i in range(2))
    return Kind(np.array([link.index for link in links]), together, q, v)


def _stacked(transforms: Sequence[Transform]) -> Transform:
    """The transforms of several links as one; no factors where none has any."""
    if not any(t.factors for t in transforms):
        return Transform()
    parts = [t.matrix() for t in transforms]
    R, l = np.array([p[0].m for p in parts], float), np.array([list(p[1]) for p in parts], float)
    return Transform.rigid(Mat3.build(lambda i, j: _lane(R[:, i, j])), Vec(*(_lane(l[:, i]) for i in range(3))))


def _lane(column: Any) -> Any:
    """What all links have, or the numbers of all of them."""
    if not isinstance(column[0], (float, int)):
        return column[0]
    array = np.array(column, float)
    return float(array[0]) if (array == array[0]).all() else Lanes(array[:, None])


def _lanes(state: Array, places: Array) -> list[Lanes]:
    return [Lanes(state[:, column].T) for column in places.T]
