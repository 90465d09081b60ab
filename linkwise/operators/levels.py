"""The links of a tree ordered by depth: what a sweep can do at once, NumPy does at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from linkwise.operators.blocks import NOTHING

Array = Any


@dataclass(frozen=True)
class Level:
    """The links at one depth, a run of positions ``here``, and how they hang on the level above."""

    here: slice
    above: int
    """Number of links of the level above."""
    parents: Array
    """For each link its parent, counted within the level above."""
    families: Array
    """Where the children of each further parent begin, counted within this level."""
    is_straight: bool
    """Whether each link above has one child here, in the same order: what they hand on fits as it is."""

    def handed_up(self, handed: Array) -> Array:
        """For each link above, the sum of what its children hand up."""
        if self.is_straight:
            return handed
        if len(self.families) < len(self.parents):
            handed = np.add.reduceat(handed, self.families, axis=0)
        if len(self.families) == self.above:
            return handed
        spread = np.zeros((self.above, *handed.shape[1:]), handed.dtype)
        spread[self.parents[self.families]] = handed
        return spread

    def handed_out(self, above: Array) -> Array:
        """For each link here, what its parent has."""
        return above if self.is_straight else above[self.parents]


class Levels:
    """Positions by depth, children of one parent side by side; a chain becomes one link a level.

    Arrays over the links have the position as their first axis. ``order[position]`` is the link's number in the tree,
    ``position`` its inverse.
    """

    def __init__(self, parents: Sequence[int]) -> None:
        n = len(parents)
        children: list[list[int]] = [[] for _ in range(n + 1)]
        for k, parent in enumerate(parents):
            children[parent].append(k)  # the base's are at the end, index -1
        runs = [children[-1]]
        while runs[-1]:
            runs.append([k for parent in runs[-1] for k in children[parent]])
        self.order = np.array([k for run in runs for k in run], int)
        self.position = np.empty(n, int)
        self.position[self.order] = np.arange(n)
        roots = len(runs[0])
        self.roots, self.inner = slice(0, roots), slice(roots, n)
        self.parents = self.position[[parents[k] for k in self.order[self.inner]]]
        """Positions of the parents of all links but the base's; they do not decrease."""
        self.families = np.flatnonzero(np.diff(self.parents, prepend=-1))
        self.levels = [Level(self.roots, 0, np.empty(0, int), np.empty(0, int), True)]
        start = roots
        for above, run in pairwise(runs[:-1]):
            here = slice(start, start + len(run))
            local = self.parents[here.start - roots : here.stop - roots] - (start - len(above))
            families = np.flatnonzero(np.diff(local, prepend=-1))
            is_straight = len(families) == len(run) == len(above)
            self.levels.append(Level(here, len(above), local, families, is_straight))
            start += len(run)

    def inward(self, step: Callable[[Level, Any], tuple[Array, tuple[Array, ...]]]) -> list[Array]:
        """Tips to base; what the steps keep, for all links."""
        outboard: Any = NOTHING
        kept = []
        for level in reversed(self.levels):
            handed, own = step(level, outboard)
            kept.append(own)
            outboard = level.handed_up(handed)
        return [np.concatenate(column[::-1]) for column in zip(*kept, strict=True)]

    def outward(self, step: Callable[[Level, Any], Array]) -> Array:
        """Base to tips; what the steps give, for all links."""
        above = step(self.levels[0], None)
        kept = [above]
        for level in self.levels[1:]:
            above = step(level, level.handed_out(above))
            kept.append(above)
        return np.concatenate(kept)
