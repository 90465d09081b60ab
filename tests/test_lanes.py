"""Lanes are found again as the tests move, and an environment's name says what is in it."""

import argparse
import platform
from pathlib import Path

import pytest

from tests.lanes import __main__ as lanes


def test_what_lanes_run_is_there():
    missing = [name for name in lanes.SUITE if not (Path(__file__).parent / name).exists()]
    assert not missing


def test_what_emulated_machines_leave_out_is_there():
    for machine, names in lanes.LEFT_OUT.items():
        lane = lanes.Lane("3.13", "newest", machine)
        assert lane.left_out == (names if lane.foreign else {})
        for name in names:
            file, _, test = name.partition("::")
            assert f"def {test}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", lanes.LANES)
def test_names_of_lanes(name):
    lane = lanes.Lane.named(name)
    assert str(lane) == name or (lane.machine == platform.machine() and name == f"{lane}-{lane.machine}")


def test_a_name_that_is_no_lane():
    with pytest.raises(argparse.ArgumentTypeError, match=r"as in 3\.12-lowest or 3\.13-newest-aarch64"):
        lanes.Lane.named("3.13")


def test_every_python_that_we_declare_has_a_lane():
    declared = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    versions = {lanes.Lane.named(name).python.removesuffix("t") for name in lanes.LANES}
    assert {f"Programming Language :: Python :: {version}" in declared for version in versions} == {True}
    assert declared.count("Programming Language :: Python :: 3.") == len(versions)
