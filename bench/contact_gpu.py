"""Steps with contact on a CUDA device, every row in a process of its own: ``python -m bench.contact --gpu …``.

A row that fails says why, and the rest goes on: an error of the device ends one process only. A row also ends after
``ROW_SECONDS``, and all of them after ``ALL_SECONDS``; those for which no time is left are named. Caches are empty for
each row, so first calls are what a user sees who has never run it: trace, text, compile, first step. Rows are made side
by side, as many as there are fours of cores, the very first by itself; one at a time is timed.

Robots are rows of random joint forces, new in every step, from states near the file's first key frame; those of whole
robots also stand, held by springs. Counted is the time between two events of the device around each step, of all steps
of a turn, best of several. What the laws are missed by is beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from bench import report

STEP = 0.002
ROW_SECONDS, ALL_SECONDS = 90.0, 460.0
STEPS, WARM = 40, 100
"""Steps of a turn, and before the first."""

PARTS = ("feet", "whole")
"""Of a robot: its feet alone touch the ground; all its shapes touch the ground and each other."""

MOVES = {"feet": ("random",), "whole": ("standing", "flailing")}
COUNTS = {"feet": {"float32": 262_144, "float64": 131_072}, "whole": {"float32": 65_536, "float64": 32_768}}
HEADER = ("robot", "row", "precision", "states", "first call s", "M steps/s", "median m/s", "99.9 %", "worst", "failed")


def models(path: Path) -> dict[str, lw.Model]:
    """The parts of a robot, without a floor: of an MJCF file all, of a native one the part in its name."""
    if path.name.endswith(".lw.json"):
        part = path.name.removesuffix(".lw.json").rpartition(".")[2]
        return {part: lw.load(path)}
    from bench.contact import on_a_floor

    def of(touches: Callable[[Any], bool], limited: bool) -> lw.Model:
        return lw.loads(on_a_floor(path, touches, limited=limited, floor=False))

    return {
        "feet": of(lambda geom: geom.get("class") == "foot", False),
        "whole": of(lambda geom: geom.get("class") != "visual" and geom.get("mesh") is None, True),
    }


def save(paths: Sequence[Path], folder: Path) -> None:
    """Write the parts of robots as native files, ``NAME.feet.lw.json`` and ``NAME.whole.lw.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        for part, model in models(path).items():
            model.save(folder / f"{path.stem}.{part}.lw.json")


