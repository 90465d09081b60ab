"""The robots of example-robot-data: how each file is loaded, and which are refused and why."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import linkwise as lw
from tests.files.recording import robot_files

REFUSED = {
    "falcon.urdf": "the child of joint 'top_propeller_joint' is a link that does not exist",
    "ur3.urdf": "the model has no links",
}
"""Files that are no mechanism; Pinocchio refuses them too."""

_BRAVO_FINGERS = ["bravo_finger1_joint", "bravo_finger2_joint"]
OPTIONS: dict[str, dict[str, Any]] = {
    # joints that move no mass have to be held where accelerations are asked for
    "bluevolta_bravo7_gripper.urdf": {"locked": _BRAVO_FINGERS},
    "bravo7_gripper.urdf": {"locked": _BRAVO_FINGERS},
    "falcon_bravo7_gripper.urdf": {"locked": _BRAVO_FINGERS},
    "romeo.urdf": {"locked": ["LHand", "RHand"]},
    # inertias that no body can have
    "romeo_laas_small.urdf": {"locked": ["l_gripper_joint", "r_gripper_joint"], "allow_unphysical": True},
    # mimics a joint that does not exist
    "alex_psyonic_hands.urdf": {"mimic": False},
}
"""Files that are refused as they stand, or cannot be moved by forces, and what the message says to do about it."""

MESSAGES = {
    "romeo_laas_small.urdf": "is negative about some axis",
    "alex_psyonic_hands.urdf": "mimics a joint that does not exist",
}


MASSLESS = ("bluevolta_bravo7_gripper.urdf", "bravo7_gripper.urdf", "falcon_bravo7_gripper.urdf", "romeo.urdf")
"""Files with joints that move no mass."""


def parameters() -> list[Any]:
    """One pytest parameter for each readable file, by a short unique name."""
    return [pytest.param(file, id=label(file)) for file in robot_files() if file.name not in REFUSED]


def on_one_base() -> list[Any]:
    """Each readable file with both bases, fixed and floating: every other one of these is slow."""
    found = []
    for k, each in enumerate(parameters()):
        for floating in (False, True):
            marks = () if floating == (k % 2 == 1) else pytest.mark.slow
            found.append(
                pytest.param(*each.values, floating, id=f"{each.id}-{('fixed', 'floating')[floating]}", marks=marks)
            )
    return found


def label(file: Path) -> str:
    """The file's name; with its folder where two files share one."""
    same = [f for f in robot_files() if f.name == file.name]
    return file.stem if len(same) == 1 else f"{file.parent.parent.name}-{file.stem}"


def load(file: Path, *, floating: bool, **options: Any) -> lw.Model:
    """The model of a file, with the options it needs; warnings about its inertias are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        return lw.load(file, floating=floating, **OPTIONS.get(file.name, {}), **options)
