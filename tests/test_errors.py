"""Every message says what, got, allowed, and what to do; the errors can be caught by their built-in kinds."""

import pickle
import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import linkwise as lw
from linkwise import errors
from linkwise.errors import (
    InputError,
    LinkwiseError,
    MissingExtraError,
    ModelError,
    ModelFileError,
    ModelWarning,
    UnknownNameError,
    require_extra,
)

JOINTS = ["panda_joint1", "panda_joint2", "panda_finger_joint1", "Shoulder"]

EXAMPLES = [
    LinkwiseError("it failed", do="try again"),
    ModelError("the mass is negative", got=-1.0, allowed=">= 0", do="check body 'arm'"),
    ModelFileError("the tag has no name", file="arm.urdf", line=12, got="<link>", allowed='<link name="...">'),
    InputError("q has the wrong shape", got="(3, 8)", allowed="(..., 7): nq = 7", do="look at model.joints"),
    UnknownNameError("joint", "panda_joint9", JOINTS),
    MissingExtraError("matplotlib", "viz"),
]


def test_message_has_the_four_parts_in_order():
    error = InputError("q has the wrong shape", got="(3, 8)", allowed="(..., 7): nq = 7", do="look at model.joints")
    assert str(error) == (
        "q has the wrong shape\n  got:     (3, 8)\n  allowed: (..., 7): nq = 7\n  do:      look at model.joints"
    )
    assert (error.what, error.got, error.allowed) == ("q has the wrong shape", "(3, 8)", "(..., 7): nq = 7")


def test_absent_parts_are_left_out_but_falsy_ones_are_shown():
    assert str(LinkwiseError("it failed")) == "it failed"
    assert "got:     0" in str(InputError("dt is not positive", got=0))


def test_a_part_of_several_lines_stays_aligned():
    assert errors.message("w", allowed="one\ntwo") == "w\n  allowed: one\n           two"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_share_a_base_and_survive_a_worker_process(error):
    assert isinstance(error, LinkwiseError)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (InputError, ValueError),
        (UnknownNameError, KeyError),
        (UnknownNameError, ValueError),
        (MissingExtraError, ImportError),
        (ModelFileError, ModelError),
        (ModelWarning, UserWarning),
    ],
)
def test_kinds(kind, builtin):
    assert issubclass(kind, builtin)


@pytest.mark.parametrize(
    ("place", "beginning"),
    [
        ({"file": "arm.urdf", "line": 12}, "arm.urdf:12: the tag"),
        ({"file": "arm.urdf"}, "arm.urdf: the tag"),
        ({}, "the tag"),
    ],
)
def test_file_errors_begin_with_the_place(place, beginning):
    error = ModelFileError("the tag has no name", **place)
    assert str(error).startswith(beginning)
    assert (error.file, error.line) == (place.get("file"), place.get("line"))


def test_unknown_name_suggests_the_nearest_and_lists_all():
    error = UnknownNameError("joint", "panda_jiont1", JOINTS)
    assert error.nearest[0] == "panda_joint1"
    assert "there is no joint of this name" in str(error)
    assert "'panda_jiont1'" in str(error)
    assert "did you mean 'panda_joint1'" in str(error)
    assert all(name in str(error) for name in JOINTS)


def test_unknown_name_ignores_case():
    assert UnknownNameError("joint", "SHOULDER", JOINTS).nearest == ("Shoulder",)


def test_unknown_name_without_a_near_one():
    error = UnknownNameError("body", "zzz", JOINTS, do="see model.bodies")
    assert error.nearest == ()
    assert str(error).endswith("do:      see model.bodies")
    assert "there are none" in str(UnknownNameError("body", "zzz", []))


def test_long_lists_are_cut_and_say_so():
    assert "(80 more)" in str(UnknownNameError("body", "x", (f"link{k}" for k in range(100))))


def test_warning_has_the_same_shape():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(ModelWarning("the element is ignored", got="<gazebo>", do="remove it"), stacklevel=1)
    assert str(caught[0].message) == "the element is ignored\n  got:     <gazebo>\n  do:      remove it"


def test_require_extra_returns_the_module():
    assert require_extra("json.decoder", "viz") is sys.modules["json.decoder"]


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.inner"])
def test_require_extra_names_the_extra_and_the_command(module):
    with pytest.raises(MissingExtraError, match="no_such_package") as caught:
        require_extra(module, "viz")
    first = str(caught.value).splitlines()[0]
    assert "the extra 'viz'" in first and first.endswith('pip install "linkwise[viz]"')
    assert caught.value.do == 'pip install "linkwise[viz]"'
    assert (caught.value.module, caught.value.extra) == ("no_such_package", "viz")


def test_require_extra_does_not_hide_a_broken_package(tmp_path, monkeypatch):
    (tmp_path / "lw_broken_package.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency") as caught:
        require_extra("lw_broken_package", "viz")
    assert not isinstance(caught.value, MissingExtraError)


HINGE = {"joint": lw.Revolute(axis=(0, 1, 0)), "mass": 1.0, "inertia": np.eye(3)}
BALL = lw.Geometry("sphere", (0.1,), None, (1, 1, 1), lw.transform(), "")


@pytest.mark.parametrize(
    "wrong",
    [
        *(lambda b, x=x: b.add_body("arm", collisions=x, **HINGE) for x in ("box", [3], BALL, [lw.shapes.sphere(0.1)])),
        lambda b: b.add_body("arm", visuals=[3], **HINGE),
        lambda b: b.add_body("arm", limits=3, **HINGE),
        lambda b: lw.Geometry("sphere", (0.1,), None, (1, 1, 1), 3, ""),
        lambda b: lw.Geometry("sphere", (0.1,), None, (1, 1, 1), [1, 2], ""),
        lambda b: lw.samples.planar_arm().with_parameters(3),
        lambda b: lw.samples.planar_arm().inverse_kinematics(3),
        lambda b: lw.emit_c(3, "nowhere"),
    ],
)
def test_what_is_no_list_is_refused_with_a_message(wrong: Callable[[lw.ModelBuilder], object]) -> None:
    with pytest.raises(lw.InputError) as caught:
        wrong(lw.ModelBuilder("arm"))
    assert caught.value.got
