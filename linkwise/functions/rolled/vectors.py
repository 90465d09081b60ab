"""Vectors and configurations of a rolled text: each link reads its own part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from linkwise.dataclass import dataclass
from linkwise.functions.rolled.ground import Ground, Spot
from linkwise.spatial.dual import Dual
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.trace.block import ArraySpec

if TYPE_CHECKING:
    from linkwise.functions.rolled.record import RolledField
    from linkwise.functions.rolled.symbolic_links import SymbolicLink


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
    """How links find their parts: by their place in ``q`` or ``v``, or by ``body``; ``none``: it is read as a whole."""

    ground: Ground | None = None

    def __getitem__(self, i: int) -> Scalar:
        """One number, between sweeps."""
        if self.ground is None:
            raise TypeError("this input is read link by link")
        return self.ground.read(Spot(f"in:{self.name}"), self.spec.size)[i]

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
