"""Commands about this machine and its shell: ``doctor``, ``completion``."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from argparse import Namespace
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from linkwise.cli.arguments import BUILT_IN
from linkwise.cli.parser import make_parser
from linkwise.cli.printing import print_json, table
from linkwise.dataclass import asdict, dataclass
from linkwise.errors import require_extra

_EXTRAS = {
    "viz": (("viser", "trimesh", "matplotlib"), "views, films and plots"),
    "mjcf": (("mujoco",), "MuJoCo's model files"),
    "contact": (("coacd",), "meshes as convex pieces"),
    "cuda": (("cupy",), "NVIDIA GPUs"),
    "ensemble": (("distributed", "zarr", "xarray", "cma"), "studies on many machines"),
    "parquet": (("pyarrow",), "tables of studies"),
    "fem": (("meshio", "pyyeti", "skfem"), "finite-element meshes"),
    "space": (("erfa", "ppigrf", "pymsis"), "time, magnetic field and air around the Earth"),
    "jax": (("jax",), "functions inside JAX"),
    "torch": (("torch",), "functions inside PyTorch"),
    "gym": (("gymnasium",), "environments for learning"),
    "sb3": (("stable_baselines3",), "learners of Stable-Baselines3"),
    "control": (("control",), "systems of python-control"),
    "crocoddyl": (("crocoddyl",), "actions of crocoddyl"),
    "ros": (("mcap_ros2",), "motions as ROS 2 logs"),
    "usd": (("pxr",), "motions as USD scenes"),
    "completion": (("shtab",), "commands that complete in the shell"),
}
"""Modules of the extras, and what they are for."""


@dataclass(frozen=True)
class Finding:
    """A thing looked at: whether it works, what was found, and what to do about it."""

    what: str
    works: bool
    found: str
    do: str = ""


def run_doctor(options: Namespace) -> None:
    """Print a line for each thing, then what to do; the exit status is 1 where numbers are wrong."""
    found = [_python(), _processor(), _compiled(), _calls(), _cache(), _compiler(), _cuda()]
    extras = [_extra(name, *about) for name, about in _EXTRAS.items()]
    if options.json:
        print_json({"machine": [asdict(each) for each in found], "extras": [asdict(each) for each in extras]})
    else:
        rows = [(each.what, "yes" if each.works else "no", each.found) for each in (*found, *extras)]
        print(table(("", "works", "found"), rows))
        for each in (*found, *extras):
            if not each.works and each.do:
                print(f"\n{each.what}: {each.do}")
    if not found[2].works:
        raise SystemExit(1)


def _python() -> Finding:
    free = " without its lock" if not getattr(sys, "_is_gil_enabled", lambda: True)() else ""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "llvmlite"))
    told = f"{platform.python_implementation()} {platform.python_version()}{free}; {versions}"
    return Finding("Python", sys.version_info >= (3, 11), told)


def _processor() -> Finding:
    from linkwise.targets.llvm import binding

    host = binding.host()
    lanes = host.vector_bytes // 8
    return Finding(
        "processor", True, f"{host.cpu}, {lanes} doubles a register, {os.cpu_count()} threads ({host.triple})"
    )


def _compiled() -> Finding:
    """A compiled function against the same text on plain floats."""
    import numpy as np

    from linkwise import samples

    arm = samples.planar_arm(3)
    q, v = np.array([0.1, -0.4, 0.7]), np.array([0.3, 0.2, -0.5])
    by_code = arm.inverse_dynamics(q, v, v)
    by_text = np.array(arm.function("inverse_dynamics").text(*(x.tolist() for x in (q, v, v))), float)
    error = float(np.abs(by_code - by_text).max())
    told = f"inverse dynamics of three links, {error:.1e} off its text on floats"
    return Finding("compiled code", error < 1e-12, told, "please report this, with the lines above")


def _calls() -> Finding:
    from linkwise.targets.llvm import layouts

    trouble = layouts.trouble()
    told = "arrays and tuples lie in memory as expected" if trouble is None else trouble
    return Finding(
        "quick calls", trouble is None, told, "nothing is wrong; calls of one state take microseconds longer"
    )


def _cache() -> Finding:
    from linkwise.targets import cache

    home = cache.folder()
    if home is None:
        return Finding(
            "cache",
            False,
            "switched off, or its folder is not yours alone",
            "set LINKWISE_CACHE_DIR to a folder of yours",
        )
    size = sum(file.stat().st_size for file in home.iterdir() if file.is_file()) / 1e6
    return Finding("cache", True, f"{home}, {size:.0f} MB")


def _compiler() -> Finding:
    path = shutil.which("cc")
    return Finding(
        "C compiler", path is not None, path or "no cc", "needed only for the binaries of emit_casadi and to_fmu"
    )


def _cuda() -> Finding:
    if find_spec("cupy") is None:
        return Finding("CUDA", False, "CuPy is not installed", 'pip install "linkwise[cuda]", with an NVIDIA GPU')
    import cupy

    runtime: Any = cupy.cuda.runtime
    try:
        names = [runtime.getDeviceProperties(k)["name"].decode() for k in range(runtime.getDeviceCount())]
    except Exception as error:  # no driver, no device: CuPy has an error of its own for each
        return Finding("CUDA", False, str(error), "check the driver with nvidia-smi")
    return Finding("CUDA", bool(names), ", ".join(names) or "no device")


def _extra(name: str, modules: tuple[str, ...], purpose: str) -> Finding:
    missing = [module for module in modules if find_spec(module) is None]
    told = purpose if not missing else f"{purpose}: no {', '.join(missing)}"
    return Finding(f"extra {name}", not missing, told)


_MODELS = " ".join(BUILT_IN)
_MODEL = {
    "bash": "_linkwise_model_or_file",
    "zsh": "_linkwise_model_or_file",
    "fish": f"{_MODELS} (__fish_complete_path (commandline -ct))",
    "preamble": {
        "bash": f'_linkwise_model_or_file() {{ compgen -W "{_MODELS}" -- "$1"; compgen -f -- "$1"; }}',
        "zsh": f"_linkwise_model_or_file() {{ compadd {_MODELS}; _files }}",
    },
}
"""Completion written by hand, for shtab knows files only: the names of built-in models, and files."""


def completion_script(shell: str) -> str:
    """The script for bash, zsh or fish."""
    shtab = require_extra("shtab", "completion")
    parser = make_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    # By what the help calls a value; by its name where the help shows that.
    kinds = {"FILE": shtab.FILE, "FOLDER": shtab.DIRECTORY, "MOTION": shtab.FILE, "MODEL-OR-NAME": _MODEL}
    kinds |= {"model": _MODEL, "other": _MODEL, "file": shtab.FILE, "study": shtab.FILE}
    for command in commands.choices.values():
        for action in command._actions:
            shown = str(action.metavar or action.dest)
            if shown in kinds and action.nargs != 0:
                action.complete = kinds[shown]
            if action.metavar is not None:
                action.metavar = shown.replace(":", "")  # which separates the fields of a line in zsh
    return str(shtab.complete(parser, shell=shell, root_prefix="linkwise"))


def run_completion(options: Namespace) -> None:
    """Print the script."""
    sys.stdout.write(completion_script(options.shell))
