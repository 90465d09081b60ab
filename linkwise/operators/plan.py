"""What the array engine knows of a tree before it knows a state; worked out once for each tree."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from linkwise.model.tree import Tree
from linkwise.operators.kinds import kinds
from linkwise.operators.levels import Levels
from linkwise.operators.spaces import Space

Array = Any


class Plan:
    """Kinds and levels of the links, the spaces, and where the joints' numbers go."""

    def __init__(self, tree: Tree) -> None:
        self.kinds = kinds(tree)
        self.levels = Levels([link.parent for link in tree])
        self.links = Space("links", (6,) * len(tree.links))
        self.joints = Space("joints", tuple(link.joint.nv for link in tree))
        self.width = max(self.joints.sizes, default=0)
        """The largest nv of a joint."""
        self.link_of = np.empty(tree.nv, int)
        """For each entry of v, the position of its link."""
        self.axis_of = np.empty(tree.nv, int)
        """For each entry of v, its number among those of its joint."""
        for kind in self.kinds:
            self.link_of[kind.v] = self.levels.position[kind.indices][:, None]
            self.axis_of[kind.v] = np.arange(kind.v.shape[1])
        sizes = np.array(self.joints.sizes, int)[self.levels.order]
        spare = np.arange(self.width) >= sizes[:, None]
        self.pad = (spare[:, None, :, None] * np.eye(self.width)).astype(float)
        """(n, 1, width, width): ones on the diagonal where a joint has no axis, which keep a padded D invertible."""


_known: WeakKeyDictionary[Tree, Plan] = WeakKeyDictionary()


def plan(tree: Tree) -> Plan:
    """The plan of a tree, made when first asked for."""
    found = _known.get(tree)
    if found is None:
        found = _known[tree] = Plan(tree)
    return found
