"""Where the arrays of a kernel lie, and how a thread reaches its state's numbers.

A batch is row-major, ``(count, size)``: neighbouring threads want numbers ``size`` apart, which would fetch
every piece of memory many times. So the rows of a tile are staged in shared memory. What is too large for that,
and what serves all states, is read where it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from linkwise.codegen.c.names import identifier, identifiers
from linkwise.tracing.block import ArraySpec, Block

LANES = (32, 16, 8, 4)
"""States of a tile: one for each thread of a warp, or fewer where the rows of so many do not fit the chip."""

SHARED_BYTES = 99 * 1024
"""Shared memory that a block may have on nearly every GPU of the last years; the large ones have twice as much."""

WIDE = 64
"""Numbers of an array for each state, above which it is not held in shared memory as a whole, if it can be helped."""

Kind = Literal["rows", "columns", "one"]
"""How an array comes: (count, size), (size, count), or one row for all states."""


@dataclass(frozen=True)
class Place:
    """One array of a kernel."""

    name: str
    size: int
    kind: Kind
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
class Layout:
    """All arrays of a kernel and the size of the tile, in numbers for each lane."""

    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    size: int

    @property
    def places(self) -> tuple[Place, ...]:
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
    kinds: tuple[Kind, ...],
    most: int,
    same: Mapping[int, int] | None = None,
) -> Layout:
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
    arrays: list[tuple[str, ArraySpec, Kind]] = list(
        zip(array_names(program), (*program.inputs, *program.outputs), kinds, strict=True)
    )
    staged: dict[int, tuple[int, int]] = {}
    position = 0
    for k in sorted(range(len(arrays)), key=lambda k: arrays[k][1].size):
        _, spec, kind = arrays[k]
        wide = pitch(spec.size, bits)
        far = kind == "columns" and spec.size > WIDE  # neighbouring threads find such numbers side by side anyway
        if kind == "one" or far or k in instead:
            continue
        if spec.size and position + wide <= most:
            staged[k] = (wide, position)
            position += wide
    staged.update((output, staged[given]) for output, given in instead.items() if given in staged)
    places = tuple(
        Place(name, spec.size, kind, k in staged, *staged.get(k, (0, 0))) for k, (name, spec, kind) in enumerate(arrays)
    )
    return Layout(places[:cut], places[cut:], position)
