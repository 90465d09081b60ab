"""Random states of robots, in large batches: forward dynamics without a NaN, and inverse dynamics leads back."""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from campaign.trial import Log, Trial

ROBOTS: tuple[tuple[str, bool], ...] = (
    ("panda.urdf", False),
    ("ur5_robot.urdf", False),
    ("anymal.urdf", True),
    ("kinova.urdf", False),
    ("g1_29dof_rev_1_0.urdf", True),
)
"""Files of example-robot-data, and whether the robot floats."""
BATCH = 16_384
CLOSE = 1e-6
"""Of the largest force of a batch: agreement of inverse dynamics with the forces that went in."""


@cache
def robots() -> tuple[lw.Model, ...]:
    """The five, as far as their files are there."""
    from tests.files.recording import robot_files

    files = {file.name: file for file in robot_files()}
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        for name, floating in ROBOTS:
            if name in files:
                found.append(lw.load(files[name], floating=floating))
    return tuple(found)


class _Draw:
    """Configurations, velocities and forces of one robot, drawn fast."""

    def __init__(self, model: lw.Model) -> None:
        self.model = model
        self.scale, self.shift = np.ones(model.nq), np.zeros(model.nq)
        for joint in model.joints:
            if joint.mimic is None and joint.nq == joint.nv:
                low, high = model.limits.lower[joint.q_slice], model.limits.upper[joint.q_slice]
                wide = math.pi if joint.type.nq == 1 else 1.0
                bounded = np.isfinite(low) & np.isfinite(high)
                self.scale[joint.q_slice] = np.where(bounded, (high - low) / 2, wide)
                self.shift[joint.q_slice] = np.where(bounded, (high + low) / 2, 0.0)

    def __call__(self, rng: np.random.Generator, count: int) -> list[Any]:
        """Within limits, unit quaternions not needed; velocities and forces from tiny to large."""
        q = (2.0 * rng.random((count, self.model.nq)) - 1.0) * self.scale + self.shift
        size = 10.0 ** rng.uniform(-3, 2)
        v = (2.0 * rng.random((count, self.model.nv)) - 1.0) * size
        tau = (2.0 * rng.random((count, self.model.nv)) - 1.0) * 10.0 ** rng.uniform(-3, 3)
        return [q, v, tau]


@cache
def _draws() -> tuple[_Draw, ...]:
    return tuple(map(_Draw, robots()))


def batch(seed: int, number: int, count: int = BATCH) -> str:
    """One batch of states of one robot; what is wrong with it, or ""."""
    draw = _draws()[number % len(_draws())]
    model, rng = draw.model, np.random.default_rng([seed, number])
    q, v, tau = draw(rng, count)
    vdot = model.forward_dynamics(q, v, tau)
    if not np.isfinite(vdot).all():
        row = int(np.flatnonzero(~np.isfinite(vdot).all(axis=1))[0])
        return f"{model.name}: forward dynamics of state {row} is not finite: q = {q[row].tolist()}"
    again = model.inverse_dynamics(q, v, vdot)
    largest = np.abs(tau).max() + np.abs(model.bias_force(q[:64], v[:64])).max() + np.abs(again).max()
    error = np.abs(again - tau).max() / largest
    if not error < CLOSE:
        return f"{model.name}: inverse dynamics of forward dynamics is off by {error:.1e} of the largest force"
    return ""


class States(Trial):
    """States of five robots; one trial is one state."""

    name, unit, target, chunk = "states", "random states of five robots", 10**9, 4096 * BATCH
    share = 2.0

    def unavailable(self) -> str | None:
        """Needs the robots."""
        try:
            return None if robots() else "example-robot-data is not installed"
        except ImportError:
            return "example-robot-data is not installed"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Whole batches, numbered by their first state."""
        for first in range(numbers.start // BATCH, max(numbers.stop // BATCH, numbers.start // BATCH + 1)):
            for _ in log.numbers(range(first * BATCH, first * BATCH + 1)):
                problem = batch(seed, first)
                if problem:
                    log.fail(first * BATCH, problem)
                log.done(BATCH - 1)
            if log.expired:
                return
