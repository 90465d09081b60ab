"""Layout of the arrays of a kernel, the way of a thread to its state's numbers, and the lines that move rows.

A batch is row-major, ``(count, size)``: neighbouring threads want numbers ``size`` apart, which would fetch
every piece of memory many times. So the rows of a tile are staged in shared memory. What is too large for that,
and what serves all states, is read where it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from linkwise.dataclass import dataclass
from linkwise.targets.c.lines import identifier, identifiers
from linkwise.trace.block import ArraySpec, Block

LANES = (32, 16, 8, 4)
"""States of a tile: one for each thread of a warp, or fewer where the rows of so many do not fit the chip."""

SHARED_BYTES = 99 * 1024
"""Shared memory that a block may have on nearly every GPU of the last years; the large ones have twice as much."""

WIDE = 64
"""Numbers of an array for each state, above which it is not held in shared memory as a whole, if it can be helped."""

ArrayOrder = Literal["rows", "columns", "one"]
"""Order of an array in memory: (count, size), (size, count), or one row for all states."""


@dataclass(frozen=True)
class KernelArray:
    """One array of a kernel."""

    name: str
    size: int
    kind: ArrayOrder
    staged: bool
    pitch: int = 0  # from one state's numbers to the next one's, in the tile
    offset: int = 0  # of its part of the tile, in numbers for each lane

    @property
    def row(self) -> str:
        """Name of the pointer to this thread's numbers."""
        return f"{self.name}_row"

    @property
    def tile(self) -> str:
        """Name of the pointer to its part of the tile."""
        return f"{self.name}_tile"


@dataclass(frozen=True)
class TileLayout:
    """All arrays of a kernel and the size of the tile, in numbers for each lane."""

    inputs: tuple[KernelArray, ...]
    outputs: tuple[KernelArray, ...]
    size: int

    @property
    def places(self) -> tuple[KernelArray, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)


def array_names(program: Block) -> list[str]:
    """C names of the parameters: inputs, then outputs, ``_out`` behind those that share an input's name."""
    taken = [identifier(program.name)]
    inputs = identifiers([a.name for a in program.inputs], taken)
    outputs = [f"{a.name}_out" if a.name in inputs else a.name for a in program.outputs]
    return [*inputs, *identifiers(outputs, [*taken, *inputs])]


def pitch(size: int, bits: int) -> int:
    """Distance of rows in the tile. Shared memory has 32 banks: up to four threads may wait for the same one."""
    words = bits // 32
    return size + 1 if math.gcd(size * words, 32) > 4 * words else size


def lay_out(
    program: Block,
    bits: int,
    kinds: tuple[ArrayOrder, ...],
    most: int,
    same: Mapping[int, int] | None = None,
) -> TileLayout:
    """Stage what fits, small arrays first: they are read and written most often for their size.

    Args:
        program: whose arrays.
        bits: 64 or 32.
        kinds: how each array comes, inputs and then outputs.
        most: numbers for each lane.
        same: outputs that take the place of an input in the tile: output number to input number.
    """
    cut = len(program.inputs)
    instead = {cut + output: given for output, given in (same or {}).items()}
    arrays: list[tuple[str, ArraySpec, ArrayOrder]] = list(
        zip(array_names(program), (*program.inputs, *program.outputs), kinds, strict=True)
    )
    staged: dict[int, tuple[int, int]] = {}
    position = 0
    for k in sorted(range(len(arrays)), key=lambda k: arrays[k][1].size):
        _, spec, kind = arrays[k]
        wide = pitch(spec.size, bits)
        in_place = kind == "columns" and spec.size > WIDE  # neighbouring threads find such numbers side by side anyway
        if kind == "one" or in_place or k in instead:
            continue
        if spec.size and position + wide <= most:
            staged[k] = (wide, position)
            position += wide
    staged.update((output, staged[given]) for output, given in instead.items() if given in staged)
    places = tuple(
        KernelArray(name, spec.size, kind, k in staged, *staged.get(k, (0, 0)))
        for k, (name, spec, kind) in enumerate(arrays)
    )
    return TileLayout(places[:cut], places[cut:], position)


def pointers(place: KernelArray, qualifiers: str, is_input: bool) -> Iterator[str]:
    """Pointers of this thread to an array's numbers: in the tile, or in the array itself."""
    if place.staged:
        yield f"REAL *const {place.tile} = tile + LW_LANES * {place.offset};"
        yield f"{qualifiers}REAL *const {place.row} = {place.tile} + lane * {place.pitch};"
        return
    constant = "const " if is_input else ""
    own = {"one": "", "columns": " + here", "rows": f" + here * {place.size}"}[place.kind]
    yield f"{constant}REAL *const {place.row} = {place.name}{own};"


def element(place: KernelArray, number: int) -> str:
    """One of this thread's numbers."""
    apart = place.kind == "columns" and not place.staged
    return f"{place.row}[{f'{number} * count' if apart else number}]"


def whole(places: Sequence[KernelArray]) -> str:
    """Whether the tile is full and wide accesses are allowed, as an expression."""
    rows = [p.name for p in places if p.staged and p.kind == "rows"]
    return f"rows == LW_LANES && lw_aligned({', '.join(rows)})" if rows else "false"


def bring_in(places: Sequence[KernelArray], condition: str, watched: Collection[str] = ()) -> Iterator[str]:
    """Fill the tile, by wide accesses if the condition holds. The size of the largest watched number is noted."""
    rows = [p for p in places if p.staged and p.kind == "rows"]

    def noting(place: KernelArray, call: str) -> str:
        return f"largest = lw_larger(largest, {call});" if place.name in watched else f"{call};"

    if rows:
        yield f"if ({condition}) {{"
        for p in rows:
            yield f"    {_rows(p, p.name in watched)} {p.name}_in;"
        for p in rows:
            yield f"    {p.name}_in.fetch({p.tile}, {p.name} + first * {p.size});"
        yield "    lw_arrive();"
        for p in rows:
            yield f"    {noting(p, f'{p.name}_in.put({p.tile})')}"
        yield "} else {"
        for p in rows:
            some = f"{_rows(p, p.name in watched)}::some({p.tile}, {p.name} + first * {p.size}, rows)"
            yield f"    {noting(p, some)}"
        yield "}"
    for p in places:
        if p.staged and p.kind == "columns":
            call = f"lw_columns_in<{p.size}, {p.pitch}>({p.tile}, {p.name} + here, count)"
            yield noting(p, call)
    yield "__syncwarp(LW_MASK);"


def bring_out(places: Sequence[KernelArray], condition: str) -> Iterator[str]:
    """Store what the tile holds; every thread has written its part."""
    yield "__syncwarp(LW_MASK);"
    rows = [p for p in places if p.staged and p.kind == "rows"]
    if rows:
        yield f"if ({condition}) {{"
        for p in rows:
            yield f"    {_rows(p)}::back({p.name} + first * {p.size}, {p.tile});"
        yield "} else {"
        for p in rows:
            yield f"    {_rows(p)}::some_back({p.name} + first * {p.size}, {p.tile}, rows);"
        yield "}"
    for p in places:
        if p.staged and p.kind == "columns":
            yield f"if (inside) lw_columns_back<{p.size}, {p.pitch}>({p.name} + here, {p.tile}, count);"


def _rows(place: KernelArray, watch: bool = False) -> str:
    return f"lw_rows<{place.size}, {place.pitch}, {str(watch).lower()}>"
