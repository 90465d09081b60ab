"""One step in time over any scalar, for programs with loops of their own: learning, optimal control."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwise.model.model import Model


def one_step(
    model: Model, rate: Callable[[Any, Any], Any], q: Any, v: Any, dt: float, *, fourth_order: bool, **others: Any
) -> tuple[Any, Any]:
    """State after a step, with closures closed again.

    Args:
        model: the mechanism.
        rate: acceleration (nv) of q and v.
        q, v: the state at the beginning, (nq) and (nv).
        dt: length of the step, s.
        fourth_order: the classical Runge–Kutta step along the tangent space of the beginning, of its order where that
            is flat (angles and slides); else an Euler step, speeds first, then positions with the new speeds.
        others: by name, what functions of the model take besides, such as ``p``.
    """
    if fourth_order:
        a1 = rate(q, v)
        v2 = v + 0.5 * dt * a1
        a2 = rate(model.integrate(q, 0.5 * dt * v), v2)
        v3 = v + 0.5 * dt * a2
        a3 = rate(model.integrate(q, 0.5 * dt * v2), v3)
        v4 = v + dt * a3
        a4 = rate(model.integrate(q, dt * v3), v4)
        q = model.integrate(q, (dt / 6.0) * (v + 2.0 * v2 + 2.0 * v3 + v4))
        v = v + (dt / 6.0) * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    else:
        v = v + dt * rate(q, v)
        q = model.integrate(q, dt * v)
    if model.closures:
        q = model.constraints.project_configuration(q, **others)
        v = model.constraints.project_velocity(q, v, **others)
    return q, v
