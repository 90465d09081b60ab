"""What a plain `pip install .` gives: the core packages and nothing else."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.files.recording import robot_files

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line.partition("#")[0].strip() for line in re.findall(r"^linkwise .*$", README, re.MULTILINE)]
CODE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
CORE = ("numpy", "scipy", "llvmlite", "platformdirs", "pyyaml")

WITHOUT = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])

sys.meta_path.insert(0, Nothing())
from linkwise.cli import main
status = main({words!r})
print("simulated" if "linkwise.sim.plans" in sys.modules else "not simulated")
sys.exit(status)
"""


def without(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The program where no optional package is."""
    names = ("matplotlib", "viser", "trimesh", "xarray", "jax", "torch")
    code = WITHOUT.format(names=names, words=words)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.parametrize(
    "line",
    [
        "simulate stanford_arm --duration 3 --plot fall.png",
        "inverse planar_arm --to 1,1,1 --plot torques.png",
        "plot motion.npz -o motion.png",
        "demo -o report.html",
    ],
)
def test_extras_are_asked_for_before_the_work(line, tmp_path):
    done = without(line.split(), tmp_path)
    assert done.returncode == 2
    assert 'pip install "linkwise[viz]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
    if line.startswith("simulate"):
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_bare_wheel_in_an_empty_environment(tmp_path):
    """The README's lines: they run, or name the extra that they need."""
    made = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path), str(ROOT)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"no wheel can be built here: {made.stderr[-200:]}")
    home = tmp_path / "empty"
    venv.create(home, symlinks=True)
    site = next((home / "lib").glob("python*/site-packages"))
    with zipfile.ZipFile(next(tmp_path.glob("linkwise-*.whl"))) as wheel:
        wheel.extractall(site)
    for name in CORE:
        for file in {Path(str(f)).parts[0] for f in metadata.files(name) or () if ".." not in str(f)}:
            (site / file).symlink_to(metadata.distribution(name).locate_file(file))
    for name in ("panda.urdf", "cassie.sdf"):
        shutil.copy(next(file for file in robot_files(Path(name).suffix) if file.name == name), tmp_path / name)
    python, environment = home / "bin" / "python", {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), *words], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )

    assert call("-c", "import matplotlib").returncode == 1
    assert COMMANDS
    for command in COMMANDS:
        done = call("-m", *shlex.split(command))
        assert "Traceback" not in done.stderr
        needs = "--plot" in command
        assert done.returncode == (2 if needs else 0), f"{command}\n{done.stderr}"
        assert ("linkwise[viz]" in done.stderr) == needs
    for code in CODE:
        done = call("-c", code)
        assert done.returncode == 0 or "linkwise[" in done.stderr, done.stderr
