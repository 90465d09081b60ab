"""linkwise: dynamics of multibody systems, at the speed of the machine.

Every public name is imported when it is first used, so that a program waits only for what it needs.
"""

import sys as _sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkwise.memoized import no_search_for_cycles

if TYPE_CHECKING:
    from linkwise import control, errors, gym, operators, samples, space, studies
    from linkwise import math as math
    from linkwise.bridges.jax import as_jax
    from linkwise.bridges.torch import as_torch
    from linkwise.errors import InputError, LinkwiseError, ModelError
    from linkwise.files.load import load, loads
    from linkwise.flexible.body import FlexibleBody
    from linkwise.functions import small_matrices as linalg
    from linkwise.functions.function import CompiledFunction, compile
    from linkwise.functions.many_steps import rollout
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
    from linkwise.joints.joint_check import check_joint
    from linkwise.kinematics.goals import Aim, Balance, Reach
    from linkwise.mechanism import actuation as equipment
    from linkwise.mechanism import closures, shapes
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
        SeriesElastic,
        Torque,
    )
    from linkwise.sim.controllers import PID, Controller, Sampled
    from linkwise.sim.disturbances import BodyForce, Bushing
    from linkwise.sim.drives import Drives
    from linkwise.sim.elements import Element
    from linkwise.sim.events import Event, impacts
    from linkwise.sim.instruments import Instruments
    from linkwise.sim.joint_rules import Baumgarte, JointRules
    from linkwise.sim.paths.path import Path, path
    from linkwise.sim.sensors import IMU, Encoder, ForceTorque
    from linkwise.sim.simulate import simulate
    from linkwise.sim.simulation import Simulation
    from linkwise.sim.tableaux import GeneralizedAlpha
    from linkwise.sim.tables import Table
    from linkwise.sim.trajectory import Trajectory
    from linkwise.studies.running import ensemble
    from linkwise.targets.c.target import emit_c
    from linkwise.viz.viewer import view

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  # in groups
    # models
    "load", "loads", "Model", "ModelBuilder", "transform",
    # joints
    "CustomJoint", "Cylindrical", "Fixed", "Free", "Helical", "Joint", "Planar", "Prismatic", "Revolute", "Spherical",
    "Universal", "JointLimits", "Mimic", "Geometry", "check_joint",
    # contact
    "Ground", "Material", "ContactRules", "impacts",
    # goals of inverse kinematics
    "Reach", "Aim", "Balance",
    # deformable bodies
    "FlexibleBody",
    # compiled functions
    "compile", "CompiledFunction", "loop", "while_loop", "rollout", "emit_c", "as_torch", "as_jax",
    # simulation: what acts, what measures, what comes out
    "simulate", "Simulation", "Trajectory", "Event", "JointRules", "Baumgarte", "GeneralizedAlpha", "Element",
    "ComputedTorque", "JointSprings", "PD", "SeriesElastic", "Torque", "Bushing",
    "Encoder", "ForceTorque", "IMU", "Table", "Controller", "Sampled", "PID", "Disturbance", "BodyForce", "Drives",
    "Instruments",
    # ways between configurations
    "path", "Path",
    # many runs
    "ensemble",
    # to be seen
    "view",
    # errors
    "LinkwiseError", "InputError", "ModelError",
    # groups; `math` is one of them, and not here: `from linkwise import *` shall not hide Python's own
    "closures", "control", "equipment", "errors", "gym", "linalg", "operators", "samples", "shapes", "space",
    "studies",
]  # fmt: skip

_GROUPS = {
    "closures": "linkwise.mechanism.closures",
    "control": "linkwise.control",
    "equipment": "linkwise.mechanism.actuation",
    "errors": "linkwise.errors",
    "gym": "linkwise.gym",
    "linalg": "linkwise.functions.small_matrices",
    "math": "linkwise.math",
    "operators": "linkwise.operators",
    "samples": "linkwise.samples",
    "shapes": "linkwise.mechanism.shapes",
    "space": "linkwise.space",
    "studies": "linkwise.studies",
}
"""Modules whose names are asked for less often: closures beyond those of joints, optimal control and other tools for
it, drives and sensors of files, errors, learning, functions of scalars and of small matrices, spatial operators,
examples of mechanisms, shapes with their masses, spacecraft, parts of ensembles."""

# Where the other names are; `tests/test_imports.py` compares this with what type checkers read above.
_MODULES = {
    "linkwise.bridges.jax": ("as_jax",),
    "linkwise.bridges.torch": ("as_torch",),
    "linkwise.errors": ("InputError", "LinkwiseError", "ModelError"),
    "linkwise.files.load": ("load", "loads"),
    "linkwise.flexible.body": ("FlexibleBody",),
    "linkwise.functions.function": ("CompiledFunction", "compile"),
    "linkwise.functions.traced_loops": ("loop", "while_loop"),
    "linkwise.functions.many_steps": ("rollout",),
    "linkwise.joints": (
        "CustomJoint", "Cylindrical", "Fixed", "Free", "Helical", "Joint", "Planar", "Prismatic", "Revolute",
        "Spherical", "Universal",
    ),
    "linkwise.joints.joint_check": ("check_joint",),
    "linkwise.kinematics.goals": ("Aim", "Balance", "Reach"),
    "linkwise.mechanism.contacts": ("ContactRules", "Ground"),
    "linkwise.mechanism.materials": ("Material",),
    "linkwise.mechanism.description": ("Geometry", "JointLimits", "Mimic"),
    "linkwise.mechanism.placement": ("transform",),
    "linkwise.model.model": ("Model", "ModelBuilder"),
    "linkwise.sim.actuators": (
        "PD", "ComputedTorque", "Disturbance", "JointSprings", "SeriesElastic", "Torque",
    ),
    "linkwise.sim.joint_rules": ("Baumgarte", "JointRules"),
    "linkwise.sim.controllers": ("PID", "Controller", "Sampled"),
    "linkwise.sim.disturbances": ("BodyForce", "Bushing"),
    "linkwise.sim.drives": ("Drives",),
    "linkwise.sim.elements": ("Element",),
    "linkwise.sim.events": ("Event", "impacts"),
    "linkwise.sim.instruments": ("Instruments",),
    "linkwise.sim.paths.path": ("Path", "path"),
    "linkwise.sim.sensors": ("IMU", "Encoder", "ForceTorque"),
    "linkwise.sim.simulate": ("simulate",),
    "linkwise.sim.simulation": ("Simulation",),
    "linkwise.sim.tableaux": ("GeneralizedAlpha",),
    "linkwise.sim.tables": ("Table",),
    "linkwise.sim.trajectory": ("Trajectory",),
    "linkwise.studies.running": ("ensemble",),
    "linkwise.targets.c.target": ("emit_c",),
    "linkwise.viz.viewer": ("view",),
}  # fmt: skip
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def _imported(module: str) -> Any:
    with no_search_for_cycles(kept=True):  # a fifth of the time
        return import_module(module)


def __getattr__(name: str) -> Any:
    if name in _GROUPS:
        value = _imported(_GROUPS[name])
    elif name in _HOME:
        value = getattr(_imported(_HOME[name]), name)
    else:
        from linkwise.errors import SOUGHT_NAMES, no_attribute

        raise no_attribute("module 'linkwise'", name, SOUGHT_NAMES.get(name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "math"])


if "IPython" in _sys.modules:  # names complete inside calls
    import_module("linkwise.model.completions").register()
