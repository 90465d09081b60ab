"""Ensembles: what they cost beside the plain call, a million members in bounded memory, and MuJoCo's rollout.

``python -m bench.ensemble`` for all of it, or name some of: overhead, million, mujoco.

Overhead: 10⁴ Panda simulations by one call of `lw.simulate` with arrays drawn beforehand, against `lw.ensemble`, which
draws them, cuts them into blocks and keeps the same final states, in memory and in a store on disk; interleaved in one
process, the best round of each. Million: a fresh process for each count, whose largest resident memory is compared.
MuJoCo: the same study (initial states and one mass differ) by `mujoco.rollout`, with a model for each member, which is
its own way; one thread each, results compared.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import report
from bench.peers import Mujoco
from bench.robots import ROBOTS
from bench.sim import best_seconds

MASS = "panda_link2.mass"
DT = 1e-3


def _study(members: int, steps: int) -> dict[str, Any]:
    import scipy.stats as st

    import linkwise as lw

    robot = ROBOTS["panda"]
    model = (
        lw.load(robot.path, locked=list(robot.locked))
        .with_joint_constants(damping=0.0)
        .with_joint_constants(friction=0.0)
    )
    model = model.with_parameters([MASS])
    nominal = float(model.parameters.nominal[0])
    inputs = {"q0": st.uniform(-0.5, 1.0), "v0": st.norm(0.0, 0.3), MASS: st.norm(nominal, 0.05 * nominal)}
    settings = {"duration": steps * DT, "dt": DT, "method": "rk4", "limits": "ignore"}
    return {"model": model, "inputs": inputs, "members": members, "seed": 1, **settings}


def overhead(members: int = 10_000, steps: int = 1000, rounds: int = 5) -> dict[str, Any]:
    """Seconds of the plain call and of ensembles."""
    import linkwise as lw
    from linkwise.studies.study import Study

    arguments = _study(members, steps)
    batch = Study(**arguments).batch(0, members)
    folder = Path(tempfile.mkdtemp())
    count = iter(range(10**6))

    def plain() -> Any:
        return lw.simulate(
            batch.model, batch.q0, batch.v0, p=batch.p, duration=steps * DT, dt=DT, method="rk4", limits="ignore",
            output_times=[steps * DT], progress=False,
        )  # fmt: skip

    def in_memory() -> Any:
        return lw.ensemble(**arguments, threads=1, progress=False)

    def on_disk() -> Any:
        return lw.ensemble(**arguments, threads=1, store=folder / str(next(count)), progress=False)

    try:
        same = np.array_equal(plain().q[:, -1], in_memory()["q_final"])
        best, work = _best_of({"plain": plain, "in memory": in_memory, "on disk": on_disk}, rounds)
    finally:
        shutil.rmtree(folder)
    more = {name: best[name] / best["plain"] - 1.0 for name in best}
    more_work = {name: work[name] / work["plain"] - 1.0 for name in work}
    return {
        "members": members,
        "steps": steps,
        "seconds": best,
        "overhead": more,
        "processor_seconds": work,
        "processor_overhead": more_work,
        "bit_equal": bool(same),
    }


def _best_of(calls: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """The least wall-clock and processor seconds of each, taking turns; the second do not mind other programs much."""
    best, work = dict.fromkeys(calls, float("inf")), dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start, busy = time.perf_counter(), time.process_time()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
            work[name] = min(work[name], time.process_time() - busy)
    return best, work


def million(counts: Sequence[int] = (100_000, 1_000_000), steps: int = 20) -> dict[str, Any]:
    """Rate and largest memory of short simulations that are kept on disk, in a process of its own for each count."""
    found = {}
    for count in counts:
        code = f"from bench.ensemble import one_of_million; one_of_million({count}, {steps})"
        line = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        found[str(count)] = {
            "seconds": float(line[0]),
            "members_per_second": count / float(line[0]),
            "memory_before_mb": float(line[1]),
            "memory_mb": float(line[2]),
            "store_mb": float(line[3]),
        }
    return {"steps": steps, "members": found}


def one_of_million(count: int, steps: int) -> None:
    """One ensemble; prints its seconds, the memory before and at its largest in MB, and the store's size."""
    import linkwise as lw

    folder = Path(tempfile.mkdtemp())
    lw.ensemble(**_study(1000, steps), store=folder / "small", progress=False)
    arguments = _study(count, steps)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    start = time.perf_counter()
    results = lw.ensemble(**arguments, store=folder / "large", progress=False)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    assert results.counts == {"done": count}
    size = sum(file.stat().st_size for file in (folder / "large").rglob("*") if file.is_file()) / 1e6
    shutil.rmtree(folder)
    print(seconds, before, after, size)


