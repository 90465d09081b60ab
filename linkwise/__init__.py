"""linkwise: dynamics of multibody systems, at the speed of the machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from linkwise.spatial.scalar import atan2, cos, exp, log, sin, sqrt, tan, tanh, where

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody
    from linkwise.rollout import rollout
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

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  # in groups
    # models
    "load", "loads", "Model", "ModelBuilder", "transform",
    # joints
    "CustomJoint", "Cylindrical", "Fixed", "Free", "Helical", "Joint", "Planar", "Prismatic", "Revolute", "Spherical",
    "Universal", "JointLimits", "Mimic", "Geometry",
    # deformable bodies
    "FlexibleBody",
    # compiled functions, and scalar functions to write them with
    "compile", "CompiledFunction", "rollout", "atan2", "cos", "exp", "log", "sin", "sqrt", "tan", "tanh", "where",
    # simulation: what acts, what measures, what comes out
    "simulate", "Trajectory", "Event", "JointRules", "Element", "ComputedTorque", "JointSprings", "PD", "ReactionWheel",
    "SeriesElastic", "Thruster", "Torque", "Encoder", "ForceTorque", "IMU",
    # errors
    "InputError", "LinkwiseError", "ModelError", "ModelFileError", "ModelWarning", "UnknownNameError",
]  # fmt: skip

# Simulation is imported when first used: a controller that only asks for torques starts without it.
_LATER = {
    "linkwise.flexible.body": ("FlexibleBody",),
    "linkwise.rollout": ("rollout",),
    "linkwise.sim.actuators": (
        "PD", "ComputedTorque", "JointSprings", "ReactionWheel", "SeriesElastic", "Thruster", "Torque",
    ),
    "linkwise.sim.elements": ("Element",),
    "linkwise.sim.events": ("Event",),
    "linkwise.sim.motion": ("JointRules",),
    "linkwise.sim.sensors": ("IMU", "Encoder", "ForceTorque"),
    "linkwise.sim.simulate": ("simulate",),
    "linkwise.sim.trajectory": ("Trajectory",),
}  # fmt: skip
_HOME = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
