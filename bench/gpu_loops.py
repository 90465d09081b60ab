"""Loops over time on a GPU: ``lw.simulate`` with fixed and with adaptive steps, and rollouts written either way.

Part of ``python -m bench.gpu``; alone ``python -m bench.gpu --parts simulations``. Times are by the clock, everything
included that a call does, on the host too: the states at the start go there and back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw

FEW = 64  # states that are compared with the CPU


def by_the_clock(call: Callable[[], Any], repeats: int = 2) -> tuple[float, Any]:
    """The shortest time of a call, the device's work included, and the last result."""
    import cupy as cp

    best, result = np.inf, None
    for _ in range(repeats):
        result = None  # its memory is used again
        began = time.perf_counter()
        result = call()
        cp.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - began)
    return best, result


def start(model: lw.Model, count: int, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """States of a robot that begins to fall."""
    rng = np.random.default_rng(3)
    few = np.array([model.random_configuration(rng) for _ in range(256)])
    q = few[np.arange(count) % len(few)]
    return q.astype(dtype), rng.uniform(-0.5, 0.5, (count, model.nv)).astype(dtype)


def damping(t: Any, q: Any, v: Any, p: Any) -> Any:
    """The control of the simulations."""
    return -0.05 * v


def measure_simulation(
    robot: str, model: lw.Model, method: str, dtype: np.dtype[Any], count: int, duration: float
) -> dict[str, Any]:
    """Steps a second of ``lw.simulate``, with the damping and friction of the model and a damping control."""
    import cupy as cp

    q, v = start(model, count, dtype)
    options: dict[str, Any] = {"method": method, "control": damping, "limits": "ignore", "progress": False}
    if method == "rk4":
        options |= {"dt": 1e-3, "save_every": 1 << 30}
    else:
        options |= {"rtol": 1e-6}

    def run(q: Any, v: Any, seconds: float) -> lw.Trajectory:
        samples = {} if method == "rk4" else {"output_times": [0.0, seconds]}
        return lw.simulate(model, q, v, duration=seconds, **options, **samples)

    short = 0.05
    fewer = {**options, "save_every": 50} if method == "rk4" else options
    samples = {} if method == "rk4" else {"output_times": [0.0, short]}
    expected = lw.simulate(model, *(a[:FEW].astype(np.float64) for a in (q, v)), duration=short, **fewer, **samples)
    there = [cp.asarray(a) for a in (q, v)]
    began = time.perf_counter()
    got = lw.simulate(model, *there, duration=short, **fewer, **samples)
    end = cp.asnumpy(got.q[:FEW, -1])
    first = time.perf_counter() - began
    error = float(np.abs(end - expected.q[:, -1]).max())
    taken, whole = by_the_clock(lambda: run(*there, duration))
    steps = int(np.sum(whole.steps)) + int(np.sum(whole.rejected))
    return {
        "what": f"{robot} {count} simulations of {duration:g} s, {method} {dtype.name}", "seconds": taken,
        "rate": steps / taken, "error": error, "first_call": first, "steps": steps,
        "failed": int(np.sum(np.asarray(whole.status) != "done")),
    }  # fmt: skip


def measure_plain_rollout(
    robot: str, step: lw.CompiledFunction, arrays: Any, dtype: np.dtype[Any], steps: int
) -> dict[str, Any]:
    """A rollout as any routine is written, beside the kernel of its own that keeps the state in shared memory."""
    import cupy as cp

    from linkwise.targets.cuda.launched_programs import DeviceProgram

    roll = lw.rollout(step, steps)
    routine = roll.routine
    runner = DeviceProgram(routine, dtype)
    count = len(arrays[0])
    clock = cp.asarray(np.tile(np.array([0, steps], dtype), (count, 1)))
    made = {routine.made(k): cp.empty((count, spec.size), dtype) for k, spec in enumerate(step.program.outputs)}

    def run() -> Any:
        given = {routine.given(k): array.copy() for k, array in enumerate(arrays)}
        runner.run({**given, **made, routine.CLOCK: clock}, {}, {}, count)
        return made

    began = time.perf_counter()
    run()
    cp.cuda.Device().synchronize()
    first = time.perf_counter() - began
    expected = roll(*arrays)
    error = max(
        float(cp.abs(made[routine.made(k)].reshape(e.shape) - e).max() / cp.abs(e).max())
        for k, e in enumerate(expected)
    )
    own, _ = by_the_clock(lambda: roll(*arrays))
    taken, _ = by_the_clock(run)
    return {
        "what": f"{robot} {count} rollouts of {steps} RK4 steps {dtype.name}, as any routine", "seconds": taken,
        "rate": count * steps / taken, "error": error, "first_call": first, "own_kernel": count * steps / own,
    }  # fmt: skip


def show(row: dict[str, Any]) -> None:
    """One line."""
    more = (
        f", {row['failed']} failed" if "failed" in row else f"; its own kernel {row['own_kernel'] / 1e9:.2f} G steps/s"
    )
    print(
        f"{row['what']:60} {1e3 * row['seconds']:.2f} ms, {row['rate'] / 1e9:.3f} G steps/s, error {row['error']:.1e}, "
        f"first call {row['first_call']:.1f} s{more}",
        flush=True,
    )
