"""Values given over time: tables, which a simulation reads inside its kernel.

A table is a piecewise polynomial. Its *rows* are what the kernel sees: ``[begin, end, origin, stop, c0, c1, …]``, with
the value c0 + c1 s + … at s = t - origin for begin <= t < end, each c a vector. No step goes beyond ``stop``: the end
of the row, or of a smooth table's whole length. The row in force is part of the memory of a state, so that a step
finds what it needs without a search: it is kept behind the run-time parameters p of the state.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linkwise.array_types import Array
from linkwise.checks import check_choice, check_positive
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, UnknownNameError
from linkwise.memoized import cached_property
from linkwise.spatial.scalar import Flat, Scalar

HEAD = 4  # numbers of a row before its coefficients
_DEGREES = {"held": 0, "linear": 1, "cubic": 3}


class Table:
    """Values at given times, and what is between them.

    Steps of every integrator end at the times of a table that is held or linear, so that its jumps and kinks cost no
    accuracy. A cubic one is smooth (a spline), and steps pass over its times: the choice for finely sampled data.

    Args:
        times: (T) in s, increasing; (..., T) if each member of a batch has its own. A linear table may repeat a time:
            the value jumps there.
        values: (T, n), (T) for one number, or (..., T, n) for the members of a batch.
        kind: ``"linear"``, ``"held"`` (each value until the next time) or ``"cubic"``.
        outside: before the first and after the last time: ``"hold"`` the value there, ``"zero"``, or ``"refuse"``
            simulations that get there.

    >>> ramp = Table([0.0, 1.0, 2.0], [[0.0], [3.0], [3.0]])
    >>> ramp(0.5).tolist(), ramp(9.0).tolist()
    ([1.5], [3.0])
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, kind: str = "linear", outside: str = "hold") -> None:
        check_choice("kind of table", kind, tuple(_DEGREES))
        check_choice("way to treat times outside a table", outside, ("hold", "zero", "refuse"))
        self.kind, self.outside = kind, outside
        try:
            t, x = np.array(times, float), np.array(values, float)
        except (TypeError, ValueError):
            raise InputError(
                "a table is not made of numbers", got=f"{type(times).__name__}, {type(values).__name__}"
            ) from None
        x = x[..., None] if x.ndim == 1 else x
        if t.ndim < 1 or t.shape[-1] < 1 or x.ndim < 2 or x.shape[-2] != t.shape[-1]:
            raise InputError(
                "the times and the values of a table do not fit together",
                got=f"times {t.shape}, values {x.shape}",
                allowed="times (T), values (T, n); with leading axes for the members of a batch",
            )
        if not (np.isfinite(t).all() and np.isfinite(x).all()):
            raise InputError("a table is not finite", got="nan or inf", allowed="finite times and values")
        steps = np.diff(t, axis=-1)
        bad = steps < 0.0 if kind == "linear" else steps <= 0.0
        if bad.any():
            k = int(np.argwhere(bad)[0][-1])
            pair = t.reshape(-1, t.shape[-1])[
                int(np.flatnonzero(bad.reshape(-1, bad.shape[-1]).any(axis=1))[0]), k : k + 2
            ]
            raise InputError(
                "the times of a table do not increase",
                got=f"{pair[0]:g} s, then {pair[1]:g} s (numbers {k} and {k + 1})",
                allowed="increasing times" + ("; equal ones where the value jumps" if kind == "linear" else ""),
            )
        try:
            self.batch_shape = np.broadcast_shapes(t.shape[:-1], x.shape[:-2])
        except ValueError:
            raise InputError(
                "the batches of a table's times and values do not fit together",
                got=f"{t.shape[:-1]} and {x.shape[:-2]}",
            ) from None
        for array in (t, x):
            array.flags.writeable = False
        self.times, self.values = t, x

    @property
    def size(self) -> int:
        """Numbers in each value."""
        return int(self.values.shape[-1])

    @property
    def degree(self) -> int:
        """Of the polynomials."""
        return _DEGREES[self.kind]

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return HEAD + (self.degree + 1) * self.size

    @property
    def is_smooth(self) -> bool:
        """Whether steps may pass over its times."""
        return self.kind == "cubic"

    def __repr__(self) -> str:
        batch = f", batch {self.batch_shape}" if self.batch_shape else ""
        return f"<{self.kind} table of {self.times.shape[-1]} times, {self.size} numbers each{batch}>"

    @classmethod
    def noise(
        cls,
        duration: float,
        rate: float,
        deviation: ArrayLike,
        *,
        seed: int | np.random.Generator | None,
        batch: int | tuple[int, ...] = (),
    ) -> Table:
        """White noise, held between samples: the same for the same seed, so that runs can be repeated.

        Args:
            duration: s.
            rate: samples a second, Hz.
            deviation: standard deviation of each number, (n).
            seed: of :func:`numpy.random.default_rng`.
            batch: leading axes: own noise for each member of a batch.
        """
        check_positive(duration=duration, rate=rate)
        size = np.atleast_1d(np.asarray(deviation, float))
        shape = (batch,) if isinstance(batch, int) else tuple(batch)
        count = int(np.ceil(duration * rate)) + 1
        drawn = np.random.default_rng(seed).normal(size=(*shape, count, len(size)))
        return cls(np.arange(count) / rate, drawn * size, "held")

    @classmethod
    def from_csv(
        cls, path: str | Path, names: Iterable[str] | None = None, kind: str = "linear", outside: str = "hold"
    ) -> Table:
        """From a file with one line of names and then numbers: the time first, in s.

        Args:
            path: the file.
            names: columns to take, in this order; all but the first if not given.
            kind: as for a table.
            outside: as for a table.
        """
        times, columns = read_columns(path)
        chosen = list(columns if names is None else names)
        for name in chosen:
            if name not in columns:
                raise UnknownNameError(f"column in {Path(path).name}", name, columns)
        return cls(times, np.stack([columns[name] for name in chosen], axis=-1), kind, outside)

    def rows(self) -> Array:
        """Rows for the kernel (members, T + 1, width); one member for all, or as many as the batch. Read-only."""
        return self._rows

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_rows"}  # made again where it arrives

    @cached_property
    def _rows(self) -> Array:
        count = int(np.prod(self.batch_shape, dtype=int))
        T, n = self.values.shape[-2:]
        t = np.broadcast_to(self.times, (*self.batch_shape, T)).reshape(count, T)
        x = np.broadcast_to(self.values, (*self.batch_shape, T, n)).reshape(count, T, n)
        rows = np.zeros((count, T + 1, self.width))
        rows[:, 0, 0], rows[:, 1:, 0] = -np.inf, t
        rows[:, :-1, 1], rows[:, -1, 1] = t, np.inf
        rows[:, 1:, 2], rows[:, 0, 2] = t, t[:, 0]
        rows[:, :, 3] = rows[:, :, 1]
        if self.is_smooth:
            rows[:, 1:-1, 3] = t[:, -1:]
        coefficients = rows[:, :, HEAD:].reshape(count, T + 1, self.degree + 1, n)  # a copy
        coefficients[:, 1:, 0] = x
        if T > 1 and self.kind == "linear":
            length = np.diff(t, axis=1)[..., None]
            coefficients[:, 1:-1, 1] = np.diff(x, axis=1) / np.where(length > 0.0, length, 1.0)
        if T > 1 and self.kind == "cubic":
            from scipy.interpolate import CubicSpline

            for k in range(count):
                coefficients[k, 1:-1] = np.moveaxis(CubicSpline(t[k], x[k]).c[::-1], 0, 1)
        coefficients[:, 0, 0] = x[:, 0]
        if self.outside == "zero":
            coefficients[:, [0, -1]] = 0.0
        rows[:, :, HEAD:] = coefficients.reshape(count, T + 1, -1)
        rows.flags.writeable = False
        return rows

    def __call__(self, t: ArrayLike) -> Array:
        """The values (..., n) at times (...); with a batch (batch..., ..., n)."""
        times = np.asarray(t, float)
        row = self.row(times)
        parts = np.split(row[..., HEAD:], self.degree + 1, axis=-1)
        return np.asarray(polynomial(parts, (times - row[..., 2])[..., None]))

    def row(self, t: ArrayLike) -> Array:
        """The rows in force (..., width) at times (...); with a batch (batch..., ..., width)."""
        times = np.asarray(t, float)
        flat = times.reshape(-1)
        found = [own[np.maximum(np.searchsorted(own[:, 0], flat, "right") - 1, 0)] for own in self.rows()]
        return np.stack(found).reshape(*self.batch_shape, *times.shape, self.width)


