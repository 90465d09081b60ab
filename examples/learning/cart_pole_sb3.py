"""The cart-pole learned by Stable-Baselines3 from three seeds, each judged by a hundred new episodes. Extras: gym, sb3.

python examples/learning/cart_pole_sb3.py
"""

from __future__ import annotations

import time

import numpy as np
import torch
from stable_baselines3 import PPO

import linkwise as lw

STEPS, ENVS = 200_000, 8


def judged(model: PPO, episodes: int = 100) -> float:
    """Mean return of the policy without chance, 500 at most."""
    env = lw.gym.task("cart_pole", episodes, autoreset_mode="disabled")
    seen, _ = env.reset(seed=1234)
    returns, going = np.zeros(episodes), np.ones(episodes, bool)
    while going.any():
        action, _ = model.predict(seen, deterministic=True)
        seen, rewards, terminated, truncated, _ = env.step(action)
        returns += np.where(going, rewards, 0.0)
        going &= ~(terminated | truncated)
    return float(returns.mean())


def learned(seed: int, steps: int = STEPS) -> PPO:
    """A policy after so many steps."""
    env = lw.gym.as_sb3(lw.gym.task("cart_pole", ENVS, autoreset_mode="same_step"))
    model = PPO(
        "MlpPolicy",
        env,
        seed=seed,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gae_lambda=0.8,
        gamma=0.98,
        learning_rate=lambda left: 1e-3 * left,
        clip_range=lambda left: 0.2 * left,
        ent_coef=0.0,
        device="cpu",
    )
    return model.learn(steps)


def main() -> None:
    torch.set_num_threads(1)
    for seed in range(3):
        begin = time.perf_counter()
        model = learned(seed)
        print(
            f"seed {seed}: return {judged(model):.1f} after {STEPS} steps, {time.perf_counter() - begin:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
