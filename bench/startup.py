"""How long a program waits before its first result, in processes of their own: ``python -m bench.startup``.

With the name of a robot, ``python -m bench.startup panda``, it is such a process: it imports linkwise, loads the robot,
makes the first call of each quantity, and prints the seconds as JSON. The first call traces and compiles, unless an
earlier process left the compiled code in the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.robots import ROBOTS

ROOT = Path(__file__).parent.parent


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
        cold = _in_a_process(robot, cache)
        runs = [_in_a_process(robot, cache) for _ in range(warm_runs)]
    return {"cold": cold, "warm": {step: min(run[step] for run in runs) for step in cold}}


def _in_a_process(robot: str, cache: str) -> dict[str, float]:
    environment = {**os.environ, "LINKWISE_CACHE_DIR": cache}
    command = [sys.executable, "-m", "bench.startup", robot]
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    whole = time.perf_counter() - begin
    return {**json.loads(done.stdout), "whole process": whole}


def main() -> None:
    """The seconds of each step, with an empty cache and with a filled one."""
    times = cold_and_warm("panda")
    for step, cold in times["cold"].items():
        print(
            f"{step:20} {1e3 * cold:8.1f} ms with an empty cache, {1e3 * times['warm'][step]:6.1f} ms with a filled one"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(first_results(sys.argv[1])))
    else:
        main()
