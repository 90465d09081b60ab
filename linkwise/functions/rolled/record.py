"""Records of a rolled sweep: what to store, and where it is found later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkwise.dataclass import dataclass
from linkwise.functions.rolled.link_vectors import BASE, BetweenSweeps, Extent
from linkwise.functions.rolled.symbolic_links import SymbolicLink
from linkwise.mechanism.tree import Field, Link
from linkwise.spatial.flattening import Rebuild, flatten
from linkwise.spatial.scalar import Scalar
from linkwise.trace.tracer import Traced

if TYPE_CHECKING:
    from linkwise.functions.rolled.rolling import RolledTree


@dataclass
class RecordedSweep:
    """One recorded sweep: for each kind the values it stores, by space."""

    number: int
    reverse: bool
    stores: list[dict[str, list[Scalar]]]
    handed_space: str | None
    kept: list[list[Scalar]]
    """For each kind, the numbers that a link keeps and that other sweeps may read."""


class RolledField(Field[Any]):
    """Field that a rolled sweep kept: one stretch of memory for each link."""

    def __init__(self, tree: RolledTree, space: str, loop: RecordedSweep, kept: list[object]) -> None:
        self.tree = tree
        self.space = space
        self.loop = loop
        self.kept = kept
        self.per_kind = [flatten(value) for value in kept]
        self._at_base: tuple[list[int | float], Rebuild[Any]] | None = None

    def __getitem__(self, link: SymbolicLink | Link) -> Any:
        """Within a sweep, what a link kept; between sweeps, what one link of the tree kept."""
        kind = link.kind if isinstance(link, SymbolicLink) else self.tree.kind_of(link)
        leaves, rebuild = self.per_kind[kind.index]
        stored = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Traced)]
        if isinstance(link, SymbolicLink):
            array = kind.array(self.space, max(1, len(stored)))
        else:
            array = self.tree.ground.read(Extent(self.space, link.index), max(1, len(stored)))
        values = list(leaves)
        for place, i in enumerate(stored):
            values[i] = array[place]
        return rebuild(values)

    def with_base(self, handed: list[int | float], rebuild: Rebuild[Any]) -> RolledField:
        """Of an inward sweep: for each number handed on, its place in memory (int) or its constant value (float)."""
        self._at_base = handed, rebuild
        return self

    @property
    def root(self) -> Any:
        """Value that an inward sweep brought to the base."""
        if self._at_base is None:
            return None
        handed, rebuild = self._at_base
        size = sum(isinstance(x, int) for x in handed)
        spot = Extent(self.space.replace("kept", "handed"), BASE)
        array = self.tree.ground.read(spot, size) if size else []
        return rebuild([array[x] if isinstance(x, int) else x for x in handed])

    @root.setter
    def root(self, value: object) -> None:
        raise AttributeError("the sweep says what reaches the base")

    @property
    def values(self) -> Any:
        """A rolled field has no list of its values."""
        raise AttributeError("a text that rolls reads fields by link")

    @values.setter
    def values(self, value: object) -> None:
        raise AttributeError("a rolled field is filled by its sweep")


class SharedField(Field[Any]):
    """A value written between sweeps, for all links to look at."""

    def __init__(self, ground: BetweenSweeps, space: str, size: int, rebuild: Rebuild[Any]) -> None:
        self.ground, self.space, self.size, self.rebuild = ground, space, size, rebuild

    def __getitem__(self, link: SymbolicLink | Link) -> Any:
        if isinstance(link, SymbolicLink):
            return self.rebuild(link.kind.array(self.space, self.size))
        return self.rebuild(self.ground.read(Extent(self.space), self.size))


class OnlyAtField(Field[Any]):
    """Values written between sweeps, one for each of some links, and one for all others."""

    def __init__(self, tree: RolledTree, space: str, size: int, rebuild: Rebuild[Any], links: list[int]) -> None:
        self.tree, self.space, self.size, self.rebuild, self.links = tree, space, size, rebuild, links

    def __getitem__(self, link: Any) -> Any:
        if isinstance(link, SymbolicLink):
            stored = link.kind.array(self.space, self.size)
        else:
            number = 1 + self.links.index(link.index) if link.index in self.links else 0
            stored = self.tree.ground.read(Extent(self.space, number), self.size)
        return self.tree.handed_to(self.rebuild(stored), link.modes)
