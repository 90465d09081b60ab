"""Records of rolled sweeps: values to store, and where they are found later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.functions.rolled.between_sweeps import BASE, BetweenSweeps, Spot
from linkwise.functions.rolled.link_kinds import SymbolicLink
from linkwise.mechanism.sweeper import Field
from linkwise.spatial.flattening import Rebuild, flatten
from linkwise.spatial.scalar import Scalar
from linkwise.trace.tracer import Traced

if TYPE_CHECKING:
    from linkwise.functions.rolled.rolled_tree import RolledTree


@dataclass
class RecordedSweep:
    """One recorded sweep: for each kind the values it stores, by space."""

    number: int
    reverse: bool
    stores: list[dict[str, list[Scalar]]]
    passed_space: str | None
    kept: list[list[Scalar]]
    """Numbers that a link of each kind keeps and that other sweeps may read."""


class RolledField(Field[Any]):
    """Values that a rolled sweep kept: one stretch of memory for each link."""

    def __init__(self, tree: RolledTree, space: str, loop: RecordedSweep, kept: list[Any]) -> None:
        self.tree = tree
        self.space = space
        self.loop = loop
        self.kept = kept
        self.per_kind = [flatten(value) for value in kept]
        self._at_base: tuple[list[int | float], Rebuild] | None = None

    def __getitem__(self, link: Any) -> Any:
        """Within a sweep, what a link kept; between sweeps, what one link of the tree kept."""
        kind = link.kind if isinstance(link, SymbolicLink) else self.tree.kind_of(link)
        leaves, rebuild = self.per_kind[kind.index]
        stored = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Traced)]
        if isinstance(link, SymbolicLink):
            array = kind.array(self.space, max(1, len(stored)))
        else:
            array = self.tree.between.read(Spot(self.space, link.index), max(1, len(stored)))
        values = list(leaves)
        for place, i in enumerate(stored):
            values[i] = array[place]
        return rebuild(values)

    def brings(self, passed: list[int | float], rebuild: Rebuild) -> RolledField:
        """Note, of an inward sweep, the place in memory (int) or constant value (float) of each number passed on."""
        self._at_base = passed, rebuild
        return self

    @property
    def root(self) -> Any:
        """Values that an inward sweep brought to the base."""
        if self._at_base is None:
            return None
        passed, rebuild = self._at_base
        size = sum(isinstance(x, int) for x in passed)
        spot = Spot(self.space.replace("kept", "handed"), BASE)
        array = self.tree.between.read(spot, size) if size else []
        return rebuild([array[x] if isinstance(x, int) else x for x in passed])

    @root.setter
    def root(self, value: Any) -> None:
        raise AttributeError("the sweep says what reaches the base")

    @property
    def values(self) -> Any:
        """A rolled field has no list of its values."""
        raise AttributeError("a text that rolls reads fields by link")

    @values.setter
    def values(self, value: Any) -> None:
        raise AttributeError("a rolled field is filled by its sweep")


class SharedField(Field[Any]):
    """A value written between sweeps, for all links to look at."""

    def __init__(self, between: BetweenSweeps, space: str, size: int, rebuild: Rebuild) -> None:
        self.between, self.space, self.size, self.rebuild = between, space, size, rebuild

    def __getitem__(self, link: Any) -> Any:
        if isinstance(link, SymbolicLink):
            return self.rebuild(link.kind.array(self.space, self.size))
        return self.rebuild(self.between.read(Spot(self.space), self.size))


class OnlyAtField(Field[Any]):
    """Values written between sweeps, one for each of some links, and one for all others."""

    def __init__(self, tree: RolledTree, space: str, size: int, rebuild: Rebuild, links: list[int]) -> None:
        self.tree, self.space, self.size, self.rebuild, self.links = tree, space, size, rebuild, links

    def __getitem__(self, link: Any) -> Any:
        if isinstance(link, SymbolicLink):
            stored = link.kind.array(self.space, self.size)
        else:
            number = 1 + self.links.index(link.index) if link.index in self.links else 0
            stored = self.tree.between.read(Spot(self.space, number), self.size)
        return self.tree.passed_to(self.rebuild(stored), link.modes)
