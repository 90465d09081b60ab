"""What a rolled sweep leaves behind: what to store, and where it is found later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkwise.rolled.kinds import SymbolicLink
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.structure import Rebuild
from linkwise.tracing.tracer import Traced


@dataclass
class Recorded:
    """One recorded sweep: for each kind the values it stores, by space."""

    reverse: bool
    stores: list[dict[str, list[Scalar]]]
    handed_space: str | None


class RolledField:
    """What a rolled sweep kept: one stretch of memory for each link."""

    def __init__(self, space: str, loop: Recorded, per_kind: list[tuple[list[Scalar], Rebuild]]) -> None:
        self.space = space
        self.loop = loop
        self.per_kind = per_kind
        self.handed: list[int | float] = []
        """Of an inward sweep: for each number handed on, its place in memory (int) or its constant value (float)."""

    def __getitem__(self, link: SymbolicLink) -> Any:
        leaves, rebuild = self.per_kind[link.kind.index]
        stored = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Traced)]
        array = link.kind.array(self.space, max(1, len(stored)))
        values = list(leaves)
        for place, i in enumerate(stored):
            values[i] = array[place]
        return rebuild(values)


class Output:
    """A field that is a result of the program."""

    def __init__(self, field_: RolledField, per_link: str, shape: tuple[int, ...]) -> None:
        self.field = field_
        self.per_link = per_link
        self.shape = shape


class BaseOutput:
    """What an inward sweep hands to the base, as a result of the program."""

    def __init__(self, field_: RolledField, shape: tuple[int, ...]) -> None:
        self.field = field_
        self.shape = shape
