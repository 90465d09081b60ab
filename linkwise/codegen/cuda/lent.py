"""Memory of the device that a call works in."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.codegen.cuda import layout as layouts
from linkwise.codegen.cuda.runtime import cupy
from linkwise.errors import LinkwiseError

_kept: list[Any] = []  # a graph that is captured works in it whenever it runs


def lent(name: str, tiles: int, size: int, dtype: np.dtype[Any], most: int) -> tuple[Any, int]:
    """Memory for tiles of states, and for how many of them there is room.

    Args:
        name: of the program that works in it.
        tiles: wanted.
        size: numbers for each state.
        dtype: of these.
        most: bytes, but for one tile.
    """
    tile = max(1, size) * layouts.LANES[0]
    tiles = max(1, min(tiles, most // (tile * dtype.itemsize)))
    while True:
        try:
            memory = cupy().empty(tiles * tile, dtype)
            if _is_captured():
                _kept.append(memory)
            return memory, tiles
        except Exception as error:
            if "OutOfMemory" not in type(error).__name__:
                raise
            if tiles == 1:
                raise LinkwiseError(
                    f"the GPU has no room for the memory that {name} works in",
                    got=f"{tile * dtype.itemsize / 1e9:.2f} GB for {layouts.LANES[0]} states",
                    do="free arrays that are no longer needed, or compute on the CPU",
                ) from error
            tiles //= 2


def _is_captured() -> bool:
    """Whether calls become a graph that runs later."""
    asked = getattr(cupy().cuda.get_current_stream(), "is_capturing", None)
    return asked is not None and bool(asked())
