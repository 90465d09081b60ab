"""Vectors and configurations of a rolled text, each link reading its own part; and the code between its sweeps.

It reads what sweeps brought to the base or left at one link, and inputs that no link owns; it writes what the base or
the tips are given, values that every link looks at, and results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Protocol

from linkwise.dataclass import dataclass, field
from linkwise.spatial.dual import Dual
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.trace.block import ArraySpec, Node
from linkwise.trace.passes import reached
from linkwise.trace.tracer import Traced, Tracer

if TYPE_CHECKING:
    from linkwise.functions.rolled.record import RolledField
    from linkwise.functions.rolled.symbolic_links import SymbolicLink


START, BASE = -2, -1
"""Places in a space beside those of the links: its beginning, and where an inward sweep leaves the base's sum."""


@dataclass(frozen=True)
class Extent:
    """A stretch of a space: at its beginning, at the base, or that of one link; from some place in it on."""

    space: str
    at: int = START
    start: int = 0

    @property
    def name(self) -> str:
        """As the name of an array."""
        return f"{self.space}@{self.at}" + (f"+{self.start}" if self.start else "")


@dataclass
class Stored:
    """Values stored between two sweeps."""

    stores: list[tuple[Extent, list[Scalar]]]


@dataclass
class BetweenSweeps:
    """The trace of all that happens between sweeps."""

    tracer: Tracer = field(default_factory=Tracer)
    spots: dict[str, Extent] = field(default_factory=dict)
    _arrays: dict[str, list[Traced]] = field(default_factory=dict)

    def read(self, spot: Extent, size: int) -> list[Traced]:
        """The numbers stored there."""
        name = spot.name
        if name not in self._arrays:
            self.spots[name] = spot
            self._arrays[name] = self.tracer.input(name, (size,))
        return self._arrays[name]


def arrays_read(nodes: Sequence[Node], wanted: Iterable[int]) -> set[int]:
    """The input arrays that some values of a trace are made of."""
    return {node[1] for node in compress(nodes, reached(nodes, wanted)) if node[0] == "input"}


class Divided(Protocol):
    """An array of which every link has a part."""

    def part(self, link: SymbolicLink, size: int) -> list[Scalar]:
        """The numbers of one link; those of the joint it follows, for a mimic."""


@dataclass(frozen=True)
class GlobalInput:
    """An input array of the whole program, read link by link."""

    name: str
    spec: ArraySpec
    per_link: str
    """The places of links' parts: by their place in ``q`` or ``v``, or by ``body``; ``none``: it is read as a whole."""

    ground: BetweenSweeps | None = None

    def __getitem__(self, i: int) -> Scalar:
        """One number, between sweeps."""
        if self.ground is None:
            raise TypeError("this input is read link by link")
        return self.ground.read(Extent(f"in:{self.name}"), self.spec.size)[i]

    def part(self, link: SymbolicLink, size: int) -> list[Scalar]:
        """From the input's own memory."""
        return list(link.kind.array(f"in:{self.name}", size))


@dataclass(frozen=True)
class FieldVector:
    """A vector that a sweep made, one part for each link."""

    field: RolledField
    per_link: str
    shape: tuple[int, ...]

    def __getitem__(self, i: int) -> Scalar:
        """One number, between sweeps."""
        for link in self.field.tree.links:
            start, size = (link.q_start, link.joint.nq) if self.per_link == "q" else (link.v_start, link.joint.nv)
            if not link.is_mimic and start <= i < start + size:
                return list(self.field[link])[i - start]
        raise IndexError(i)

    def part(self, link: SymbolicLink, size: int) -> list[Scalar]:
        """From what the sweep kept."""
        return list(self.field[link])


@dataclass(frozen=True)
class StoredVector:
    """A vector in memory of its own, where several links share a part."""

    space: str
    per_link: str
    shape: tuple[int, ...]

    def part(self, link: SymbolicLink, size: int) -> list[Scalar]:
        """From the part's own memory."""
        return list(link.kind.array(self.space, size))


@dataclass(frozen=True)
class DualVector:
    """A vector and how it changes: each link's part as dual numbers of one level."""

    value: Divided
    tangent: Divided
    level: int

    def __getitem__(self, i: int) -> Scalar:
        """One number, between sweeps."""
        value, tangent = (vector[i] for vector in (self.value, self.tangent))  # type: ignore[index]
        return Dual(value, tangent, self.level)

    def part(self, link: SymbolicLink, size: int) -> list[Scalar]:
        """Values and tangents together."""
        pairs = zip(self.value.part(link, size), self.tangent.part(link, size), strict=True)
        return [Dual(x, d, self.level) for x, d in pairs]


Vector = GlobalInput | FieldVector | StoredVector | DualVector
"""A vector of a rolled text."""


def part(whole: Vector | Flat, link: SymbolicLink, size: int) -> list[Scalar]:
    """A link's part of a vector; of plain zeros too."""
    if isinstance(whole, Sequence):
        if all(isinstance(x, (int, float)) and x == 0.0 for x in whole):
            return [0.0] * size
        raise TypeError("a rolled sweep reads inputs, vectors made by sweeps, and zeros")
    return whole.part(link, size)
