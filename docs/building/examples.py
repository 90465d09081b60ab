"""The programs in examples/: those of one page, in the order in which they are shown, and the longer ones.

A program of one page runs from top to bottom, prints what it finds and writes its pictures into the folder it is in.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"
PICTURES = Path(__file__).parents[1] / "pictures"
"""Pictures that the programs of one page drew, made smaller by ``python -m docs.building.small_pictures``."""

ONE_PAGE = {
    "arm_control": "PD control with gravity compensation",
    "inverse_kinematics": "Inverse kinematics along a path",
    "humanoid": "A humanoid falls",
    "box_on_floor": "A box on the floor",
    "walking_quadruped": "A quadruped trots over hills",
    "gripper": "A gripper that holds by friction",
    "dominoes": "Dominoes in a bend",
    "box_stack": "A stack of ten boxes",
    "rattleback": "A rattleback turns back",
    "eulers_disk": "Euler's disk",
    "stewart_platform": "Stewart platform",
    "satellite": "Satellite in orbit",
    "gravity_gradient": "Gravity-gradient capture",
    "constellation": "A constellation as one batch",
    "flexible_arm": "Flexible arm",
    "four_bar": "Four-bar with motor and spring",
    "lqr": "LQR of a cart and pole",
    "lqr_drone": "LQR of a floating base",
    "rollout_gradient": "Gradient of a rollout",
    "c_code": "C code through ctypes",
    "ensemble": "Ensemble with Ctrl-C and resume",
    "identification": "Identification",
}
"""Programs of at most thirty lines and their titles."""
LONGER = tuple(sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in ONE_PAGE))


def extras(name: str) -> list[str]:
    """The extras that a program names in its docstring."""
    named = re.search(r"Extras?: ([a-z, ]+)", (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""')[1])
    return [extra.strip() for extra in named[1].split(",")] if named else []


def pictures(name: str) -> list[Path]:
    """The stored pictures of a program: a film first, then plots."""
    return [file for kind in ("webp", "png") if (file := PICTURES / f"{name}.{kind}").exists()]


def load(path: Path) -> ModuleType:
    """A longer example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
