"""How many files of the package a call goes through: of later calls none; of first calls and simulations, so many."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.targets.llvm import layouts

PACKAGE = str(Path(lw.__file__).parent)


def files_of(call: Callable[[], Any]) -> set[str]:
    """The files of the package in which a function runs during a call."""
    seen = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            seen.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen


@pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")
def test_later_calls_run_nothing_of_the_package() -> None:
    for model in (samples.planar_arm(3), samples.four_bar(1)):
        q, v = np.array(model.start), np.zeros(model.nv)
        for _ in range(2):
            model.forward_dynamics(q, v, v)
        assert files_of(lambda: model.forward_dynamics(q, v, v)) == set()  # noqa: B023  # called at once
        assert files_of(lambda: model.mass_matrix_inverse(q)) != set()  # noqa: B023  # called at once, for the first time


def test_later_simulations_go_through_few_files() -> None:
    model = samples.planar_arm(3)

    def call() -> Any:
        return lw.simulate(model, [0.1, 0.2, 0.3], duration=0.1, dt=0.01, method="rk4")

    call()
    assert len(files_of(call)) <= 8


FIRST = """
import sys
from pathlib import Path
import numpy as np
import linkwise as lw
from linkwise import samples

package, seen, loading = str(Path(lw.__file__).parent), set(), 0

def look(frame, event, argument):
    global loading
    if frame.f_code.co_name == "<module>":
        loading += {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and not loading and frame.f_code.co_filename.startswith(package):
        seen.add(frame.f_code.co_filename)

model = samples.four_bar(1) if "%s" == "closed" else samples.planar_arm(3)
q, v = np.array(model.start), np.zeros(model.nv)
sys.setprofile(look)
if "%s" == "simulate":
    lw.simulate(model, q, duration=0.1, dt=0.01, method="rk4")
else:
    model.forward_dynamics(q, v, v)
sys.setprofile(None)
print(len(seen))
"""


@pytest.mark.parametrize(("call", "most"), [("one", 53), ("closed", 56), ("simulate", 90)])
def test_first_calls_go_through_so_many_files(call: str, most: int) -> None:
    """Those in which functions run, with nothing in a cache; what is only loaded on the way does not count."""
    text, alone = FIRST.replace("%s", call), {**os.environ, "LINKWISE_CACHE": "off"}
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=alone)
    assert int(ran.stdout) <= most
