"""Tasks: mechanisms with something to learn, one a file.

They are in Gymnasium's registry, too: ``gymnasium.make_vec("linkwise.gym:linkwise/CartPole-v0", num_envs=…)``.
"""

from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import gymnasium

from linkwise.errors import UnknownNameError
from linkwise.gym.vector_env import Env, VectorEnv

NAMES = (
    "cart_pole",
    "acrobot",
    "reacher",
    "arm_reach",
    "stewart",
    "flexible_arm",
    "satellite_slew",
    "docking",
    "hopper",
    "quadruped",
)
"""Names of all tasks: each is a file here, with a function of that name: environments but for what the caller adds."""


def task(name: str, num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of a task, by its name.

    Args:
        name: one of ``linkwise.gym.tasks.NAMES``.
        num_envs: number of environments.
        options: of the task, such as the ``model`` and ``tool`` of ``"arm_reach"``, and any of
            :class:`~linkwise.gym.vector_env.VectorEnv`, which then replace those of the task.

    Example:
        >>> import linkwise as lw
        >>> lw.gym.task("cart_pole", num_envs=8)
        <8 environments of cart_pole, next-step resets>
    """
    if name not in NAMES:
        raise UnknownNameError("task", name, list(NAMES))
    make = getattr(import_module(f"linkwise.gym.tasks.{name}"), name)
    own = {key: options.pop(key) for key in signature(make).parameters if key in options}
    environments: partial[VectorEnv] = make(**own)
    return environments(**options, num_envs=num_envs)


def registered_name(name: str) -> str:
    """Name of a task in the registry: ``cart_pole`` is ``linkwise/CartPole-v0``."""
    return f"linkwise/{name.title().replace('_', '')}-v0"


def register() -> None:
    """Enter all tasks; importing ``linkwise.gym`` has done so."""
    for name in NAMES:
        if registered_name(name) not in gymnasium.registry:
            gymnasium.register(
                registered_name(name),
                entry_point="linkwise.gym.tasks:single",
                vector_entry_point="linkwise.gym.tasks:vector",
                kwargs={"name": name},
            )


def vector(num_envs: int, name: str, **options: Any) -> VectorEnv:
    """Environments of a task."""
    return task(name, num_envs, **options)


def single(name: str, **options: Any) -> Env:
    """One environment of a task."""
    return Env(task(name, 1, autoreset_mode="disabled", **options))
