"""Inverse kinematics beside Pink and mink: ``python -m bench.inverse_kinematics``.

Targets are poses of the Panda's hand and of the G1's left wrist at random configurations within the limits, so all can
be reached. All libraries begin in the middle of the limits and go on from the same random configurations; a start ends
after 100 steps, or when its error has not halved for eight. Pink and mink solve one quadratic program a step, and have
no restarts of their own: the loop around them is ours. They take turns with linkwise on a part of the targets, one
call for each; linkwise then solves all in one batch. Times are those of the processor (one thread), since a whole batch
lasts longer than the turns that a busy machine gives.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

# Before NumPy is loaded: its BLAS must not start threads that disturb what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import linkwise as lw
from bench import report
from bench.peers import _bare_urdf
from bench.robots import ROBOTS, Robot

Array = NDArray[Any]
CASES = {"panda": "panda_hand", "g1": "left_wrist_yaw_link"}
TOLERANCES = {"1e-4 m, 1e-3 rad": (1e-4, 1e-3), "1e-8": (1e-8, 1e-8)}
STARTS, STEPS, PATIENCE = 100, 100, 8
TURN = 20  # targets, then it is the next library's turn
SLACK = 1e-5  # rad beyond a limit, which the quadratic programs do not keep to the last digit


class Linkwise:
    """Its own restarts."""

    name = "linkwise"

    def __init__(self, robot: Robot, body: str) -> None:
        self.model, self.body = lw.load(robot.path, locked=list(robot.locked)), body

    def solve(self, target: Array, tol: tuple[float, float]) -> tuple[Array, bool]:
        """One target."""
        found = self.model.inverse_kinematics(self.body, target, tol=tol, starts=STARTS, iterations=STEPS)
        return found.q, bool(found.converged)

    def follow(self, q: Array, target: Array, tol: tuple[float, float]) -> tuple[Array, bool]:
        """One target from nearby."""
        found = self.model.inverse_kinematics(self.body, target, q0=q, tol=tol, starts=0)
        return found.q, bool(found.converged)


class _Stepping(ABC):
    """A library that gives a step: repeated from one start after the other."""

    starts: Array

    @abstractmethod
    def begin(self, q: Array) -> None:
        """At a configuration."""

    @abstractmethod
    def error(self) -> Array:
        """[linear, angular] of what is left."""

    @abstractmethod
    def step(self) -> None:
        """One step of the library."""

    @abstractmethod
    def aim(self, target: Array) -> None:
        """Set the target."""

    @abstractmethod
    def q(self) -> Array:
        """The present configuration."""

    def solve(self, target: Array, tol: tuple[float, float]) -> tuple[Array, bool]:
        """One target."""
        return self._from(self.starts, target, tol)

    def follow(self, q: Array, target: Array, tol: tuple[float, float]) -> tuple[Array, bool]:
        """One target from nearby."""
        return self._from(q[None], target, tol)

    def _from(self, starts: Array, target: Array, tol: tuple[float, float]) -> tuple[Array, bool]:
        self.aim(target)
        for start in starts:
            self.begin(start)
            best, waited = np.inf, 0
            for _ in range(STEPS):
                e = self.error()
                if np.linalg.norm(e[:3]) <= tol[0] and np.linalg.norm(e[3:]) <= tol[1]:
                    return self.q(), True
                square = float(e @ e)
                best, waited = (0.5 * square, 0) if square < best else (best, waited + 1)
                if waited > PATIENCE:
                    break
                try:
                    self.step()
                except Exception:  # its quadratic program found no solution: another start
                    break
        return self.q(), False


class Pink(_Stepping):
    """Pink on Pinocchio, with DAQP."""

    name = "pink"

    def __init__(self, robot: Robot, body: str, starts: Array, damping: float) -> None:
        import pink
        import pinocchio as pin
        from pink.limits import ConfigurationLimit
        from pink.tasks import FrameTask

        model = pin.buildModelFromUrdf(str(robot.path))
        if robot.locked:
            model = pin.buildReducedModel(model, [model.getJointId(n) for n in robot.locked], pin.neutral(model))
        self.pin, self.pink, self.model, self.data = pin, pink, model, model.createData()
        self.task = FrameTask(body, position_cost=1.0, orientation_cost=0.5, lm_damping=damping)
        self.limits = [ConfigurationLimit(model, config_limit_gain=1.0)]
        self.starts = starts

    def aim(self, target: Array) -> None:
        self.task.set_target(self.pin.SE3(target))

    def begin(self, q: Array) -> None:
        self.configuration = self.pink.Configuration(self.model, self.data, q)

    def error(self) -> Array:
        return np.asarray(self.task.compute_error(self.configuration))

    def step(self) -> None:
        v = self.pink.solve_ik(
            self.configuration, [self.task], 1.0, solver="daqp", limits=self.limits, safety_break=False
        )
        self.configuration.integrate_inplace(v, 1.0)

    def q(self) -> Array:
        return np.asarray(self.configuration.q)


class Mink(_Stepping):
    """mink on MuJoCo, with DAQP."""

    name = "mink"

    def __init__(self, robot: Robot, body: str, starts: Array, damping: float) -> None:
        import mink
        import mujoco

        text = _bare_urdf(robot).replace("</robot>", '<mujoco><compiler fusestatic="false"/></mujoco></robot>')
        model = mujoco.MjModel.from_xml_string(text)
        self.mink, self.configuration = mink, mink.Configuration(model)
        self.task = mink.FrameTask(body, "body", position_cost=1.0, orientation_cost=0.5, lm_damping=damping)
        self.limits = [mink.ConfigurationLimit(model, gain=1.0)]
        self.starts = starts

    def aim(self, target: Array) -> None:
        self.task.set_target(self.mink.SE3.from_matrix(target))

    def begin(self, q: Array) -> None:
        self.configuration.update(q)

    def error(self) -> Array:
        return np.asarray(self.task.compute_error(self.configuration))

    def step(self) -> None:
        v = self.mink.solve_ik(
            self.configuration, [self.task], 1.0, solver="daqp", limits=self.limits, safety_break=False
        )
        self.configuration.integrate_inplace(v, 1.0)

    def q(self) -> Array:
        return np.asarray(self.configuration.q)


def starts_of(model: lw.Model) -> Array:
    """The middle of the limits, then the random ones."""
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    rng = np.random.default_rng(0)
    return np.array([middle, *(model.random_configuration(rng) for _ in range(STARTS))])


def measure(name: str, count: int, peers_count: int, rounds: int, damping: float) -> list[list[object]]:
    """Rows: robot, tolerance, library, targets, solved %, µs for each target (mean), ratio."""
    robot, body = ROBOTS[name], CASES[name]
    ours = Linkwise(robot, body)
    model = ours.model
    rng = np.random.default_rng(7)
    target = model.pose(np.array([model.random_configuration(rng) for _ in range(count)]), body)
    starts = starts_of(model)
    libraries = [ours, Pink(robot, body, starts, damping), Mink(robot, body, starts, damping)]
    rows: list[list[object]] = []
    for title, tol in TOLERANCES.items():
        for library in libraries:
            for k in range(10):  # compiled, loaded, with restarts too
                library.solve(target[k], tol)
        seconds = np.full((len(libraries), peers_count), np.inf)
        solved = np.zeros((len(libraries), peers_count), bool)
        for _ in range(rounds):
            for first in range(0, peers_count, TURN):
                for i, library in enumerate(libraries):
                    for k in range(first, min(first + TURN, peers_count)):
                        begin = time.thread_time()
                        q, good = library.solve(target[k], tol)
                        seconds[i, k] = min(seconds[i, k], time.thread_time() - begin)
                        solved[i, k] = good and _is_there(model, q, body, target[k], tol)
        for i, library in enumerate(libraries):
            mean = 1e6 * float(seconds[i].mean())
            ratio = float(seconds[i].mean() / seconds[0].mean())
            middle = 1e6 * float(np.median(seconds[i]))
            rows.append([name, title, library.name, peers_count, 100.0 * float(solved[i].mean()), mean, middle, ratio])
        best = np.inf
        for _ in range(max(10, rounds)):
            begin = time.thread_time()
            found = model.inverse_kinematics(body, target, tol=tol, starts=STARTS, iterations=STEPS)
            best = min(best, time.thread_time() - begin)
        good = [_is_there(model, q, body, T, tol) for q, T in zip(found.q, target, strict=True)]
        rate = 100.0 * float((found.converged & np.array(good)).mean())
        rows.append([name, title, "linkwise, one batch", count, rate, 1e6 * best / count, None, None])
    return rows


def following(name: str, count: int, rounds: int, damping: float) -> list[list[object]]:
    """Rows as those of :func:`measure`, for targets some 0.02 rad away in every joint from a known configuration."""
    robot, body = ROBOTS[name], CASES[name]
    ours = Linkwise(robot, body)
    model = ours.model
    rng = np.random.default_rng(8)
    span = model.limits.upper - model.limits.lower
    q = model.limits.lower + span * rng.uniform(0.2, 0.8, (count, model.nq))
    target = model.pose(q + rng.uniform(-0.02, 0.02, q.shape), body)
    none = np.empty((0, model.nq))
    libraries = [ours, Pink(robot, body, none, damping), Mink(robot, body, none, damping)]
    rows: list[list[object]] = []
    for title, tol in TOLERANCES.items():
        seconds = np.full((len(libraries), count), np.inf)
        solved = np.zeros((len(libraries), count), bool)
        for _ in range(rounds + 1):
            for i, library in enumerate(libraries):
                for k in range(count):
                    begin = time.thread_time()
                    found, good = library.follow(q[k], target[k], tol)
                    seconds[i, k] = min(seconds[i, k], time.thread_time() - begin)
                    solved[i, k] = good and _is_there(model, found, body, target[k], tol)
        for i, library in enumerate(libraries):
            mean, middle = 1e6 * float(seconds[i].mean()), 1e6 * float(np.median(seconds[i]))
            ratio = float(seconds[i].mean() / seconds[0].mean())
            label = f"{library.name}, from nearby"
            rows.append([name, title, label, count, 100.0 * float(solved[i].mean()), mean, middle, ratio])
    return rows


def _is_there(model: lw.Model, q: Array, body: str, target: Array, tol: tuple[float, float]) -> bool:
    """By our forward kinematics, within the limits; a little rounding is forgiven."""
    T = model.pose(q, body)
    turn = np.linalg.norm(T[:3, :3] - target[:3, :3]) / np.sqrt(2.0)
    there = np.linalg.norm(T[:3, 3] - target[:3, 3]) <= 1.01 * tol[0] + 1e-12 and turn <= 1.01 * tol[1] + 1e-12
    return bool(there and (q >= model.limits.lower - SLACK).all() and (q <= model.limits.upper + SLACK).all())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.inverse_kinematics", description=__doc__)
    parser.add_argument("--targets", type=int, default=10_000, help="for linkwise's batch")
    parser.add_argument("--peer-targets", type=int, default=1000, help="for all libraries, one by one")
    parser.add_argument("--rounds", type=int, default=1, help="the best time of each target counts")
    parser.add_argument("--damping", type=float, default=1e-3, help="lm_damping of Pink and mink")
    parser.add_argument("--robots", nargs="+", default=list(CASES), choices=list(CASES))
    given = parser.parse_args(arguments)
    header = ["robot", "tolerance", "library", "targets", "solved %", "µs mean", "µs median", "ratio"]
    rows = []
    for name in given.robots:
        rows += measure(name, given.targets, given.peer_targets, given.rounds, given.damping)
        rows += following(name, min(100, given.peer_targets), given.rounds, given.damping)
    print(report.table(header, rows))
    print(f"written to {report.write('inverse_kinematics', {'header': header, 'rows': rows})}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
