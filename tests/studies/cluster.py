"""A real Dask cluster on this machine whose processes can be killed: a scheduler, and workers kept alive by nannies."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil


class Cluster:
    """Processes of `dask scheduler` and `dask worker`, started in a folder, ended when left."""

    def __init__(self, folder, workers):
        self.folder, self.workers = Path(folder), workers

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "scheduler.json"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": (self.folder / "log.txt").open("w")}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
        environment["DASK_LOGGING__DISTRIBUTED"] = "error"
        dask = [sys.executable, "-m", "dask"]
        where = ["--host", "127.0.0.1", "--no-dashboard"]
        self.scheduler = subprocess.Popen(
            [*dask, "scheduler", *where, "--port", "0", "--scheduler-file", str(self.file)], env=environment, **quiet
        )
        while not self.file.exists() or not self.file.read_text():
            assert self.scheduler.poll() is None
            time.sleep(0.02)
        self.address = json.loads(self.file.read_text())["address"]
        how = ["--nworkers", str(self.workers), "--nthreads", "1", "--memory-limit", "0"]
        self.nanny = subprocess.Popen(
            [*dask, "worker", self.address, *where, *how, "--local-directory", str(self.folder)],
            env=environment,
            **quiet,
        )
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """All processes, at once."""
        found = []
        for process in (self.nanny, self.scheduler):
            if process.poll() is None:
                found += [*psutil.Process(process.pid).children(recursive=True), process]
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.nanny.wait()
        self.scheduler.wait()

    def worker_pids(self):
        """The processes that do the work; they come back when they are killed."""
        found = []
        for child in psutil.Process(self.nanny.pid).children(recursive=True):
            try:
                if any("spawn_main" in word for word in child.cmdline()):
                    found.append(child.pid)
            except psutil.Error:
                continue
        return found

    def kill_scheduler(self):
        os.kill(self.scheduler.pid, signal.SIGKILL)


class Killer:
    """Kills workers at random moments of a run, told of its progress: call it with the fraction done.

    It acts at once, before the run goes on, so that what is to happen happens however fast the machine is.
    """

    def __init__(self, cluster, kills, seed, scheduler_at=None):
        self.cluster, self.rng = cluster, random.Random(seed)
        self.moments = sorted(self.rng.uniform(0.02, 0.95) for _ in range(kills))
        self.scheduler_at = scheduler_at
        self.kills = 0
        self.scheduler_killed = False

    def __call__(self, fraction):
        while self.kills < len(self.moments) and fraction >= self.moments[self.kills]:
            pids = self.cluster.worker_pids()
            if not pids:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(pids), signal.SIGKILL)
                self.kills += 1
        if self.scheduler_at is not None and fraction >= self.scheduler_at and not self.scheduler_killed:
            self.cluster.kill_scheduler()
            self.scheduler_killed = True
