"""linkwise: dynamics of multibody systems, at the speed of the machine.

Every public name is imported when it is first used, so that a program waits only for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwise.bridges import as_jax, as_torch
    from linkwise.ensemble.running import ensemble
    from linkwise.errors import (
        ClosureError,
        InputError,
        LinkwiseError,
        MissingExtraError,
        ModelError,
        ModelFileError,
        ModelWarning,
        UnknownNameError,
    )
    from linkwise.files.load import load, loads
    from linkwise.flexible.body import FlexibleBody
    from linkwise.functions.function import CompiledFunction, compile
    from linkwise.functions.many_steps import rollout
    from linkwise.functions.small_matrices import cholesky, solve
    from linkwise.functions.traced_loops import loop, while_loop
    from linkwise.joints import (
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
    from linkwise.joints.check import check_joint
    from linkwise.kinematics.goals import Aim, Balance, Reach
    from linkwise.kinematics.problem_solver import Reached
    from linkwise.mechanism.actuation import (
        Activation,
        Actuator,
        FrameTransmission,
        JointTransmission,
        PathTransmission,
        Sensor,
        Spring,
    )
    from linkwise.mechanism.closures import (
        Closure,
        Coupling,
        Distance,
        JointFunction,
        PointOnCurve,
        PointOnPlane,
        PointOnSurface,
        PolynomialCoupling,
        Prescribed,
        PrescribedFrame,
        RateFunction,
        Relation,
        RelativePose,
        Rolling,
    )
    from linkwise.mechanism.contacts import ContactRules, Ground
    from linkwise.mechanism.description import Geometry, JointLimits, Mimic
    from linkwise.mechanism.materials import Material
    from linkwise.mechanism.placement import transform
    from linkwise.model.model import Model, ModelBuilder
    from linkwise.sim.actuators import (
        PD,
        ComputedTorque,
        Disturbance,
        JointSprings,
        ReactionWheel,
        SeriesElastic,
        Thruster,
        Torque,
    )
    from linkwise.sim.bushing import Bushing
    from linkwise.sim.closing import Baumgarte
    from linkwise.sim.controllers import PID, Controller, Sampled
    from linkwise.sim.disturbances import BodyForce, BodyForces
    from linkwise.sim.drives import Actuators
    from linkwise.sim.elements import Element, FrozenElementError
    from linkwise.sim.events import Event
    from linkwise.sim.impacts import impacts
    from linkwise.sim.instruments import Sensors
    from linkwise.sim.motion import JointRules
    from linkwise.sim.paths.path import Path, path
    from linkwise.sim.run import IntegrationWarning
    from linkwise.sim.sensors import IMU, Encoder, ForceTorque
    from linkwise.sim.simulate import SlowControlWarning, simulate
    from linkwise.sim.simulation import Simulation
    from linkwise.sim.tableaux import GeneralizedAlpha
    from linkwise.sim.tables import Table
    from linkwise.sim.trajectory import Trajectory
    from linkwise.spatial.scalar import absolute as abs
    from linkwise.spatial.scalar import (
        acos,
        asin,
        atan,
        atan2,
        clip,
        cos,
        cosh,
        exp,
        hold,
        log,
        maximum,
        minimum,
        sign,
        sin,
        sinh,
        sqrt,
        tan,
        tanh,
        where,
    )
    from linkwise.targets.c.emission import emit_c
    from linkwise.viz.viewer import view

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  # in groups
    # models
    "load", "loads", "Model", "ModelBuilder", "transform",
    # joints
    "CustomJoint", "Cylindrical", "Fixed", "Free", "Helical", "Joint", "Planar", "Prismatic", "Revolute", "Spherical",
    "Universal", "JointLimits", "Mimic", "Geometry", "check_joint",
    # closures: what holds two frames together, what couples joints
    "Closure", "RelativePose", "Distance", "PointOnCurve", "PointOnPlane", "PointOnSurface", "PrescribedFrame",
    "Rolling", "Relation", "Coupling", "PolynomialCoupling", "JointFunction", "Prescribed", "RateFunction",
    # what drives and measures a model, as files describe it
    "Actuator", "Activation", "JointTransmission", "FrameTransmission", "PathTransmission", "Spring", "Sensor",
    # contact
    "Ground", "Material", "ContactRules", "impacts",
    # goals of inverse kinematics
    "Reach", "Aim", "Balance", "Reached",
    # deformable bodies
    "FlexibleBody",
    # compiled functions, and scalar functions to write them with
    "compile", "CompiledFunction", "loop", "while_loop", "rollout", "emit_c", "as_torch", "as_jax",
    "abs", "acos", "asin", "atan", "atan2", "clip", "cos", "cosh", "exp", "hold", "log", "maximum", "minimum", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh", "where", "solve", "cholesky",
    # simulation: what acts, what measures, what comes out
    "simulate", "Simulation", "Trajectory", "Event", "JointRules", "Baumgarte", "GeneralizedAlpha", "Element",
    "ComputedTorque", "JointSprings", "PD", "ReactionWheel", "SeriesElastic", "Thruster", "Torque", "Bushing",
    "Encoder", "ForceTorque", "IMU", "Table", "Controller", "Sampled", "PID", "Disturbance", "BodyForce", "BodyForces",
    "Actuators", "Sensors",
    # ways between configurations
    "path", "Path",
    # many runs
    "ensemble",
    # to be seen
    "view",
    # errors and warnings
    "ClosureError", "FrozenElementError", "InputError", "LinkwiseError", "MissingExtraError", "ModelError",
    "ModelFileError", "UnknownNameError", "IntegrationWarning", "ModelWarning", "SlowControlWarning",
]  # fmt: skip

# Where they are; `tests/test_imports.py` compares this with what type checkers read above.
_MODULES = {
    "linkwise.targets.c.emission": ("emit_c",),
    "linkwise.functions.function": ("compile", "CompiledFunction"),
    "linkwise.functions.traced_loops": ("loop", "while_loop"),
    "linkwise.functions.many_steps": ("rollout",),
    "linkwise.functions.small_matrices": ("cholesky", "solve"),
    "linkwise.errors": (
        "ClosureError", "InputError", "LinkwiseError", "MissingExtraError", "ModelError", "ModelFileError",
        "ModelWarning", "UnknownNameError",
    ),
    "linkwise.flexible.body": ("FlexibleBody",),
    "linkwise.files.load": ("load", "loads"),
    "linkwise.bridges": ("as_jax", "as_torch"),
    "linkwise.kinematics.goals": ("Aim", "Balance", "Reach"),
    "linkwise.kinematics.problem_solver": ("Reached",),
    "linkwise.mechanism.actuation": (
        "Activation", "Actuator", "FrameTransmission", "JointTransmission", "PathTransmission", "Sensor", "Spring",
    ),
    "linkwise.mechanism.closures": (
        "Closure", "Coupling", "Distance", "JointFunction", "PointOnCurve", "PointOnPlane", "PointOnSurface",
        "PolynomialCoupling", "Prescribed", "PrescribedFrame", "RateFunction", "Relation", "RelativePose", "Rolling",
    ),
    "linkwise.mechanism.contacts": ("ContactRules", "Ground"),
    "linkwise.mechanism.description": ("Geometry", "JointLimits", "Mimic"),
    "linkwise.mechanism.materials": ("Material",),
    "linkwise.joints.check": ("check_joint",),
    "linkwise.joints": (
        "CustomJoint", "Cylindrical", "Fixed", "Free", "Helical", "Joint", "Planar", "Prismatic", "Revolute",
        "Spherical", "Universal",
    ),
    "linkwise.mechanism.placement": ("transform",),
    "linkwise.model.model": ("Model", "ModelBuilder"),
    "linkwise.sim.paths.path": ("Path", "path"),
    "linkwise.sim.actuators": (
        "ComputedTorque", "Disturbance", "JointSprings", "PD", "ReactionWheel", "SeriesElastic", "Thruster", "Torque",
    ),
    "linkwise.sim.bushing": ("Bushing",),
    "linkwise.sim.closing": ("Baumgarte",),
    "linkwise.sim.tableaux": ("GeneralizedAlpha",),
    "linkwise.sim.controllers": ("Controller", "PID", "Sampled"),
    "linkwise.sim.disturbances": ("BodyForce", "BodyForces"),
    "linkwise.sim.drives": ("Actuators",),
    "linkwise.sim.elements": ("Element", "FrozenElementError"),
    "linkwise.sim.events": ("Event",),
    "linkwise.sim.impacts": ("impacts",),
    "linkwise.sim.instruments": ("Sensors",),
    "linkwise.sim.motion": ("JointRules",),
    "linkwise.sim.run": ("IntegrationWarning",),
    "linkwise.sim.sensors": ("Encoder", "ForceTorque", "IMU"),
    "linkwise.sim.simulate": ("simulate", "SlowControlWarning"),
    "linkwise.sim.simulation": ("Simulation",),
    "linkwise.sim.tables": ("Table",),
    "linkwise.sim.trajectory": ("Trajectory",),
    "linkwise.spatial.scalar": (
        "abs", "acos", "asin", "atan", "atan2", "clip", "cos", "cosh", "exp", "hold", "log", "maximum", "minimum",
        "sign", "sin", "sinh", "sqrt", "tan", "tanh", "where",
    ),
    "linkwise.viz.viewer": ("view",),
}  # fmt: skip
_HOME = {name: module for module, names in _MODULES.items() for name in names}
_OTHER_NAMES = {"abs": "absolute"}


def __getattr__(name: str) -> Any:
    if name in ("operators", "ensemble"):  # the package ensemble can be called
        return import_module(f"linkwise.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'linkwise' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), _OTHER_NAMES.get(name, name))
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "operators"])
