"""Every example in every `--help` runs, and what a new user meets first."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.cli.parser import make_parser
from linkwise.viz.page import Page
from tests.files.recording import robot_files


def examples():
    """(command, line) from the epilogs of the whole parser and of each command."""
    parser = make_parser()
    texts = [parser.epilog, *(sub.epilog for sub in parser._subparsers._group_actions[0].choices.values())]
    lines = [line.strip() for text in texts for line in text.splitlines() if line.startswith("  linkwise ")]
    return sorted({re.split(r"\s{3,}", line.removeprefix("linkwise "))[0] for line in lines})


LONG = ("demo", "bench")  # shown, and tested elsewhere


def robot(name):
    return next(file for file in robot_files(Path(name).suffix) if file.name == name)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder with the files that examples are about."""
    home = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        _prepare(home)
    return home


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    return tmp_path


def _prepare(tmp_path):
    for name in ("panda.urdf", "cassie.sdf"):
        shutil.copy(robot(name), tmp_path / name)
    g1 = next((file for file in robot_files(".urdf") if file.name.startswith("g1")), robot("panda.urdf"))
    shutil.copy(g1, tmp_path / "g1.urdf")
    shutil.copy("panda.urdf", "old.urdf")
    shutil.copy("panda.urdf", "new.urdf")
    model = lw.load("panda.urdf")
    model.save("panda.lw.json")
    t = np.linspace(0.0, 0.02, 6)
    q = np.clip(np.zeros(model.nq), model.limits.lower, model.limits.upper) + 0.0 * t[:, None]
    joints = [joint.name for joint in model.joints if joint.mimic is None]
    np.savetxt(
        "recorded.csv",
        np.column_stack([t, q]),
        delimiter=",",
        header=",".join(["t", *(f"q:{n}" for n in joints)]),
        comments="",
    )
    np.savetxt(
        "forces.csv",
        np.column_stack([t, 0.0 * q]),
        delimiter=",",
        header=",".join(["t", *(f"tau:{n}" for n in joints)]),
        comments="",
    )
    short = lw.ModelBuilder("arm")
    for name, parent in (("elbow", "world"), ("wrist", "a elbow")):
        short.add_body(
            f"a {name}", parent, lw.Revolute((0, 1, 0)), joint_name=name, mass=1.0, com=(0, 0, 1), inertia=np.eye(3)
        )
    lw.simulate(short.build(), [0.1, 0.0], duration=0.1).save("motion.npz")
    lw.simulate(model, np.clip(model.neutral(), model.limits.lower, model.limits.upper), duration=0.02).save("seen.npz")


@pytest.mark.parametrize("line", [line for line in examples() if not line.startswith(LONG)])
def test_example(line, folder, capsys, monkeypatch):
    command = line.partition(" | ")[0].partition(" > ")[0]
    words = shlex.split(command)
    if "--duration" in words:  # as it stands but for its length: an example is not a benchmark
        words[words.index("--duration") + 1] = "0.02"
    elif words[0] == "simulate":
        words += ["--duration", "0.02"]
    if words[0] == "plot" and "-o" not in words:
        words += ["-o", "window.png"]
    if words[0] == "ensemble":
        words = _of_a_small_study(words)
    if words[0] == "view":
        shutil.copy("seen.npz", "motion.npz")
        if "--html" not in words:  # a page until Ctrl-C, which comes at once
            monkeypatch.setattr("linkwise.viz.page.Page.wait", Page.close)
            words += ["--no-open", "--port", "0"]
    assert main(words) == 0, capsys.readouterr().err


STUDY = """
model = "robot.urdf"
members = 50
batch = 10
[simulate]
duration = 0.02
method = "rk4"
dt = 1e-2
[inputs]
q0 = { normal = [[0.1, 0.0], 0.1] }
"""


def _of_a_small_study(words):
    """The words as they stand but for the number of members and the address of a cluster."""
    pytest.importorskip("zarr")
    Path("study.toml").write_text(STUDY)
    if words[1] != "run":
        assert main(["ensemble", "run", "study.toml"]) == 0
    for option, given in (("--members", ["--members", "20"]), ("--client", [])):
        if option in words:
            k = words.index(option)
            words[k : k + 2] = given
    return words


def test_there_are_examples():
    found = examples()
    assert len(found) > 20
    assert any("--method rk4 --dt 0.001 --json" in line for line in found)


