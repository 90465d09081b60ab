"""How long a program waits before its first result, in processes of their own: ``python -m bench.startup``.

Every row is a first call: a fresh process with an empty cache imports linkwise, makes its model and its states, and
then makes one call. Counted are the seconds of that call by the clock, those that its thread worked (on a machine with
neighbours the steadier number), the most memory that the process held by then, the most until the optimised code was
there too, and what it holds at rest. ``--rows`` chooses rows by parts of
their names, ``--rounds`` takes the best of several. For the Panda there are the steps of a whole process besides, with
an empty cache and with a filled one.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import report
from bench.robots import ROBOTS

if TYPE_CHECKING:
    import linkwise as lw

ROOT = Path(__file__).parent.parent
BYTE_CODE = Path(tempfile.gettempdir()) / "linkwise-bench-byte-code"

Run = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """A first call.

    Args:
        name: of the row.
        prepare: run in the fresh process; what it returns is the call.
        asked: seconds that it may take.
    """

    name: str
    prepare: Callable[[], Run]
    asked: float


def _g1() -> lw.Model:
    """The G1 of the wheel `example-robot-data`: 29 joints on a free base."""
    import linkwise as lw

    return lw.load(ROBOTS["g1"].path, floating=True)


def _mixed_tree() -> lw.Model:
    """A tree of 20 bodies with ball joints, free joints and hinges, in turn: 69 freedoms."""
    import numpy as np

    import linkwise as lw

    rng = np.random.default_rng(0)
    builder = lw.ModelBuilder("tree")
    for i in range(20):
        joint = (lw.Free(), lw.Spherical(), lw.Revolute(rng.normal(size=3)))[i % 3]
        builder.add_body(
            f"link{i}",
            f"link{max(0, i - int(rng.geometric(0.4)))}" if i else "world",
            joint,
            placement=lw.transform(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            mass=1.0 + rng.random(),
            com=rng.normal(size=3) * 0.1,
            inertia=np.diag((0.1, 0.12, 0.05)),
        )
    return builder.build()


def _chain(n: int) -> lw.Model:
    from bench.scale import mechanism

    return mechanism(n, branched=False)


def _stewart() -> lw.Model:
    from linkwise import samples

    return samples.stewart_platform()


def _four_bars() -> lw.Model:
    from linkwise import samples

    return samples.four_bar(40)


def _of(make: Callable[[], lw.Model], name: str, **options: Any) -> Callable[[], Run]:
    """A function of a model of which the other inputs are as many numbers as there are freedoms."""

    def prepare() -> Run:
        import inspect

        import numpy as np

        model = make()
        function = getattr(model, name)
        taken = [n for n in inspect.signature(function).parameters if n in ("q", "v", "vdot", "tau")]
        values = {n: model.neutral() if n == "q" else np.full(model.nv, 0.1) for n in taken}
        return partial(function, *(values[n] for n in taken), **options)

    return prepare


def _simulated(make: Callable[[], lw.Model], method: str, **options: Any) -> Callable[[], Run]:
    def prepare() -> Run:
        import numpy as np

        import linkwise as lw

        model = make()
        q = model.assemble(model.neutral()) if model.closures else model.neutral()
        return partial(lw.simulate, model, q, np.zeros(model.nv), duration=0.01, method=method, **options)

    return prepare


def _written_out_loop() -> Run:
    """A pendulum's 20 000 steps of Euler's, written out by a loop of Python's."""
    import linkwise as lw
    from linkwise import samples

    model = samples.planar_arm(2)

    def steps(_: Any, x: Any, v: Any) -> Any:
        for _step in range(20_000):
            x, v = x + 1e-4 * v, v - 1e-4 * lw.math.sin(x)
        return x

    return lambda: lw.compile(steps, model, {"x": "scalar", "v": "scalar"})(0.1, 0.0)


def _loop() -> Run:
    """The same as a loop of the program's."""
    import linkwise as lw
    from linkwise import samples

    model = samples.planar_arm(2)

    def steps(_: Any, x: Any, v: Any) -> Any:
        return lw.loop(20_000, lambda _, y: (y[0] + 1e-4 * y[1], y[1] - 1e-4 * lw.math.sin(y[0])), (x, v))[0]

    return lambda: lw.compile(steps, model, {"x": "scalar", "v": "scalar"})(0.1, 0.0)


def _from_arrays(n: int) -> Run:
    import numpy as np

    from bench.scale import from_arrays

    def run() -> Any:
        model = from_arrays(n, branched=False)
        return model.inverse_dynamics(model.neutral(), np.zeros(n), np.zeros(n))

    return run


def _load() -> Run:
    import numpy  # noqa: F401 - everybody has it

    import linkwise as lw

    return lambda: lw.load(ROBOTS["g1"].path, floating=True)


