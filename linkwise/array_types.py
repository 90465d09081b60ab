"""The types of NumPy arrays in annotations, one definition for the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "FloatArray", "MaybeArray", "Precision"]

Array = NDArray[Any]
"""An array of any shape and type: float64 or float32 as the caller gave it, or objects that stand for numbers."""

FloatArray = NDArray[np.float64]
"""An array of numbers that is float64 whatever the caller gave."""

MaybeArray = ArrayLike | None
"""An argument that may be left out: an array of whatever library, or what NumPy makes one of."""

Precision = np.dtype[Any]
"""float64 or float32, as NumPy describes it."""