def test_the_start_is_said_in_one_line(folder, capsys):
    assert main(["simulate", "panda.urdf", "--duration", "0.02", "-o", "motion.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "start: panda_joint4 = -0.0698" in captured.err
    assert main(["simulate", "panda.urdf", "--q0", "neutral", "--duration", "0.02", "-o", "motion.csv"]) == 2
    assert "--limits ignore" in capsys.readouterr().err
    words = ["--q0", "neutral", "--limits", "ignore", "--duration", "0.02", "-o", "motion.csv"]
    assert main(["simulate", "panda.urdf", *words]) == 0


def test_all_robots_have_a_start():
    """None of the files is beyond its limits at the start that the command line chooses."""
    beyond = []
    for file in robot_files(".urdf")[::4]:
        try:
            model = lw.load(file)
        except lw.LinkwiseError:
            continue
        q = model.start
        if model.nv and not ((q >= model.limits.lower - 1e-12) & (q <= model.limits.upper + 1e-12)).all():
            beyond.append(file.name)
    assert not beyond


def test_a_short_table_of_forces_says_that_it_is_held(folder, capsys):
    Path("push.csv").write_text("t,joint1,joint2,joint3\n0,1,0,0\n0.1,2,0,0\n")
    assert main(["simulate", "planar_arm", "--tau", "push.csv", "--duration", "0.3", "-o", "m.npz"]) == 0
    assert "push.csv is from 0 s to 0.1 s" in capsys.readouterr().err
    assert lw.Trajectory.load("m.npz").tau[-1, 0] == 2.0
    assert main(["simulate", "planar_arm", "--tau", "push.csv", "--duration", "0.1", "-o", "m.npz"]) == 0
    assert "push.csv" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["linear", "held", "cubic"])
def test_forces_from_a_table(folder, capsys, kind):
    Path("push.csv").write_text("t,elbow,wrist\n0,1,0\n0.1,0,0\n")
    Path("arm.urdf").write_text(
        '<robot name="arm"><link name="base"/>'
        + "".join(
            f'<link name="l{n}"><inertial><origin xyz="0 0 -1"/><mass value="1"/>'
            '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="{n}" type="continuous"><parent link="{p}"/><child link="l{n}"/><axis xyz="0 1 0"/></joint>'
            for n, p in (("elbow", "base"), ("wrist", "lelbow"))
        )
        + "</robot>"
    )
    line = f"simulate arm.urdf --tau push.csv --tau-kind {kind} --duration 0.2 --gravity 0,0,0 -o out.npz"
    assert main(line.split()) == 0, capsys.readouterr().err
    assert "warning" not in capsys.readouterr().err
    model = lw.load("arm.urdf", gravity=(0, 0, 0))
    traj = lw.Trajectory.load("out.npz", model=model)
    p = model.mass_matrix(traj.q[-1]) @ traj.v[-1]
    assert p.sum() > 0.0
    expected = 0.1 if kind == "held" else 0.05
    assert (model.mass_matrix(np.zeros(2)) @ traj.v[-1])[0] == pytest.approx(expected, rel=0.05)


FIXED = ("iris_simple.urdf", "a1.urdf")


def test_what_is_fixed_to_the_world_is_shown(capsys):
    assert main(["info", str(robot("a1.urdf"))]) == 0
    out = capsys.readouterr().out
    assert "7.74 kg moving, 6.001 kg fixed to the world" in out
    assert "trunk 6 kg" in out
    assert "--floating" in out
    assert main(["info", "--floating", str(robot("a1.urdf"))]) == 0
    assert "fixed to the world" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "info FILE",
        "info FILE --json",
        "simulate FILE --duration 1 --json",
        "simulate FILE --hold --duration 1 -o x.csv",
        "linearize FILE",
        "linearize FILE --inverse --json",
        "inverse FILE --to neutral --json",
        "counts FILE",
        "bench FILE --rounds 1 --batch 2",
        "emit FILE forward_dynamics",
    ],
)
def test_a_model_without_freedoms_can_be_asked_everything(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(robot("iris_simple.urdf"), "iris.urdf")
    assert main(line.replace("FILE", "iris.urdf").split()) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("inverse planar_arm --to 1e300,1e300,1e300", "not finite"),
        ("simulate planar_arm --method rk4 --dt 1 --duration 100 -o x.npz", "could not reach its end"),
        ("plot motion.npz", "no display"),
    ],
)
def test_what_went_wrong_is_said(line, words, folder, capsys):
    assert main(line.split()) == 2
    assert words in capsys.readouterr().err


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "linkwise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("linkwise ")


def test_bench_warms_up(monkeypatch):
    from linkwise.cli.commands import functions as bench

    calls = []
    monkeypatch.setattr(bench, "perf_counter_ns", lambda: calls.append("look") or 2_000_000 * len(calls))
    bench._best(lambda: calls.append("call"), 1)
    assert calls[0] == "call"


def test_the_public_names_are_all_there_is():
    assert set(dir(lw)) == {*lw.__all__, "__version__", "math"}
    assert not {"Any", "TYPE_CHECKING", "import_module"} & set(dir(lw))
