"""Ground between the sweeps of a rolled text: straight-line code that runs once, not for each link.

It reads what sweeps brought to the base or left at one link, and inputs that no link owns; it writes what the base or
the tips are given, values that every link looks at, and results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress

from linkwise.dataclass import dataclass, field
from linkwise.spatial.scalar import Scalar
from linkwise.trace.block import Node
from linkwise.trace.passes import reached
from linkwise.trace.tracer import Traced, Tracer

START, BASE = -2, -1
"""Places in a space beside those of the links: its beginning, and where an inward sweep leaves the base's sum."""


@dataclass(frozen=True)
class Spot:
    """A stretch of a space: at its beginning, at the base, or that of one link; from some place in it on."""

    space: str
    at: int = START
    start: int = 0

    @property
    def name(self) -> str:
        """As the name of an array."""
        return f"{self.space}@{self.at}" + (f"+{self.start}" if self.start else "")


@dataclass
class Written:
    """Values stored between two sweeps."""

    stores: list[tuple[Spot, list[Scalar]]]


@dataclass
class Ground:
    """The trace of all that happens between sweeps."""

    tracer: Tracer = field(default_factory=Tracer)
    spots: dict[str, Spot] = field(default_factory=dict)
    _arrays: dict[str, list[Traced]] = field(default_factory=dict)

    def read(self, spot: Spot, size: int) -> list[Traced]:
        """The numbers stored there."""
        name = spot.name
        if name not in self._arrays:
            self.spots[name] = spot
            self._arrays[name] = self.tracer.input(name, (size,))
        return self._arrays[name]


def arrays_read(nodes: Sequence[Node], wanted: Iterable[int]) -> set[int]:
    """The input arrays that some values of a trace are made of."""
    return {node[1] for node in compress(nodes, reached(nodes, wanted)) if node[0] == "input"}
