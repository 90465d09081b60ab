"""Ensembles: many runs of one model, here or on many machines, and nothing is lost.

``lw.ensemble(model, ...)`` runs one; what it is made of is found here by name, e.g. ``lw.studies.grid``.
"""

from __future__ import annotations

from linkwise.studies.designs import grid
from linkwise.studies.member_blocks import Rollouts
from linkwise.studies.outcomes import STATUS, Rate, SobolIndices, rate
from linkwise.studies.results import Failure, Moments, Results
from linkwise.studies.results import open_results as open
from linkwise.studies.running import StoreWarning, StudyInterrupted, run_study
from linkwise.studies.search import Found, descend, search
from linkwise.studies.store import StoreError
from linkwise.studies.study import Batch, Study
from linkwise.studies.workers import ClusterError, WorkerError

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
    "StudyInterrupted",
    "WorkerError",
    "descend",
    "grid",
    "open",
    "rate",
    "run_study",
    "search",
]