def check_span(tables: Sequence[Table], t0: float, duration: float) -> None:
    """Refuse to simulate beyond the times of tables that say so."""
    for table in tables:
        if table.outside != "refuse":
            continue
        first, last = float(table.times[..., 0].max()), float(table.times[..., -1].min())
        slack = 1e-9 * (last - first)
        if t0 < first - slack or t0 + duration > last + slack:
            raise InputError(
                "the simulation leaves the times that a table knows",
                got=f"{t0:g} to {t0 + duration:g} s",
                allowed=f"{first:g} to {last:g} s",
                do="simulate a shorter time, or make the table longer",
            )


def polynomial(parts: Sequence[Scalar], s: Scalar) -> Scalar:
    """c0 + s (c1 + s (…)), of arrays or scalars c."""
    total = parts[-1]
    for part in parts[-2::-1]:
        total = part + s * total
    return total


def read_columns(path: str | Path) -> tuple[Array, dict[str, Array]]:
    """Times (T), and the other columns (T) by name; by their numbers, "1", "2", …, where the file names none."""
    names, values = csv_table(path)
    if not len(values) or len(names) < 2:
        raise InputError(
            f"{path} holds no table", got=f"{len(values)} lines of numbers", allowed="a line `t,joint,…`, then numbers"
        )
    if len(set(names)) < len(names):
        raise InputError(f"{path} names a column twice", got=", ".join(names))
    return values[:, 0], {name: values[:, j] for j, name in enumerate(names) if j}


