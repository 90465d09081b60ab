"""Ensembles: many runs of one model, here or on many machines, and nothing is lost.

``lw.ensemble(model, ...)`` runs one; what it is made of is found here by name, e.g. ``lw.ensemble.grid``.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

from linkwise.ensemble.designs import grid
from linkwise.ensemble.outcomes import STATUS
from linkwise.ensemble.results import Failure, Moments, Results
from linkwise.ensemble.results import open_results as open
from linkwise.ensemble.rollouts import Rollouts
from linkwise.ensemble.running import StoreWarning, ensemble, run_study
from linkwise.ensemble.search import Found, descend, search
from linkwise.ensemble.statistics import Rate, SobolIndices, rate
from linkwise.ensemble.store import StoreError
from linkwise.ensemble.study import Batch, Study
from linkwise.ensemble.workers import ClusterError, WorkerError

__all__ = [
    "STATUS",
    "Batch",
    "ClusterError",
    "Failure",
    "Found",
    "Moments",
    "Rate",
    "Results",
    "Rollouts",
    "SobolIndices",
    "StoreError",
    "StoreWarning",
    "Study",
    "WorkerError",
    "descend",
    "ensemble",
    "grid",
    "open",
    "rate",
    "run_study",
    "search",
]


class _Ensemble(ModuleType):
    """Package that is called like the function that it is about: `lw.ensemble` is both."""

    __call__ = staticmethod(ensemble)
    __signature__ = inspect.signature(ensemble)  # else the first argument would be taken for the package itself


sys.modules[__name__].__class__ = _Ensemble
