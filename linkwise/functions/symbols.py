"""Vectors and matrices of symbolic libraries: taken apart into scalars on the way in, put together on the way out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Assemble = Callable[[Any], Any]


def taken_apart(value: Any) -> tuple[Any, Assemble] | None:
    """The scalars of a CasADi or SymPy matrix in an object array (a column as a vector), and what makes such a matrix.

    None for anything else.
    """
    library = type(value).__module__.partition(".")[0]
    if library == "casadi" and type(value).__name__ in ("SX", "MX"):
        rows, columns = value.shape
        entries = [[value[i, j] for j in range(columns)] for i in range(rows)]
        return _array(entries, rows, columns), _casadi(type(value))
    if library == "sympy" and hasattr(value, "tolist") and len(getattr(value, "shape", ())) == 2:
        rows, columns = value.shape
        return _array(value.tolist(), rows, columns), _sympy
    return None


def _array(entries: list[list[Any]], rows: int, columns: int) -> Any:
    array = np.empty((rows, columns), object)
    for i in range(rows):
        for j in range(columns):
            array[i, j] = entries[i][j]
    return array[:, 0] if columns == 1 else array


def _casadi(kind: Any) -> Assemble:
    def assemble(array: Any) -> Any:
        casadi = sys.modules["casadi"]
        if np.ndim(array) == 0:
            return kind(array)
        if np.ndim(array) == 1:
            return casadi.vertcat(*(kind(x) for x in array))
        if np.ndim(array) == 2:
            return casadi.vertcat(*(casadi.horzcat(*(kind(x) for x in row)) for row in array))
        return array  # CasADi has no arrays of more axes: an object array of its scalars

    return assemble


def _sympy(array: Any) -> Any:
    sympy = sys.modules["sympy"]
    return sympy.Matrix(array) if np.ndim(array) in (1, 2) else array
