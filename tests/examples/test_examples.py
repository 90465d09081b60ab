"""Every example runs, and finds what it says."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from matplotlib.figure import Figure
from PIL import Image

from docs.building.examples import EXAMPLES, LONGER, ONE_PAGE, extras, load, pictures
from tests.examples import bare

FOUND = {
    "arm_control": lambda r: r["error"] < 1e-4,
    "inverse_kinematics": lambda r: r["off"] < 1e-3,
    "humanoid": lambda r: r["fallen"] < 0.6,
    "box_on_floor": lambda r: r["speed"] < 1e-6 and min(abs(r["height"] - h) for h in (0.1, 0.15, 0.2)) < 1e-3,
    "walking_quadruped": lambda r: r["way"] > 3.0 and r["deepest"] < 1.0,
    "gripper": lambda r: r["lifted"] > 0.07 and r["slip"] < 1e-9,
    "dominoes": lambda r: r["fallen"] == 14 and r["order"] > 0.0 and 0.1 < r["speed"] < 2.0,
    "box_stack": lambda r: r["error"] < 1e-6 and r["speed"] < 1e-8,
    "rattleback": lambda r: r["least"] > 1.0 and r["most"] > 2.0 and r["gained"] < 1e-9,
    "eulers_disk": lambda r: abs(r["rest"] / r["expected"] - 1) < 0.01 and r["gained"] < 1e-9 and r["speed"] < 1e-9,
    "stewart_platform": lambda r: r["gap"] < 1e-9,
    "satellite": lambda r: r["away"] < 1.0,
    "gravity_gradient": lambda r: r["first"] > 35.0 and r["last"] < 5.0,
    "constellation": lambda r: r["error"] < 0.03,
    "flexible_arm": lambda r: 1e-3 < r["bent"] < 0.2,
    "four_bar": lambda r: r["gap"] < 1e-9 and 5.0 < r["most"] < 100.0,
    "lqr": lambda r: r["left"] < 0.1 and r["slowest"] < 0.0,
    "lqr_drone": lambda r: r["away"] < 0.01,
    "rollout_gradient": lambda r: r["cost"] < 1.0 and r["off"] < 10.0,
    "c_code": lambda r: r["error"] < 1e-12,
    "ensemble": lambda r: r["before"] < r["members"] == 2000,
    "identification": lambda r: r["felt"] == 43 and r["error"] < 2e-3 * r["rms"],
}

HOLDS = {
    "planar_arm": lambda r: r["least"] > -2.0 and r["peak"] < 5.0 and r["drift"] < 1e-8 and r["q1"] < 0.0,
    "stanford_arm": lambda r: abs(r["slide_force"] + 6.1 * 9.81 / 2) < 1e-9 and r["drift"] < 1e-8,
    "double_pendulum": lambda r: r["drift"] < 1e-8 and r["last_spread"] > 100 * r["first_spread"],
    "quadruped": lambda r: r["off_path"] < 1e-9 and r["lost"] < 1e-8 and r["after"] > 1.2 * r["before"],
    "standing_quadruped": lambda r: r["creep"] < 1e-6 and r["missing"] < 1e-6 and r["deep"] < 1e-7,
    "servicer": lambda r: (
        r["name"] == "dock captured" and r["jump"] < 1e-13 and r["open"] < 1e-6 and r["last"] < 0.3 * r["first"]
    ),
    "station": lambda r: (
        r["name"] == "berth captured" and abs(r["gained"] / r["expected"] - 1) < 0.01 and 0.01 < r["swing"] < 0.1
    ),
    "random_search": lambda r: r["last"] < 0.1 < r["first"],
    "tune_controller": lambda r: r["cma"] < r["random"] and r["falls"] < 0.1,
    "identify_masses": lambda r: r["error"] < 0.1 and abs(r["cost"] - 0.015) < 1e-3,
}


@pytest.mark.parametrize("name", FOUND)
def test_program_of_one_page(name, tmp_path):
    """Its text as it stands, with nothing installed but the extras that it names."""
    if name == "c_code" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    program = EXAMPLES / f"{name}.py"
    assert len(program.read_text(encoding="utf-8").splitlines()) <= 30
    command = [sys.executable, bare.__file__, str(program), *sorted(bare.without(set(extras(name))))]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "Agg"})
    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr, ran.stderr
    *said, numbers = ran.stdout.splitlines()
    assert said
    assert FOUND[name](json.loads(numbers)), numbers
    assert {file.stem for file in tmp_path.iterdir() if file.suffix in (".gif", ".png")} == {name}


@pytest.mark.parametrize("name", FOUND)
def test_stored_pictures(name):
    assert pictures(name)
    for file in pictures(name):
        assert file.stat().st_size < 150_000
        with Image.open(file) as image:
            assert image.width >= 320
            assert file.suffix == ".png" or image.n_frames > 10


def test_every_example_is_tested_and_listed():
    assert list(FOUND) == list(ONE_PAGE)
    assert set(LONGER) == set(HOLDS)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}.py]({name}.py)" in listed for name in (*ONE_PAGE, *LONGER))


@pytest.mark.parametrize("name", sorted(HOLDS))
def test_example(name, capsys):
    found = load(EXAMPLES / f"{name}.py").main(quick=True)
    assert capsys.readouterr().out
    assert HOLDS[name](found), found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["servicer", "station"])
def test_page_of_a_scenario_in_orbit(name, tmp_path):
    file = tmp_path / "page.html"
    load(EXAMPLES / f"{name}.py").page(str(file))
    assert file.stat().st_size > 500_000


@pytest.mark.parametrize("name", sorted(HOLDS))
def test_picture(name):
    axes = Figure().subplots()
    load(EXAMPLES / f"{name}.py").draw(axes)
    assert axes.lines
    assert axes.get_xlabel()
    assert axes.get_ylabel()
