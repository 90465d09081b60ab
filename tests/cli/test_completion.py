"""The completion scripts are ones that the shells accept, and complete what there is."""

import re
import shutil
import subprocess
import sys

import pytest

from linkwise.cli.commands.machine import completion_script as script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_there(ok, shell):
    out = ok(f"completion {shell}")
    assert out == script(shell)
    assert all(
        name in out for name in ("info", "inverse", "simulate", "linearize", "counts", "bench", "emit", "plot", "demo")
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_accepts_it(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(script(shell))
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("linkwise si", "simulate"),
        ("linkwise emit x.urdf f --ta", "--target"),
        ("linkwise info pl", "planar_arm"),
        ("linkwise info rob", "robot.urdf"),
        ("linkwise info --loops rob", "robot.urdf"),
        ("linkwise simulate x.urdf --limits sp", "spring"),
        ("linkwise convert x.urdf --search fol", "folder"),
        ("linkwise completion f", "fish"),
    ],
)
def test_bash_completes(words, expected, tmp_path):
    (tmp_path / "folder").mkdir()
    parts = words.split()
    code = f"COMP_WORDS=({words}); COMP_CWORD={len(parts) - 1}; _shtab_linkwise; echo ${{COMPREPLY[@]}}"
    code = script("bash") + "\n" + code
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert expected in done.stdout.split()


def test_fields_of_zsh_are_whole():
    """A colon in the name of a value would begin another field."""
    (line,) = set(re.findall(r'"\*--arg\[.*', script("zsh")))
    assert line.endswith(']:NAME=VALUE:"')


def test_without_shtab_the_extra_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    status, out, err = run("completion bash")
    assert (status, out) == (2, "")
    assert 'pip install "linkwise[completion]"' in err
