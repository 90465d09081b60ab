"""Forks while other threads compile and compute: the child must compute, compile and end."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np

import linkwise as lw
from campaign.trial import Log, Trial
from linkwise import samples

PATIENCE = 20.0


def _new_model(mass: float) -> lw.Model:
    builder = lw.ModelBuilder("new")
    builder.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=mass, com=(0, 0, -0.5))
    return builder.build()


class _Busy:
    """Threads that compile and compute all the time."""

    def __init__(self, arrays: list[Any]) -> None:
        self.stop = False
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._compile, lambda: self._compute(arrays))
        ]
        for thread in self._threads:
            thread.start()

    def _compile(self) -> None:
        rng = np.random.default_rng()
        while not self.stop:
            _new_model(float(rng.uniform(1, 2))).gravity_force(np.array([0.1]))

    def _compute(self, arrays: list[Any]) -> None:
        model = samples.stanford_arm()
        while not self.stop:
            model.forward_dynamics(*arrays, threads=2)

    def end(self) -> None:
        """Wait for all of them."""
        self.stop = True
        for thread in self._threads:
            thread.join()


def _in_child(model: lw.Model, arrays: list[Any], right: Any, mass: float) -> int:
    """What a forked process does; its exit code."""
    if not np.array_equal(model.forward_dynamics(*arrays, threads=2), right):
        return 2
    force = _new_model(mass).gravity_force(np.array([0.3]))
    return 0 if abs(force[0] - mass * 9.81 * 0.5 * np.sin(0.3)) < 1e-10 else 3


class Forks(Trial):
    """os.fork at random moments."""

    name, unit, target, chunk = "forks", "forks while compiling and computing", 10**3, 100
    patience = 90.0

    def unavailable(self) -> str | None:
        """Only where there is fork."""
        return None if hasattr(os, "fork") else "this system does not fork"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Fork, wait, look."""
        warnings.simplefilter("ignore", DeprecationWarning)  # newer interpreters warn of any fork with threads
        model = samples.stanford_arm()
        arrays = list(np.random.default_rng(0).uniform(-1, 1, (3, 20_000, model.nv)))
        right = model.forward_dynamics(*arrays, threads=2)
        busy = _Busy(arrays)
        for number in log.numbers(numbers):
            rng = np.random.default_rng([seed, number])
            time.sleep(float(rng.uniform(0, 0.05)))
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = _in_child(model, arrays, right, float(rng.uniform(1, 2)))
                finally:
                    os._exit(code)
            end = _ended(child, PATIENCE)
            if end:
                log.fail(number, f"the forked process {end}")
        busy.end()


def _ended(child: int, seconds: float) -> str:
    """How a process ends; nothing where it ends well, in time."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if os.WIFSIGNALED(status):
                return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
            code = os.WEXITSTATUS(status)
            return f"ended with code {code}" if code else ""
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"hangs: it did not end in {seconds:.0f} s"
