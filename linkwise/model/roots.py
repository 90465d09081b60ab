"""Roots of residuals over configurations, from a guess, within bounds: a trust region, a batch at a time.

A step minimises |e + Jδ| over |δ| ≤ Δ: δ = -J*(JJ* + μ)⁻¹e, Levenberg and Marquardt's step, with the μ that its length
asks for (Moré 1978); Δ grows where the linear model foretells the residual and shrinks where it does not. μ stays
above 1e-9 |e|²: near a root these are Gauss and Newton's steps, fast at any rank of J (Yamashita and Fukushima 2001),
since what a lost row would have to say is not asked. Freedoms at a bound that a step would leave are held for that
step, the others stop at theirs.

Goals of inverse kinematics are reached by the compiled loop of :mod:`linkwise.kinematics.levenberg` instead, in 1.4 µs
a target where steps like these take 85 (Panda, a thousand at a time). That loop would not do here: its elimination is
written out for each number of equations (25 freedoms with 60 equations: 6 s before the first answer, against 1.2), and
it has no rank test.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.array_types import Array

_MOST = 200  # steps
_SHORTEST = 1e-14  # radius at which a state is left
_SLOW, _PATIENCE = 0.01, 12  # share of |e|² that a step should gain, and steps in a row that may gain less
_STATIONARY = 1e-11  # sine of the angle between e and what J can change, below which e is the least that is near
_DAMPED = 1e-9
_TINY = float(np.finfo(float).tiny)


def nearest_root(
    residual: Callable[[Array, Array], Array],
    jacobian: Callable[[Array, Array], Array],
    moved: Callable[[Array, Array, Array], Array],
    x: Array,
    tol: float,
    room: Callable[[Array], tuple[Array, Array]] | None = None,
    longest: float = np.inf,
) -> tuple[Array, Array]:
    """States whose residual is below ``tol`` or cannot be made smaller, and that residual.

    Args:
        residual: e (k, m) of the states ``x`` (k, …) with the numbers ``which`` (k) in the batch.
        jacobian: its derivative (k, m, n) by small moves.
        moved: the states after small moves (k, n).
        x: the guesses (batch, …).
        tol: for the largest number of e.
        room: moves (k, n) that lead from states to their lower and upper bounds, where there are any.
        longest: the radius of the trust region at most; it begins at 1, or there.
    """
    x = np.array(x, float)
    every = np.arange(len(x))
    e = residual(x, every)
    radius = np.full(len(x), min(1.0, longest))
    slow = np.zeros(len(x), int)
    for _ in range(_MOST):
        active = np.flatnonzero((np.abs(e).max(-1, initial=0.0) > tol) & (radius > _SHORTEST) & np.isfinite(e).all(-1))
        if not len(active):
            break
        J, now, ends = jacobian(x[active], active), e[active], None if room is None else room(x[active])
        if ends is not None:
            downhill = -np.einsum("kij,ki->kj", J, now)
            held = ((ends[0] >= 0.0) & (downhill < 0.0)) | ((ends[1] <= 0.0) & (downhill > 0.0))
            J = np.where(held[:, None, :], 0.0, J)
        step, still = _step(J, now, radius[active])
        if ends is not None:
            step = np.clip(step, *ends)
        there = moved(x[active], step, active)
        e_there = residual(there, active)
        size = (now**2).sum(-1)
        foretold = size - ((now + np.einsum("kij,kj->ki", J, step)) ** 2).sum(-1)
        gain = size - (e_there**2).sum(-1)
        known = np.isfinite(gain)
        share = np.where(known, gain, -np.inf) / np.maximum(foretold, _TINY)
        length = np.where(np.isfinite(step).all(-1), np.sqrt((step**2).sum(-1)), 0.0)
        better = known & (gain > 0.0)
        gained = active[better]
        x[gained], e[gained] = there[better], e_there[better]
        old = radius[active]
        grown = np.where((share > 0.75) & (length > 0.9 * old), np.minimum(2.0 * old, longest), old)
        radius[active] = np.where(share < 0.25, 0.25 * np.minimum(length, old), grown)
        slow[active] = np.where(better & (gain > _SLOW * size), 0, slow[active] + 1)
        radius[active[still | (slow[active] > _PATIENCE)]] = 0.0
    return x, e


def _step(J: Array, e: Array, radius: Array) -> tuple[Array, Array]:
    """The steps (k, n) within the radii, and which states are stationary."""
    if not np.isfinite(J).all():
        return np.full((len(J), J.shape[-1]), np.nan), np.ones(len(J), bool)
    U, s, V = np.linalg.svd(J, full_matrices=False)
    s = np.where(s < 1e-13 * s.max(-1, keepdims=True, initial=0.0), 0.0, s)
    along = np.einsum("kij,ki->kj", U, e)
    size = (e**2).sum(-1)
    largest = s.max(-1, initial=0.0)
    still = np.sqrt(((s * along) ** 2).sum(-1)) <= _STATIONARY * largest * np.sqrt(size)
    mu = _DAMPED * size

    def parts(mu: Array) -> tuple[Array, Array]:
        below = np.maximum(s**2 + mu[:, None], _TINY)
        p = s * along / below
        return p, below

    # |δ(μ)| = Δ by Newton's method on 1/|δ|, which comes to it from below (Hebden 1973).
    for _ in range(12):
        p, below = parts(mu)
        length = np.sqrt((p**2).sum(-1))
        over = length > 1.001 * radius
        if not over.any():
            break
        slope = np.maximum((p**2 / below).sum(-1), _TINY)
        mu = np.where(over, mu + (length / np.maximum(radius, _TINY) - 1.0) * length**2 / slope, mu)
    p, _ = parts(mu)
    length = np.sqrt((p**2).sum(-1))
    p = p * np.minimum(1.0, radius / np.maximum(length, _TINY))[:, None]
    step: Array = -np.einsum("kij,ki->kj", V, p)
    return step, still
