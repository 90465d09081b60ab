"""Outcomes of members: from trajectories to arrays with a row for each member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, UnknownNameError
from linkwise.sim.trajectory import Trajectory

Measure = Callable[[Trajectory], ArrayLike]
Kept = str | Mapping[str, str | Measure] | Iterable[str | Mapping[str, str | Measure]]
"""Names of channels, "final" and "events"; functions by name; or several of these."""

CHANNELS = ("q", "v", "x", "vdot", "tau", "energy", "steps")
STATUS = ("not run", "done", "event", "failed", "max_steps", "error", "died", "zeno")
"""Endings of members, by their number in ``status``. Those from "failed" on have no result."""
NOT_RUN, DONE, EVENT, FAILED, MAX_STEPS, ERROR, DIED, ZENO = range(len(STATUS))
MOMENTS = ("count", "mean", "square", "least", "most")


@dataclass(frozen=True)
class Keep:
    """Outcomes to keep of each member, and those of which only mean, spread and extremes are kept.

    Args:
        names: of channels, "final" and "events".
        measures: functions of a batch's trajectory that return a row for each member.
        reduced: channels or functions of which only the moments over all members are kept.
        failure: the name of an event, or a function like a measure that returns truth values; None for none.
        events: names of the events that the study looks for.
    """

    names: tuple[str, ...]
    measures: Mapping[str, Measure]
    reduced: Mapping[str, Measure]
    failure: str | Measure | None
    events: tuple[str, ...]

    @property
    def needs_samples(self) -> bool:
        """Whether more than the last state is looked at."""
        return bool(self.measures or self.reduced or callable(self.failure) or set(self.names) & set(CHANNELS[:-1]))

    def of(self, trajectory: Trajectory) -> tuple[dict[str, Array], dict[str, Array]]:
        """Rows for each member of a batch (n), and moments over the batch."""
        n = trajectory.batch_shape[0]
        rows: dict[str, Array] = {}
        for name in self.names:
            if name == "final":
                rows |= final(trajectory)
            elif name == "events":
                for event in self.events:
                    rows |= occurrences(trajectory, event)
            else:
                rows[name] = np.asarray(getattr(trajectory, name))
        rows |= {name: measured(name, f, trajectory, n) for name, f in self.measures.items()}
        if self.failure is not None:
            rows["failure"] = self._failures(trajectory, n)
        moments: dict[str, Array] = {}
        good = np.isin(np.asarray(trajectory.status), ("done", "event"))
        for name, f in self.reduced.items():
            values = measured(name, f, trajectory, n)[good].astype(float)
            moments |= {f"{name}.{what}": value for what, value in moments_of(values).items()}
        return rows, moments

    def _failures(self, trajectory: Trajectory, n: int) -> Array:
        if isinstance(self.failure, str):
            return np.asarray(occurrences(trajectory, self.failure)[f"{self.failure}.count"] > 0)
        assert self.failure is not None
        return measured("failure", self.failure, trajectory, n).astype(bool)


def as_keep(
    keep: Kept, reduce: Mapping[str, str | Measure] | None, failure: str | Measure | None, events: Sequence[str]
) -> Keep:
    """Outcomes that a caller wants to keep: names, functions by name, or a list of both."""
    names: list[str] = []
    measures: dict[str, Measure] = {}
    for part in [keep] if isinstance(keep, (str, Mapping)) else list(keep):
        for name, spec in part.items() if isinstance(part, Mapping) else [(part, part)]:
            if callable(spec):
                measures[_checked_name(name)] = spec
            elif spec in ("final", "events", *CHANNELS):
                names.append(spec)
            else:
                raise UnknownNameError("thing to keep", spec, ("final", "events", *CHANNELS))
    reduced: dict[str, Measure] = {}
    for name, spec in dict(reduce or {}).items():
        if not callable(spec) and spec not in CHANNELS:
            raise UnknownNameError("channel", spec, CHANNELS)
        reduced[_checked_name(name)] = spec if callable(spec) else Channel(spec)
    if isinstance(failure, str) and failure not in events:
        raise UnknownNameError("event", failure, events, do="name one of events=, or give a function of the trajectory")
    if failure is not None and not callable(failure) and not isinstance(failure, str):
        raise InputError("failure is neither an event nor a function", got=repr(failure))
    return Keep(tuple(dict.fromkeys(names)), measures, reduced, failure, tuple(events))


@dataclass(frozen=True)
class Channel:
    """A quantity of the trajectory by its name."""

    name: str

    def __call__(self, trajectory: Trajectory) -> Array:
        """Samples (n, T, ...) of the channel."""
        return np.asarray(getattr(trajectory, self.name))


def measured(name: str, measure: Measure, trajectory: Trajectory, n: int) -> Array:
    """A function's rows, checked: one for each member."""
    values = np.asarray(measure(trajectory))
    if values.ndim == 0 or len(values) != n:
        raise InputError(
            f"{name!r} did not return a row for each member",
            got=f"shape {values.shape}",
            allowed=f"({n}, ...): traj.q has the shape (members, samples, nq)",
            do="reduce over axis 1 (time), not over axis 0 (members)",
        )
    if values.dtype.kind not in "fiub":
        raise InputError(f"{name!r} did not return numbers", got=f"dtype {values.dtype}")
    return values


