"""linkwise: dynamics of multibody systems, at the speed of the machine."""

from linkwise.compile import CompiledFunction, compile
from linkwise.dynamics import Model, ModelBuilder
from linkwise.errors import InputError, LinkwiseError, ModelError, ModelFileError, ModelWarning, UnknownNameError
from linkwise.formats.load import load, loads
from linkwise.model.description import Geometry, JointLimits, Mimic
from linkwise.model.joints import (
    CustomJoint,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from linkwise.model.placement import transform
from linkwise.sim.actuators import (
    PD,
    ComputedTorque,
    JointSprings,
    ReactionWheel,
    SeriesElastic,
    Thruster,
    Torque,
)
from linkwise.sim.elements import Element
from linkwise.sim.events import Event
from linkwise.sim.motion import JointRules
from linkwise.sim.sensors import IMU, Encoder, ForceTorque
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import atan2, cos, exp, log, sin, sqrt, tan, tanh, where

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  # in groups
    # models
    "load", "loads", "Model", "ModelBuilder", "transform",
    # joints
    "CustomJoint", "Cylindrical", "Fixed", "Free", "Helical", "Joint", "Planar", "Prismatic", "Revolute", "Spherical",
    "Universal", "JointLimits", "Mimic", "Geometry",
    # compiled functions, and scalar functions to write them with
    "compile", "CompiledFunction", "atan2", "cos", "exp", "log", "sin", "sqrt", "tan", "tanh", "where",
    # simulation: what acts, what measures, what comes out
    "simulate", "Trajectory", "Event", "JointRules", "Element", "ComputedTorque", "JointSprings", "PD", "ReactionWheel",
    "SeriesElastic", "Thruster", "Torque", "Encoder", "ForceTorque", "IMU",
    # errors
    "InputError", "LinkwiseError", "ModelError", "ModelFileError", "ModelWarning", "UnknownNameError",
]  # fmt: skip
