"""The functions on a GPU: ``python -m bench.gpu``; needs a CUDA device and the extra ``cuda``.

For each robot, function and precision: states per second, the memory traffic that this is, and how far the results are
from the CPU's in double precision. Inputs are several gigabytes, far beyond the caches; times are by the device's own
events, the median of several launches. What a plain copy reaches is the limit for everything that moves more than it
computes. Then simulations (:mod:`bench.gpu_loops`), large mechanisms, which run as loops (:mod:`bench.gpu_rolled`), and
where JAX and MJX are installed the same dynamics by these (:mod:`bench.mjx`, which says what is included). ``--parts``
chooses among all this.

A machine with a GPU may have no robots: ``--export FOLDER`` copies the files where they are installed, and
``--models FOLDER`` reads them there.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from bench import gpu_loops, gpu_rolled, mjx, report
from bench.flexible import arm
from bench.rk4 import STEP, rk4_step
from bench.robots import ROBOTS
from bench.scale import from_arrays

CHECKED = 4096  # states compared with the CPU, at both ends of the batch
BYTES = 4 << 30  # of one function's arrays
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
MATRICES = ("mass_matrix", "mass_matrix_inverse", "linearize_inverse", "linearize_forward")
PARTS = ("functions", "rollouts", "simulations", "rolled", "long", "mjx")
FLEXIBLE: dict[str, Callable[[], lw.Model]] = {
    "flexible_arm": lambda: arm("plain", (2, 2)),  # three links with four modes each
    "rigid_arm": lambda: arm("plain", None),  # the same with rigid links
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--robots", nargs="+", choices=[*ROBOTS, *FLEXIBLE], default=["panda", "g1"])
    parser.add_argument("--models", type=Path, help="folder with the robots' files, as --export leaves them")
    parser.add_argument("--export", type=Path, help="copy the robots' files to a folder, and stop")
    parser.add_argument("--gigabytes", type=float, default=BYTES / 2**30, help="of one function's arrays")
    parser.add_argument("--steps", type=int, default=1000, help="of the rollouts (default 1000)")
    parser.add_argument("--rollouts", type=int, default=65536, help="how many side by side (default 65536)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what is measured (default: all)")
    parser.add_argument("--links", type=int, default=1000, help="of the chains in batches (default 1000)")
    parser.add_argument("--chains", type=int, default=16384, help="how many side by side (default 16384)")
    parser.add_argument("--long", type=int, default=100_000, help="links of the one long chain (default 100 000)")
    options = parser.parse_args(argv)
    if options.export:
        export(options.robots, options.export)
        return
    copy = copy_rate()
    print(f"{device_name()}; a plain copy moves {copy / 1e12:.2f} TB/s")
    rows: list[dict[str, Any]] = []
    for robot in options.robots if {"functions", "rollouts"} & set(options.parts) else ():
        rows += of_robot(robot, load(robot, options.models), options, copy)
    for robot in options.robots if "simulations" in options.parts else ():
        free()
        rows += simulations(robot, load(robot, options.models), options.rollouts, options.steps)
    if "rolled" in options.parts:
        rows += of_chains(options, copy)
    if "long" in options.parts:
        free()
        rows.append(gpu_rolled.long_chain(options.long))
        gpu_rolled.show_long(rows[-1])
    if "mjx" in options.parts and not mjx.available():
        print("MJX is left out: jax or mujoco.mjx is not installed")
    for robot in options.robots if "mjx" in options.parts and mjx.available() else ():
        free()
        for row in mjx.measure(robot, load(robot, options.models), options.rollouts, min(100, options.steps)):
            rows.append(row)
            mjx.show(row)
    print(report.table(["", "states/s", "TB/s", "of copy", "error"], [_cells(row, copy) for row in rows]))
    print(f"written to {report.write('gpu', {'copy': copy, 'device': device_name(), 'rows': rows})}")


def of_robot(robot: str, model: lw.Model, options: argparse.Namespace, copy: float) -> list[dict[str, Any]]:
    """Functions and rollouts of one robot."""
    rows = []
    for dtype in (np.float32, np.float64):
        for name in (*FUNCTIONS, *MATRICES) if "functions" in options.parts else ():
            free()
            rows.append(measure(robot, model, name, np.dtype(dtype), int(options.gigabytes * 2**30)))
            show(rows[-1], copy)
    free()
    if "rollouts" not in options.parts or model._is_flexible:  # their fast modes need shorter steps
        return rows
    for dtype in (np.float32, np.float64):
        for way in ("steps", "evaluations") if model.nv < 10 else ("evaluations",):
            rows.append(measure_rollout(robot, model, way, np.dtype(dtype), options.rollouts, options.steps))
            show_rollout(rows[-1])
    return rows


def of_chains(options: argparse.Namespace, copy: float) -> list[dict[str, Any]]:
    """Functions of a chain that runs as loops."""
    model = from_arrays(options.links, branched=False).with_sweeps("rolled")
    rows = []
    for dtype in (np.float32, np.float64):
        for name in gpu_rolled.FUNCTIONS:
            free()
            rows.append(gpu_rolled.measure(model, name, np.dtype(dtype), options.chains))
            gpu_rolled.show(rows[-1], copy)
    return rows


def export(robots: Sequence[str], folder: Path) -> None:
    """The files that `load` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for robot in set(robots) - set(FLEXIBLE):
        shutil.copy(ROBOTS[robot].path, folder / f"{robot}.urdf")


