"""Derivatives by differences of high precision: the texts of the algorithms run on numbers of 50 digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE, Trees
from linkwise.algorithms.configuration import integrate

_STEP = mpmath.mpf("1e-18")


def eager(model: lw.Model, name: str, *arrays: Any, f_ext: Any = None) -> Any:
    """A method's text on plain Python floats, uncompiled; arrays of the result as NumPy's."""
    flat = [np.ravel(x).tolist() for x in arrays]
    arguments = [*flat, *(None if f_ext is None else np.ravel(f_ext).tolist() for _ in CATALOGUE[name].optional)]
    result = CATALOGUE[name].function(Trees(model), *arguments)
    return type(result)._make(np.array(x, float) for x in result) if hasattr(result, "_fields") else np.array(result)


def exact_jacobian(model: lw.Model, name: str, wrt: int, *arrays: Any, f_ext: Any = None) -> np.ndarray:
    """∂(method)/∂(its input number ``wrt``) in the tangent space, by central differences with 50 digits."""
    with mpmath.workdps(50):
        trees = Trees(model)
        flat = [[mpmath.mpf(float(x)) for x in np.ravel(array)] for array in arrays]
        extra = None if f_ext is None else [mpmath.mpf(float(x)) for x in np.ravel(f_ext)]

        def run(changed: Sequence[Any]) -> list[Any]:
            arguments = [*flat[:wrt], list(changed), *flat[wrt + 1 :]]
            return list(CATALOGUE[name].function(trees, *arguments, extra))

        move: Callable[[list[Any]], list[Any]]
        if CATALOGUE[name].inputs[wrt] == "q":
            move = lambda step: integrate(trees.fast, flat[0], step)  # noqa: E731
        else:
            move = lambda step: [a + b for a, b in zip(flat[wrt], step, strict=True)]  # noqa: E731
        columns = []
        for j in range(model.nv):
            step = [_STEP if i == j else mpmath.mpf(0) for i in range(model.nv)]
            ahead, behind = run(move(step)), run(move([-x for x in step]))
            columns.append([float((a - b) / (2 * _STEP)) for a, b in zip(ahead, behind, strict=True)])
    return np.array(columns).T


def relative(ours: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry (or to one)."""
    expected = np.asarray(expected, float)
    return float(
        np.abs(np.asarray(ours, float) - expected).max(initial=0.0) / max(1.0, np.abs(expected).max(initial=0.0))
    )
