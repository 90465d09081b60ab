"""Every example runs, and finds what it says."""

import pytest
from matplotlib.figure import Figure

from docs.building.examples import EXAMPLES, load

HOLDS = {
    "planar_arm": lambda r: r["least"] > -2.0 and r["peak"] < 5.0 and r["drift"] < 1e-8 and r["q1"] < 0.0,
    "stanford_arm": lambda r: abs(r["slide_force"] + 6.1 * 9.81 / 2) < 1e-9 and r["drift"] < 1e-8,
    "double_pendulum": lambda r: r["drift"] < 1e-8 and r["last_spread"] > 100 * r["first_spread"],
    "satellite": lambda r: max(r.values()) < 1e-10,
    "quadruped": lambda r: r["off_path"] < 1e-9 and r["lost"] < 1e-8 and r["after"] > 1.2 * r["before"],
    "box_stack": lambda r: r["force"] < 1e-6 and r["creep"] < 1e-8,
    "dominoes": lambda r: r["fallen"] > 0.5 and r["order"] > 0.0 and 0.1 < r["speed"] < 2.0,
    "gripper": lambda r: r["slip"] < 1e-9 and r["fallen"] > 0.1,
    "rattleback": lambda r: r["one way"] > 1.0 and r["other way"] < -2.0 and r["other way, energy gained"] < 1e-9,
    "eulers_disk": lambda r: 0.5 < r["rest"] < 3.0 and r["gained"] < 1e-9 and r["speed"] < 1e-9,
    "standing_quadruped": lambda r: r["creep"] < 1e-6 and r["missing"] < 1e-6 and r["deep"] < 1e-7,
    "lqr": lambda r: 30 <= r["most"] < 75,
    "random_search": lambda r: r["last"] < 0.1 < r["first"],
    "tune_controller": lambda r: r["cma"] < r["random"] and r["falls"] < 0.1,
    "identify_masses": lambda r: r["error"] < 0.1 and abs(r["cost"] - 0.015) < 1e-3,
    "identification": lambda r: r["error"] < 2e-3 * r["rms"],
}


def test_every_example_is_tested_and_listed():
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    assert files == set(HOLDS)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}.py]({name}.py)" in listed for name in files)


@pytest.mark.parametrize("name", sorted(HOLDS))
def test_example(name, capsys):
    found = load(EXAMPLES / f"{name}.py").main(quick=True)
    assert capsys.readouterr().out
    assert HOLDS[name](found), found


@pytest.mark.parametrize("name", sorted(HOLDS))
def test_picture(name):
    axes = Figure().subplots()
    load(EXAMPLES / f"{name}.py").draw(axes)
    assert axes.lines
    assert axes.get_xlabel()
    assert axes.get_ylabel()
