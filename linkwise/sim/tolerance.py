"""How large an error is, in units of the tolerance."""

from __future__ import annotations

from linkwise.sim.limits import is_linear
from linkwise.sim.motion import Flat, Motion
from linkwise.spatial.scalar import Scalar, sqrt, where

# What an adaptive loop is given.
SPAN = ("end", "rtol", "atol", "h_max", "h_min", "slack")


def weighted_square(m: Motion, y: Flat, y_new: Flat, span: Flat, error: Flat) -> Scalar:
    """Σ (e_i / (atol + rtol max(|y|, |y_new|)))²; chart coordinates are measured by those of their joint."""
    ratios = m.stored([e / s for e, s in zip(error, scales(m, y, y_new, span), strict=True)])
    total: Scalar = 0.0
    for ratio in ratios:
        total = total + ratio * ratio
    return total


def scales(m: Motion, y: Flat, y_new: Flat, span: Flat) -> list[Scalar]:
    """Tolerances, one for each number of z; a turn or a shift in a quaternion joint counts against 1 rad or 1 m."""

    def of(a: Scalar, b: Scalar) -> Scalar:
        a, b = abs(a), abs(b)
        return span[2] + span[1] * where(a < b, b, a)

    (q, v, x), (q_new, v_new, x_new) = m.parts(y), m.parts(y_new)
    x, x_new = x[: m.flowing], x_new[: m.flowing]
    scales: list[Scalar] = [0.0] * m.nv
    for joint in m._own_joints:
        for k in range(joint.nv):
            i, j = joint.q_slice.start + k, joint.v_slice.start + k
            scales[j] = of(q[i], q_new[i]) if is_linear(joint.type) else span[2] + span[1]
    return [*scales, *(of(a, b) for a, b in zip([*v, *x], [*v_new, *x_new], strict=True))]


def norm(m: Motion, values: Flat, scale: Flat) -> Scalar:
    """The root mean square of the values, each in units of its scale."""
    total: Scalar = 0.0
    for ratio in m.stored([a / s for a, s in zip(values, scale, strict=True)]):
        total = total + ratio * ratio
    return sqrt(total * (1.0 / len(scale)))
