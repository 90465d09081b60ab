"""Sweeps that go the same way become one loop: less memory to pass through, and what they share is computed once.

A sweep reads what another one kept only at the same link. So a sweep may join an earlier one of its direction unless it
needs something that is made in between; what the earlier one kept is then at hand, and need not go through memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkwise.dataclass import dataclass, field
from linkwise.functions.rolled.link_vectors import Stored, arrays_read
from linkwise.functions.rolled.record import RecordedSweep
from linkwise.functions.rolled.symbolic_links import RolledKind
from linkwise.functions.rolled.systems import Solved
from linkwise.spatial.scalar import Scalar
from linkwise.trace.tracer import Traced


@dataclass
class JoinedLoop:
    """Sweeps of one direction that run as one loop."""

    reverse: bool
    members: list[RecordedSweep] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    """The spaces that its bodies read."""

    def stores(self) -> list[dict[str, list[Scalar]]]:
        """For each kind, what all members store."""
        kinds = range(len(self.members[0].stores))
        return [{s: x for member in self.members for s, x in member.stores[k].items()} for k in kinds]

    def keeps(self) -> set[str]:
        """The spaces of what its members keep for each link."""
        return {f"kept:{member.number}" for member in self.members}

    def makes(self) -> set[str]:
        """Everything that is there once the loop has run."""
        handed = {f"handed:{member.number}" for member in self.members}
        return self.keeps() | handed | {s for member in self.members for stores in member.stores for s in stores}

    def needs_memory(self) -> set[str]:
        """The spaces that it reads from memory, since other loops made them."""
        return self.reads - self.keeps()

    def found(self, kinds: Sequence[RolledKind]) -> list[dict[int, int]]:
        """For each kind, the nodes that read what a member kept, and the nodes that computed it."""
        whole: list[dict[int, int]] = []
        for kind in kinds:
            same: dict[int, int] = {}
            for member in self.members:
                space = f"kept:{member.number}"
                values = member.kept[kind.index]
                for place, value in enumerate(values):
                    if space in kind.arrays and place < len(kind.arrays[space]):
                        same[kind.arrays[space][place].number] = kind.tracer.number(value)
            whole.append(same)
        return whole


def joined(
    records: Iterable[RecordedSweep | Stored | Solved], kinds: Sequence[RolledKind], far: bool = False
) -> list[JoinedLoop | Stored | Solved]:
    """The records in an order that works, sweeps joined where that is possible.

    With ``far`` also where loops between them must be moved out of the way: less memory to pass through for larger
    bodies, which pays where a body has registers enough.
    """
    plan: list[JoinedLoop | Stored | Solved] = []
    for record in records:
        if not isinstance(record, RecordedSweep):
            plan.append(record)
            continue
        reads = _spaces_read(record, kinds) | {f"handed:{record.number}"}  # what its first links are given
        place = len(plan)
        for position in reversed(range(len(plan))):
            item = plan[position]
            if isinstance(item, JoinedLoop):
                if item.reverse == record.reverse and not reads & (item.makes() - item.keeps()):
                    place = position
                    break
                if reads & item.makes():
                    break
            elif reads & {spot.space for spot, _ in item.stores}:
                break
        if place == len(plan) and far:
            place = _moved_to_the_end(plan, record.reverse, reads)
        if place == len(plan):
            plan.append(JoinedLoop(record.reverse))
        loop = plan[place]
        assert isinstance(loop, JoinedLoop)
        loop.members.append(record)
        loop.reads |= reads
    return plan


def _moved_to_the_end(plan: list[JoinedLoop | Stored | Solved], reverse: bool, reads: set[str]) -> int:
    """The new place of the last loop of a direction, if what comes after it can come before it.

    And if a sweep that reads these spaces can then join it; else the place behind all.
    """
    for position in reversed(range(len(plan))):
        loop, rest = plan[position], plan[position + 1 :]
        if not isinstance(loop, JoinedLoop) or loop.reverse != reverse:
            continue
        touched = loop.makes() | loop.reads
        apart = (isinstance(x, JoinedLoop) and not (x.reads & loop.makes() or x.makes() & touched) for x in rest)
        if all(apart) and not reads & (loop.makes() - loop.keeps()):
            plan[position:] = [*rest, loop]
            return len(plan) - 1
        break
    return len(plan)


def _spaces_read(record: RecordedSweep, kinds: Sequence[RolledKind]) -> set[str]:
    """The working spaces that a sweep reads, apart from what it hands on itself."""
    own = f"handed:{record.number}:"
    found: set[str] = set()
    for kind, stores in zip(kinds, record.stores, strict=True):
        wanted = [x.number for values in stores.values() for x in values if isinstance(x, Traced)]
        for array in arrays_read(kind.tracer.nodes, wanted):
            found.add(kind.tracer.inputs[array].name)
    return {name for name in found if not name.startswith((own, "in:"))}
