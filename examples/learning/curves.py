"""Learning curves of some tasks that ppo.py has learned, in one picture. Extra: viz.

python examples/learning/curves.py folder reacher stewart docking
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np


def main() -> None:
    folder, tasks = Path(sys.argv[1]), sys.argv[2:]
    figure, axes = plt.subplots(-(-len(tasks) // 4), 4, figsize=(9, 3.8), layout="constrained", squeeze=False)
    for place, task in zip(axes.flat, tasks, strict=False):
        curve = json.loads((folder / f"{task}.json").read_text())
        reward, wide = np.array([row["reward"] for row in curve]), max(1, len(curve) // 60)
        steps = [row["steps"] / 1e6 for row in curve[wide - 1 :]]
        place.plot(steps, np.convolve(reward, np.ones(wide) / wide, "valid"))
        place.set_title(task, fontsize=9)
        place.tick_params(labelsize=7)
    for place in axes.flat[len(tasks) :]:
        place.axis("off")
    figure.supxlabel("million steps", fontsize=9)
    figure.supylabel("reward of a step", fontsize=9)
    figure.savefig(folder / "learning_curves.png", dpi=100)


if __name__ == "__main__":
    main()
