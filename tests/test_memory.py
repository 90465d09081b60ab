"""What a model keeps: the entries used last, whichever threads ask."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.memoized import Memory


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns a thousand times more often than usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


def test_those_used_last_stay() -> None:
    memory, made = Memory(), []

    def ask(key: str) -> str:
        return memory.recent("things", key, lambda: made.append(key) or key.upper(), most=2)  # type: ignore[func-returns-value]

    assert [ask(key) for key in "abacab"] == list("ABACAB")
    assert made == list("abcb")
    assert set(memory.table("things")) == {"a", "b"}


@pytest.mark.usefixtures("hurried")
def test_any_number_of_threads() -> None:
    memory = Memory()

    def ask(seed: int) -> bool:
        keys = np.random.default_rng(seed).integers(0, 6, 3000).tolist()
        return all(memory.recent("things", key, lambda key=key: -key, most=3) == -key for key in keys)  # type: ignore[misc]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
    assert len(memory.table("things")) <= 3


@pytest.mark.usefixtures("hurried")
def test_simulations_of_one_model_from_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a control of its own, so that plans push each other out."""
    monkeypatch.setattr("linkwise.sim.plans._KEPT", 2)
    model = samples.planar_arm(n=1)

    def run(k: int) -> float:
        force = 0.1 * (k % 4)
        motion = lw.simulate(model, [0.0], [0.0], 0.01, dt=1e-3, method="euler", control=lambda t, q, v, p: [force])
        return float(motion.v[-1, 0])

    alone = [run(k) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, range(16)))
    assert together == alone * 4