def beside_mujoco(members: int = 4096, steps: int = 500, rounds: int = 3, theirs: int = 256) -> dict[str, Any]:
    """Simulations a second of one study: ours as an ensemble, theirs as a rollout with a model for each member."""
    import copy

    from mujoco import rollout

    import linkwise as lw
    from linkwise.studies.study import Study

    arguments = _study(members, steps)
    batch = Study(**arguments).batch(0, theirs)
    peer = Mujoco(ROBOTS["panda"])
    mujoco, model = peer.mujoco, peer.model
    model.opt.timestep, model.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_RK4
    body = model.body(MASS.removesuffix(".mass")).id
    order = [[joint.name for joint in batch.model.joints].index(name) for name in peer.joints]
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    start = np.zeros((theirs, size))
    assert batch.v0 is not None
    start[:, 1 : 1 + model.nq], start[:, 1 + model.nq : 1 + 2 * model.nq] = batch.q0[:, order], batch.v0[:, order]
    data = mujoco.MjData(model)

    def others() -> Any:
        models = []
        for mass in batch.inputs[MASS][:, 0]:
            one = copy.copy(model)
            one.body_mass[body] = mass
            models.append(one)
        return rollout.rollout(models, data, start, nstep=steps, persistent_pool=False)[0]

    def ours() -> Any:
        return lw.ensemble(**arguments, threads=1, progress=False)

    last = np.asarray(others())[:, -1, 1 : 1 + model.nq]
    difference = float(np.abs(last - ours()["q_final"][:theirs][:, order]).max())
    best = best_seconds({"ours": ours, "theirs": others}, rounds)
    rates = {"linkwise": members / best["ours"], "mujoco": theirs / best["theirs"]}
    ratio = rates["linkwise"] / rates["mujoco"]
    return {"steps": steps, "per_second": rates, "ratio": ratio, "difference": difference}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.ensemble", description=__doc__)
    parser.add_argument("what", nargs="*", choices=["overhead", "million", "mujoco", []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)
    chosen = options.what or ["overhead", "million", "mujoco"]
    found: dict[str, Any] = {}
    if "overhead" in chosen:
        one = found["overhead"] = overhead(rounds=options.rounds)
        print(f"\n{one['members']} Panda simulations of {one['steps']} RK4 steps, one thread")
        print(f"same bits: {one['bit_equal']}")
        rows = [
            [
                name,
                s,
                100.0 * one["overhead"][name],
                one["processor_seconds"][name],
                100.0 * one["processor_overhead"][name],
            ]
            for name, s in one["seconds"].items()
        ]
        print(report.table(["", "s", "% more", "s of a processor", "% more"], rows))
    if "million" in chosen:
        two = found["million"] = million()
        print(f"\nsimulations of {two['steps']} RK4 steps, final states on disk, all threads")
        rows = [
            [n, r["seconds"], r["members_per_second"], r["memory_before_mb"], r["memory_mb"], r["store_mb"]]
            for n, r in two["members"].items()
        ]
        print(report.table(["members", "s", "per s", "MB before", "MB at most", "MB on disk"], rows))
    if "mujoco" in chosen:
        three = found["mujoco"] = beside_mujoco(rounds=options.rounds)
        print(f"\none study, {three['steps']} RK4 steps, one thread: simulations a second")
        print(report.table(["", "per s"], [[name, rate] for name, rate in three["per_second"].items()]))
        print(f"{three['ratio']:.0f} times MuJoCo's rollout; they differ by {three['difference']:.1e} rad")
    print(f"\nwritten to {report.write('ensemble', found)}")


if __name__ == "__main__":
    main()
