"""Tasks: mechanisms with something to learn."""

from collections.abc import Callable
from typing import Any

from linkwise.errors import UnknownNameError
from linkwise.gym.tasks.balancing import acrobot, cart_pole
from linkwise.gym.tasks.legged import hopper, quadruped
from linkwise.gym.tasks.reaching import arm_reach, flexible_arm, reacher, stewart
from linkwise.gym.tasks.spacecraft import docking, satellite_slew
from linkwise.gym.vector_env import VectorEnv

_TASKS: dict[str, Callable[..., VectorEnv]] = {
    make.__name__: make
    for make in (
        cart_pole, acrobot, reacher, arm_reach, stewart, flexible_arm, satellite_slew, docking, hopper, quadruped,
    )
}  # fmt: skip

NAMES = tuple(_TASKS)
"""Names of all tasks."""


def task(name: str, num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of a task, by its name; options are those of :class:`~linkwise.gym.vector_env.VectorEnv`.

    Example:
        >>> import linkwise as lw
        >>> lw.gym.task("cart_pole", num_envs=8)
        <8 environments of cart_pole, next-step resets>
    """
    if name not in _TASKS:
        raise UnknownNameError("task", name, list(NAMES))
    return _TASKS[name](num_envs=num_envs, **options)
