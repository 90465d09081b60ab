"""The completion scripts are ones that the shells accept, and complete what there is."""

import shutil
import subprocess

import pytest

from linkwise.cli.completion import script


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
    [("linkwise si", "simulate"), ("linkwise emit x.urdf f --ta", "--target"), ("linkwise info pl", "planar_arm")],
)
def test_bash_completes(words, expected, tmp_path):
    parts = words.split()
    code = script("bash") + (f"COMP_WORDS=({words}); COMP_CWORD={len(parts) - 1}; _linkwise; echo ${{COMPREPLY[@]}}")
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert expected in done.stdout.split()
