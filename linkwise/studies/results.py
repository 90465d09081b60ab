"""The results of an ensemble, whether they are in memory or on disk: read block by block, and checked as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError, UnknownNameError, require_extra
from linkwise.sim.trajectory import Trajectory
from linkwise.studies.member_blocks import Task, run_task
from linkwise.studies.outcomes import (
    FAILED,
    MOMENTS,
    STATUS,
    Rate,
    SobolIndices,
    merged,
    moments_of,
    rate,
    sobol_indices,
)
from linkwise.studies.store import AnyStore, Store, StoreError
from linkwise.studies.study import Study

_GROUP = 1024  # members whose moments are computed together


class Failure(NamedTuple):
    """A member without a result: its number, how it ended, and why."""

    member: int
    status: str
    reason: str


class Moments(NamedTuple):
    """Moments over all members with a result: count, mean, standard deviation, least, most, of one member's shape."""

    members: int
    mean: Array
    std: Array
    least: Array
    most: Array


class Results:
    """Results of an ensemble. ``results["q_final"]`` is an array with a row for each member.

    Rows of members without a result are NaN (0 or False where there is no NaN); see ``failures``.

    Attributes:
        manifest: what made this: versions, hashes, machine, settings, seed.
        members: how many there are.
        study: what was run; None where only a store was opened.
    """

    def __init__(self, store: AnyStore, study: Study | None = None) -> None:
        self.store, self.study = store, study
        self.manifest = store.manifest
        self.members = store.members

    # What there is.
    @property
    def inputs(self) -> list[str]:
        """Names of the inputs."""
        return self.store.names("input")

    @property
    def outcomes(self) -> list[str]:
        """Names of the outcomes."""
        return self.store.names("outcome")

    @property
    def reduced(self) -> list[str]:
        """Names of quantities of which only moments are kept."""
        return [name.removesuffix(".count") for name in self.store.names("moment") if name.endswith(".count")]

    def __contains__(self, name: object) -> bool:
        return name in (*self.inputs, *self.outcomes, "status")

    def __getitem__(self, name: str) -> Array:
        """All rows of an input or outcome (members, ...), or "status" (see :data:`STATUS`)."""
        return self.read(name)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Rows of members start … stop - 1, (n, ...); an input of one number has no second axis."""
        stop = self.members if stop is None else min(stop, self.members)
        size = self.store.size
        parts = []
        for number in range(start // size, -(-stop // size)):
            first = number * size
            parts.append(self._block(name, number)[max(0, start - first) : stop - first])
        return np.concatenate(parts) if parts else self._block(name, 0)[:0]

    def blocks(self, name: str) -> Iterator[Array]:
        """Arrays of one outcome, block by block: what is larger than memory can be looked through."""
        for number in range(self.store.blocks):
            yield self._block(name, number)

    def _block(self, name: str, number: int) -> Array:
        if name not in self:
            raise UnknownNameError("input or outcome", name, [*self.inputs, *self.outcomes, "status"])
        values = self.store.read_block(name, number)
        return values[:, 0] if name in self.inputs and values.shape[1:] == (1,) else values

    @property
    def is_complete(self) -> bool:
        """Whether every member has been run."""
        return len(self.store.finished()) == self.store.blocks

    @property
    def failures(self) -> list[Failure]:
        """Members without a result, with the reason."""
        found = []
        for number in self.store.finished():
            reasons = self.store.record(number)["reasons"]
            if reasons:
                start, _ = self.store.bounds(number)
                status = self.store.read_block("status", number)
                found += [Failure(int(m), STATUS[status[int(m) - start]], why) for m, why in reasons.items()]
        return sorted(found)

    @property
    def counts(self) -> dict[str, int]:
        """Number of members for each ending."""
        total = np.zeros(len(STATUS), int)
        for number in self.store.finished():
            found = self.store.record(number)["counts"]
            total[: len(found)] += found  # of an older version, fewer
        total[0] = self.members - total[1:].sum()
        return {name: int(n) for name, n in zip(STATUS, total, strict=True) if n}

    # What it says.
    def failure_rate(
        self,
        confidence: float = 0.95,
        *,
        method: Literal["exact", "wilson"] = "exact",
        without_result: Literal["failed", "left out"] = "failed",
    ) -> Rate:
        """The share of members that failed, by the study's criterion or by having no result.

        Args:
            confidence: of the interval, for members drawn independently (design "random"; for others it is cautious).
            method: "exact" (Clopper–Pearson) or "wilson".
            without_result: whether members without a result count as failed, or not at all.
        """
        lost = self["status"] >= FAILED
        failed = self["failure"].astype(bool) & ~lost if "failure" in self.outcomes else np.zeros(self.members, bool)
        if without_result == "left out":
            return rate(int(failed.sum()), int((~lost).sum()), confidence, method)
        return rate(int((failed | lost).sum()), self.members, confidence, method)

    def rate(self, name: str, confidence: float = 0.95, method: Literal["exact", "wilson"] = "exact") -> Rate:
        """The share of members, among those with a result, for which an outcome is true (not zero)."""
        values = self[name][self["status"] < FAILED]
        if values.ndim != 1:
            raise InputError(f"{name!r} has more than one number for each member", got=f"shape {values.shape}")
        return rate(int(np.count_nonzero(values)), len(values), confidence, method)

    def moments(self, name: str) -> Moments:
        """Mean, standard deviation and extremes over members with a result, of a kept or a reduced quantity.

        Members are put together in their order, so that the last bit does not depend on which came first; that of
        reduced quantities depends on the size of blocks.
        """
        whole: Mapping[str, Array] = {"count": np.array(0.0)}
        if name in self.reduced:
            for number in range(self.store.blocks):
                part = {what: self.store.read_block(f"{name}.{what}", number) for what in MOMENTS}
                whole = merged(whole, part)
        else:
            for rows in self._groups(name):
                whole = merged(whole, moments_of(rows))
        n = int(whole["count"])
        if not n:
            raise LinkwiseError(f"no member has a result for {name!r}", do="see results.failures")
        spread = np.sqrt(whole["square"] / max(1, n - 1))
        return Moments(n, whole["mean"], spread, whole["least"], whole["most"])

    def quantile(self, name: str, q: ArrayLike) -> Array:
        """Quantiles over members with a result, (..., shape of a member's row); q between 0 and 1 (...)."""
        values = np.concatenate([self._known(name, number) for number in range(self.store.blocks)])
        return np.asarray(np.quantile(values, np.asarray(q, float), axis=0))

    def _groups(self, name: str) -> Iterator[Array]:
        """Rows of members with a result, so many members at a time, whatever the size of blocks."""
        rest, lost = [], []
        held = 0
        for number in range(self.store.blocks):
            rest.append(np.asarray(self._block(name, number), float))
            lost.append(self.store.read_block("status", number) >= FAILED)
            held += len(lost[-1])
            last = number == self.store.blocks - 1
            if held >= _GROUP or last:
                rows, gone = np.concatenate(rest), np.concatenate(lost)
                whole = held if last else held - held % _GROUP
                for start in range(0, whole, _GROUP):
                    group = slice(start, min(start + _GROUP, whole))
                    yield _numbers(rows[group][~gone[group]])
                rest, lost, held = [rows[whole:]], [gone[whole:]], held - whole

    def _known(self, name: str, number: int) -> Array:
        """A block's rows of members with a result; of single numbers, those that are not NaN (an event never seen)."""
        return _numbers(np.asarray(self._block(name, number)[self.store.read_block("status", number) < FAILED], float))

    def worst(self, name: str, count: int = 10, *, smallest: bool = False) -> Array:
        """Numbers of the members with the largest (or smallest) outcome, the worst first."""
        values = np.asarray(self[name], float)
        if values.ndim != 1:
            raise InputError(
                f"{name!r} has more than one number for each member",
                got=f"shape {values.shape}",
                do="keep a measure of it, one number for each member",
            )
        order = np.argsort(values if smallest else -values, kind="stable")
        return np.asarray(order[np.isfinite(values[order])][:count])

    def sobol_indices(self, name: str, confidence: float = 0.95, resamples: int = 200) -> SobolIndices:
        """First-order and total Sobol indices of an outcome; the study must have the design "saltelli"."""
        if self.manifest.get("design") != "saltelli":
            raise InputError(
                "Sobol indices need members in Saltelli's pattern",
                got=f"design {self.manifest.get('design')!r}",
                do='lw.ensemble(..., design="saltelli", members=n * (d + 2))',
            )
        names = tuple(self.manifest["drawn"])
        return sobol_indices(self[name], names, confidence, resamples, seed=0)

    # Members again.
    def replay(self, member: int, **changes: Any) -> Trajectory:
        """Run one member again, alone: the same motion, bit for bit. See :meth:`Study.replay`."""
        return self._with_study("replay").replay(member, **changes)

    def check(self, member: int) -> bool:
        """Run one member again and compare all its outcomes with those that are stored, bit for bit."""
        study = self._with_study("check")
        study.check_member(member)
        inputs = study.batch(member, member + 1).inputs
        block = run_task(study, Task(0, member, member + 1, inputs))
        pairs = [(values, self.store_row(name, member)) for name, values in {**inputs, **block.rows}.items()]
        return all(a.tobytes() == b.tobytes() for a, b in pairs)

    def store_row(self, name: str, member: int) -> Array:
        """One member's row as it is stored, (1, ...)."""
        number = member // self.store.size
        start, _ = self.store.bounds(number)
        return self.store.read_block(name, number)[member - start : member - start + 1]

    def _with_study(self, what: str) -> Study:
        if self.study is None:
            raise LinkwiseError(f"{what} needs the study, which a store does not hold", do="open(folder, study=...)")
        return self.study

    # Elsewhere.
    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with the dimension "member"; from a store it is read as it is used.

        All blocks are checked first, since what is read later is not.
        """
        xarray = require_extra("xarray", "ensemble")
        damaged = self.store.damaged()
        if damaged:
            raise StoreError(
                f"{len(damaged)} blocks of the store are damaged",
                blocks=tuple(damaged),
                got=next(iter(damaged.values())).splitlines()[0],
                do="resume the study: they are run again",
            )
        if isinstance(self.store, Store):
            data = xarray.open_zarr(self.store.folder / "data.zarr", consolidated=False, zarr_format=3)
            return data.assign_attrs(manifest=str(self.store.folder / "manifest.json"))
        rows = {}
        for name in (*self.inputs, *self.outcomes, "status"):
            values = self[name]
            rows[name] = (("member", *(f"{name}_{k}" for k in range(values.ndim - 1))), values)
        return xarray.Dataset(rows)

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """A table for other programs: a row for each member, a column for each number of inputs and outcomes.

        Written block by block. Outcomes of more than one axis, such as samples over time, are left out.
        """
        arrow = require_extra("pyarrow", "parquet")
        parquet = require_extra("pyarrow.parquet", "parquet")
        target, writer = Path(path), None
        try:
            for number in range(self.store.blocks):
                start, stop = self.store.bounds(number)
                columns: dict[str, Array] = {"member": np.arange(start, stop)}
                for name in (*self.inputs, *self.outcomes, "status"):
                    values = self._block(name, number)
                    if values.ndim == 1:
                        columns[name] = values
                    elif values.ndim == 2:
                        columns |= {f"{name}[{k}]": np.ascontiguousarray(values[:, k]) for k in range(values.shape[1])}
                table = arrow.table(columns)
                writer = writer or parquet.ParquetWriter(target, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
        return target

    def summary(self) -> str:
        """A table in plain text: how members ended, and each outcome of one number."""
        ended = ", ".join(f"{n} {name}" for name, n in self.counts.items())
        lines = [f"{self.manifest['model']['name']}: {self.members} members: {ended}"]
        if self.is_complete:
            if "failure" in self.outcomes or any(STATUS.index(name) >= FAILED for name in self.counts):
                lines.append(f"failure rate {self.failure_rate()}")
            lines += [f"  {line}" for line in self._table()]
        return "\n".join(lines)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a page for the browser: distributions, inputs against outcomes, sensitivity, the worst members to play.

        Args:
            path: of the page, one file.
            options: see :func:`linkwise.studies.report.write_report`: ``worst``, ``smallest``, ``count``.
        """
        from linkwise.studies.report import write_report

        return write_report(self, Path(path), **options)

    def spreads(self) -> list[list[str]]:
        """Moments and quantiles of each outcome of one number, as text: rows of a table, its head first."""
        rows = [["", "mean", "std", "least", "5 %", "median", "95 %", "most"]]
        for name in self.scalars():
            m, quantiles = self.moments(name), self.quantile(name, [0.05, 0.5, 0.95])
            rows.append([name, *(f"{float(x):.4g}" for x in (m.mean, m.std, m.least, *quantiles, m.most))])
        return rows

    def _table(self) -> list[str]:
        rows = self.spreads()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return (
            ["  ".join(f"{cell:{'<' if k == 0 else '>'}{widths[k]}}" for k, cell in enumerate(row)) for row in rows]
            if len(rows) > 1
            else []
        )

    def scalars(self) -> list[str]:
        """Outcomes of one number for each member that differ between members; truth values are left out."""
        good = self["status"] < FAILED
        found = []
        for name in self.outcomes:
            first = self.store.read_block(name, 0)
            if first.ndim == 1 and first.dtype.kind != "b":
                values = np.asarray(self[name][good], float)
                if np.isfinite(values).any() and np.nanmax(values) > np.nanmin(values):
                    found.append(name)
        return found

    def __repr__(self) -> str:
        where = f" in {self.store.folder}" if self.store.folder else ""
        return f"<Results of {self.members} members{where}: {', '.join(self.outcomes)}>"


def _numbers(rows: Array) -> Array:
    return rows[~np.isnan(rows)] if rows.ndim == 1 else rows


def open_results(folder: str | os.PathLike[str], study: Study | None = None) -> Results:
    """The results in a store. ``study`` is what was run, to run members again; it must be the very same."""
    store = Store(folder)
    if study is not None and store.manifest["study"] != study.hash:
        raise InputError("this store holds another study", got=store.manifest["study"], allowed=study.hash)
    return Results(store, study)