def final(trajectory: Trajectory) -> dict[str, Array]:
    """The last state of each member, and when that was: at the end, or where an event ended it; NaN where it failed."""
    q, v = np.array(trajectory.q[:, -1]), np.array(trajectory.v[:, -1])
    t = np.full(len(q), float(trajectory.t[-1]) if len(trajectory.t) else np.nan)
    status = np.asarray(trajectory.status)
    for event in trajectory.events:
        (k,) = event.state
        if status[k] == "event":
            q[k], v[k], t[k] = event.q_after, event.v_after, event.t
    lost = ~np.isin(status, ("done", "event"))
    q[lost], v[lost], t[lost] = np.nan, np.nan, np.nan
    return {"q_final": q, "v_final": v, "t_final": t}


def occurrences(trajectory: Trajectory, name: str) -> dict[str, Array]:
    """Number of times that an event happened to each member, and the first of these times (NaN: never)."""
    n = trajectory.batch_shape[0]
    count, first = np.zeros(n, np.int64), np.full(n, np.nan)
    for event in trajectory.events:
        if event.name == name:
            (k,) = event.state
            count[k] += 1
            first[k] = np.fmin(first[k], event.t)
    return {f"{name}.count": count, f"{name}.first": first}


def moments_of(values: Array) -> dict[str, Array]:
    """Count, mean, sum of squared differences from it, least and most, over the first axis."""
    n = len(values)
    none = np.full(values.shape[1:], np.nan)
    mean = values.mean(axis=0) if n else none
    return {
        "count": np.array(float(n)),
        "mean": mean,
        "square": ((values - mean) ** 2).sum(axis=0) if n else none,
        "least": values.min(axis=0) if n else none,
        "most": values.max(axis=0) if n else none,
    }


def merged(a: Mapping[str, Array], b: Mapping[str, Array]) -> dict[str, Array]:
    """The moments of two groups together (Chan, Golub and LeVeque 1979)."""
    if not a["count"]:
        return dict(b)
    if not b["count"]:
        return dict(a)
    n = a["count"] + b["count"]
    apart = b["mean"] - a["mean"]
    return {
        "count": n,
        "mean": a["mean"] + apart * (b["count"] / n),
        "square": a["square"] + b["square"] + apart**2 * (a["count"] * b["count"] / n),
        "least": np.minimum(a["least"], b["least"]),
        "most": np.maximum(a["most"], b["most"]),
    }


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name or not name.isprintable() or "/" in name or name.startswith((".", "_")):
        raise InputError(
            "this cannot be the name of an outcome", got=repr(name), allowed="a word without slashes, e.g. 'tip_error'"
        )
    return name
