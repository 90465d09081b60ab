"""A swing of the Panda by CasADi and IPOPT: emitted C with exact derivatives beside CasADi's own symbols.

    python -m bench.casadi_swing

Direct multiple shooting, 20 steps of 50 ms between two postures at rest, least squares of torques and speeds. The same
solver on the same problem: costs and iterations must agree; what differs is who computes the step and its
derivatives.
"""

from __future__ import annotations

import tempfile
import time
from typing import Any

import casadi
import numpy as np

import linkwise as lw
from bench.robots import ROBOTS

STEPS, DT = 20, 0.05
START = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
END = np.array([1.0, 0.3, -0.4, -1.4, 0.3, 1.9, 0.2])


def step(model: lw.Model, q: Any, v: Any, tau: Any) -> Any:
    """A step that takes speeds first."""
    v = v + DT * model.forward_dynamics(q, v, tau)
    return np.concatenate([q + DT * v, v])


def solved(function: Any, n: int) -> tuple[float, int, float]:
    """Cost, iterations, and seconds of the solution."""
    X, U = casadi.MX.sym("X", 2 * n, STEPS + 1), casadi.MX.sym("U", n, STEPS)
    gaps = casadi.vec(function.map(STEPS)(X[:n, :-1], X[n:, :-1], U) - X[:, 1:])
    cost = 1e-3 * casadi.sumsqr(U) + 0.1 * casadi.sumsqr(X[n:, :])
    problem = {"x": casadi.vertcat(casadi.vec(X), casadi.vec(U)), "f": cost, "g": gaps}
    solver = casadi.nlpsol("swing", "ipopt", problem, {"print_time": 0, "ipopt": {"print_level": 0}})
    ends = np.concatenate([START, np.zeros(n)]), np.concatenate([END, np.zeros(n)])
    low, high = np.full((2, 2 * n * (STEPS + 1) + n * STEPS), [[-np.inf], [np.inf]])
    for place, end in zip((0, 2 * n * STEPS), ends, strict=True):
        low[place : place + 2 * n] = high[place : place + 2 * n] = end
    guess = np.concatenate([np.linspace(*ends, STEPS + 1).ravel(), np.zeros(n * STEPS)])
    begin = time.process_time()
    found = solver(x0=guess, lbx=low, ubx=high, lbg=0, ubg=0)
    return float(found["f"]), solver.stats()["iter_count"], time.process_time() - begin


def main() -> None:
    """Measure and print."""
    robot = ROBOTS["panda"]
    model = lw.load(robot.path, locked=robot.locked)
    n = model.nv
    begin = time.perf_counter()
    f = lw.compile(step, model, inputs={"q": "q", "v": "v", "tau": "v"})
    made = lw.control.emit_casadi(f, tempfile.mkdtemp())
    emitted = time.perf_counter() - begin
    begin = time.perf_counter()
    x = [casadi.SX.sym(name, n) for name in ("q", "v", "tau")]
    arrays = [np.array([s[i] for i in range(n)], object) for s in x]
    symbols = casadi.Function("symbols", x, [casadi.vertcat(*step(model, *arrays))])
    traced = time.perf_counter() - begin
    for title, function, ready in (
        ("linkwise, C", casadi.external(made.name, str(made.library)), emitted),
        ("CasADi, SX", symbols, traced),
    ):
        cost, count, seconds = solved(function, n)
        print(f"{title:12} cost {cost:.9f}  {count} iterations  {seconds:.2f} s, and {ready:.1f} s before")


if __name__ == "__main__":
    main()
