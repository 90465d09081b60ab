"""The algorithm texts run on plain floats: the slow, obvious reference, and numbers without compiling anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE, Trees
from linkwise.model.making import FUNCTIONS


class Eager:
    """``eager.mass_matrix(q)`` is what ``model.mass_matrix(q)`` computes, for one state of floats."""

    def __init__(self, model: lw.Model, p: Any = None, trees: Trees | None = None) -> None:
        self.trees = trees or Trees(model, None if p is None else [float(x) for x in p])

    def __getattr__(self, name: str) -> Any:
        group = {
            method.split(".")[1]: function for method, function in FUNCTIONS.items() if method.startswith(f"{name}.")
        }
        if group:  # model.centroidal.momentum, …
            return SimpleNamespace(**{short: getattr(self, function) for short, function in group.items()})
        text = CATALOGUE[name]

        def run(*arrays: Any, body: str | None = None, **optional: Any) -> np.ndarray[Any, Any]:
            flat = [np.asarray(a, float).reshape(-1).tolist() for a in arrays]
            for extra in text.optional:
                given = optional.pop(extra, None)
                flat.append(None if given is None else np.asarray(given, float).reshape(-1).tolist())
            assert not optional, optional
            return np.array(text.function(self.trees, *flat, **({} if body is None else {"body": body})), float)

        return run


def relative_error(ours: Any, expected: Any) -> float:
    """Largest difference, relative to the largest number expected (or to one, where all are tiny)."""
    ours, expected = np.asarray(ours, float), np.asarray(expected, float)
    assert ours.shape == expected.shape, (ours.shape, expected.shape)
    if not expected.size:
        return 0.0
    return float(np.abs(ours - expected).max() / (np.abs(expected).max() + 1e-3))
