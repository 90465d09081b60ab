"""The page about the architecture: its drawing is that of the code, and the call that it follows goes that way."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")

WALK = """
import sys
from pathlib import Path
import numpy as np
import linkwise as lw

root = Path(lw.__file__).parents[1]
builder = lw.ModelBuilder("arm")
for k in range(3):
    joint = lw.Revolute(axis=[(0, 1, 0), (0, 0, 1)][k % 2])
    parent = f"l{k - 1}" if k else "world"
    builder.add_body(f"l{k}", parent, joint, lw.transform(xyz=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
model, seen = builder.build(), set()
sys.setprofile(lambda frame, event, _: seen.add(frame.f_code.co_filename))
model.forward_dynamics(np.zeros(3), np.ones(3), np.zeros(3))
model.forward_dynamics(np.zeros((9, 3)), np.ones((9, 3)), np.zeros((9, 3)))
sys.setprofile(None)
print("\\n".join(str(Path(name).relative_to(root)) for name in seen if name.startswith(str(root / "linkwise"))))
"""


def test_the_drawing_is_that_of_the_code() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate_architecture.py"))
    assert made["page"]() == TEXT, "run python docs/generate_architecture.py"
    drawn = {name for members in made["GROUPS"].values() for name in members}
    assert drawn == {name for row in made["layers"]() for name in row}


def test_every_place_exists() -> None:
    places = re.findall(r"`((?:linkwise|bench|docs|campaign)/[\w/.]*)`", TEXT)
    assert len(places) > 30
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_the_first_call_goes_that_way() -> None:
    section = TEXT.split("## One call")[1].split("Where a mechanism has many links")[0]
    named = set(re.findall(r"`(linkwise/[\w/]*\.py)`", section))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LINKWISE_CACHE": "off"}
    ran = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, env=environment, check=True)
    assert named - set(ran.stdout.split()) <= {"linkwise/trace/block.py", "linkwise/algorithms/catalogue.py"}, (
        "but for data, the files of the call are those that it runs through"
    )


def test_the_rooms_are_as_large_as_said() -> None:
    """To within a tenth: who makes one much larger says there what for."""
    rooms = re.findall(r"^\| `(linkwise/[\w/]+/)` \| ([\d ]+) \|", TEXT, re.MULTILINE)
    assert len(rooms) > 20
    for folder, said in rooms:
        count = sum(path.read_text(encoding="utf-8").count("\n") for path in (ROOT / folder).rglob("*.py"))
        assert abs(count - int(said.replace(" ", ""))) <= max(0.1 * count, 100), f"{folder} has {count} lines"
