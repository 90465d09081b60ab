"""Tasks: mechanisms with something to learn, one a file."""

from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from linkwise.errors import UnknownNameError
from linkwise.gym.vector_env import VectorEnv

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
