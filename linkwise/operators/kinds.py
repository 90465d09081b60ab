"""Links of one kind as one link: the same joint and other numbers, so that a link's text runs once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model.tree import Link, Tree
from linkwise.operators.lanes import Lanes
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec

Array = Any


@dataclass(frozen=True)
class Kind:
    """Links with the same joint.

    Args:
        indices: the links, by their number in the tree.
        link: stands for all of them: its constants are lanes (m, 1), and it reads q and v from index 0.
        q: (m, nq) where the links' coordinates are in q.
        v: (m, nv) where their velocities are in v.
    """

    indices: Array
    link: Link
    q: Array
    v: Array

    def coordinates(self, state: Array) -> list[Lanes]:
        """Lanes (m, B) of this kind's part of q (B, nq)."""
        return [Lanes(state[:, column].T) for column in self.q.T]

    def rates(self, state: Array) -> list[Lanes]:
        """Lanes (m, B) of this kind's part of v (B, nv)."""
        return [Lanes(state[:, column].T) for column in self.v.T]


def kinds(tree: Tree) -> tuple[Kind, ...]:
    """The kinds of a tree's links."""
    groups: dict[Any, list[Link]] = {}
    for link in tree:
        # An axis is turned into z by the layout, so joints that differ in the axis only are of one kind.
        constants = tuple(item for item in link.joint._key() if item[0] != "axis" or link.joint.axis is None)
        groups.setdefault((type(link.joint), constants, link.lead), []).append(link)
    return tuple(_kind(links) for links in groups.values())


def _kind(links: Sequence[Link]) -> Kind:
    first = links[0]
    M = [link.inertia for link in links]

    def lanes(of: Callable[[Any], float], among: Sequence[Any]) -> Lanes:
        return Lanes(np.array([[of(each)] for each in among], float))

    inertia = RigidInertia(
        lanes(lambda m: m.m, M),
        Vec(*(lanes(lambda m, i=i: m.h[i], M) for i in range(3))),  # type: ignore[misc]
        Sym3.of(*(lanes(lambda m, i=i: m.J.six()[i], M) for i in range(6))),  # type: ignore[misc]
    )
    together = Link(
        index=0,
        name=f"{len(links)} links",
        parent=-1,
        joint=first.joint,
        placement=_stacked([link.placement for link in links]),
        lead=first.lead,
        tail=_stacked([link.tail for link in links]),
        inertia=inertia,
        to_body=Transform(),
        armature=tuple(lanes(lambda link, i=i: link.armature[i], links) for i in range(first.joint.nv)),  # type: ignore[misc]
        q_start=0,
        v_start=0,
    )

    def places(starts: Sequence[int], width: int) -> Array:
        return np.array(starts)[:, None] + np.arange(width)

    return Kind(
        np.array([link.index for link in links]),
        together,
        places([link.q_start for link in links], first.joint.nq),
        places([link.v_start for link in links], first.joint.nv),
    )


def _stacked(transforms: Sequence[Transform]) -> Transform:
    """The transforms of several links as one, over lanes; no factors where none has any."""
    if not any(t.factors for t in transforms):
        return Transform()
    parts = [t.matrix() for t in transforms]
    R = np.array([p[0].m for p in parts], float)
    l = np.array([list(p[1]) for p in parts], float)
    return Transform.rigid(
        Mat3.build(lambda i, j: Lanes(R[:, i, j, None])), Vec(*(Lanes(l[:, i, None]) for i in range(3)))
    )
