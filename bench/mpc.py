"""Model predictive control of the Panda at 1 kHz: how long each solution takes, and how much that varies.

    python -m bench.mpc

The hand follows a circle, with a horizon of 20 steps of 10 ms; each millisecond one iteration from the plan before, and
the arm goes on under the first of its controls. Times are those of the clock on the wall, so that they include whatever
else the machine does; `chrt -f 50` before the command keeps others away where that is allowed.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np

import linkwise as lw
from bench.robots import ROBOTS

STEPS, DT, TICK, TICKS = 20, 0.01, 1e-3, 2000
START = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])


def main() -> None:
    """Run two seconds, and print."""
    robot = ROBOTS["panda"]
    model = lw.load(robot.path, locked=robot.locked).with_joint_constants(damping=0.0, friction=0.0)
    middle = model.pose(START, "panda_hand")[:3, 3]

    def running(model: lw.Model, q: Any, v: Any, u: Any, goal: Any) -> Any:
        at = model.pose(q, "panda_hand")[:3, 3]
        return np.concatenate([10.0 * (at - goal), 0.3 * v, 0.1 * (q - START), 0.02 * (u - model.gravity_force(q))])

    def terminal(model: lw.Model, q: Any, v: Any, goal: Any) -> Any:
        return np.concatenate([30.0 * (model.pose(q, "panda_hand")[:3, 3] - goal), v])

    problem = lw.control.Shooting(model, STEPS, DT, running=running, terminal=terminal, goal=3)

    def goals(t: float) -> Any:
        ahead = 4.0 * (t + DT * np.arange(STEPS + 1))
        return middle + 0.1 * np.column_stack([0 * ahead, np.sin(ahead), np.cos(ahead) - 1.0])

    q, v = START.copy(), np.zeros(model.nv)
    plan = problem.solve(q, v, goal=goals(0.0))
    times, errors = np.empty(TICKS), np.empty(TICKS)
    gc.collect()
    gc.disable()  # as a controller would
    for k in range(TICKS):
        begin = time.perf_counter()
        plan = problem.solve(q, v, goal=goals(k * TICK), start=plan, iterations=1)
        times[k] = time.perf_counter() - begin
        v = v + TICK * model.forward_dynamics(q, v, plan.u[0])
        q = q + TICK * v
        errors[k] = np.linalg.norm(model.pose(q, "panda_hand")[:3, 3] - goals((k + 1) * TICK)[0])
    gc.enable()
    micro = 1e6 * times
    print(f"Panda, {STEPS} steps of {1e3 * DT:.0f} ms, one iteration each millisecond, {TICKS} times")
    for title, value in (("median", 50.0), ("99 %", 99.0), ("99.9 %", 99.9), ("longest", 100.0)):
        print(f"  {title:8} {np.percentile(micro, value):8.0f} µs")
    late = int((times > TICK).sum())
    print(
        f"  later than 1 ms: {late} of {TICKS};  hand off its circle by {1e3 * np.median(errors[200:]):.1f} mm (median)"
    )


if __name__ == "__main__":
    main()
