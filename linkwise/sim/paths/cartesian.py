"""A path of a body through poses: straight lines between them or a smooth way through them, followed by all joints.

The way of the body is sampled, inverse kinematics goes along it from sample to sample, and a spline through the
configurations that it finds is the path. Samples are added until the body stays near enough to its way between them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline, Slerp

from linkwise.array_types import Array
from linkwise.checks import check_positive
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.paths.path import LAWS, Path, Timing, spline_of

_FEW, _MANY = 8, 512
"""Samples of a stretch to begin with, and when to give up."""
_NEAR = 1e-9
"""m and rad: how near inverse kinematics comes to a sample, well below any tolerance, so that a spline is smooth."""
_LEAP = 0.5
"""rad or m between two samples, above which joints do not follow but leap to another solution."""
_ARM = 0.3
"""m: a turn of one rad takes as much time as moving so far."""

Limits = Literal["respect", "ignore"]
Way = Callable[[Array], Array]


def path_of_body(
    model: Model,
    body: str,
    points: ArrayLike,
    q0: ArrayLike | None,
    tolerance: float,
    kind: str,
    limits: Limits,
    timing: Timing,
) -> Path:
    """The path; arguments as those of :func:`linkwise.path`, which has checked what concerns configurations too."""
    places, turns = _poses(points)
    if kind not in ("quintic", "spline"):
        raise InputError("a path of a body is of another kind", got=repr(kind), allowed='"quintic" or "spline"')
    check_positive(tolerance=tolerance)
    knots = timing.knots(_lengths(places, turns))
    way = _smooth(knots, places, turns) if kind == "spline" else _straight(knots, places, turns)
    near = model.start if q0 is None else q0
    first = model.inverse_kinematics(body, way(knots[:1])[0], q0=near, limits=limits, tol=_NEAR)
    if not first.converged:
        raise _lost(body, 0, 0.0, "the first point cannot be reached", first.position_error)
    samples = _FEW
    while True:
        t = np.unique(np.concatenate([np.linspace(a, b, samples + 1) for a, b in pairwise(knots)]))
        q = _followed(model, body, way, knots, t, first.q, limits)
        made = _splined(model, t, q, knots if kind == "quintic" else knots[[0, -1]])
        between = (t[1:] + t[:-1]) / 2.0
        off = _apart(model.pose(made(between).q, body), way(between))
        if off.max() <= tolerance:
            return timing.kept_by(made)
        samples *= 2
        if samples > _MANY:
            worst = between[int(off.argmax())]
            raise _lost(
                body, _stretch(knots, worst), _share(knots, worst), "joints cannot follow it closely", off.max()
            )


def _poses(points: ArrayLike) -> tuple[Array, Rotation | None]:
    """Positions (n, 3) and, where poses are given, rotations."""
    array = np.array(points, float)
    if (
        array.ndim not in (2, 3)
        or array.shape[1:] not in ((3,), (4, 4))
        or len(array) < 2
        or not np.isfinite(array).all()
    ):
        raise InputError(
            "points are neither poses nor positions", got=f"shape {array.shape}", allowed="(n, 4, 4) or (n, 3), n >= 2"
        )
    if array.ndim == 2:
        return array, None
    R = array[:, :3, :3]
    if np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max() > 1e-6 or (np.linalg.det(R) < 0.0).any():
        raise InputError("points are no poses", got="a part (3, 3) that is no rotation", do="use lw.transform")
    return array[:, :3, 3], Rotation.from_matrix(R)


def _lengths(places: Array, turns: Rotation | None) -> Array:
    lengths = np.linalg.norm(np.diff(places, axis=0), axis=1)
    if turns is not None:
        lengths = lengths + _ARM * (turns[:-1].inv() * turns[1:]).magnitude()
    if not lengths.all():
        raise InputError(
            "two points that follow each other are one", got=f"points {int(lengths.argmin())} and the next"
        )
    found: Array = lengths
    return found


def _straight(knots: Array, places: Array, turns: Rotation | None) -> Way:
    """Straight lines, and turns about one axis, from rest to rest."""
    between = None if turns is None else Slerp(knots, turns)

    def way(t: Array) -> Array:
        k = np.clip(np.searchsorted(knots, t, side="right") - 1, 0, len(knots) - 2)
        u = (t - knots[k]) / (knots[k + 1] - knots[k])
        s = _fifth(u)
        x = places[k] + s[:, None] * (places[k + 1] - places[k])
        return x if between is None else _joined(x, between(knots[k] + s * (knots[k + 1] - knots[k])))

    return way


def _smooth(knots: Array, places: Array, turns: Rotation | None) -> Way:
    """Splines through all points at their times, whose first and last stretch start slowly and stop slowly."""
    through = CubicSpline(knots, places)
    turning = None if turns is None else RotationSpline(knots, turns)

    def way(t: Array) -> Array:
        eased = _eased(knots, t)
        x = np.asarray(through(eased))
        return x if turning is None else _joined(x, turning(eased))

    return way


def _eased(knots: Array, t: Array) -> Array:
    """Times with the first stretch begun, and the last one ended, at rest; the same at all knots."""
    spans, last = np.diff(knots), len(knots) - 2
    k = np.clip(np.searchsorted(knots, t, side="right") - 1, 0, last)
    u = (t - knots[k]) / spans[k]
    # Of fifth degree: value, rate and its rate are (0, 0, 0) at one end and (1, 1, 0) at the other; (1, 0, 0) for both.
    begun, ended = (x**3 * (6.0 - 8.0 * x + 3.0 * x * x) for x in (u, 1.0 - u))
    if not last:
        return np.asarray(knots[0] + spans[0] * _fifth(u))
    return np.asarray(knots[k] + spans[k] * np.where(k == 0, begun, np.where(k == last, 1.0 - ended, u)))


def _fifth(u: Array) -> Array:
    """From 0 to 1, with rate and its rate zero at both ends."""
    return np.asarray(u**3 * (10.0 - 15.0 * u + 6.0 * u * u))


def _joined(x: Array, turns: Rotation) -> Array:
    X = np.tile(np.eye(4), (len(x), 1, 1))
    X[:, :3, :3], X[:, :3, 3] = turns.as_matrix(), x
    return X


def _followed(model: Model, body: str, way: Way, knots: Array, t: Array, first: Array, limits: Limits) -> Array:
    """Configurations along a way, each from the one before."""
    found = [np.asarray(first)]
    goals = way(t)
    for when, goal in zip(t[1:], goals[1:], strict=True):
        here = model.inverse_kinematics(
            body,
            goal,
            q0=found[-1],
            limits=limits,
            tol=_NEAR,
            starts=0,
        )
        k, share = _stretch(knots, when), _share(knots, when)
        if not here.converged:
            raise _lost(body, k, share, "joints cannot reach it", here.position_error)
        if np.abs(model.difference(found[-1], here.q)).max() > _LEAP:
            raise _lost(body, k, share, "joints would have to leap", np.abs(model.difference(found[-1], here.q)).max())
        found.append(np.asarray(here.q))
    return np.array(found)


def _splined(model: Model, t: Array, q: Array, rests: Array) -> Path:
    """One path of splines, each from rest to rest between two of the times given."""
    ends = np.searchsorted(t, rests)
    pieces = [
        spline_of(model, LAWS["spline"], q[a : b + 1], model.difference(q[a:b], q[a + 1 : b + 1]), t[a : b + 1])
        for a, b in pairwise(ends)
    ]
    w = np.concatenate([piece._w for piece in pieces])
    return Path(model, LAWS["spline"], t, q, w, np.zeros(len(t) - 1))


def _apart(X: Array, goal: Array) -> Array:
    """Distances of poses from their goals, m; a turn as that of a lever."""
    off = np.linalg.norm(X[:, :3, 3] - (goal[:, :3, 3] if goal.ndim == 3 else goal), axis=1)
    if goal.ndim == 3:
        off = off + _ARM * Rotation.from_matrix(np.swapaxes(goal[:, :3, :3], 1, 2) @ X[:, :3, :3]).magnitude()
    found: Array = off
    return found


def _stretch(knots: Array, t: float) -> int:
    return int(np.clip(np.searchsorted(knots, t) - 1, 0, len(knots) - 2))


def _share(knots: Array, t: float) -> float:
    k = _stretch(knots, t)
    return float((t - knots[k]) / (knots[k + 1] - knots[k]))


def _lost(body: str, k: int, share: float, why: str, off: Array) -> InputError:
    return InputError(
        f"{body!r} cannot go this way: {why}",
        got=f"{share:.0%} of the time from point {k} to point {k + 1}, off by {float(off):.2g} rad or m",
        do="choose other points, another q0, or poses in place of positions; go around where joints are stretched",
    )