def rows_of(paths: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Rows, those that are asked for first in front."""
    robots = [(path, part) for path in paths for part in parts_of(path)]
    for precision in ("float32", "float64"):
        for way in ("default", "fixed work"):
            for path, part in robots:
                if part == "feet":
                    yield {"path": str(path), "part": part, "ground": "plane", "way": way, "precision": precision}
    for precision, ground in (("float32", "plane"), ("float32", "hills"), ("float64", "plane")):
        for path, part in robots:
            if part == "whole":
                yield {"path": str(path), "part": part, "ground": ground, "way": "default", "precision": precision}
    for path, part in robots:
        if part == "feet":
            yield {"path": str(path), "part": part, "ground": "plane", "way": "resets", "precision": "float32"}
            yield {"path": str(path), "part": part, "ground": "hills", "way": "default", "precision": "float32"}


def parts_of(path: Path) -> Sequence[str]:
    """The parts that a file has."""
    if path.name.endswith(".lw.json"):
        return [path.name.removesuffix(".lw.json").rpartition(".")[2]]
    return PARTS


def measure(paths: Sequence[Path], seconds: float = ALL_SECONDS) -> list[dict[str, Any]]:
    """All rows; those that fail say why."""
    began = time.monotonic()

    def measured(row: dict[str, str]) -> list[dict[str, Any]]:
        left = seconds - (time.monotonic() - began)
        named = {"robot": Path(row["path"]).name.partition(".")[0], "row": name_of(row), "precision": row["precision"]}
        rows = _in_a_process(row, min(left, ROW_SECONDS)) if left > 5.0 else [{"failed": "no time was left"}]
        found = [{**named, **each} for each in rows]
        for each in found:
            print(each, flush=True)
        return found

    first, *others = rows_of(paths)
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 4)) as pool:
        return [*measured(first), *(each for found in pool.map(measured, others) for each in found)]


def name_of(row: dict[str, str]) -> str:
    """Name of a row."""
    of = row["part"] if row["ground"] == "plane" else f"{row['part']} on hills"
    return f"{of}, {row['way']}"


def _in_a_process(row: dict[str, str], seconds: float) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "CUPY_CACHE_DIR": f"{folder}/cupy", "LINKWISE_CACHE_DIR": f"{folder}/linkwise"}
        command = [sys.executable, "-m", "bench.contact_gpu", json.dumps(row)]
        try:
            done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return [{"failed": f"not done in {seconds:.0f} s"}]
    last = done.stdout.strip().splitlines()[-1:]
    if done.returncode or not last:
        why = " | ".join(done.stderr.strip().splitlines()[-4:])[-300:]
        return [{"failed": f"exit {done.returncode}: {why}"}]
    rows: list[dict[str, Any]] = json.loads(last[0])
    return rows


def one_row(row: dict[str, str]) -> list[dict[str, Any]]:
    """Results of one row, one for each way in which the robot is moved."""
    model, precision = models(Path(row["path"]))[row["part"]], row["precision"]
    robot = touching(model, row)
    count = COUNTS[row["part"]][precision]
    if row["way"] == "resets":
        return [with_resets(robot, count // 4)]
    moving = Moving.of(robot, count, np.dtype(precision))
    with alone():
        return [moving.timed(way) for way in MOVES[row["part"]]]


def touching(model: lw.Model, row: dict[str, str]) -> lw.Model:
    """The robot on its ground."""
    from bench.contact import WAYS

    rules = WAYS.get(row["way"], lw.ContactRules())
    ground = lw.Ground() if row["ground"] == "plane" else lw.Ground(shape=lw.shapes.heightfield(*hills()))
    between: dict[str, Any] = {"between": []} if row["part"] == "feet" else {}
    return model.with_contacts(ground, material=lw.Material(friction=0.8), rules=rules, **between)


def hills() -> tuple[Any, tuple[float, float]]:
    """Heights from -5 cm to 0, so that nothing overlaps that stands on a plane; and their size."""
    x, y = np.meshgrid(np.linspace(0.0, 20.0, 64), np.linspace(0.0, 20.0, 64))
    return 0.025 * (np.sin(x) * np.cos(1.3 * y) - 1.0), (20.0, 20.0)


@dataclass
class Moving:
    """A robot whose steps are compiled: where its rows begin, what pushes them, how long the first call took."""

    robot: lw.Model
    step: Any
    start: tuple[Any, Any, Any]
    pushes: list[Any]
    dt: Any
    first: float

    @classmethod
    def of(cls, robot: lw.Model, count: int, dtype: np.dtype[Any]) -> Moving:
        """So many rows, after one step."""
        import cupy as cp

        began = time.perf_counter()
        step, rng = robot.function("contact_step"), np.random.default_rng(0)
        some = min(count, 4096)
        start = np.tile(np.asarray(robot.start, float), (some, 1))
        start[:, 4:6] = rng.uniform(-5.0, 5.0, (some, 2))
        start[:, 7:] += 0.05 * rng.normal(size=(some, robot.nq - 7))
        q = cp.asarray(np.tile(start, (count // some, 1)).astype(dtype))
        forces = cp.asarray(5.0 * rng.normal(size=(4, some, robot.nv)).astype(dtype))
        forces[..., :6] = 0.0
        pushes = [cp.tile(each, (count // some, 1)) for each in forces]
        v, impulses = cp.zeros((count, robot.nv), dtype), cp.zeros((count, *step.inputs[3][1]), dtype)
        dt = cp.full(count, STEP, dtype)
        step(q, v, cp.zeros((count, robot.nv), dtype), impulses, dt)
        cp.cuda.Device().synchronize()
        return cls(robot, step, (q, v, impulses), pushes, dt, time.perf_counter() - began)

    def torques(self, way: str, turn: int, k: int, q: Any, v: Any) -> Any:
        """Joint forces of a step."""
        import cupy as cp

        if way == "standing":
            tau = cp.zeros_like(v)
            rest = cp.asarray(np.asarray(self.robot.start[7:]), v.dtype)
            tau[:, 6:] = 100.0 * (rest - q[:, 7:]) - 4.0 * v[:, 6:]
            return tau
        new = k if way == "random" else k // 50 + turn  # whole robots flail under forces that last
        return self.pushes[new % len(self.pushes)]

    def timed(self, way: str) -> dict[str, Any]:
        """Steps a second, and what the laws were missed by after each turn."""
        import cupy as cp

        (q, v, impulses), missed, best = self.start, [], float("inf")
        for turn in range(4):
            events = []
            for k in range(WARM if turn == 0 else STEPS):
                tau = self.torques(way, turn, k, q, v)
                events.append((cp.cuda.Event(), cp.cuda.Event()))
                events[-1][0].record()
                made = self.step(q, v, tau, impulses, self.dt)
                events[-1][1].record()
                q, v, impulses = made.q, made.v, made.impulses
            cp.cuda.Device().synchronize()
            if turn:
                total = sum(cp.cuda.get_elapsed_time(*pair) for pair in events)
                best = min(best, 1e6 * total / (len(events) * len(q)))
                missed.append(cp.asnumpy(made.residuals[:, 0]))
        late = np.concatenate(missed).astype(float)
        return {
            "moved": way,
            "states": len(q),
            "first call s": round(self.first, 1),
            "ns/step": round(best, 3),
            "M steps/s": round(1e3 / best, 2),
            "median m/s": f"{np.quantile(late, 0.5):.1e}",
            "99.9 %": f"{np.quantile(late, 0.999):.1e}",
            "worst": f"{late.max():.1e}",
            "not finite": int((~np.isfinite(late)).sum()),
            "overflow": int(cp.asnumpy(made.overflow).sum()),
        }


@contextmanager
def alone() -> Iterator[None]:
    """The card is this row's: others wait before they are timed."""
    import fcntl

    with (Path(tempfile.gettempdir()) / "linkwise_contact_gpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def with_resets(robot: lw.Model, count: int) -> dict[str, Any]:
    """Steps a second of environments whose episodes end after 30 steps, or when the robot has fallen."""
    import cupy as cp

    began = time.perf_counter()
    start = np.asarray(robot.start, float)

    def reset(model: lw.Model, draws: Any) -> Any:
        q = np.array(start, dtype=object)
        q[7:] = start[7:] + draws.uniform([-0.05] * (model.nq - 7), [0.05] * (model.nq - 7))
        return q, np.zeros(model.nv)

    env = lw.gym.VectorEnv(
        robot,
        lambda now: [*now.q, *now.v],
        lambda now: now.q[6],
        lambda now: now.q[6] < 0.5 * start[6],
        dt=STEP,
        reset=reset,
        act=lambda now: [0.0] * 6 + [5.0 * x for x in now.action],
        actions=robot.nv - 6,
        num_envs=count,
        max_episode_steps=30,
        device="cuda",
    )
    env.reset(seed=1)
    actions = cp.asarray(np.random.default_rng(0).uniform(-1, 1, (4, count, robot.nv - 6)).astype(np.float32))
    env.step(actions[0])
    cp.cuda.Device().synchronize()
    first, best = time.perf_counter() - began, float("inf")
    with alone():
        for _ in range(5):
            now = time.perf_counter()
            for k in range(STEPS):
                env.step(actions[k % len(actions)])
            cp.cuda.Device().synchronize()
            best = min(best, (time.perf_counter() - now) / (STEPS * count))
    return {"states": count, "first call s": round(first, 1), "ns/step": round(1e9 * best, 3), "M steps/s": 1e-6 / best}


def main(paths: Sequence[Path]) -> None:
    """Measure, print, write."""
    rows = measure(paths)
    print(report.table(HEADER, [[str(row.get(key, "-"))[:60] for key in HEADER] for row in rows]))
    print(report.write("contact_gpu", {"rows": rows}))


if __name__ == "__main__":
    print(json.dumps(one_row(json.loads(sys.argv[1]))))
