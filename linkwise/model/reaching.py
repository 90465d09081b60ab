"""The way from goals to configurations: what :meth:`linkwise.Model.inverse_kinematics` does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, UnknownNameError
from linkwise.functions.function import checked_threads
from linkwise.kinematics.goals import Goal, Reach, side_by_side
from linkwise.kinematics.problem import KinematicsProblem
from linkwise.kinematics.problem_solver import KinematicsSolver, Reached
from linkwise.memoized import Memory
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.model.model import Model


_KEPT = 32  # compiled problems for each model
_CLOSED = 1e-9  # tolerance of closures, m and rad


def reach(
    model: Model,
    goals: str | Goal | Sequence[Goal],
    target: ArrayLike | None,
    q0: ArrayLike | None,
    rest: ArrayLike | None,
    joints: Sequence[str] | None,
    locked: Sequence[str],
    limits: str,
    tol: float | tuple[float, float],
    starts: int,
    iterations: int,
    seed: int,
    threads: int | None,
) -> Reached:
    """A configuration for each target; the arguments are those of the method."""
    chosen = _goals(goals, target)
    count, steps = _whole("starts", starts, 0), _whole("iterations", iterations, 1)
    solver = _solver(model, chosen, joints, locked, limits)
    problem = solver.problem
    x = chosen[0].aims() if len(chosen) == 1 else side_by_side([goal.aims() for goal in chosen])
    wish = None if rest is None else _configurations(model, "rest", rest)
    if q0 is not None:
        first = problem.inside(_configurations(model, "q0", q0))
    else:
        first = problem.middle if wish is None else problem.inside(wish)
    if x.ndim == 1 and first.ndim == 1:
        batch: tuple[int, ...] = ()
        x, guess = x[None], first[None]
    else:
        batch = np.broadcast_shapes(x.shape[:-1], first.shape[:-1])
        size = math.prod(batch)
        x = np.ascontiguousarray(np.broadcast_to(x, (*batch, problem.aims))).reshape(size, problem.aims)
        guess = np.broadcast_to(first, (*batch, model.nq)).reshape(size, model.nq)
    further = lambda: _starts(model, seed, count)  # noqa: E731
    split = checked_threads(threads)
    near = None if wish is None else np.broadcast_to(wish, (*batch, model.nq)).reshape(-1, model.nq)
    q, good, errors, passes, start = solver.solve(x, guess, further, _tolerance(tol), steps, split, near)
    found = (q, good, errors[:, 0], errors[:, 1], passes, start)
    if batch == ():
        return Reached(*(a[0] for a in found))
    return Reached(*(a.reshape((*batch, *a.shape[1:])) for a in found))


def _goals(goals: str | Goal | Sequence[Goal], target: ArrayLike | None) -> tuple[Goal, ...]:
    if isinstance(goals, str):
        if target is None:
            raise InputError(f"{goals!r} has no target", do="pass a pose (..., 4, 4) or a position (..., 3)")
        array = np.asarray(target, float)
        goals = Reach(goals, array) if array.shape[-2:] == (4, 4) else Reach(goals, position=array)
    elif target is not None:
        raise InputError("target goes with the name of a body", got=type(goals).__name__, do="put it into the goals")
    chosen = tuple(goals) if isinstance(goals, Iterable) else (goals,)
    for goal in chosen:
        if not isinstance(goal, Goal):
            raise InputError("not a goal", got=repr(goal), allowed="lw.Reach, lw.Aim, lw.Balance")
    if not chosen:
        raise InputError("there is no goal", allowed="lw.Reach, lw.Aim, lw.Balance")
    return chosen


def _movable(model: Model, joints: Sequence[str] | None, locked: Sequence[str]) -> Array:
    known = {joint.name: joint for joint in model.joints if joint.mimic is None}
    for name in (*(joints or ()), *locked):
        if name not in known:
            raise UnknownNameError("joint", name, known)
    movable = np.zeros(model.nv, bool)
    for name, joint in known.items():
        movable[joint.v_slice] = (joints is None or name in joints) and name not in locked
    return movable


def _solver(
    model: Model, goals: tuple[Goal, ...], joints: Sequence[str] | None, locked: Sequence[str], limits: str
) -> KinematicsSolver:
    if limits not in ("respect", "ignore"):
        raise InputError("limits cannot be treated so", got=repr(limits), allowed='"respect" or "ignore"')

    def make() -> KinematicsSolver:
        for goal in goals:
            goal.check(model)
        rng = np.random.default_rng(1)
        samples = np.array([model.random_configuration(rng) for _ in range(4)])
        lower, upper = model.limits.lower, model.limits.upper
        if limits == "ignore":
            lower, upper = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
        problem = KinematicsProblem(model, goals, _movable(model, joints, locked), lower, upper, samples)
        if not problem.active:
            raise InputError(
                "no joint that may move matters to the goals",
                got=f"joints={joints}, locked={list(locked)}",
                do="choose other joints, or another body",
            )
        return KinematicsSolver(problem)

    names = None if joints is None else tuple(joints)
    key = (tuple(goal.key for goal in goals), names, tuple(locked), limits)
    return Memory.of(model).recent("inverse kinematics", key, make, _KEPT)


def _starts(model: Model, seed: int, count: int) -> Array:
    def make() -> Array:
        rng = np.random.default_rng(seed)
        return np.array([model.random_configuration(rng) for _ in range(count)]).reshape(count, model.nq)

    return Memory.of(model).recent("random starts", (seed, count), make, 4)


def _configurations(model: Model, name: str, value: ArrayLike) -> Array:
    check_on_host("inverse kinematics runs", value)
    array = np.asarray(value, float)
    if array.shape[-1:] != (model.nq,):
        raise InputError(f"{name} has the wrong shape", got=str(array.shape), allowed=f"(..., {model.nq})")
    return array


def _tolerance(tol: float | tuple[float, float]) -> tuple[float, float, float]:
    try:
        length, angle = (tol, tol) if isinstance(tol, (int, float)) else tol
        if length > 0.0 and angle > 0.0:
            return float(length), float(angle), _CLOSED
    except (TypeError, ValueError):
        pass
    raise InputError("tol is not positive", got=repr(tol), allowed="one number for m and rad, or one for each")


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} is not a whole number", got=repr(value), allowed=f"{least}, {least + 1}, …")
    return int(value)
