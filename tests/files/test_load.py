"""From a path to a model."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

from linkwise.errors import ModelFileError, ModelWarning, UnknownNameError
from linkwise.files import load, loads
from tests.files.recording import robot_file
from tests.files.test_urdf_reads import inertial, joint, link, robot, two

pytest.importorskip("linkwise.model.model")


def test_panda() -> None:
    file = robot_file("panda.urdf")
    assert load(file).nv == 8  # seven joints and two fingers, of which one follows the other
    assert load(str(file), mimic=False).nv == 9
    model = load(file, locked=["panda_finger_joint1"], gravity=(0, 0, -1.62), name="moon")
    assert (model.nq, model.nv, model.name) == (7, 7, "moon")
    np.testing.assert_array_equal(model.gravity, (0, 0, -1.62))
    assert model.joints["panda_joint3"].v_slice == slice(2, 3)


def test_a_floating_root() -> None:
    model = load(robot_file("panda.urdf"), floating=True)
    assert (model.nq, model.nv) == (7 + 8, 6 + 8)
    assert model.joints["root_joint"].v_slice == slice(0, 6)


def test_texts_are_loaded_like_files() -> None:
    """`loads` says that its arguments are those of `load`: so are their defaults."""
    of_files = inspect.signature(load).parameters
    for name, parameter in list(inspect.signature(loads).parameters.items())[1:]:
        assert parameter == of_files[name], name


def test_text(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="utf-16"?>\n' + two()
    assert loads(text).nv == 1
    assert loads(two().encode()).nv == 1
    path = tmp_path / "a.urdf"
    path.write_text(two())
    assert load(path).name == "r"
    with pytest.raises(ModelFileError, match=r"<string>:5: "):
        loads('<?xml version="1.0"?>\n' + two("<axis/>"))


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar", "floating"])
def test_every_joint_type_makes_a_model(kind: str) -> None:
    expected = {"planar": 3, "floating": 6}.get(kind, 1)
    assert loads(two('<limit lower="-1" upper="1" effort="1" velocity="1"/>', kind)).nv == expected


def test_warnings_are_given_once_where_load_was_called() -> None:
    text = robot(link("a"), link("b", inertial(1, 1, 3)), joint("j", "a", "b"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loads(text)
    assert [warning.category for warning in caught] == [ModelWarning]
    assert caught[0].filename == __file__


def test_extra_frames() -> None:
    place = np.eye(4)
    place[2, 3] = 0.1
    model = loads(two(), frames={"tool": ("b", place)})
    np.testing.assert_allclose(model.pose(model.neutral(), "tool")[:3, 3], [0, 0, 0.1])
    with pytest.raises(UnknownNameError):
        loads(two(), frames={"tool": ("c", place)})
