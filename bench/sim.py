"""Simulation against MuJoCo's `rollout` and SciPy's `solve_ivp` around Pinocchio: `python -m bench.sim`.

Rollouts: many Panda states, RK4, one thread, no contacts, no limits, no damping; every library stores the state of
every step into memory that it is given and that has been touched before. The same again with fresh memory (458 MB for
4096 states and 1000 steps: what is added is the system's work for new pages, not ours) and with our samples thinned
out. Single: ten seconds of one Panda in free fall, DOP853 at the same tolerances, called from Python; both are compared
with a run whose tolerance is a thousand times smaller. Results are compared before anything is timed; the calls take
turns and the best round counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import report
from bench.peers import Mujoco, Pinocchio, Sample
from bench.robots import ROBOTS

Array = NDArray[Any]
DT = 1e-3


def _model(robot: str) -> Any:
    import linkwise as lw

    chosen = ROBOTS[robot]
    return (
        lw.load(chosen.path, locked=list(chosen.locked))
        .with_joint_constants(damping=0.0)
        .with_joint_constants(friction=0.0)
    )


def _names(model: Any) -> tuple[str, ...]:
    return tuple(joint.name for joint in model.joints)


def best_seconds(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The best of several rounds in which the calls take turns; one round before is not counted."""
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def rollouts(robot: str, count: int, steps: int, rounds: int) -> dict[str, Any]:
    """Steps per second of many states: linkwise, and MuJoCo's rollout with fewer (its cost does not depend on it)."""
    from mujoco import rollout

    import linkwise as lw

    model = _model(robot)
    sample = Sample.random(_names(model), count)
    peer = Mujoco(ROBOTS[robot])
    mujoco, theirs = peer.mujoco, peer.model
    theirs.opt.timestep = DT
    theirs.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    fewer = min(count, 64)
    few = sample.ordered(peer.joints)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    size = mujoco.mj_stateSize(theirs, full)
    nq = theirs.nq
    start = np.zeros((fewer, size))
    start[:, 1 : 1 + nq], start[:, 1 + nq : 1 + 2 * nq] = few.q[:fewer], few.v[:fewer]
    data = mujoco.MjData(theirs)

    def ours(save_every: int, out: Any = None) -> Any:
        return lw.simulate(
            model, sample.q, sample.v, duration=steps * DT, dt=DT, method="rk4", limits="ignore",
            save_every=save_every, progress=False, out=out,
        )  # fmt: skip

    memory = np.zeros((fewer, steps, size)), np.zeros((fewer, steps, theirs.nsensordata))

    def others() -> Any:
        return rollout.rollout(
            theirs, data, start, nstep=steps, state=memory[0], sensordata=memory[1], persistent_pool=False
        )

    state, _ = others()
    mine = ours(steps)
    order = [peer.joints.index(name) for name in _names(model)]
    last = np.asarray(state).reshape(fewer, steps, size)[:, -1, 1 : 1 + nq][:, order]
    difference = float(np.abs(last - mine.q[:fewer, -1]).max())
    kept = ours(1)
    calls = {
        "all": lambda: ours(1, kept),
        "fresh": lambda: ours(1),
        "thin": lambda: ours(steps // 10),
        "mujoco": others,
    }
    best = best_seconds(calls, rounds)
    rate = {
        "linkwise, every step stored": count * steps / best["all"],
        "linkwise, every step stored in fresh memory": count * steps / best["fresh"],
        "linkwise, ten samples stored": count * steps / best["thin"],
        "mujoco rollout": fewer * steps / best["mujoco"],
    }
    return {
        "states": count,
        "steps": steps,
        "steps_per_second": rate,
        "ratio_every_step": rate["linkwise, every step stored"] / rate["mujoco rollout"],
        "ratio_fresh": rate["linkwise, every step stored in fresh memory"] / rate["mujoco rollout"],
        "ratio_thinned": rate["linkwise, ten samples stored"] / rate["mujoco rollout"],
        "difference": difference,
    }


def single(robot: str, duration: float, rtol: float, rounds: int) -> dict[str, Any]:
    """Seconds for one simulation from Python: linkwise, and SciPy's DOP853 around Pinocchio's aba."""
    from scipy.integrate import solve_ivp

    import linkwise as lw

    model = _model(robot)
    peer = Pinocchio(ROBOTS[robot])
    sample = Sample.random(_names(model)).ordered(peer.joints)
    n = len(peer.joints)
    tau = np.zeros(n)
    pin, data = peer.pin, peer.data

    def rates(t: float, y: Array) -> Array:
        return np.concatenate([y[n:], pin.aba(peer.model, data, y[:n], y[n:], tau)])

    y0 = np.concatenate([sample.q, sample.v])
    own = sample.ordered(_names(model))
    times = np.linspace(0.0, duration, 101)

    def ours(**more: Any) -> Any:
        return lw.simulate(
            model, own.q, own.v, duration=duration, rtol=rtol, atol=rtol / 100, limits="ignore", progress=False, **more
        )

    def theirs(**more: Any) -> Any:
        return solve_ivp(rates, (0.0, duration), y0, method="DOP853", rtol=rtol, atol=rtol / 100, **more)

    order = [_names(model).index(name) for name in peer.joints]
    a, b = ours(output_times=times), theirs(t_eval=times)
    early = times <= 1.0
    difference = float(np.abs(a.q[early][:, order] - b.y[:n, early].T).max())
    # Who is off? Both against a run with a tolerance a thousand times smaller.
    exact = lw.simulate(
        model, own.q, own.v, duration=duration, rtol=1e-3 * rtol, limits="ignore", output_times=times, progress=False
    ).q[early][:, order]
    errors = {
        "linkwise": float(np.abs(a.q[early][:, order] - exact).max()),
        "scipy + pinocchio": float(np.abs(b.y[:n, early].T - exact).max()),
    }
    best = best_seconds({"steps": ours, "samples": lambda: ours(output_times=times), "scipy": theirs}, rounds)
    return {
        "duration": duration,
        "rtol": rtol,
        "seconds": {
            "linkwise": best["steps"],
            "linkwise, 101 samples": best["samples"],
            "scipy + pinocchio": best["scipy"],
        },
        "evaluations_scipy": int(b.nfev),
        "steps_linkwise": a.steps,
        "ratio": best["scipy"] / best["steps"],
        "difference_first_second": difference,
        "errors_first_second": errors,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.sim", description=__doc__)
    parser.add_argument("--robot", choices=list(ROBOTS), default="panda")
    parser.add_argument("--states", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--duration", type=float, default=10.0)
    parser.add_argument("--rtol", type=float, default=1e-9)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    one = single(arguments.robot, arguments.duration, arguments.rtol, arguments.rounds)
    print(f"\n{arguments.robot}, {one['duration']:g} s, DOP853, rtol {one['rtol']:g}; milliseconds")
    print(report.table(["", "ms"], [[name, 1e3 * value] for name, value in one["seconds"].items()]))
    print(
        f"{one['ratio']:.0f} times faster; they differ by {one['difference_first_second']:.1e} rad in one second: "
        + ", ".join(f"{name} is off by {error:.1e} rad" for name, error in one["errors_first_second"].items())
    )
    many = rollouts(arguments.robot, arguments.states, arguments.steps, arguments.rounds)
    print(f"\n{arguments.robot}, {many['states']} rollouts of {many['steps']} RK4 steps, one thread; 10⁶ steps/s")
    print(report.table(["", "10⁶/s"], [[name, 1e-6 * value] for name, value in many["steps_per_second"].items()]))
    print(
        f"{many['ratio_every_step']:.0f} times MuJoCo's (every step stored), "
        f"{many['ratio_fresh']:.0f} times (in fresh memory), "
        f"{many['ratio_thinned']:.0f} times (ten samples); "
        f"they differ by {many['difference']:.1e} rad"
    )
    print(f"\nwritten to {report.write('sim', {'single': one, 'rollouts': many})}")


if __name__ == "__main__":
    main()
