"""Learning: environments of Gymnasium that one compiled function steps and resets, and ten tasks."""

from linkwise.errors import require_extra

require_extra("gymnasium", "gym")  # what follows is made of its classes

from linkwise.gym.environment_step import Draws, Moment
from linkwise.gym.sb3 import as_sb3
from linkwise.gym.tasks import register, task
from linkwise.gym.vector_env import Env, VectorEnv

__all__ = ["Draws", "Env", "Moment", "VectorEnv", "as_sb3", "register", "task"]

register()
