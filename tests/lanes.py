"""The tests that matter most, with the oldest packages we accept and with the newest.

Each lane is an environment of its own under ``build/lanes``, made by uv: a Python, and of every package either the
lowest version that ``pyproject.toml`` declares (and that has a wheel for this Python) or the newest. What is declared
there is what passes here.

    python -m tests.lanes                          the lanes of LANES
    python -m tests.lanes 3.12-lowest 3.13-newest  these

An interpreter that is neither here nor can be fetched by uv leaves its lane out, and the summary says so.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / "build" / "lanes"
CORE = ("llvmlite", "numpy", "platformdirs", "pyyaml", "scipy")

LANES = ("3.11-lowest", "3.14-newest", "3.14t-newest")
"""The ends: a version in between that fails would be one that neither of its neighbours does."""

OLDEST = "3.11"
"""The Python for which every declared floor has a wheel: there, the lowest versions must be exactly the floors."""

EXTRAS = ("viz", "mjcf", "fem", "ensemble", "parquet", "completion", "test")

FEW = ("hypothesis", "mpmath", "pytest", "pytest-xdist", "sympy")
"""On a free-threaded Python, which most of the programs that we compare with do not know: the tests that need none."""

SUITE = (
    "codegen",
    "compiled",
    "rolled",
    "tracing",
    "spatial",
    "model",
    "algorithms",
    "interop",
    "identities/test_dynamics.py",
    "derivatives/test_rules.py",
    "closures/test_equations.py",
    "closures/test_functions.py",
    "flexible/test_dynamics.py",
    "flexible/test_mesh.py",
    "formats/test_load.py",
    "paths",
    "studies/test_ensemble.py",
    "studies/test_statistics.py",
    "viz/test_live.py",
    "viz/test_meshes.py",
    "viz/test_player.py",
    "sim/test_model_drives.py",
    "sim/test_simulate.py",
    "sim/test_routine.py",
    "sim/test_closed.py",
    "sim/test_trajectory.py",
    "test_installed.py",
    "test_imports.py",
)


@dataclass(frozen=True)
class Lane:
    """A Python, and which of the versions that we accept."""

    python: str
    versions: str

    @classmethod
    def named(cls, name: str) -> Lane:
        found = re.fullmatch(r"(3\.\d+t?)-(lowest|newest)", name)
        if not found:
            raise argparse.ArgumentTypeError(f"{name!r} is no lane: a Python and lowest or newest, as in 3.12-lowest")
        return cls(*found.groups())

    def __str__(self) -> str:
        return f"{self.python}-{self.versions}"

    @property
    def free_threaded(self) -> bool:
        return self.python.endswith("t")

    @property
    def interpreter(self) -> Path:
        return HOME / str(self) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def make(self) -> str | None:
        """Make the environment afresh; why not, where there is no such Python."""
        made = _uv("venv", "--quiet", "--clear", "--python", self.python, str(HOME / str(self)), check=False)
        if made.returncode:
            return next(line for line in made.stderr.splitlines() if line.startswith("error")).partition(": ")[2]
        extras = [] if self.free_threaded else [word for name in EXTRAS for word in ("--extra", name)]
        resolution = {"lowest": "lowest-direct", "newest": "highest"}[self.versions]
        into = ("--quiet", "--python", str(self.interpreter))
        _uv(
            *("pip", "install", *into, "--resolution", resolution, "--only-binary", ":all:"),
            *("--requirements", str(ROOT / "pyproject.toml"), *extras),
            *(FEW if self.free_threaded else ()),
        )
        _uv("pip", "install", *into, "--no-deps", "--editable", str(ROOT))
        return None

    def installed(self) -> dict[str, str]:
        """The core packages and their versions."""
        listed = _uv("pip", "list", "--format", "freeze", "--python", str(self.interpreter)).stdout
        found = dict(line.split("==") for line in listed.splitlines() if "==" in line)
        return {name: found[name] for name in CORE}

    def test(self, words: list[str]) -> int:
        """Run the suite; the exit status of pytest."""
        folders = [str(ROOT / "tests" / name) for name in SUITE]
        cache = HOME / str(self) / "objects"
        return subprocess.run(
            [self.interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto", *folders, *words],
            cwd=ROOT,
            env={**os.environ, "LINKWISE_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
            check=False,
        ).returncode


def floors() -> dict[str, str]:
    """What ``pyproject.toml`` declares for the core packages."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return dict(word.split(">=") for word in declared)


def is_floor(version: str, floor: str) -> bool:
    """Whether 2.0.0 is the first of the releases that >=2.0 allows."""
    return version == floor or (version.startswith(floor + ".") and not version[len(floor) :].strip(".0"))


def _uv(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        sys.exit("error: there is no uv\n  do:      pip install uv, or make lanes")
    done = subprocess.run([uv, *words], capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.exit(f"error: uv {' '.join(words)}\n{done.stderr}")
    return done


def _run(lane: Lane, words: list[str]) -> tuple[bool, str]:
    """Whether a lane failed, and a line about it."""
    reason = lane.make()
    if reason:
        return False, f"not run: {reason}"
    found = lane.installed()
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    print(f"\n{lane}: {versions}", flush=True)
    if lane.versions == "lowest" and lane.python == OLDEST:
        higher = [name for name, floor in floors().items() if not is_floor(found[name], floor)]
        if higher:
            return True, f"not the declared floor of {', '.join(higher)}: {versions}"
    start = time.monotonic()
    status = lane.test(words)
    return bool(status), f"{'failed' if status else 'passed'} in {time.monotonic() - start:.0f} s with {versions}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lanes", nargs="*", type=Lane.named, help="such as 3.12-lowest")
    parser.add_argument("--pytest", default="", metavar="WORDS", help='more for pytest, such as --pytest="-x -n 2"')
    given = parser.parse_args()
    lanes = given.lanes or [Lane.named(name) for name in LANES]
    results = {lane: _run(lane, given.pytest.split()) for lane in lanes}
    print()
    for lane, (_, line) in results.items():
        print(f"{lane!s:14} {line}")
    ran = any(not line.startswith("not run") for _, line in results.values())
    return int(any(failed for failed, _ in results.values()) or not ran)


if __name__ == "__main__":
    sys.exit(main())
