"""Learning itself, in small: rewards become better, and the policies that are saved can be played."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("gymnasium", reason="needs the extra gym")

FOLDER = Path(__file__).parents[2] / "examples" / "learning"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _alone() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.mark.slow
def test_a_reacher_comes_nearer() -> None:
    ppo = example("ppo")
    env = lw.gym.task("reacher", 64, autoreset_mode="same_step")
    rewards = [row["reward"] for row in ppo.learn(env, ppo.Agent(10, 2), 600.0, 100_000)]
    assert np.mean(rewards[-5:]) > 0.85 * np.mean(rewards[:5])  # both below zero


def test_a_policy_that_was_saved_is_played() -> None:
    ppo, film = example("ppo"), example("film")
    env = lw.gym.task("reacher", 16, autoreset_mode="same_step")
    agent = ppo.Agent(10, 2)
    (row,) = ppo.learn(env, agent, 60.0, 100)
    assert row["steps"] == 24 * 16 and -0.5 < row["reward"] < 0.0
    numbers = {name: x.detach().numpy() for name, x in agent.state_dict().items()}
    seen, _ = env.reset(seed=2)
    with torch.no_grad():
        mean = agent.policy(torch.as_tensor(seen)).mean.clamp(-1, 1)
    np.testing.assert_allclose(film.policy(numbers, seen), mean, atol=1e-5)
    assert film.motion("reacher", numbers, 0.2, seed=1).q.shape == (11, 2)
