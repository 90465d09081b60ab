"""Memory over many models: built, compiled, called, dropped. It must not grow."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import numpy as np

import linkwise as lw
from campaign.mechanisms import random_recipe
from campaign.trial import Log, Trial
from tests.random_trees import random_state

ALLOWED = 100
"""Bytes that memory may grow by, for each model: a small part of the least that a model itself takes."""
_WARM_UP = 0.3
_MECHANISMS = 12


def resident() -> int:
    """Bytes of memory that this process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def one_model(number: int, seed: int) -> None:
    """A model made anew (by hand or from text), two of its functions called, and forgotten."""
    from campaign import mechanisms

    kind = number % _MECHANISMS
    recipe = random_recipe(np.random.default_rng([seed, kind]), largest=3)
    model = mechanisms._built.__wrapped__(recipe)
    q, v, _ = random_state(model, np.random.default_rng(number), (3,))
    model.gravity_force(q)
    model.kinetic_energy(q[0], v[0])
    if number % 4 == 0:
        lw.loads(_TEXT).gravity_force(np.array([0.5]))


_TEXT = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>"""


class Memory(Trial):
    """Flat memory."""

    name, unit, target, chunk = "memory", "models made, called and dropped", 10**5, 5000
    cached = True

    def unavailable(self) -> str | None:
        """Only where the process can be asked for its size."""
        return None if sys.platform == "linux" else "only Linux tells how much memory is in use"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Make models; after a while, look at the growth."""
        start, first = 0, 0
        for number in log.numbers(numbers):
            one_model(number, seed)
            if number % 50 == 0:
                gc.collect()
            if number - numbers.start == int(_WARM_UP * self.chunk):
                gc.collect()
                start, first = resident(), number
        gc.collect()
        if start and number - first >= self.chunk // 2:
            growth = (resident() - start) / (number - first)
            if growth > ALLOWED:
                log.fail(number, f"memory grows by {growth:.0f} bytes a model, over {number - first} models")

    def shrunk(self, seed: int, number: int, seconds: float) -> str:
        """Growth shows over a whole chunk only."""
        first = number // self.chunk * self.chunk
        return f"# python -m campaign memory --seed {seed} --first {first} --count {self.chunk}"
