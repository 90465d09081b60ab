"""Learning: environments of Gymnasium that one compiled function steps and resets, and ten tasks."""

from linkwise.errors import require_extra

require_extra("gymnasium", "gym")  # what follows is made of its classes

from linkwise.gym.draws import Draws  # noqa: E402
from linkwise.gym.moment import Moment  # noqa: E402
from linkwise.gym.registration import register  # noqa: E402
from linkwise.gym.sb3 import as_sb3  # noqa: E402
from linkwise.gym.single_env import Env  # noqa: E402
from linkwise.gym.tasks import task  # noqa: E402
from linkwise.gym.vector_env import VectorEnv  # noqa: E402

__all__ = ["Draws", "Env", "Moment", "VectorEnv", "as_sb3", "register", "task"]

register()