def load(robot: str, folder: Path | None) -> lw.Model:
    """A robot, from the installed files or a folder."""
    if robot in FLEXIBLE:
        return FLEXIBLE[robot]()
    path = ROBOTS[robot].path if folder is None else folder / f"{robot}.urdf"
    return lw.load(path, locked=ROBOTS[robot].locked)


def device_name() -> str:
    import cupy as cp

    name = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def seconds(call: Callable[[], Any], repeats: int = 15) -> float:
    """The median time of a launch by the device's events. All are queued at once: the device never waits for Python."""
    import cupy as cp

    for _ in range(3):
        call()
    events = [cp.cuda.Event() for _ in range(repeats + 1)]
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    events[-1].synchronize()
    times = [float(cp.cuda.get_elapsed_time(a, b)) * 1e-3 for a, b in itertools.pairwise(events)]
    return sorted(times)[len(times) // 2]


def free() -> None:
    """Give the memory of earlier rows back."""
    import cupy as cp

    cp.get_default_memory_pool().free_all_blocks()


def copy_rate() -> float:
    """Bytes read and written per second by a plain copy."""
    import cupy as cp

    source = cp.random.random(2**28, dtype=cp.float64)
    goal = cp.empty_like(source)
    return 2 * int(source.nbytes) / seconds(lambda: cp.copyto(goal, source))


def measure(robot: str, model: lw.Model, name: str, dtype: np.dtype[Any], size: int) -> dict[str, Any]:
    """One function in one precision."""
    import cupy as cp

    function = model.function(name)
    program = function.program
    per_state = sum(a.size for a in (*program.inputs, *program.outputs)) * dtype.itemsize
    count = max(2 * CHECKED, size // per_state // 1024 * 1024)
    rng = np.random.default_rng(1)
    reach = [_reach(model, a.name, a.shape) for a in program.inputs]
    few = [rng.uniform(-r, r, (CHECKED, *r.shape)).astype(dtype) for r in reach]
    expected = _several(function.general(*(a.astype(np.float64) for a in few)))
    generator = cp.random.default_rng(2)
    arrays = []
    for each, r in zip(few, reach, strict=True):
        array = generator.random((count, *each.shape[1:]), dtype=dtype)
        array -= dtype.type(0.5)
        array *= cp.asarray((2 * r).astype(dtype))
        array[:CHECKED] = array[-CHECKED:] = cp.asarray(each)
        arrays.append(array)
    outs = tuple(cp.full((count, *spec.shape), cp.nan, dtype) for spec in program.outputs)
    out = outs if len(outs) > 1 else outs[0]
    began = time.perf_counter()
    function.general(*arrays, out=out)
    cp.cuda.Device().synchronize()
    compiled = time.perf_counter() - began
    taken = seconds(lambda: function.general(*arrays, out=out))
    error = max(_error(whole, numbers) for whole, numbers in zip(outs, expected, strict=True))
    missing = sum(int(cp.isnan(whole).sum()) for whole in outs)
    what = f"{robot} {name} {dtype.name}"
    rate = count / taken
    return {
        "what": what, "rate": rate, "bytes": rate * per_state, "error": error, "missing": missing, "count": count,
        "first_call": compiled,
    }  # fmt: skip


def _reach(model: lw.Model, name: str, shape: tuple[int, ...]) -> Any:
    """How far from zero an input's numbers go: modal coordinates as far as deflections are small."""
    reach = np.full(shape, 3.0)
    if name == "q":
        drawn = np.abs([model.random_configuration(seed) for seed in range(64)]).max(axis=0)
        for body in model.bodies:
            reach[body.q_slice] = drawn[body.q_slice] if body.modes else reach[body.q_slice]
    return reach


def _several(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple) else (result,)


def _error(whole: Any, expected: Any) -> float:
    """At both ends of a batch: of a vector relative to the size of each number, of a matrix to that of the whole."""
    import cupy as cp

    scale = np.abs(expected).max(0) if expected.ndim == 2 else np.array(np.abs(expected).max())
    scale[scale == 0] = 1.0
    ends = (whole[:CHECKED], whole[-CHECKED:])
    return max(float((np.abs(cp.asnumpy(part) - expected) / scale).max()) for part in ends)


def rk4_stage(model: Any, q: Any, v: Any, q_at: Any, v_at: Any, dq: Any, dv: Any, tau: Any, k: Any) -> dict[str, Any]:
    """One of the four evaluations; a quarter of the code, so that the one of a large robot fits the instruction cache.

    ``k`` is [how far to the next evaluation, the weight of this one, whether it is the last].
    """
    a = model.forward_dynamics(q_at, v_at, tau)
    dq, dv = dq + k[1] * v_at, dv + k[1] * a
    last = k[2] > 0.5

    def chosen(x: Any, y: Any) -> Any:
        return np.array([lw.math.where(last, one, other) for one, other in zip(x, y, strict=True)], object)

    q_new, v_new = chosen(q + dq, q), chosen(v + dv, v)
    return {
        "q": q_new, "v": v_new, "q_at": chosen(q_new, q + k[0] * v_at), "v_at": chosen(v_new, v + k[0] * a),
        "dq": chosen(0.0 * dq, dq), "dv": chosen(0.0 * dv, dv),
    }  # fmt: skip


STAGES = np.array([[STEP / 2, STEP / 6, 0], [STEP / 2, STEP / 3, 0], [STEP, STEP / 3, 0], [0, STEP / 6, 1]])


def rollouts(model: lw.Model, way: str) -> Callable[..., Any]:
    """A function (steps, q, v, tau) that runs the method, step by step or evaluation by evaluation."""
    if way == "steps":
        step = lw.compile(rk4_step, model, inputs={"q": "q", "v": "v", "tau": "v"})
        return lambda steps, q, v, tau: lw.rollout(step, steps)(q, v, tau)
    kinds: dict[str, str | int | tuple[int, ...]] = {
        "q": "q",
        "v": "v",
        "q_at": "q",
        "v_at": "v",
        "dq": "q",
        "dv": "v",
        "tau": "v",
        "k": 3,
    }
    stage = lw.compile(rk4_stage, model, inputs=kinds)
    made: dict[int, Any] = {}

    def run(steps: int, q: Any, v: Any, tau: Any) -> Any:
        if steps not in made:
            made[steps] = lw.rollout(stage, 4 * steps, sequences=["k"])
        return made[steps](q, v, q, v, 0 * q, 0 * v, tau, np.tile(STAGES, (steps, 1)))

    return run


def measure_rollout(
    robot: str, model: lw.Model, way: str, dtype: np.dtype[Any], count: int, steps: int
) -> dict[str, Any]:
    """Many steps side by side in one launch, and a tenth of them against the CPU."""
    import cupy as cp

    run = rollouts(model, way)
    rng = np.random.default_rng(3)
    q, v, tau = (rng.uniform(-size, size, (count, model.nv)).astype(dtype) for size in (1.0, 0.5, 0.1))
    tau += model.gravity_force(q).astype(dtype)
    few, short = 64, max(1, steps // 10)
    expected = run(short, *(a[:few].astype(np.float64) for a in (q, v, tau)))
    arrays = [cp.asarray(a) for a in (q, v, tau)]
    began = time.perf_counter()
    got = run(short, *arrays)
    cp.cuda.Device().synchronize()
    compiled = time.perf_counter() - began
    error = max(
        float(np.abs(cp.asnumpy(g[:few]) - e).max() / np.abs(e).max())
        for g, e in zip(got[:2], expected[:2], strict=True)
    )
    taken = seconds(lambda: run(steps, *arrays), 3)
    return {
        "what": f"{robot} {count} rollouts of {steps} RK4 steps {dtype.name}, by {way}", "seconds": taken,
        "rate": count * steps / taken, "error": error, "first_call": compiled,
    }  # fmt: skip


def simulations(robot: str, model: lw.Model, count: int, steps: int) -> list[dict[str, Any]]:
    """What :mod:`bench.gpu_loops` measures, shown line by line."""
    import cupy as cp

    rows = []
    if model.nq == model.nv and model.nv < 10:
        step = lw.compile(rk4_step, model, inputs={"q": "q", "v": "v", "tau": "v"})
        for dtype in (np.dtype(np.float32), np.dtype(np.float64)):
            q, v = gpu_loops.start(model, count, dtype)
            arrays = [cp.asarray(a) for a in (q, v, model.gravity_force(q).astype(dtype))]
            rows.append(gpu_loops.measure_plain_rollout(robot, step, arrays, dtype, steps))
            gpu_loops.show(rows[-1])
    duration = 10 * steps * STEP  # so that what the host does before and after weighs little
    for method, kind in (("rk4", np.float32), ("rk4", np.float64), ("dopri5", np.float64)):
        rows.append(gpu_loops.measure_simulation(robot, model, method, np.dtype(kind), count, duration))
        gpu_loops.show(rows[-1])
    return rows


def show(row: dict[str, Any], copy: float) -> None:
    print(
        f"{row['what']:45} {row['rate'] / 1e9:7.2f} G/s {row['bytes'] / 1e12:5.2f} TB/s {row['bytes'] / copy:4.0%} "
        f"error {row['error']:.1e}, unwritten {row['missing']}, first call {row['first_call']:.1f} s",
        flush=True,
    )


def show_rollout(row: dict[str, Any]) -> None:
    print(
        f"{row['what']:60} {1e3 * row['seconds']:.2f} ms, {row['rate'] / 1e9:.2f} G steps/s, error {row['error']:.1e}, "
        f"first call {row['first_call']:.1f} s",
        flush=True,
    )


def _cells(row: dict[str, Any], copy: float) -> list[object]:
    moved = row.get("bytes")
    traffic = [None, None] if moved is None else [f"{moved / 1e12:.2f}", f"{moved / copy:.0%}"]
    return [row["what"], f"{row['rate']:.3g}", *traffic, f"{row['error']:.0e}"]


if __name__ == "__main__":
    main()