def csv_table(path: str | Path, first: str | None = None) -> tuple[list[str], Array]:
    """Names and numbers (lines, columns) of a CSV file; names are numbers, "0", "1", …, where the file has none.

    Lines that begin with ``#`` are passed over. ``first``: the name that the first column must have.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            lines = [(reader.line_num, line) for line in reader if line and not line[0].startswith("#")]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file", got=str(error)) from None
    head = lines.pop(0)[1] if lines and not _is_number(lines[0][1][0]) else []
    names = [text.strip() for text in head] or [str(k) for k in range(len(lines[0][1]) if lines else 0)]
    if first is not None and names[:1] != [first]:
        raise InputError(
            f"{path}: the first column is not the time", got=", ".join(names), allowed=f"{first},q:joint1,q:joint2,…"
        )
    try:
        return names, np.array([line for _, line in lines], float).reshape(len(lines), len(names))
    except ValueError:
        for number, line in lines:
            if len(line) != len(names):
                raise InputError(
                    f"{path}:{number}: the line is of another length", got=f"{len(line)} entries", allowed=len(names)
                ) from None
            for name, text in zip(names, line, strict=True):
                if not _is_number(text):
                    raise InputError(
                        f"{path}:{number}: {name} is not a number", got=repr(text), allowed="e.g. 0.5"
                    ) from None
        raise


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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

    def stop(self, p: Flat, within: bool) -> Scalar:
        """Time at which a step must end; at the end of the row even if the next one goes on smoothly, if ``within``."""
        return p[self.offset + (1 if within else 3)]

    def value(self, t: Scalar, p: Flat) -> list[Scalar]:
        """At a time within the row."""
        s, start = t - p[self.offset + 2], self.offset + HEAD
        return [polynomial([p[start + k * self.size + i] for k in range(self.degree + 1)], s) for i in range(self.size)]


class Tabled(Protocol):
    """Element, as far as its tables go."""

    tables: tuple[Table, ...]


def curves_of(elements: Sequence[Tabled], first: int) -> list[list[Curve]]:
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

    def __init__(
        self, curves: Sequence[Curve], tables: Sequence[Table], shape: tuple[int, ...], dtype: DTypeLike
    ) -> None:
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


NO_TABLES = RunTables((), (), (), float)
"""Tables of a run without any."""


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
