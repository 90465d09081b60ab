"""Exported files: MJCF as MuJoCo reads it and URDF as Pinocchio does are the same mechanism."""

from __future__ import annotations

import importlib.util

import numpy as np

from campaign.trial import Log, Trial, said


def export_problem(seed: int, number: int) -> str:
    """What is wrong with the exports of one random mechanism, or ""."""
    from tests.files.writing.second_readers import mujoco_problem, pinocchio_problem, random_export

    for reader in (mujoco_problem, pinocchio_problem):
        rng = np.random.default_rng([seed, number])
        problem = reader(random_export(rng), rng)
        if problem:
            return f"{reader.__name__.partition('_')[0]}: {problem}"
    return ""


class Exports(Trial):
    """Random mechanisms, written and read by others."""

    name, unit, target, chunk = "exports", "mechanisms exported and read by MuJoCo and Pinocchio", 10**5, 10**4

    def unavailable(self) -> str | None:
        """Needs the other readers."""
        missing = [name for name in ("mujoco", "pinocchio") if importlib.util.find_spec(name) is None]
        return f"{' and '.join(missing)} not installed" if missing else None

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Write and read."""
        for number in log.numbers(numbers):
            try:
                problem = export_problem(seed, number)
            except Exception as error:
                problem = said(error)
            if problem:
                log.fail(number, problem)
