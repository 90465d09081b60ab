"""The links of a tree by depth, and how arrays are laid out in that order: what a sweep can do at once, NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.operators.blocks import NOTHING, Block, Space


@dataclass(frozen=True)
class Level:
    """The links at one depth, a run of positions ``here``, and how they hang on the level above."""

    here: slice
    above: int
    """Number of links of the level above."""
    parents: Array
    """For each link its parent, counted within the level above."""
    families: Array
    """The first child of each further parent, counted within this level."""
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

    def inward(self, step: Callable[[Level, Block], tuple[Array, tuple[Array, ...]]]) -> list[Array]:
        """Tips to base; what the steps keep, for all links."""
        outboard: Block = NOTHING
        kept = []
        for level in reversed(self.levels):
            handed, own = step(level, outboard)
            kept.append(own)
            outboard = level.handed_up(handed)
        return [np.concatenate(column[::-1]) for column in zip(*kept, strict=True)]

    def outward(self, step: Callable[[Level, Block | None], Array]) -> Array:
        """Base to tips; what the steps give, for all links."""
        above = step(self.levels[0], None)
        kept = [above]
        for level in self.levels[1:]:
            above = step(level, level.handed_out(above))
            kept.append(above)
        return np.concatenate(kept)


class Packing:
    """Layout of stacked vectors of a space: blocks by position, filled up to one width."""

    def __init__(self, space: Space, order: Array | None = None, least: int = 0) -> None:
        self.space = space
        self.order = None if order is None or (np.diff(order) == 1).all() else order
        self.width = max(least, *space.sizes, 0)
        sizes = np.array(space.sizes, int)
        self.is_even = bool((sizes == self.width).all())
        self.position = np.arange(len(sizes)) if order is None else np.argsort(order)
        if order is not None:
            sizes = sizes[order]
        spare = np.arange(self.width) >= sizes[:, None]
        self.pad = spare[:, None, :, None] * np.eye(self.width)
        """(n, 1, width, width): ones on the diagonal of what is filled up; with them a block has an inverse."""
        if not self.is_even:
            self.block_of = np.repeat(self.position, space.sizes)
            self.entry_of = np.arange(space.size) - np.repeat(space.starts[:-1], space.sizes)

    def packed(self, x: Array) -> Array:
        """(B, size, r) as (n, B, width, r)."""
        B, _, r = x.shape
        if self.is_even:
            blocks = x.reshape(B, len(self.space.sizes), self.width, r).swapaxes(0, 1)
            return blocks if self.order is None else blocks[self.order]
        blocks = np.zeros((len(self.space.sizes), B, self.width, r), x.dtype)
        blocks[self.block_of, :, self.entry_of] = x.transpose(1, 0, 2)
        return blocks

    def unpacked(self, blocks: Array) -> Array:
        """(n, B, width, r) as (B, size, r)."""
        if not self.is_even:
            return blocks[self.block_of, :, self.entry_of].transpose(1, 0, 2)
        n, B, _, r = blocks.shape
        x = np.empty((B, n, self.width, r), blocks.dtype)
        x[:, slice(None) if self.order is None else self.order] = blocks.swapaxes(0, 1)
        return x.reshape(B, self.space.size, r)


class TreeLayout:
    """TreeLayout of a tree, known before its state: the spaces, the levels, and where numbers go."""

    def __init__(
        self, parents: Sequence[int], widths: Sequence[int], freedoms: Sequence[int], names: Sequence[str]
    ) -> None:
        self.parents = parents
        self.names = names
        self.levels = Levels(parents)
        self.links = Packing(Space("links", tuple(widths)), self.levels.order, least=6)  # the base has six
        self.joints = Packing(Space("joints", tuple(freedoms)), self.levels.order)

    def packing(self, space: Space) -> Packing:
        """That of the links, of the joints, or of points."""
        return next((known for known in (self.links, self.joints) if known.space == space), None) or Packing(space)
