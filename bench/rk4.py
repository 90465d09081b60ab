"""The step that rollouts repeat, on whatever computes the accelerations."""

from __future__ import annotations

from typing import Any

STEP = 1e-3  # s


def rk4_step(model: Any, q: Any, v: Any, tau: Any) -> dict[str, Any]:
    """One step of the classical method, for joints whose velocity is the rate of their coordinate."""
    a1 = model.forward_dynamics(q, v, tau)
    v2 = v + 0.5 * STEP * a1
    a2 = model.forward_dynamics(q + 0.5 * STEP * v, v2, tau)
    v3 = v + 0.5 * STEP * a2
    a3 = model.forward_dynamics(q + 0.5 * STEP * v2, v3, tau)
    v4 = v + STEP * a3
    a4 = model.forward_dynamics(q + STEP * v3, v4, tau)
    return {"q": q + STEP / 6 * (v + 2 * v2 + 2 * v3 + v4), "v": v + STEP / 6 * (a1 + 2 * a2 + 2 * a3 + a4)}
