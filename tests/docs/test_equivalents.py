"""The table for people who come from elsewhere names functions that exist."""

import re
from pathlib import Path

import mujoco
import pinocchio as pin

import linkwise as lw

TABLE = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:5] for line in TABLE.splitlines() if line.startswith("| `")]


def test_there_is_a_table():
    assert len(ROWS) > 20


def test_ours():
    for cell in (row[0] for row in ROWS):
        for owner, name in re.findall(r"\b(model|lw)\.(\w+)", cell):
            assert hasattr({"model": lw.Model, "lw": lw}[owner], name) or name in ("nq", "nv"), name


def test_pinocchio():
    for cell in (row[1] for row in ROWS):
        for name in re.findall(r"pin\.(\w+)", cell):
            assert hasattr(pin, name) or name == "casadi", name


def test_mujoco():
    for cell in (row[2] for row in ROWS):
        for name in re.findall(r"`(mjd?_\w+)", cell):
            assert hasattr(mujoco, name), name
        for name in re.findall(r"data\.(\w+)", cell):
            assert hasattr(mujoco.MjData, name), name
