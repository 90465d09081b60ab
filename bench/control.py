"""What controls cost: tables and samples beside controls that are traced, in one process.

    python bench/control.py [panda.urdf]

Each is processor time, the best of many, all cases in turn; the ratios are to a traced control of constants and to one
of sines.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import samples

ROUNDS = 15


def cases(model: lw.Model, duration: float) -> dict[str, Any]:
    """The same torques, as nearly as each way can say them."""
    n = model.nv
    times = np.linspace(0.0, duration, 201)
    values = 0.1 * np.sin(np.outer(times, np.arange(1, n + 1)))
    constant = [0.1] * n

    def sines(t: Any, q: Any, v: Any, p: Any) -> Any:
        return [0.1 * lw.math.sin(t * float(k)) for k in range(1, n + 1)]

    def in_python(t: Any, q: Any, v: Any, p: Any) -> Any:
        return 0.1 * np.sin(t * np.arange(1, n + 1))

    return {
        "traced, constant": lambda t, q, v, p: constant,
        "traced, sines": sines,
        "table, linear": lw.Torque(times, values),
        "table, held": lw.Torque(times, values, "held"),
        "table, cubic": lw.Torque(times, values, "cubic"),
        "sampled at 100 Hz": lw.Sampled(model, sines, 100.0),
        "Python at 100 Hz": lw.Sampled(model, in_python, 100.0, python=True),
    }


def main() -> None:
    """Measure and print."""
    model = lw.load(sys.argv[1]) if len(sys.argv) > 1 else samples.planar_arm(7)
    duration, q0 = 2.0, np.clip(model.neutral(), model.limits.lower, model.limits.upper)
    runs: list[tuple[str, Any, dict[str, Any]]] = [
        ("rk4, one state", q0, {"method": "rk4", "dt": 1e-3, "save_every": 100}),
        ("rk4, 64 states", np.tile(q0, (64, 1)), {"method": "rk4", "dt": 1e-3, "save_every": 100}),
        ("dop853, one state", q0, {"method": "dop853", "output_times": [0.0, duration]}),
    ]
    for title, start, options in runs:
        chosen = cases(model, duration)
        if np.ndim(start) > 1:  # as many calls as there are states
            del chosen["Python at 100 Hz"]
        best = dict.fromkeys(chosen, np.inf)
        steps = {}
        for _ in range(ROUNDS):
            for name, control in chosen.items():
                begin = time.process_time()
                traj = lw.simulate(model, start, duration=duration, control=control, limits="ignore", **options)
                best[name] = min(best[name], time.process_time() - begin)
                steps[name] = int(np.max(traj.steps))
        print(f"{model.name}, {title}")
        for name, seconds in best.items():
            ratios = " ".join(f"{seconds / best[other]:6.2f}" for other in ("traced, constant", "traced, sines"))
            print(f"  {name:20} {1e3 * seconds:9.3f} ms  {steps[name]:5d} steps  {ratios}")


if __name__ == "__main__":
    main()
