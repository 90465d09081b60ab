"""The table that steers a program with loops: what every call of its compiled code brings.

Sizes, offsets, link constants and the order of kinds, so one compiled object serves every tree with the same kinds of
links, whatever their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.tracing.program import Program


class Word:
    """The places of the fixed words; behind them, for each space its place and for each array its size."""

    LINKS, KINDS, OFFSETS, PARAMETERS, CONSTANTS, CONSTANT_PLACES, CONSTANT_VALUES, ANGLES, FRAME = range(9)
    FIXED = 9


class Table:
    """What a program with loops is steered by: its tables in one precision, and where its memory lies.

    Everything is counted in values from the beginning of the scratch memory; whole vectors, so that none share a line.

    Args:
        program: the program.
        dtype: of its numbers.
        lanes: states side by side.
        vector: lanes of a vector.
        arrays: whether the scratch memory also holds inputs and outputs in lanes.
    """

    def __init__(self, program: Program, dtype: np.dtype[Any], lanes: int, vector: int, arrays: bool) -> None:
        pad = vector if lanes == 1 else 1
        starts, position = [], 0
        for size in program.spaces.values():
            starts.append(position)
            position += -(-size // pad) * pad
        sizes = [array.size for array in (*program.inputs, *program.outputs)]
        for size in sizes:
            starts.append(position)
            if arrays:
                position += -(-size // lanes) * lanes
        self.frame = position * lanes * dtype.itemsize
        self.frame += -self.frame % 64
        first = dict(zip(program.spaces, starts, strict=False))
        self._parameters = np.ascontiguousarray(program.parameters, dtype)
        self._kinds = np.ascontiguousarray(program.kinds, np.int64)
        self._offsets = np.ascontiguousarray(program.offsets, np.int64)
        places = [first[c.space] + c.offset for c in program.constants]
        values = [c.value for c in program.constants]
        angles = program.spaces.get("angles", 0)
        for spare in range(-angles % pad):  # lanes beyond the last angle take part in the call: let them be ordinary
            places.append(first["angles"] + angles + spare)
            values.append(0.5)
        self._places, self._values = np.array(places, np.int64), np.array(values, dtype)
        fixed = [
            len(self._kinds),
            self._kinds.ctypes.data,
            self._offsets.ctypes.data,
            self._parameters.ctypes.data,
            len(self._places),
            self._places.ctypes.data,
            self._values.ctypes.data,
            -(-angles // pad),
            self.frame,
        ]
        self._words = np.array([*fixed, *starts, *sizes], np.int64)
        self.address: int = self._words.ctypes.data

    @property
    def words(self) -> NDArray[Any]:
        """The table itself."""
        return self._words

    @property
    def parts(self) -> list[NDArray[Any]]:
        """All memory that compiled code reads."""
        return [self._parameters, self._kinds, self._offsets, self._places, self._values, self._words]
