"""The links of a tree ordered by depth: what a sweep can do at once, NumPy does at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True)
class Level:
    """The links at one depth, a run of positions ``here``, their parents' positions, and the families among them."""

    here: slice
    parents: Array
    """One position for each link of the level."""
    families: Array
    """Where the children of each further parent begin, relative to the level."""
    heads: Any
    """The parents that have children here, each once; a slice where they are neighbours."""

    @property
    def is_single(self) -> bool:
        """Whether no two links here have the same parent: then the heads are the parents."""
        return len(self.families) == len(self.parents)


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
        self.roots = slice(0, len(runs[0]))
        self.levels: list[Level] = []
        start = len(runs[0])
        for run in runs[1:-1]:
            above = self.position[[parents[k] for k in run]]
            families = np.flatnonzero(np.diff(above, prepend=-1))
            heads = above[families]
            together = bool(heads[-1] - heads[0] + 1 == len(heads))
            at_once = slice(int(heads[0]), int(heads[-1]) + 1) if together else heads
            self.levels.append(Level(slice(start, start + len(run)), above, families, at_once))
            start += len(run)
        # Position of each link's parent; the base's links have none and come first.
        self.parents = np.concatenate([level.parents for level in self.levels]) if self.levels else np.empty(0, int)
        self.inner = slice(len(runs[0]), n)

    def inward(self) -> Iterator[Level]:
        """Tips to base, without the base's own links."""
        return reversed(self.levels)

    def outward(self) -> Iterator[Level]:
        """Base to tips, without the base's own links."""
        return iter(self.levels)

    def sum_up(self, level: Level, handed: Array, totals: Array) -> None:
        """Add what the links of a level hand up to their parents' entries of ``totals``."""
        if not level.is_single:
            handed = np.add.reduceat(handed, level.families, axis=0)
        totals[level.heads] += handed

    def accumulate(self, totals: Array, hand: Callable[[slice], Array]) -> Array:
        """Tips to base: ``totals`` gains, level by level, what ``hand(links)`` makes of the entries below."""
        for level in self.inward():
            self.sum_up(level, hand(level.here), totals)
        return totals
