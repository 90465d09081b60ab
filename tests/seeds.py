"""Seeds of random cases: a few that are tried every time, many more under ``slow``."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, of: int) -> list[Any]:
    """Seeds from zero on, of which all but the first few are marked as slow."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, of))]


def usual(cases: list[Any], *rare: Any) -> list[Any]:
    """Cases that are tried every time, and rare ones that are marked as slow."""
    return [*cases, *(pytest.param(case, marks=pytest.mark.slow) for case in rare)]
