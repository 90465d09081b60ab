"""The learning curve and a film of what ppo.py has learned. Extras: gym, viz.

python examples/learning/film.py quadruped folder
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw


def policy(numbers: Any, seen: np.ndarray) -> np.ndarray:
    """Mean actions of the network that was saved."""
    x = np.clip((seen - numbers["middle"]) / np.sqrt(numbers["variance"] + 1e-5), -8.0, 8.0)
    for layer in (0, 2, 4):
        x = x @ numbers[f"mean.{layer}.weight"].T + numbers[f"mean.{layer}.bias"]
        x = np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))
    return np.clip(x @ numbers["mean.6.weight"].T + numbers["mean.6.bias"], -1.0, 1.0)


def motion(task: str, numbers: Any, seconds: float, seed: int) -> lw.Trajectory:
    """One environment on its way."""
    env = lw.gym.task(task, 1, autoreset_mode="disabled", max_episode_steps=None)
    seen, _ = env.reset(seed=seed)
    way = [env.state["q"][0].astype(float)]
    for _ in range(round(seconds / env.rules.dt)):
        seen, *_ = env.step(policy(numbers, seen))
        way.append(env.state["q"][0].astype(float))
    return lw.Trajectory(env.rules.dt * np.arange(len(way)), np.array(way), model=env.model)


def main() -> None:
    task, folder = sys.argv[1], Path(sys.argv[2])
    curve = json.loads((folder / f"{task}.json").read_text())
    figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
    axes.plot([row["seconds"] for row in curve], [row["reward"] for row in curve])
    axes.set(xlabel="time of learning [s]", ylabel="reward of a step", ylim=(0, 1))
    rate = curve[-1]["steps"] / curve[-1]["seconds"] / 1e6
    above = axes.secondary_xaxis("top", functions=(lambda s: s * rate, lambda n: n / rate))
    above.set_xlabel("million steps")
    figure.savefig(folder / f"{task}_curve.png", dpi=110)
    numbers = dict(np.load(folder / f"{task}.npz"))
    made = motion(task, numbers, 6.0, seed=3)
    made.save_video(folder / f"{task}.gif", size=(360, 240), fps=20, follow=True)
    print(f"{folder / task}_curve.png, {folder / task}.gif")


if __name__ == "__main__":
    main()
