"""What the tests of relations share: random mechanisms, a measure, and exact derivatives along a motion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE, Trees
from linkwise.spatial.dual import derivative
from tests.oracles.eager import Eager, relative_error
from tests.random_trees import ALL, random_tree

TIGHT = 1e-10
SEEDS = pytest.mark.parametrize("seed", range(6))


def models(seed: int, n: int = 5, **options: Any) -> Iterator[tuple[lw.Model, Any, np.random.Generator]]:
    for more in range(n):
        rng = np.random.default_rng(1000 * seed + more)
        model = random_tree(rng, int(rng.integers(1, 8)), **{"types": ALL, "mimic": 0.25, **options})
        yield model, Eager(model), rng


def close(ours: Any, expected: Any, tolerance: float = TIGHT) -> None:
    assert relative_error(ours, expected) < tolerance


def along(model: lw.Model, name: str, q: Any, v: Any, *held: Any, vdot: Any = None, **static: Any) -> Any:
    """d/dt of a function of (q, …) while q moves with v: q(t) = integrate(q, t v).

    With ``vdot``, the function is one of (q, v, …) and v(t) = v + t vdot.
    """
    trees, text = Trees(model), CATALOGUE[name].function
    extra = [None] * len(CATALOGUE[name].optional)

    def function(t: Any) -> list[Any]:
        q_t = CATALOGUE["integrate"].function(trees, q.tolist(), [float(x) * t[0] for x in v])
        moving = [] if vdot is None else [[float(x) + float(y) * t[0] for x, y in zip(v, vdot, strict=True)]]
        return list(np.array(text(trees, q_t, *moving, *held, *extra, **static), dtype=object).reshape(-1))

    _, rate = derivative(function, [0.0], [1.0])
    return np.array(rate, float)


def integrate_rate(model: lw.Model, q: Any, v: Any) -> Any:
    """d/dt integrate(q, t v) at t = 0."""
    trees, text = Trees(model), CATALOGUE["integrate"].function
    _, rate = derivative(lambda t: text(trees, q.tolist(), [float(x) * t[0] for x in v]), [0.0], [1.0])
    return np.array(rate, float)
