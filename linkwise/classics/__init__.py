"""The named algorithms of the papers, each citing its equations, each over any scalar; a file is one method or family.

``ALGORITHMS`` lists them, ``run`` runs one on a model, ``count`` counts the operations of one for a chain of n links.

>>> from linkwise import classics
>>> classics.ALGORITHMS["articulated_body"].equations
'45, 46, 60'
"""

from __future__ import annotations

import importlib
from typing import Any

from linkwise.classics.registry import ALGORITHMS, Algorithm, run

__all__ = ["ALGORITHMS", "Algorithm", "count", "run"]


def __getattr__(name: str) -> Any:
    # Counting traces, and tracing is above this layer: `count` lives in linkwise.functions.counting, found when asked
    # for.
    if name == "count":
        return importlib.import_module("linkwise.functions.counting").count
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
