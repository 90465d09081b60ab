"""MJCF, the format of MuJoCo, read with the help of MuJoCo's own compiler (extra ``mjcf``)."""

from linkwise.files.mjcf.read import read_mjcf
from linkwise.files.mjcf.states import from_mujoco, to_mujoco

__all__ = ["from_mujoco", "read_mjcf", "to_mujoco"]
