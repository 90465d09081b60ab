"""Environments for Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.errors import InputError, require_extra
from linkwise.gym.vector_env import VectorEnv


def as_sb3(env: VectorEnv) -> Any:
    """Environments as a ``VecEnv`` of Stable-Baselines3, which steps and resets all of them by one call.

    Args:
        env: with ``autoreset_mode="same_step"``, on the processor.

    Example:
        >>> env = lw.gym.as_sb3(lw.gym.task("cart_pole", 16, autoreset_mode="same_step"))  # doctest: +SKIP
        >>> stable_baselines3.PPO("MlpPolicy", env).learn(100_000)  # doctest: +SKIP
    """
    if not isinstance(env, VectorEnv):
        raise InputError("these are not environments of linkwise", got=type(env).__name__, allowed="lw.gym.VectorEnv")
    if env.mode != "same_step":
        raise InputError(
            "Stable-Baselines3 expects resets within the step that ends an episode",
            got=f"autoreset_mode={env.mode!r}",
            do='make the environments with autoreset_mode="same_step"',
        )
    base: Any = require_extra("stable_baselines3.common.vec_env", "sb3").VecEnv

    def reset(self: Any) -> Any:
        seed = next((s for s in self._seeds if s is not None), None)
        observations, _ = env.reset(seed=seed)
        self._reset_seeds()
        self._reset_options()
        self.returns, self.lengths = np.zeros(env.num_envs), np.zeros(env.num_envs, int)
        return observations

    def step_async(self: Any, actions: Any) -> None:
        self.actions = actions

    def step_wait(self: Any) -> Any:
        observations, rewards, terminated, truncated, info = env.step(self.actions)
        ended = terminated | truncated
        self.returns += rewards
        self.lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(env.num_envs)]
        for k in np.flatnonzero(ended):
            infos[k] = {
                "terminal_observation": info["final_obs"][k],
                "TimeLimit.truncated": bool(truncated[k] and not terminated[k]),
                "episode": {"r": float(self.returns[k]), "l": int(self.lengths[k]), "t": 0.0},
            }
        self.returns[ended], self.lengths[ended] = 0.0, 0
        return observations, rewards, ended, infos

    def get_attr(self: Any, name: str, indices: Any = None) -> list[Any]:
        return [getattr(env, name)] * len(self._get_indices(indices))

    def set_attr(self: Any, name: str, value: Any, indices: Any = None) -> None:
        setattr(env, name, value)

    def env_method(self: Any, name: str, *arguments: Any, indices: Any = None, **named: Any) -> list[Any]:
        return [getattr(env, name)(*arguments, **named)] * len(self._get_indices(indices))

    def env_is_wrapped(self: Any, kind: Any, indices: Any = None) -> list[bool]:
        return [False] * len(self._get_indices(indices))

    methods = (reset, step_async, step_wait, get_attr, set_attr, env_method, env_is_wrapped)
    own = {method.__name__: method for method in methods} | {"close": lambda self: env.close(), "render_mode": None}
    kind = type("LinkwiseVecEnv", (base,), own)
    return kind(env.num_envs, env.single_observation_space, env.single_action_space)
