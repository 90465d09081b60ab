"""Linear systems between the sweeps of a rolled text, solved in loops over tiles of their matrices.

Written out, the elimination of m unknowns is a program of m³ operations, to be compiled for each mechanism. Here it is
a list of tasks (:mod:`linkwise.trace.tiles`) with one small body for each kind of task, however many unknowns there
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from linkwise.dataclass import dataclass, replace
from linkwise.functions.rolled.link_vectors import BetweenSweeps, Extent, Stored, arrays_read
from linkwise.functions.rolled.record import RecordedSweep
from linkwise.spatial.dual import Dual, parts_of_level
from linkwise.spatial.scalar import Scalar
from linkwise.trace.program import Program
from linkwise.trace.tiles import SymmetricSystem
from linkwise.trace.tracer import Traced

if TYPE_CHECKING:
    from linkwise.functions.rolled.rolling import RolledTree

Matrix = Sequence[Sequence[Scalar]]

FROM = 20
"""Unknowns from which loops are worth their tasks: fewer are written out."""

_TILES = (6, 5, 7, 8, 4)
"""Rows of a tile: the first that leaves no rest, which would need bodies of its own. The larger, the less time goes
into steps from task to task, and the more there is to compile."""


@dataclass(frozen=True)
class Solved:
    """A list of tasks between two sweeps: which, and in which spaces, each from where on, its arrays lie."""

    program: Program
    arrays: dict[str, Extent]
    stores: tuple[()] = ()
    """Nothing that a sweep reads."""


def needed(
    records: Sequence[RecordedSweep | Stored | Solved], ground: BetweenSweeps
) -> list[RecordedSweep | Stored | Solved]:
    """The records without systems whose solutions nothing reads, and without what is written for these."""
    live: set[str] = set()
    kept: list[RecordedSweep | Stored | Solved] = []
    for record in reversed(records):
        if isinstance(record, Solved):
            if not any(spot.name in live for name, spot in record.arrays.items() if name.startswith("out:")):
                continue
            live |= {spot.name for name, spot in record.arrays.items() if name.startswith("in:")}
        elif isinstance(record, Stored):
            if all(spot.space.startswith("system:") and spot.name not in live for spot, _ in record.stores):
                continue
            wanted = [x.number for _, leaves in record.stores for x in leaves if isinstance(x, Traced)]
            live |= {ground.tracer.inputs[array].name for array in arrays_read(ground.tracer.nodes, wanted)}
        kept.append(record)
    return kept[::-1]


class TiledFactor:
    """A symmetric matrix with something added to its diagonal, positive then, factored when the program runs."""

    def __init__(self, tree: RolledTree, matrix: Matrix, diagonal: Sequence[Scalar]) -> None:
        self.tree, self.n = tree, len(matrix)
        self.system = _system(self.n)
        self.number = tree.new_number()
        self.count = 0
        half = [x for i, row in enumerate(matrix) for x in row[: i + 1]]
        given, added = self._where(half), Extent(self._space("diagonal"))
        if given is None:
            given = Extent(self._space("matrix"))
            tree.write([(given, half)])
        tree.write([(added, list(diagonal))])
        arrays = {"in:matrix": given, "in:diagonal": added, "out:factors": Extent(self._space("factors"))}
        tree.recorded.append(Solved(self.system.factor, arrays))

    def _where(self, numbers: Sequence[Scalar]) -> Extent | None:
        """The place where these already lie one behind the other in memory, as a sweep brings them to the base."""
        ground = self.tree.ground
        nodes = [ground.tracer.nodes[x.number] if isinstance(x, Traced) else ("const", 0.0) for x in numbers]
        first = nodes[0]
        if first[0] != "input" or any(node != ("input", first[1], first[2] + k) for k, node in enumerate(nodes)):
            return None
        spot = ground.spots[ground.tracer.inputs[first[1]].name]
        return replace(spot, start=spot.start + first[2])

    def _space(self, what: str) -> str:
        return f"system:{what}:{self.number}"

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x with M x = b, for traced numbers."""
        right, found = (Extent(self._space(what), self.count) for what in ("right", "found"))
        self.count += 1
        self.tree.write([(right, list(b))])
        arrays = {"in:factors": Extent(self._space("factors")), "in:right": right, "out:x": found}
        self.tree.recorded.append(Solved(self.system.solve, arrays))
        return list(self.tree.ground.read(found, self.n))

    def kept(self, numbers: Sequence[Scalar]) -> list[Scalar]:
        """The same from memory, so that what is solved next does not compute them again."""
        spot = Extent(f"system:kept:{self.tree.new_number()}")
        self.tree.write([(spot, list(numbers))])
        return list(self.tree.ground.read(spot, len(numbers)))


@cache
def _system(n: int) -> SymmetricSystem:
    return SymmetricSystem(n, next((tile for tile in _TILES if n % tile == 0), _TILES[0]))


class LoopedSystem:
    """The same over dual numbers of any levels: M x = b is differentiated as M ẋ = ḃ - Ṁ x."""

    def __init__(self, tree: RolledTree, matrix: Matrix, diagonal: Sequence[Scalar]) -> None:
        levels = {x.level for row in (*matrix, diagonal) for x in row if isinstance(x, Dual)}
        self.level = max(levels, default=None)
        self.inner: TiledFactor | LoopedSystem
        if self.level is None:
            self.inner = TiledFactor(tree, matrix, diagonal)
            return
        split = [parts_of_level(row, self.level) for row in matrix]
        added, rates_of_added = parts_of_level(diagonal, self.level)
        self.rates = [rates for _, rates in split]
        for i, rate in enumerate(rates_of_added):
            self.rates[i][i] = self.rates[i][i] + rate
        self.inner = LoopedSystem(tree, [values for values, _ in split], added)

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x with M x = b."""
        levels = {x.level for x in b if isinstance(x, Dual)} | ({self.level} if self.level is not None else set())
        if not levels:
            return self.inner.solve(b)
        level = max(levels)
        own = level == self.level
        solver = self.inner if own else self
        values, rates = parts_of_level(b, level)
        x = solver.solve(values)
        if own:
            rates = [
                rate - sum((m * y for m, y in zip(row, x, strict=True)), 0.0)
                for rate, row in zip(rates, self.rates, strict=True)
            ]
        return [Dual(value, rate, level) for value, rate in zip(x, solver.solve(rates), strict=True)]

    def kept(self, numbers: Sequence[Scalar]) -> list[Scalar]:
        """The same from memory."""
        level = max((x.level for x in numbers if isinstance(x, Dual)), default=None)
        if level is None:
            return self.inner.kept(numbers)
        values, rates = (self.kept(part) for part in parts_of_level(numbers, level))
        return [Dual(value, rate, level) for value, rate in zip(values, rates, strict=True)]
