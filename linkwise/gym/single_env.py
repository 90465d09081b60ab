"""One environment, for what knows no vectors."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from linkwise.errors import InputError
from linkwise.gym.vector_env import VectorEnv


class Env(gymnasium.Env[Any, Any]):
    """One environment, of a vector of one that does not reset by itself.

    Args:
        vector: made with ``num_envs=1`` and ``autoreset_mode="disabled"``, on the processor.
    """

    def __init__(self, vector: VectorEnv) -> None:
        if vector.num_envs != 1 or vector.mode != "disabled":
            raise InputError(
                "one environment needs a vector of one that does not reset by itself",
                got=repr(vector),
                do='num_envs=1, autoreset_mode="disabled"',
            )
        self.vector, self.metadata = vector, {"render_modes": []}
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: its first observation."""
        super().reset(seed=seed)
        observations, info = self.vector.reset(seed=seed)
        if seed is not None:
            self.np_random = self.vector.np_random
            self._np_random_seed = seed
        return observations[0], info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step: observation, reward, terminated, truncated, info."""
        found = self.vector.step(np.asarray(action)[None])
        observations, rewards, terminated, truncated, info = found
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info
