"""The tests that matter most: with the oldest packages we accept and the newest, with every Python, on another machine.

Each lane is an environment of its own under ``build/lanes``, made by uv: a Python, and of every package either the
lowest version that ``pyproject.toml`` declares (and that has a wheel for this Python) or the newest. What is declared
there is what passes here.

    python -m tests.lanes                               the lanes of LANES
    python -m tests.lanes 3.12-lowest 3.14-newest       these
    python -m tests.lanes 3.13-newest-aarch64           an ARM machine, emulated
    python -m tests.lanes 3.14t-newest --tests targets  of the tests, those in this folder or file; . for all

An interpreter that is neither here, nor can be fetched by uv, nor is among Debian's packages (``debian.py``) leaves its
lane out, and the summary says so; so it does of the packages that have no wheel for it, and of the tests in LEFT_OUT.
Debian has no free-threaded Python: built from the sources (``configure --disable-gil``), it is found on the PATH.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lanes import debian

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "lanes"
CORE = ("llvmlite", "numpy", "platformdirs", "pyyaml", "scipy")

LANES = ("3.11-lowest", "3.12-newest", "3.13-newest", "3.14-newest", "3.14t-newest", "3.13-newest-aarch64")

OLDEST = "3.11"
"""The Python for which every declared floor has a wheel: there, the lowest versions must be exactly the floors."""

EXTRAS = ("viz", "mjcf", "fem", "ensemble", "parquet", "completion", "test")

SUITE = (
    "algorithms",
    "bridges",
    "cli/test_doctor.py",
    "closures/test_equations.py",
    "closures/test_functions.py",
    "control",
    "derivatives/test_interop.py",
    "derivatives/test_rules.py",
    "files/test_load.py",
    "flexible/test_dynamics.py",
    "flexible/test_mesh.py",
    "functions",
    "gym",
    "identities/test_dynamics.py",
    "joints",
    "mechanism",
    "sim/paths",
    "sim/test_closed.py",
    "sim/test_model_drives.py",
    "sim/test_routine.py",
    "sim/test_simulate.py",
    "sim/test_trajectory.py",
    "spatial",
    "studies/test_ensemble.py",
    "studies/test_statistics.py",
    "studies/test_store.py",
    "targets",
    "test_imports.py",
    "test_installed.py",
    "trace",
    "viz/test_live.py",
    "viz/test_meshes.py",
    "viz/test_player.py",
)

NOT_EMULATED = ("playwright",)
"""Packages that an emulated machine is without: the driver of a browser does not start there; its tests are skipped."""

LEFT_OUT = {
    "aarch64": {
        "closures/test_second_order.py::test_a_linkage_written_in_jax": "JAX's own code crashes under QEMU",
    },
}
"""Tests that an emulated machine cannot run, and why: not ours to mend."""


@dataclass(frozen=True)
class Lane:
    """A Python, which of the versions that we accept, and the kind of machine."""

    python: str
    versions: str
    machine: str

    @classmethod
    def named(cls, name: str) -> Lane:
        found = re.fullmatch(r"(3\.\d+t?)-(lowest|newest)(?:-(\w+))?", name)
        if not found:
            raise argparse.ArgumentTypeError(
                f"{name!r} is no lane: a Python, lowest or newest, and a machine other than this, as in "
                "3.12-lowest or 3.13-newest-aarch64"
            )
        return cls(found[1], found[2], found[3] or platform.machine())

    def __str__(self) -> str:
        return f"{self.python}-{self.versions}{f'-{self.machine}' if self.foreign else ''}"

    @property
    def foreign(self) -> bool:
        return self.machine != platform.machine()

    @property
    def left_out(self) -> dict[str, str]:
        """Tests that are not run in this lane, with reasons."""
        return LEFT_OUT.get(self.machine, {}) if self.foreign else {}

    @property
    def interpreter(self) -> Path:
        return HOME / str(self) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def make(self) -> list[str]:
        """Make the environment afresh; the packages that have no wheel for it."""
        environment = str(HOME / str(self))
        if self.foreign:
            debian.with_programs(self.machine)  # or there is no use in what follows
        if self.foreign or _uv("venv", "--clear", "--python", self.python, environment, check=False).returncode:
            found = debian.interpreter(self.python, self.machine, HOME)
            _uv("venv", "--clear", "--python", str(found), environment)
        install = (
            *("pip", "install", "--python", str(self.interpreter), "--only-binary", ":all:"),
            *("--resolution", {"lowest": "lowest-direct", "newest": "highest"}[self.versions]),
        )
        declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        needed = declared["dependencies"]
        wanted = sorted({word for name in EXTRAS for word in declared["optional-dependencies"][name]})
        missing = [
            word
            for word in wanted
            if (self.foreign and word.startswith(NOT_EMULATED))
            or _uv(*install, "--dry-run", *needed, word, check=False).returncode
        ]
        _uv(*install, *needed, *(word for word in wanted if word not in missing))
        _uv("pip", "install", "--python", str(self.interpreter), "--no-deps", "--editable", str(ROOT))
        if self.foreign:
            self._cross_compilers()
        return [re.split(r"[<>=\[;]", word)[0] for word in missing]

    def _cross_compilers(self) -> None:
        """Compilers for the machine of this lane, where there are some: found before those of this machine."""
        for name, called in (("gcc", "cc"), ("gcc", "gcc"), ("g++", "c++"), ("g++", "g++")):
            found = shutil.which(f"{self.machine}-linux-gnu-{name}")
            if found:
                self.interpreter.with_name(called).symlink_to(found)

    def installed(self) -> dict[str, str]:
        """The core packages and their versions."""
        listed = _uv("pip", "list", "--format", "freeze", "--python", str(self.interpreter)).stdout
        found = dict(line.split("==") for line in listed.splitlines() if "==" in line)
        return {name: found[name] for name in CORE}

    def test(self, names: Sequence[str], words: list[str]) -> int:
        """Run tests; the exit status of pytest."""
        cache = HOME / str(self) / "objects"
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return subprocess.run(
            [
                *(debian.with_programs(self.machine) if self.foreign else ()),
                *(self.interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto"),
                *(ROOT / "tests" / name for name in names),
                *(f"--deselect=tests/{name}" for name in self.left_out),
                *words,
            ],
            cwd=ROOT,
            env={
                **kept,
                "LINKWISE_CACHE_DIR": str(cache),
                "PATH": os.pathsep.join((str(self.interpreter.parent), os.environ["PATH"])),
                "PYTHONPATH": str(ROOT),
            },
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


def _run(lane: Lane, names: Sequence[str], words: list[str]) -> tuple[bool, str]:
    """Whether a lane failed, and a line about it."""
    try:
        missing = lane.make()
    except debian.UnreachableError as error:
        return False, f"not run: {error}"
    found = lane.installed()
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    print(f"\n{lane}: {versions}", flush=True)
    if lane.versions == "lowest" and lane.python == OLDEST:
        higher = [name for name, floor in floors().items() if not is_floor(found[name], floor)]
        if higher:
            return True, f"not the declared floor of {', '.join(higher)}: {versions}"
    start = time.monotonic()
    status = lane.test(names, words)
    without = f", without {', '.join(missing)}" if missing else ""
    without += "".join(f", but for {name} ({reason})" for name, reason in lane.left_out.items())
    took = time.monotonic() - start
    return bool(status), f"{'failed' if status else 'passed'} in {took:.0f} s with {versions}{without}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lanes", nargs="*", type=Lane.named, help="such as 3.12-lowest")
    parser.add_argument(
        "--tests", nargs="+", default=SUITE, metavar="NAME", help="folders or files in tests/; . for all"
    )
    parser.add_argument("--pytest", default="", metavar="WORDS", help='more for pytest, such as --pytest="-x -n 2"')
    given = parser.parse_args()
    lanes = given.lanes or [Lane.named(name) for name in LANES]
    results = {lane: _run(lane, given.tests, given.pytest.split()) for lane in lanes}
    print()
    for lane, (_, line) in results.items():
        print(f"{lane!s:20} {line}")
    ran = any(not line.startswith("not run") for _, line in results.values())
    return int(any(failed for failed, _ in results.values()) or not ran)


if __name__ == "__main__":
    sys.exit(main())
