"""Roots of residuals over configurations, from a guess: Levenberg's steps with control, a batch at a time.

δq = -J*(JJ* + μ)⁻¹e with μ = c|e|²: near a root these are Gauss and Newton's steps, fast at any rank of J (Yamashita
and Fukushima 2001), since what a lost row would have to say is not asked. c grows where a step does not help.

Goals within limits are reached by the compiled loop of :mod:`linkwise.kinematics.levenberg` instead, in 1.4 µs a target
where these steps take 85 (Panda, a thousand at a time). That loop would not do here: its elimination is written out for
each number of equations (25 freedoms with 60 equations: 6 s before the first answer, against 1.2), and it has no rank
test.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.array_types import Array

_MOST = 200  # steps
_LONGEST = 1.0  # rad or m in one step
_STIFFEST = 1e12


def nearest_root(
    residual: Callable[[Array, Array], Array],
    jacobian: Callable[[Array, Array], Array],
    moved: Callable[[Array, Array, Array], Array],
    x: Array,
    tol: float,
) -> tuple[Array, Array]:
    """Where the residual is below ``tol`` or cannot be made smaller, and what it is there.

    Args:
        residual: e (k, m) of the states ``x`` (k, …) with the numbers ``which`` (k) in the batch.
        jacobian: its derivative (k, m, n) by small moves.
        moved: the states after small moves (k, n).
        x: the guesses (batch, …).
        tol: for the largest number of e.
    """
    x = np.array(x, float)
    every = np.arange(len(x))
    e = residual(x, every)
    c = np.full(len(x), 1e-3)
    for _ in range(_MOST):
        active = np.flatnonzero((np.abs(e).max(-1, initial=0.0) > tol) & (c < _STIFFEST) & np.isfinite(e).all(-1))
        if not len(active):
            break
        step = _step(jacobian(x[active], active), e[active], c[active])
        there = moved(x[active], step, active)
        e_there = residual(there, active)
        better = np.isfinite(e_there).all(-1) & ((e_there**2).sum(-1) < (e[active] ** 2).sum(-1))
        gained = active[better]
        x[gained], e[gained] = there[better], e_there[better]
        c[gained] = np.maximum(c[gained] / 8.0, 1e-12)
        c[active[~better]] *= 8.0
    return x, e


def _step(J: Array, e: Array, c: Array) -> Array:
    if not np.isfinite(J).all():
        return np.full((len(J), J.shape[-1]), np.nan)
    U, s, V = np.linalg.svd(J, full_matrices=False)
    weight = s / np.maximum(s**2 + (c * (e**2).sum(-1))[:, None], np.finfo(float).tiny)
    weight[s < 1e-13 * s.max(-1, keepdims=True, initial=0.0)] = 0.0
    step: Array = -np.einsum("kij,ki->kj", V, weight * np.einsum("kij,ki->kj", U, e))
    longest = np.abs(step).max(-1, initial=0.0, keepdims=True)
    step *= np.minimum(1.0, _LONGEST / np.maximum(longest, np.finfo(float).tiny))
    return step
