"""Numbers of materials and shapes, checked."""

from __future__ import annotations

import math

import numpy as np

from linkwise.errors import InputError, ModelError

__all__ = ["mode_count", "poisson", "positive"]


def positive(value: object, what: str, allowed: str = "> 0, in SI units") -> float:
    """A finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise InputError(f"{what} is not a number", got=repr(value), allowed=allowed)
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise ModelError(f"{what} is not possible", got=repr(value), allowed=allowed)
    return number


def poisson(value: float) -> float:
    """Poisson's ratio of a material that keeps a volume and a shape."""
    if not -1 < value < 0.5:
        raise ModelError("Poisson's ratio is not possible", got=repr(value), allowed="-1 < nu < 0.5")
    return float(value)


def mode_count(value: object, name: str) -> int:
    """A number of modes."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"{name} is not a number of modes", got=repr(value), allowed="an integer >= 0")
    return int(value)
