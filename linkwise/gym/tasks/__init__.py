"""Tasks: mechanisms with something to learn, one a file."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from linkwise.errors import UnknownNameError

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
"""Names of all tasks: each is a file here, and in it a function of that name."""


def task(name: str, num_envs: int = 1, **options: Any) -> Any:
    """Environments of a task, by its name; options are those of :class:`~linkwise.gym.vector_env.VectorEnv`.

    Example:
        >>> import linkwise as lw
        >>> lw.gym.task("cart_pole", num_envs=8)
        <8 environments of cart_pole, next-step resets>
    """
    if name not in NAMES:
        raise UnknownNameError("task", name, list(NAMES))
    make: Callable[..., Any] = getattr(import_module(f"linkwise.gym.tasks.{name}"), name)
    return make(num_envs=num_envs, **options)
