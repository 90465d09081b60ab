"""Between the samples of a trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.compile import CompiledFunction
from linkwise.dynamics import Model
from linkwise.sim.motion import Flat, JointRules, Motion, is_linear
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import Scalar

Array = NDArray[Any]


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


def interpolation(model: Model) -> CompiledFunction:
    """(q0, q1, v0, v1, a0, a1, h, s) to q and v at the fraction s of an interval of h seconds."""
    motion = Motion(model, (), JointRules(limits="ignore"), 0)

    def text(q0: Flat, q1: Flat, v0: Flat, v1: Flat, a0: Flat, a1: Flat, h: Flat, s: Flat) -> dict[str, Any]:
        u: list[Scalar] = [0.0] * model.nv
        for joint in motion._own_joints:
            part = joint.v_slice
            d = joint.type.difference(list(q0[joint.q_slice]), list(q1[joint.q_slice]))
            if is_linear(joint.type):
                ends = zip(d, v0[part], v1[part], a0[part], a1[part], strict=True)
                u[part] = [_quintic(s[0], h[0], *end) for end in ends]
            else:
                whole: list[Scalar] = [0.0] * model.nv
                whole[part] = d
                rates = motion.chart_rate(whole, v1)[part]
                u[part] = [_cubic(s[0], h[0], *end) for end in zip(d, v0[part], rates, strict=True)]
        v = [a + _cubic(s[0], h[0], b - a, r0, r1) for a, b, r0, r1 in zip(v0, v1, a0, a1, strict=True)]
        return {"q": motion.moved(q0, u), "v": v}

    nq, nv = (model.nq,), (model.nv,)
    shapes = {"q0": nq, "q1": nq, "v0": nv, "v1": nv, "a0": nv, "a1": nv, "h": (), "s": ()}
    return CompiledFunction("interpolate", text, list(shapes.items()))


def resampled(trajectory: Trajectory, model: Model, times: Array) -> Trajectory:
    """A trajectory at other times; accelerations, forces and energies are interpolated linearly."""
    t = trajectory.t
    k = np.clip(np.searchsorted(t, times, side="right") - 1, 0, len(t) - 2)
    h = t[k + 1] - t[k]
    s = np.clip((times - t[k]) / np.where(h > 0.0, h, 1.0), 0.0, 1.0)
    q, v, a = trajectory.q, trajectory.v, trajectory.vdot
    made = interpolation(model)(*(x[..., i, :] for x in (q, v, a) for i in (k, k + 1)), h, s)

    def linear(array: Array) -> Array:
        weight = s if array.ndim == len(trajectory.batch_shape) + 1 else s[:, None]
        axis = len(trajectory.batch_shape)
        first, second = np.take(array, k, axis), np.take(array, k + 1, axis)
        return np.asarray(first + weight * (second - first))

    derived = {name: linear(array) for name, array in trajectory._values.items()}
    return Trajectory(
        times,
        made.q,
        made.v,
        linear(trajectory.x),
        model=model,
        derived=derived,
        events=trajectory.events,
        status=trajectory.status,
        steps=trajectory.steps,
        rejected=trajectory.rejected,
        note=trajectory.note,
        method=trajectory.method,
        columns=trajectory._columns,
    )
