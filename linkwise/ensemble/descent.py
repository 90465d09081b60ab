"""Downhill along exact gradients of a compiled cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.ensemble.search import Found
from linkwise.functions.function import CompiledFunction


def descend(
    cost: CompiledFunction,
    start: ArrayLike,
    data: Sequence[ArrayLike] = (),
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    scale: ArrayLike | None = None,
    rounds: int = 200,
    tolerance: float = 1e-12,
    threads: int | None = None,
) -> Found:
    """Go downhill along exact gradients (limited-memory BFGS), from one start or from many.

    Args:
        cost: from :func:`linkwise.compile`, to one number; its first input is what is looked for (d), the others are
            data. The cost of a candidate is the mean over all rows of the data, which run as one batch.
        start: where to begin (d), or several places (n, d); the best result counts.
        data: for each other input its rows (rows, ...).
        bounds: low and high, (d) or one number each.
        scale: typical sizes (d); those of the start if not given.
        rounds: steps, at most.
        tolerance: relative change of the cost below which it stops.
        threads: to split the data over.
    """
    from scipy.optimize import minimize

    name = cost.inputs[0][0]
    gradient = cost.gradient(name)
    given = [np.asarray(each, float) for each in data]
    starts = np.atleast_2d(np.asarray(start, float))
    sizes = np.broadcast_to(np.asarray(scale, float), starts.shape[1:]) if scale is not None else None
    best = Found(starts[0].copy(), np.inf, {})
    for first in starts:
        unit = np.where(first != 0.0, np.abs(first), 1.0) if sizes is None else sizes
        history: list[float] = []

        def both(z: Array, unit: Array = unit, history: list[float] = history) -> tuple[float, Array]:
            x = z * unit
            value = float(np.mean(cost(x, *given, threads=threads)))
            slope = np.atleast_2d(gradient(x, *given, threads=threads)).reshape(-1, len(x)).mean(axis=0)
            history.append(min(value, history[-1] if history else value))
            return value, slope * unit

        limits = None
        if bounds is not None:
            low, high = (np.broadcast_to(np.asarray(side, float), first.shape) / unit for side in bounds)
            limits = np.stack([low, high], axis=1)
        end = minimize(
            both, first / unit, jac=True, method="L-BFGS-B", bounds=limits,
            options={"maxiter": rounds, "ftol": tolerance, "gtol": 0.0},
        )  # fmt: skip
        best.evaluations += int(end.nfev)
        if end.fun < best.cost:
            best.x, best.cost, best.history = end.x * unit, float(end.fun), history
    best.values = {name: best.x}
    return best
