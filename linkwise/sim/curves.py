"""Where the tables of a run lie: their rows in the kernel's memory, and their numbers beside it.

The row of each table that is in force is kept behind the run-time parameters p of a state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.sim.tables import HEAD, Table, polynomial


@dataclass(frozen=True)
class Curve:
    """The place of a table: from ``offset`` on in p, with vectors of ``size`` numbers."""

    name: str
    offset: int
    size: int
    degree: int
    is_smooth: bool

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return HEAD + (self.degree + 1) * self.size

    def stop(self, p: Sequence[Any], within: bool) -> Any:
        """Where a step must end; at the end of the row even if the next one goes on smoothly, if ``within``."""
        return p[self.offset + (1 if within else 3)]

    def value(self, t: Any, p: Sequence[Any]) -> list[Any]:
        """At a time within the row."""
        s, start = t - p[self.offset + 2], self.offset + HEAD
        return [polynomial([p[start + k * self.size + i] for k in range(self.degree + 1)], s) for i in range(self.size)]


def curves_of(elements: Sequence[Any], first: int) -> list[list[Curve]]:
    """Those of each element, one behind the other from a place in p on."""
    made: list[list[Curve]] = []
    number = 0
    for element in elements:
        own = []
        for table in element.tables:
            own.append(Curve(f"curve{number}", first, table.size, table.degree, table.is_smooth))
            first, number = first + own[-1].width, number + 1
        made.append(own)
    return made


class RunTables:
    """The numbers of all tables in one run, for a batch of states."""

    def __init__(self, curves: Sequence[Curve], tables: Sequence[Table], shape: tuple[int, ...], dtype: Any) -> None:
        self.curves = list(curves)
        self.arrays: dict[str, Array] = {}
        for curve, table in zip(self.curves, tables, strict=True):
            rows = table.rows()
            if table.batch_shape:
                whole = np.broadcast_to(rows.reshape(*table.batch_shape, *rows.shape[1:]), (*shape, *rows.shape[1:]))
                rows = whole.reshape(math.prod(shape), *rows.shape[1:])
            self.arrays[curve.name] = np.ascontiguousarray(rows, dtype)

    def of(self, member: int) -> dict[str, Array]:
        """For one state of the batch."""
        return {name: rows[member : member + 1] if len(rows) > 1 else rows for name, rows in self.arrays.items()}

    def widened(self, p: Array) -> Array:
        """Parameters (count, np) with room for the rows behind them, which the kernel will find."""
        extra = sum(curve.width for curve in self.curves)
        return np.ascontiguousarray(np.concatenate([p, np.zeros((len(p), extra), p.dtype)], axis=1)) if extra else p

    def filled(self, p: Array, t: Array, member: Array) -> Array:
        """Parameters (n, np) of members of the batch at times (n), with the rows in force."""
        whole = self.widened(p)
        for curve in self.curves:
            rows = self.arrays[curve.name]
            part = slice(curve.offset, curve.offset + curve.width)
            for k in np.unique(member) if len(rows) > 1 else [None]:
                own, here = (rows[0], slice(None)) if k is None else (rows[k], member == k)
                whole[here, part] = own[np.maximum(np.searchsorted(own[:, 0], t[here], "right") - 1, 0)]
        return whole


def batch_of(tables: Sequence[Table], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The batch of a run with these tables."""
    try:
        return np.broadcast_shapes(shape, *(table.batch_shape for table in tables))
    except ValueError:
        raise InputError(
            "the batches of the tables and of the states do not fit together",
            got=f"states {shape}, tables {', '.join(str(table.batch_shape) for table in tables)}",
            allowed="equal leading axes, or none where one value serves all",
        ) from None
