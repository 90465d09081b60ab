"""The spaces that operators lead from and to: stacked vectors of one block for each link, joint or point."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from linkwise.once import cached_property


@dataclass(frozen=True)
class Space:
    """A space of stacked vectors.

    Args:
        name: ``"links"``, ``"joints"`` or ``"points"`` (and which).
        sizes: numbers in each block: 6 for a link or a point, nv for a joint.
    """

    name: str
    sizes: tuple[int, ...]

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
