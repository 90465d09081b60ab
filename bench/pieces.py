"""What a short piece of a simulation costs: ``python bench/pieces.py [panda.urdf]``.

Each is the best of many calls of :meth:`linkwise.Simulation.advance` for one state; the kernel's own time is what ten
steps take more than one.
"""

from __future__ import annotations

import sys
import timeit
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import samples

CALLS, ROUNDS = 200, 20


def microseconds(call: Any) -> float:
    """The best of many."""
    return 1e6 * min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS


def main() -> None:
    """Measure and print."""
    model = lw.load(sys.argv[1]) if len(sys.argv) > 1 else samples.planar_arm(7)
    q0, rest = np.clip(model.neutral(), model.limits.lower, model.limits.upper), np.zeros(model.nv)

    def damped(t: Any, q: Any, v: Any, p: Any) -> Any:
        return [-0.1 * x for x in v]

    ways: dict[str, dict[str, Any]] = {
        "rk4": {},
        "rk4, commands": {"control": lambda t, q, v, p: p, "p": rest},
        "generalized_alpha": {"method": "generalized_alpha"},
        "rk4, sampled at 1 kHz": {"control": lw.Sampled(model, damped, 1000.0)},
        "dop853, rtol 1e-6": {"method": "dop853", "rtol": 1e-6},
    }
    print(f"{model.name}, {model.nv} freedoms, dt 1 ms; us for a piece of 1 ms and of 10 ms")
    for name, options in ways.items():
        sim = lw.Simulation(model, q0, limits="ignore", **options)
        given = {"p": rest} if "p" in options else {}
        sim.advance(1e-3)
        times = [microseconds(lambda d=d, sim=sim, given=given: sim.advance(d, **given)) for d in (1e-3, 1e-2)]
        print(f"  {name:24} {times[0]:8.2f} {times[1]:8.2f}")


if __name__ == "__main__":
    main()
