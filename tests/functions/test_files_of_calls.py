"""How many files of the package a call goes through: of later calls none, and of a simulation not more than today."""

from __future__ import annotations

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
    assert len(files_of(call)) <= 36