ROWS = (
    Row("load of a URDF, G1", _load, 0.06),
    Row("G1 inverse_dynamics", _of(_g1, "inverse_dynamics"), 0.3),
    Row("G1 forward_dynamics", _of(_g1, "forward_dynamics"), 0.3),
    Row("G1 mass_matrix", _of(_g1, "mass_matrix"), 0.3),
    Row("G1 mass_matrix_inverse", _of(_g1, "mass_matrix_inverse"), 0.5),
    Row("G1 coriolis_matrix", _of(_g1, "coriolis_matrix"), 0.5),
    Row("G1 regressor", _of(_g1, "regressor"), 1.0),
    Row("G1 linearize_inverse", _of(_g1, "linearize_inverse"), 1.0),
    Row("G1 linearize_forward", _of(_g1, "linearize_forward"), 1.5),
    Row("G1 linearize_inverse, order 2", _of(_g1, "linearize_inverse", order=2), 3.0),
    Row("G1 linearize_forward, order 2", _of(_g1, "linearize_forward", order=2), 3.0),
    Row("chain of 40 linearize_forward, order 2", _of(partial(_chain, 40), "linearize_forward", order=2), 3.0),
    Row("G1 rodas4", _simulated(_g1, "rodas4"), 3.0),
    Row("G1 generalized_alpha", _simulated(_g1, "generalized_alpha", dt=1e-3), 3.0),
    Row("Stewart rodas4", _simulated(_stewart, "rodas4"), 3.0),
    Row("tree of 20 with balls linearize_forward", _of(_mixed_tree, "linearize_forward"), 3.0),
    Row("40 four-bars assemble", _of(_four_bars, "assemble"), 1.0),
    Row("40 four-bars simulate", _simulated(_four_bars, "dop853"), 3.0),
    Row("40 four-bars linearize_forward", _of(_four_bars, "linearize_forward"), 3.0),
    Row("20 000 passes written out", _written_out_loop, 5.0),
    Row("20 000 passes in lw.loop", _loop, 0.3),
    Row("chain of 100 000 from arrays", partial(_from_arrays, 100_000), 1.5),
    Row("chain of 1 000 000 from arrays", partial(_from_arrays, 1_000_000), 20.0),  # 4 GB: only if it is named
)


def first_call(row: Row) -> dict[str, float]:
    """Seconds and megabytes of a row, in this process, which must be fresh."""
    call = row.prepare()
    wall, worked = time.perf_counter(), time.thread_time()
    call()
    wall, worked = time.perf_counter() - wall, time.thread_time() - worked
    found = {"wall": wall, "cpu": worked, "MB": _most_megabytes()}
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()  # the one that optimises
    gc.collect()
    return found | {"MB, optimised": _most_megabytes(), "MB at rest": _megabytes_held()}


def _most_megabytes() -> float:
    """The most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _megabytes_held() -> float:
    """Memory that this process holds now, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


def first_calls(rows: Sequence[Row], rounds: int = 1) -> list[dict[str, Any]]:
    """Each row in a process of its own with an empty cache; the best of some rounds, which take turns."""
    found: list[dict[str, Any]] = [{"name": row.name, "asked": row.asked} for row in rows]
    for _ in range(rounds):
        for row, best in zip(rows, found, strict=True):
            with tempfile.TemporaryDirectory() as cache:
                one = _in_a_process(["--row", row.name], cache)
            best |= {key: min(value, best.get(key, value)) for key, value in one.items()}
    return found


def first_results(robot: str) -> dict[str, float]:
    """Seconds for each step up to the first results, in this process, which must be fresh."""
    seconds = {}
    last = time.perf_counter()

    def lap(step: str) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds[step], last = now - last, now

    import numpy as np

    lap("import numpy")
    import linkwise as lw

    lap("import linkwise")
    model = lw.load(ROBOTS[robot].path, locked=list(ROBOTS[robot].locked))
    lap("load")
    q, v = model.neutral(), np.zeros(model.nv)
    model.inverse_dynamics(q, v, v)
    lap("inverse_dynamics")
    model.forward_dynamics(q, v, v)
    lap("forward_dynamics")
    model.mass_matrix(q)
    lap("mass_matrix")
    return seconds


def cold_and_warm(robot: str, warm_runs: int = 3) -> dict[str, dict[str, float]]:
    """The same with an empty cache, and with the one it leaves; for the latter, the best of some runs for each step."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _in_a_process(["--robot", robot], cache)
        runs = [_in_a_process(["--robot", robot], cache) for _ in range(warm_runs)]
    return {"cold": cold, "warm": {step: min(run[step] for run in runs) for step in cold}}


def _in_a_process(arguments: Sequence[str], cache: str) -> dict[str, float]:
    environment = {**os.environ, "LINKWISE_CACHE_DIR": cache, "LINKWISE_TIER": "both"}
    # Python's own byte code is there, as it is for a package that was installed.
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(BYTE_CODE)}
    command = [sys.executable, "-m", "bench.startup", *arguments]
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    whole = time.perf_counter() - begin
    return {**json.loads(done.stdout), "whole process": whole}


def main(argv: Sequence[str] | None = None) -> None:
    """The first calls, and the steps of a whole process."""
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description=__doc__)
    parser.add_argument("--rows", nargs="+", default=[""], help="parts of the names of the rows to measure")
    parser.add_argument("--rounds", type=int, default=1, help="processes for each row, of which the best counts")
    parser.add_argument("--row", help="be the process of this row")
    parser.add_argument("--robot", choices=list(ROBOTS), help="be the process that makes this robot's first results")
    arguments = parser.parse_args(argv)
    if arguments.row or arguments.robot:
        row = next((row for row in ROWS if row.name == arguments.row), None)
        print(json.dumps(first_call(row) if row else first_results(arguments.robot)))
        return
    chosen = [row for row in ROWS[:-1] if any(part in row.name for part in arguments.rows)]
    chosen += [row for row in ROWS[-1:] if row.name in arguments.rows]
    for row in chosen:  # each at once: some take minutes
        (found,) = first_calls([row], arguments.rounds)
        memory = ", ".join(f"{found[key]:.0f} {key}" for key in found if "MB" in key)
        numbers = f"{found['wall']:7.3f} s, worked {found['cpu']:7.3f} s, {memory}"
        print(f"{row.name:42} {numbers}; asked {row.asked:g} s", flush=True)
    if arguments.rows == [""]:
        times = cold_and_warm("panda")
        steps = [[step, *(1e3 * times[kind][step] for kind in ("cold", "warm"))] for step in times["cold"]]
        print("\nPanda, a fresh process; milliseconds")
        print(report.table(["", "empty cache", "filled cache"], steps))


if __name__ == "__main__":
    main()
