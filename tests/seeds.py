"""Cases of tests: a few that are tried every time, many more under ``slow``."""

from __future__ import annotations

from typing import Any

import pytest


def usual(cases: list[Any], *rare: Any) -> list[Any]:
    """Cases that are tried every time, and rare ones that are marked as slow; those with several values are tuples."""
    values = [case if isinstance(case, tuple) else (case,) for case in rare]
    return [*cases, *(pytest.param(*each, marks=pytest.mark.slow) for each in values)]


def seeds(few: int, of: int) -> list[Any]:
    """Seeds from zero on, of which the first few are tried every time."""
    return usual([*range(few)], *range(few, of))
