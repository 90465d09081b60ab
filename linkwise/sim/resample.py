"""Other samples of motions: between those there are, and of some states of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction
from linkwise.model.model import Model
from linkwise.sim.joint_rules import JointRules
from linkwise.sim.limits import is_linear
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, minus


def _quintic(s: Scalar, h: Scalar, d: Scalar, v0: Scalar, v1: Scalar, a0: Scalar, a1: Scalar) -> Scalar:
    """From 0 to d with end rates v and end accelerations a."""
    c1, c2 = h * v0, 0.5 * h * h * a0
    e0, e1, e2 = d - c1 - c2, h * v1 - c1 - 2.0 * c2, h * h * a1 - 2.0 * c2
    c3, c4, c5 = 10.0 * e0 - 4.0 * e1 + 0.5 * e2, -15.0 * e0 + 7.0 * e1 - e2, 6.0 * e0 - 3.0 * e1 + 0.5 * e2
    return s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))


def _cubic(s: Scalar, h: Scalar, d: Scalar, r0: Scalar, r1: Scalar) -> Scalar:
    """From 0 to d with end rates r."""
    c1 = h * r0
    e0, e1 = d - c1, h * r1 - c1
    return s * (c1 + s * ((3.0 * e0 - e1) + s * (e1 - 2.0 * e0)))


def velocities(model: Model | None, t: Array, q: Array) -> Array:
    """Velocities (..., T, nv) of samples q (..., T, nq) at times (T): parabolas along the tangent, of second order.

    Without a model v is q̇. Where a time comes twice, at a jump, each side has its own.
    """
    h = np.diff(t)
    if t.ndim != 1 or q.ndim < 2 or q.shape[-2] != len(t) or len(t) < 2 or not (h >= 0.0).all():
        raise InputError(
            "velocities cannot be found by differences",
            got=f"t of shape {t.shape}, q of shape {q.shape}",
            allowed="two or more increasing times (T) and q (..., T, nq)",
            do="give v",
        )
    way = np.diff(q, axis=-2) if model is None else model.difference(q[..., :-1, :], q[..., 1:, :])
    moves = h > 0.0
    rate = np.where(moves[:, None], way / np.where(moves, h, 1.0)[:, None], 0.0)
    before, after = np.concatenate([[0.0], h]), np.concatenate([h, [0.0]])
    none = np.zeros_like(rate[..., :1, :])
    left, right = np.concatenate([none, rate], -2), np.concatenate([rate, none], -2)
    both = (before + after)[:, None]
    v: Array = (after[:, None] * left + before[:, None] * right) / np.where(both > 0.0, both, 1.0)
    # With one neighbour only: its rate, and half of how that of the next interval differs, if there is one.
    for k in np.flatnonzero((before == 0.0) | (after == 0.0)):
        first, step = (k, 1) if after[k] > 0.0 else (k - 1, -1)
        if not 0 <= first < len(h) or h[first] == 0.0:
            continue
        v[..., k, :] = rate[..., first, :]
        second = first + step
        if 0 <= second < len(h) and h[second] > 0.0:
            lean = h[first] / (h[first] + h[second])
            v[..., k, :] += lean * (rate[..., first, :] - rate[..., second, :])
    return v


def interpolation(model: Model) -> CompiledFunction:
    """(q0, q1, v0, v1, a0, a1, h, s) to q and v at the fraction s of an interval of h seconds."""
    motion = EquationsOfMotion(model, (), JointRules(limits="ignore"), 0)

    def text(q0: Flat, q1: Flat, v0: Flat, v1: Flat, a0: Flat, a1: Flat, h: Flat, s: Flat) -> NamedNumbers:
        d = motion.way(q0, q1)
        back = [-x for x in d]
        # In the axes of the interval's start: what flies and tumbles flies straight in them.
        w1 = motion.in_axes_after(v1, back)
        r0 = minus(a0, motion.axes_rate(v0))
        r1 = motion.in_axes_after(minus(a1, motion.axes_rate(v1)), back)
        ends = list(zip(d, v0, motion.chart_rate(d, w1), r0, r1, strict=True))
        u: list[Scalar] = [_cubic(s[0], h[0], *end[:3]) for end in ends]
        for joint in motion._own_joints:
            if is_linear(joint.type):
                u[joint.v_slice] = [_quintic(s[0], h[0], *end) for end in ends[joint.v_slice]]
        w = [a + _cubic(s[0], h[0], b - a, x, y) for a, b, x, y in zip(v0, w1, r0, r1, strict=True)]
        return {"q": motion.carried(q0, u), "v": motion.in_axes_after(w, u)}

    nq, nv = (model.nq,), (model.nv,)
    shapes = {"q0": nq, "q1": nq, "v0": nv, "v1": nv, "a0": nv, "a1": nv, "h": (), "s": ()}
    return CompiledFunction("interpolate", text, list(shapes.items()))


def resampled(trajectory: Trajectory, model: Model, times: Array) -> Trajectory:
    """A trajectory at other times; accelerations, forces and energies are interpolated linearly."""
    values = trajectory.values()
    knots = _SamplesAround(trajectory, values, times)
    made = interpolation(model)(*(side[name] for name in ("q", "v", "vdot") for side in knots.sides), knots.h, knots.s)

    def linear(name: str) -> Array:
        first, second = (side[name] for side in knots.sides)
        weight = knots.s if first.ndim == knots.s.ndim else knots.s[..., None]
        return np.asarray(first + weight * (second - first))

    derived = {name: linear(name) for name in values if name not in ("q", "v", "x")}
    found = trajectory.with_samples(times, made.q, made.v, linear("x"), derived)
    return _closed(found, model) if _is_closed(trajectory) else found


_CLOSED = 1e-9  # residuals of samples that were kept on the closures


def _is_closed(trajectory: Trajectory) -> bool:
    """Whether a mechanism has closures, and its samples obey them."""
    if trajectory.model is None or not trajectory.model.closures:
        return False
    return bool(np.nanmax(np.abs(trajectory.closure_error), initial=0.0) < _CLOSED)


def _closed(trajectory: Trajectory, model: Model) -> Trajectory:
    """Samples put back on the closures."""
    q, v = np.asarray(trajectory.q, float), np.asarray(trajectory.v, float)
    given: dict[str, Any] = {
        "t": np.broadcast_to(trajectory.t, q.shape[:-1]),
        "p": trajectory.model_parameters,
    }
    given["active"] = trajectory.active
    for _ in range(2):
        q = model._run("project_configuration", q, **given)
    v = model._run("project_velocity", q, v, **given)
    return trajectory.with_samples(trajectory.t, q, v, trajectory.x, trajectory._values)


class _SamplesAround:
    """Neighbours just before and just after each time, for every state: samples, or sides of events.

    ``sides`` are the two sets of values (..., n, size) by name, ``h`` the seconds between them and ``s`` the fraction
    of them at which each time lies, (..., n).
    """

    def __init__(self, trajectory: Trajectory, values: Mapping[str, Array], times: Array) -> None:
        t, batch = trajectory.t, trajectory.batch_shape
        axis, count = len(batch), math.prod(batch)
        before = np.clip(np.searchsorted(t, times, side="right") - 1, 0, len(t) - 1)
        after = np.minimum(before + 1, len(t) - 1)
        shape = (count, len(times))
        t_before = np.array(np.broadcast_to(t[before], shape))
        t_after = np.array(np.broadcast_to(np.where(before < len(t) - 1, t[after], np.inf), shape))

        def at(k: Array) -> dict[str, Array]:
            return {n: np.take(a, k, axis).reshape(*shape, *a.shape[axis + 1 :]) for n, a in values.items()}

        sides = (at(before), at(after))
        jumps = trajectory.jumps
        order = [] if jumps is None else np.argsort(jumps.t, kind="stable").tolist()
        for side, clock, numbers in ((0, t_before, order), (1, t_after, order[::-1])):
            for number in numbers:
                assert jumps is not None
                state, time = jumps.state[number], jumps.t[number]
                here = (
                    (times >= time) & (clock[state] <= time) if side == 0 else (times < time) & (clock[state] >= time)
                )
                clock[state, here] = time
                for name, value in sides[side].items():
                    value[state, here] = jumps.sides[name][number, 1 - side]
        exact = (times <= t_before) | ~np.isfinite(t_after)  # nothing in between, and what follows may not be there
        for name, value in sides[1].items():
            value[exact] = sides[0][name][exact]
        h = np.where(exact, 1.0, t_after - t_before)
        self.sides = tuple({n: a.reshape(*batch, *a.shape[1:]) for n, a in side.items()} for side in sides)
        self.h = h.reshape(*batch, len(times))
        self.s = np.where(exact, 0.0, np.clip((times - t_before) / h, 0.0, 1.0)).reshape(*batch, len(times))


def chosen_states(trajectory: Trajectory, index: Any) -> Trajectory:
    """The motions at an index of the batch axes, with what belongs to them; a single one is cut where it ends."""
    batch = trajectory.batch_shape
    q = trajectory.q[index]
    if q.ndim < 2 or q.shape[-2] != len(trajectory):
        raise InputError("not an index of the batch", got=repr(index), allowed=f"axes {batch}")
    keep = slice(None)
    if q.ndim == 2:
        ends = np.flatnonzero(np.isfinite(trajectory.home.to_host(q)).all(axis=1))
        keep = slice(0, int(ends[-1]) + 1 if len(ends) else 0)
    values = {
        name: value[index][..., keep] if name == "energy" else value[index][..., keep, :]
        for name, value in trajectory.values().items()
    }

    def pick(value: str | int | Array) -> Any:
        return value[index] if isinstance(value, np.ndarray) else value

    chosen = np.arange(math.prod(batch)).reshape(batch)[index]
    # Here, and in the whole batch.
    places = {here: tuple(int(i) for i in np.unravel_index(int(k), batch)) for here, k in np.ndenumerate(chosen)}
    present = set(places.values())
    status = pick(trajectory.status)
    made = trajectory.with_samples(trajectory.t[keep], values.pop("q"), values.pop("v"), values.pop("x"), values)
    made.p = None if trajectory.p is None else trajectory.p[index]
    made.jumps = None if trajectory.jumps is None else trajectory.jumps.of(chosen)
    made.events = [event for event in trajectory.events if event.state in present]
    made.status = str(status) if np.ndim(status) == 0 else status
    made.steps, made.rejected = pick(trajectory.steps), pick(trajectory.rejected)
    made.reasons = {place: trajectory.reasons[old] for place, old in places.items() if old in trajectory.reasons}
    return made
