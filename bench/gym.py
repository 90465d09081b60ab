"""Steps per second of environments for learning, on one core or on a GPU.

python -m bench.gym [task ...] [--gpu] [--envs N]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.gym.tasks import NAMES


def steps_per_second(name: str, envs: int, gpu: bool, rounds: int) -> float:
    """The best of some rounds of sixteen steps each, with random actions and resets on the way."""
    env = lw.gym.task(name, envs, device="cuda" if gpu else "cpu")
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    space = env.single_action_space
    size = () if space.shape is None else space.shape
    raw = rng.integers(0, space.n, (16, envs)) if hasattr(space, "n") else rng.uniform(-1, 1, (16, envs, *size))
    actions: Any = raw.astype(np.float32)
    if gpu:
        import cupy

        actions = cupy.asarray(actions)
    best = np.inf
    for _ in range(rounds + 2):  # the first ones compile
        begin = time.perf_counter()
        for action in actions:
            env.step(action)
        if gpu:
            cupy.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - begin)
    return len(actions) * envs / best


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    words.add_argument("tasks", nargs="*", default=["cart_pole"], help=f"of {', '.join(NAMES)}; or all")
    words.add_argument("--gpu", action="store_true")
    words.add_argument("--envs", type=int)
    chosen = words.parse_args()
    names = NAMES if chosen.tasks == ["all"] else chosen.tasks
    envs = chosen.envs or (1 << 20 if chosen.gpu else 4096)
    for name in names:
        rate = steps_per_second(name, envs, chosen.gpu, rounds=8)
        print(f"{name:15s} {envs} environments: {rate / 1e6:10.2f} million steps/s", flush=True)


if __name__ == "__main__":
    main()
