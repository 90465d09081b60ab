"""The tasks in Gymnasium's registry: ``gymnasium.make_vec("linkwise.gym:linkwise/CartPole-v0", num_envs=…)``."""

from __future__ import annotations

from typing import Any

import gymnasium

from linkwise.gym.tasks import NAMES, task
from linkwise.gym.vector_env import Env, VectorEnv


def registered_name(name: str) -> str:
    """Name of a task in the registry: ``cart_pole`` is ``linkwise/CartPole-v0``."""
    return f"linkwise/{name.title().replace('_', '')}-v0"


def register() -> None:
    """Enter all tasks; importing ``linkwise.gym`` has done so."""
    for name in NAMES:
        if registered_name(name) not in gymnasium.registry:
            gymnasium.register(
                registered_name(name),
                entry_point="linkwise.gym.registration:single",
                vector_entry_point="linkwise.gym.registration:vector",
                kwargs={"name": name},
            )


def vector(num_envs: int, name: str, **options: Any) -> VectorEnv:
    """Environments of a task."""
    return task(name, num_envs, **options)


def single(name: str, **options: Any) -> Env:
    """One environment of a task."""
    return Env(task(name, 1, autoreset_mode="disabled", **options))
