"""Outcomes of members: from trajectories to arrays with a row for each, and estimates from these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_choice
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


class Rate(NamedTuple):
    """A share of all members, with an interval that holds the true one with the given confidence."""

    value: float
    low: float
    high: float
    hits: int
    members: int
    confidence: float

    def __str__(self) -> str:
        return (
            f"{self.value:.4g} ({self.low:.4g} … {self.high:.4g} with {100 * self.confidence:g} % confidence; "
            f"{self.hits} of {self.members})"
        )


def rate(count: int, members: int, confidence: float = 0.95, method: Literal["exact", "wilson"] = "exact") -> Rate:
    """The share count/members of independent trials, and its interval.

    >>> print(rate(0, 300))
    0 (0 … 0.01222 with 95 % confidence; 0 of 300)

    Args:
        count: how often it happened.
        members: of how many.
        confidence: of the interval.
        method: "exact" (Clopper and Pearson 1934: never less confident than said) or "wilson" (Wilson 1927: narrower,
            as confident as said on average).
    """
    if not 0.0 < confidence < 1.0:
        raise InputError("confidence is not a share", got=repr(confidence), allowed="between 0 and 1, e.g. 0.95")
    if members < 1 or not 0 <= count <= members:
        raise InputError(
            "these are not counts", got=f"{count} of {members}", allowed="0 ≤ count ≤ members, members ≥ 1"
        )
    check_choice("interval", method, ("exact", "wilson"))
    from scipy.stats import binomtest

    found = binomtest(int(count), int(members)).proportion_ci(confidence, method)
    return Rate(count / members, float(found.low), float(found.high), int(count), int(members), confidence)


@dataclass(frozen=True)
class SobolIndices:
    """Shares of an outcome's variance that each input explains.

    Attributes:
        names: of the inputs, one for each number that is drawn (d).
        first: (d), by itself: V(E(y|x_i)) / V(y).
        total: (d), with all its interactions: E(V(y|all but x_i)) / V(y).
        first_interval, total_interval: (d, 2), by bootstrap.
        confidence: of the intervals.
    """

    names: tuple[str, ...]
    first: Array
    total: Array
    first_interval: Array
    total_interval: Array
    confidence: float

    def __str__(self) -> str:
        wide = max(len(name) for name in self.names)
        lines = [f"{'':{wide}}  first                  total"]
        for k, name in enumerate(self.names):
            cells = [
                f"{value[k]:6.3f} ({interval[k, 0]:6.3f} … {interval[k, 1]:6.3f})"
                for value, interval in ((self.first, self.first_interval), (self.total, self.total_interval))
            ]
            lines.append(f"{name:{wide}}  {cells[0]}  {cells[1]}")
        return "\n".join(lines)


def sobol_indices(values: Array, names: tuple[str, ...], confidence: float, resamples: int, seed: int) -> SobolIndices:
    """Indices of an outcome (members) in Saltelli's pattern: n groups of A, B, and A with coordinate i from B.

    Estimators of Saltelli et al. 2010 (first order, table 2 b) and Jansen 1999 (total). Groups with a member without a
    result are left out; SciPy's `sobol_indices` takes powers of two only, all of them with a result.
    """
    d = len(names)
    groups = np.asarray(values, float).reshape(-1, d + 2)
    groups = groups[np.isfinite(groups).all(axis=1)]
    if len(groups) < 2:
        raise InputError("too few members with a result for Sobol indices", got=f"{len(groups)} groups", allowed="≥ 2")
    first, total = _indices(groups)
    rng = np.random.default_rng(seed)
    drawn = [_indices(groups[rng.integers(0, len(groups), len(groups))]) for _ in range(resamples)]
    tails = [50.0 * (1.0 - confidence), 50.0 * (1.0 + confidence)]
    intervals = [np.nanpercentile([pair[k] for pair in drawn], tails, axis=0).T for k in range(2)]
    return SobolIndices(names, first, total, intervals[0], intervals[1], confidence)


def _indices(groups: Array) -> tuple[Array, Array]:
    A, B, mixed = groups[:, 0], groups[:, 1], groups[:, 2:]
    both = np.concatenate([A, B])
    middle, variance = both.mean(), both.var()
    if not variance > 0.0:
        return np.zeros(mixed.shape[1]), np.zeros(mixed.shape[1])
    A, B, mixed = A - middle, B - middle, mixed - middle
    first = (B[:, None] * (mixed - A[:, None])).mean(axis=0) / variance
    total = 0.5 * ((A[:, None] - mixed) ** 2).mean(axis=0) / variance
    return first, total
