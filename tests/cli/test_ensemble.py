"""`linkwise ensemble`: a study file is run, resumed, reported and replayed; and it cannot reach beyond its folder."""

import json
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

STUDY = """
model = "robot.urdf"
members = 40
seed = 7
design = "latin"
batch = 8
keep = ["final", "events"]
{top}

[simulate]
duration = 0.2
method = "rk4"
dt = 1e-2

[control]
hold = [0.1, 0.0]
kp = "stiffness"
kd = 2.0

[inputs]
q0 = {{ normal = [[0.1, 0.0], 0.1] }}
"lower.mass" = {{ gamma = {{ a = 4.0, scale = 0.25 }} }}
stiffness = {{ uniform = [2.0, 20.0] }}

[events.up]
joint = "elbow"
reaches = 0.0

[measures]
effort = {{ channel = "tau", over_time = "max", absolute = true }}
side = {{ body = "lower", axis = "x", joint = "elbow" }}

[failure]
measure = "effort"
above = 1.0
"""


@pytest.fixture(autouse=True)
def _needs_zarr():
    pytest.importorskip("zarr")


@pytest.fixture
def study(tmp_path):
    def write(top="", change=("", "")):
        (tmp_path / "study.toml").write_text(
            STUDY.format(top=top).replace(*change) if change[0] else STUDY.format(top=top)
        )

    write()
    return write


def test_run_status_resume_report_replay(study, ok):
    out = ok("ensemble run study.toml --threads 1")
    assert "40 members: 40 done" in out
    assert "failure rate" in out
    results = lw.studies.open("study")
    assert {"effort", "side", "up.count", "up.first", "failure", "q_final"} <= set(results.outcomes)
    Path("study/records/00000003.json").unlink()
    assert "32 of 40 members, 4 of 5 blocks" in ok("ensemble status study.toml")
    assert "40 done" in ok("ensemble resume study.toml")
    assert "5 of 5 blocks" in ok("ensemble status study.toml")
    ok("ensemble report study.toml --worst effort -o page.html")
    assert "linkwise ensemble replay study.toml --member" in Path("page.html").read_text(encoding="utf-8")
    assert "the same bits as stored" in ok("ensemble replay study.toml --member 17 -o one.npz --samples 21")
    again = lw.Trajectory.load("one.npz")
    assert np.array_equal(again.q[-1], results["q_final"][17])


def test_the_study_is_what_it_says(study, ok):
    ok("ensemble run study.toml")
    results = lw.studies.open("study")
    model = lw.load("robot.urdf").with_parameters(["lower.mass"])

    def control(t, q, v, p):
        weight = model.gravity_force(q, p=p[:1])
        return [p[1] * (0.1 - q[0]) - 2.0 * v[0] + weight[0], p[1] * (0.0 - q[1]) - 2.0 * v[1] + weight[1]]

    p = np.stack([results["lower.mass"], results["stiffness"]], axis=1)
    up = lw.Event(lambda t, q, v, p: q[1], name="up")  # an event divides the step that it lies in
    plain = lw.simulate(
        model, results["q0"], p=p, control=control, events=up, duration=0.2, method="rk4", dt=1e-2, progress=False
    )
    assert np.allclose(plain.q[:, -1], results["q_final"], rtol=0, atol=1e-12)
    assert np.allclose(np.abs(plain.tau).max(axis=(1, 2)), results["effort"], rtol=1e-9)
    assert json.loads(Path("study/manifest.json").read_text())["design"] == "latin"


def test_code_that_the_user_names(study, ok, run):
    study(change=('[control]\nhold = [0.1, 0.0]\nkp = "stiffness"\nkd = 2.0\n', ""))
    Path("mine.py").write_text(
        "def control(t, q, v, p):\n    return [-p[1] * q[0], -p[1] * q[1]]\n\n"
        "def half(trajectory):\n    return trajectory.q[:, -1, 0] / 2\n\nkeep = {'half': half}\n"
    )
    ok("ensemble run study.toml --code mine.py")
    results = lw.studies.open("study")
    assert np.array_equal(results["half"], results["q_final"][:, 0] / 2)
    status, _, err = run("ensemble resume study.toml")  # without the code it is another study
    assert status == 2
    assert "another study" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('model = "robot.urdf"', 'model = "/etc/passwd"'), "outside its folder"),
        (('model = "robot.urdf"', 'model = "../robot.urdf"'), "outside its folder"),
        (("batch = 8", 'store = "../elsewhere"'), "outside its folder"),
        (("batch = 8", "batches = 8"), "no key in a study"),
        (("method = ", "metod = "), "no setting in a study"),
        (("gamma", "gama"), "did you mean 'gamma'"),
        (("a = 4.0, ", ""), "cannot be made"),
        (('kp = "stiffness"', 'kp = "stifness"'), "did you mean 'stiffness'"),
        (('joint = "elbow"\nreaches', 'joint = "elbw"\nreaches'), "did you mean 'elbow'"),
        (('channel = "tau"', 'channel = "torque"'), "no channel"),
        (('measure = "effort"', 'measure = "efort"'), "did you mean 'effort'"),
        (("members = 40", "members = 0"), "positive whole number"),
        (("[simulate]", "[simulate"), "not a TOML file"),
        (('"lower.mass"', '"lowr.mass"'), "did you mean 'lower.mass'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(study, run, change, message):
    study(change=change)
    status, out, err = run("ensemble run study.toml")
    assert status == 2
    assert message in err
    assert err.count("\n") == 1
    assert not out
    assert not Path("study").exists()


def test_a_second_run_overwrites_nothing(study, ok, run):
    ok("ensemble run study.toml")
    status, _, err = run("ensemble run study.toml")
    assert status == 2
    assert "nothing is overwritten" in err
    status, _, err = run("ensemble replay study.toml")
    assert "which member?" in err


def test_ctrl_c_says_how_to_go_on(study, ok, run, monkeypatch):
    def press(*_):
        raise KeyboardInterrupt

    study()
    with monkeypatch.context() as patched:
        patched.setattr("linkwise.studies.running.drive", press)
        status, _, err = run("ensemble run study.toml")
    assert status == 130
    assert err.count("\n") == 1
    assert "interrupted after 0 of 40 members" in err and err.rstrip().endswith("linkwise ensemble resume study.toml")
    assert "40" in ok("ensemble resume study.toml")
