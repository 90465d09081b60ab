"""Poses as rows, as mechanisms keep them."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.mechanism.pieces import IDENTITY, Pose

__all__ = ["is_identity", "product", "rows"]

Array = np.ndarray[Any, np.dtype[np.float64]]


def rows(X: Pose | Array) -> Pose:
    """A 4×4 pose as tuples of Python's own numbers."""
    return tuple(map(tuple, np.asarray(X, float).tolist()))


def is_identity(X: Pose | Array) -> bool:
    """Whether a pose is the identity to the last bit."""
    return X is IDENTITY or np.array_equal(np.asarray(X), np.eye(4))


def product(X: Pose | Array, Y: Pose | Array) -> Pose:
    """X Y as rows; what an identity would leave stays to the last bit."""
    if is_identity(X):
        return rows(Y)
    return rows(X) if is_identity(Y) else rows(np.array(X) @ np.array(Y))
