"""Calls on a GPU under NVIDIA's compute-sanitizer: no access outside the arrays, none uninitialised."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np

from campaign.mechanisms import random_recipe
from campaign.trial import Log, Trial
from linkwise.targets import target
from linkwise.trace.interpreter import interpret
from tests.random_trees import random_state

TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")


@cache
def _sanitizer() -> str | None:
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")


def on_device(seed: int, number: int) -> None:
    """What runs under the sanitizer: one mechanism, a few functions, batches of awkward sizes.

    Results are compared with the definition of the operations, state by state, so nothing is compiled for the CPU.
    """
    import cupy

    rng = np.random.default_rng([seed, number])
    recipe = replace(random_recipe(rng, largest=3), parameters=(), sweeps="unrolled", decades=0.0)
    model = recipe.build()
    for name, take in (("inverse_dynamics", 3), ("forward_dynamics", 3), ("mass_matrix", 1)):
        program = model.function(name).program
        for count in (1, 31, 33, 257):
            arrays = random_state(model, rng, (count,))[:take]
            got = cupy.asnumpy(getattr(model, name)(*(cupy.asarray(x) for x in arrays))).reshape(count, -1)
            for k in {0, count // 2, count - 1}:
                (right,) = interpret(program, [x[k].tolist() for x in arrays])
                error = np.abs(got[k] - right).max(initial=0.0) / (np.abs(right).max(initial=0.0) + 1e-3)
                assert error < 1e-9, f"{name}: {error:.1e}"


class Device(Trial):
    """compute-sanitizer; one trial is one mechanism under one tool."""

    name, unit, target, chunk = "device", "mechanisms on a GPU under compute-sanitizer", 100, 4
    share, patience = 0.7, 600.0

    def unavailable(self) -> str | None:
        """Needs a GPU, CuPy and the sanitizer."""
        if not target("cuda").available():
            return "there is no CUDA device here"
        return None if _sanitizer() else "compute-sanitizer is not installed"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """One process for each."""
        for number in log.numbers(numbers):
            tool = TOOLS[number % len(TOOLS)]
            code = f"from campaign.trials.device import on_device; on_device({seed}, {number})"
            command = [str(_sanitizer()), "--tool", tool, "--error-exitcode", "9", sys.executable, "-c", code]
            ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
            if ran.returncode:
                log.fail(number, f"{tool}: {(ran.stdout + ran.stderr)[-2500:]}")
