"""Estimates from a sample: shares with their intervals, and which input matters."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError


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
    if method not in ("exact", "wilson"):
        raise InputError("no such interval", got=repr(method), allowed='"exact" or "wilson"')
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
