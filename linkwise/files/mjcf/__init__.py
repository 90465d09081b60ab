"""MJCF, the format of MuJoCo, read with the help of MuJoCo's own compiler (extra ``mjcf``)."""

from linkwise.files.mjcf.mujoco_states import from_mujoco, to_mujoco
from linkwise.files.mjcf.read import read_mjcf

__all__ = ["from_mujoco", "read_mjcf", "to_mujoco"]
