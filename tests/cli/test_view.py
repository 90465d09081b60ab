"""`linkwise view`, and what `simulate` shows."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from linkwise.cli.motion_files import MotionTable, trajectory_of
from linkwise.samples import planar_arm
from tests.machine import PATIENCE

pytest.importorskip("viser")


def test_html_of_a_model_and_of_a_motion(ok):
    assert ok("view robot.urdf --html model.html").strip() == "model.html"
    ok("simulate robot.urdf --duration 0.2 --samples 5 -o motion.npz --html fall.html")
    assert ok("view robot.urdf motion.npz --html again.html").strip() == "again.html"
    for name in ("model.html", "fall.html", "again.html"):
        assert "__VISER_EMBED_DATA__" in Path(name).read_text(encoding="utf-8")


def test_columns_in_another_order_are_those_of_their_joints():
    """By their names, whatever the order of a file: accelerations and forces too."""
    model = planar_arm(3)
    names, numbers = [joint.name for joint in model.joints], np.arange(6.0).reshape(2, 3)
    table = MotionTable(np.array([0.0, 1.0]))
    for k, quantity in enumerate(("q", "v", "vdot", "tau")):
        table.add(quantity, names[::-1], numbers[:, ::-1] + k)
    motion = trajectory_of(table, "motion.csv", model)
    for k, values in enumerate((motion.q, motion.v, motion.vdot, motion.tau)):
        assert np.array_equal(values, numbers + k)


def test_a_video(ok):
    ok("simulate robot.urdf --duration 0.05 --samples 3 -o motion.csv")
    assert ok("view robot.urdf motion.csv --video fall.gif").strip() == "fall.gif"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("view motion.npz", "linkwise view MODEL MOTION"),
        ("view robot.urdf --html page.pdf", "--html"),
        ("view robot.urdf --video fall.mp4", "needs a motion"),
        ("view robot.urdf notes.txt", "not a motion"),
        ("simulate robot.urdf --html fall.txt", "--html"),
        ("view robot.urdf --port 99999 --no-open", "not a port"),
        ("view robot.urdf --q 1,2,3", "wrong length"),
    ],
)
def test_mistakes(run, line, said):
    status, _, err = run(line)
    assert status == 2 and said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "line", ["view robot.urdf --no-open --port 0", "simulate robot.urdf --duration 0.1 --samples 3 --view"]
)
def test_a_page_is_served_until_ctrl_c(line):
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    command = [sys.executable, "-m", "linkwise", *line.split()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        url = ""
        while not url.startswith("http"):
            said = process.stderr.readline()
            assert said, "it ended before it served"
            url = said.removeprefix("linkwise: ").strip()
        with urllib.request.urlopen(url) as page:
            assert page.status == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60 * PATIENCE)
    # 130 where Ctrl-C came before the page had all its parts: it answers a little earlier.
    assert process.returncode in (0, 130) and "Traceback" not in err
