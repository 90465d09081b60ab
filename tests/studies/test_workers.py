"""Processes of `workers=`: scripts that they cannot import, parents that are killed, studies that nobody survives."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.studies import running
from linkwise.studies.workers import ThisProcess

psutil = pytest.importorskip("psutil")

SCRIPT = """
import os, pathlib, time
import numpy as np
import linkwise as lw
from linkwise import samples

def slow(batch):
    if len(batch.inputs["x"]) == 1 and os.environ.get("PARENT") != str(os.getpid()):
        pathlib.Path(__file__).with_name(f"{os.getpid()}.busy").touch()
        time.sleep(600.0)
    return {"y": batch.inputs["x"][:, 0]}

os.environ.setdefault("PARENT", str(os.getpid()))
"""
UNGUARDED = """
found = lw.ensemble(samples.planar_arm(), {"x": np.arange(40.0)}, run=slow, batch=8, workers=2)
print(found.counts)
"""


def guarded(batch):
    call = f'lw.ensemble(samples.planar_arm(), {{"x": np.arange(4.0)}}, run=slow, batch={batch}, workers=2)'
    return f'\nif __name__ == "__main__":\n    print({call}.counts, flush=True)\n'


def started(path, text, **how):
    path.write_text(SCRIPT + text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    environment.pop("PARENT", None)
    return subprocess.Popen([sys.executable, str(path)], env=environment, text=True, **how)


def test_a_script_without_a_guard_is_told_what_to_write(tmp_path):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(tmp_path / "study.py", UNGUARDED, **pipes) as process:
        out, err = process.communicate()
    assert process.returncode == 1
    assert out == ""
    # Each worker says it of itself, and the process that the user started last.
    assert "is called again by a worker process" in err
    last = err.rpartition("WorkerError: ")[2]
    assert "end before they begin" in last
    assert 'if __name__ == "__main__":' in last
    with started(tmp_path / "study.py", guarded(2), **pipes) as process:
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "{'done': 4}\n", "")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    with started(tmp_path / "study.py", guarded(1)) as process:
        busy = []
        while len(busy) < 2:
            assert process.poll() is None
            time.sleep(0.05)
            busy = list(tmp_path.glob("*.busy"))
        workers = [psutil.Process(int(path.stem)) for path in busy]
        assert {worker.ppid() for worker in workers} == {process.pid}
        os.kill(process.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs(workers, timeout=60.0)
    for worker in alive:
        worker.kill()
    assert len(gone) == 2


class Fatal(ThisProcess):
    """Every process dies."""

    def next(self):
        return super().next()[0], None


def test_where_nobody_survives_there_are_no_results(monkeypatch, tmp_path):
    monkeypatch.setattr(running, "Pool", lambda study, workers: Fatal(study, 1))
    given = {"inputs": {"x": np.arange(6.0)}, "run": lambda batch: {"y": batch.inputs["x"][:, 0]}, "batch": 3}
    for where in ({}, {"store": tmp_path / "store"}):
        with pytest.raises(lw.studies.WorkerError, match=r"no member[\s\S]*6 died; member 0: the process that ran it"):
            lw.ensemble(samples.planar_arm(), **given, workers=2, **where)


def never(trajectory):
    return np.full(len(trajectory.q), np.nan)


def test_a_search_without_a_cost_is_an_error():
    found = {"method": "rk4", "dt": 0.01, "duration": 0.05, "strategy": "random", "rounds": 2, "population": 3}
    with pytest.raises(lw.errors.InputError, match="no candidate of the search has a cost"):
        lw.studies.search(samples.planar_arm(), {"gain": (0.0, 1.0)}, never, **found)
