"""Whatever a user does wrong: a status that is not zero, one line that says what, and no traceback."""

import subprocess
import sys

import pytest

MISTAKES = {
    "": "usage",
    "inof robot.urdf": "invalid choice",
    "info": "required",
    "info nothing.urdf": "there is no such file",
    "info planar": "did you mean 'planar_arm'?",
    "info robot.urdf --lock shoulde": "did you mean 'shoulder'?",
    "info robot.urdf --lock shoulder=much": "--lock shoulder is not a number",
    "info robot.urdf --gravity 0,0": "--gravity has the wrong length",
    "info planar_arm --floating": "built-in models cannot be changed",
    "inverse robot.urdf": "inverse needs a motion",
    "inverse robot.urdf --to 1": "--to (nq = 2) has the wrong length",
    "inverse robot.urdf --to 1,2 --samples 1": "--samples is too small",
    "inverse robot.urdf --to 1,nan": "is not a finite number",
    "inverse robot.urdf --to 1,2 --duration 0": "--duration is not a time",
    "inverse robot.urdf --to 1,2 -o forces.xls": "--output has an unknown kind of file",
    "inverse robot.urdf --to 1,2 -o no/where.csv": "the folder of --output does not exist",
    "inverse robot.urdf --motion none.csv": "No such file or directory",
    "inverse robot.urdf --motion text.csv": "the first column is not the time",
    "inverse robot.urdf --motion short.csv": "at least four",
    "inverse robot.urdf --motion other.csv": "the columns of q are not those",
    "inverse robot.urdf --motion broken.npz": "is not an npz file",
    "inverse robot.urdf --motion robot.urdf": "unknown kind of motion file",
    "simulate robot.urdf --q0 wrist=1": "there is no joint of this name",
    "simulate robot.urdf --q0 random:x": "is not a whole number",
    "simulate robot.urdf --method newton": "no such method",
    "simulate robot.urdf --duration -1": "--duration is not a time",
    "simulate robot.urdf --tau short.csv": "has no joint forces",
    "simulate robot.urdf --rtol 0": "rtol",
    "simulate planar_arm --method euler --dt 0.5 --duration 1000 --samples 3 -o x.csv": "could not reach its end",
    "linearize robot.urdf --q 1": "wrong length",
    "counts": "counts needs a model, or --chain N",
    "counts robot.urdf inertia": "there is no function of this name",
    "counts --chain 0": "n is not a positive whole number",
    "counts --chain 1000000": "--chain is too long to count",
    "counts --chain 1000000 articulated": "there is no algorithm of this name",
    "counts --chain 150 linkwise_forward articulated": "there is no algorithm of this name",
    "bench robot.urdf --batch 0": "--batch is not a positive whole number",
    "emit robot.urdf forward_dynamics --target fortran": "no such target",
    "emit robot.urdf jacobian --body hand": "there is no body or frame of this name",
    "plot short.csv --what tau -o a.png": "there is no quantity",
    "plot short.csv --joints wrist -o a.png": "there is no joint",
    "demo -o report.pdf": "--output has an unknown kind of file",
    "completion powershell": "invalid choice",
}


@pytest.fixture(autouse=True)
def _files(tmp_path, _in_a_folder_of_its_own):
    (tmp_path / "text.csv").write_text("hello\nworld\n")
    (tmp_path / "short.csv").write_text("t,q:shoulder,q:elbow\n0,0,0\n1,1,1\n")
    (tmp_path / "other.csv").write_text("t,q:wrist\n0,0\n1,1\n")
    (tmp_path / "broken.npz").write_bytes(b"not a zip file")


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake(run, line):
    status, out, err = run(line)
    assert status == 2
    assert MISTAKES[line] in out + err
    assert "Traceback" not in err
    if err and "usage:" not in err:
        *warnings, error = err.splitlines()
        assert error.startswith("linkwise: error: ")
        assert all(warning.startswith("linkwise: warning: ") for warning in warnings)


def test_nothing_heavy_is_imported_for_help():
    code = "import sys\nfrom linkwise.cli import main\nmain(['--help'])\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"llvmlite", "scipy", "matplotlib", "mujoco"} & set(loaded)


def test_a_reader_that_stops_early_is_no_error():
    code = "import sys\nfrom linkwise.cli import main\nsys.exit(main(['counts', '--help']))"
    done = subprocess.run(
        f'{sys.executable} -c "{code}" | head -1', shell=True, capture_output=True, text=True, check=True
    )
    assert "Traceback" not in done.stderr


def test_warnings_are_one_line(run, tmp_path):
    text = (tmp_path / "robot.urdf").read_text()
    (tmp_path / "odd.urdf").write_text(text.replace('izz="0.01"', 'izz="5"'))
    status, _, err = run("counts odd.urdf gravity_force")
    assert status == 0
    assert err.startswith("linkwise: warning: ")
    assert all(line.startswith("linkwise: warning: ") for line in err.splitlines())
