"""The spaces that operators lead from and to: stacked vectors of blocks, one for each link, joint, point or closure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from linkwise.memoized import cached_property


@dataclass(frozen=True)
class Space:
    """A space of stacked vectors.

    Args:
        name: ``"links"``, ``"joints"``, ``"points"`` (and which) or ``"constraints"``.
        sizes: numbers in each block: 6 for a link or a point, nv for a joint, one for each equation of a constraint.
    """

    name: str
    sizes: tuple[int, ...]
    of_points: bool = False
    """Whether its blocks are motions of points (or forces at them)."""
    is_small: bool = False
    """Whether what is square over it may be written out and solved as a matrix: constraints are few."""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each block begins, and at last where all end."""
        return (0, *accumulate(self.sizes))

    @property
    def size(self) -> int:
        """Numbers in a stacked vector."""
        return self.starts[-1]

    def slice(self, block: int) -> slice:
        """The place of one block in a stacked vector."""
        return slice(self.starts[block], self.starts[block + 1])
