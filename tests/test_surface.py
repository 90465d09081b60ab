"""The names that people see: few, each found in one place, and none of the old ones in what we show."""

import inspect
import pickle
import re
from dataclasses import fields
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.model.making import METHODS
from linkwise.samples import planar_arm, stanford_arm

ROOT = Path(__file__).parents[1]
SHOWN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.py"))]


def public(kind: type) -> set[str]:
    own = {field.name for field in fields(kind)} if hasattr(kind, "__dataclass_fields__") else set()
    return {name for name in {*dir(kind), *own} if not name.startswith("_")}


def test_names_are_few_and_differ():
    """As many as one can look through; none is another one with an s behind it, but for files and their texts."""
    names = {name for name in dir(lw) if not name.startswith("_")}
    assert len(names) <= 80
    assert {name for name in names if f"{name}s" in names} == {"load"}  # as in the module json
    assert len(public(lw.Model)) <= 95


@pytest.mark.parametrize("name", ["to_fmu", "shoot", "box"])
def test_names_in_a_group_are_found_from_outside_it(name):
    with pytest.raises(AttributeError, match=rf"instead: lw\.\w+\.{name}") as raised:
        getattr(lw, name)
    group = str(raised.value).rsplit("lw.", 1)[1].split(".")[0]
    assert callable(getattr(getattr(lw, group), name))


def test_every_argument_of_a_function_is_explained():
    """By the method itself, or by the catalogue."""
    for function, (_, _, method) in METHODS.items():
        names = [name for name in inspect.signature(method).parameters if name != "self"]
        missing = [name for name in names if f"\n    {name}: " not in method.__doc__]
        assert not missing, f"{function}: {missing}"


def test_functions_of_scalars_are_drawn_in_together():
    space: dict[str, object] = {}
    exec("from linkwise.math import *", space)
    assert {"sin", "where", "abs"} <= set(space)
    assert all(space[name] is getattr(lw.math, name) for name in lw.math.__all__)


def test_names_of_others_work_and_are_not_listed():
    model = planar_arm(2)
    assert (model.rnea([0.1, 0.2], [1, 0], [0, 0]) == model.inverse_dynamics([0.1, 0.2], [1, 0], [0, 0])).all()
    assert (model.crba([0.1, 0.2]) == model.mass_matrix([0.1, 0.2])).all()
    assert (model.aba([0.1, 0.2], [1, 0], [0, 0]) == model.forward_dynamics([0.1, 0.2], [1, 0], [0, 0])).all()
    assert not {"rnea", "aba", "crba"} & set(dir(model))


@pytest.mark.parametrize("group", ["constraints", "centroidal", "operational", "statics"])
def test_groups_say_what_they_are_of_and_travel_with_the_model(group):
    model = stanford_arm()
    found = getattr(model, group)
    assert found is getattr(model, group)
    assert group in repr(found) and model.name in repr(found)
    assert pickle.loads(pickle.dumps(found)).model == model


def test_functions_of_groups_are_found_by_their_names():
    model = stanford_arm()
    assert model.function("centroidal.inertia").name == "centroidal_inertia"
    q = model.neutral()
    assert (model.function("centroidal.inertia")(q) == model.centroidal.inertia(q)).all()
    with pytest.raises(lw.errors.UnknownNameError):
        model.function("centroidal.nothing")


@pytest.mark.parametrize(
    ("name", "place"),
    [("lower", "limits.lower"), ("armature", "joint_constants.armature"), ("workspace", "statics.workspace")],
)
def test_attributes_in_a_group_are_found_from_outside_it(name, place):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; instead: model\.{re.escape(place)}$"):
        getattr(stanford_arm(), name)


@pytest.mark.parametrize("thing", [lw, stanford_arm(), lw.ModelBuilder("b")], ids=["lw", "model", "builder"])
@pytest.mark.parametrize("name", ["nothing", "_nothing", "index"])
def test_names_that_are_nowhere_are_said_to_be_missing_alone(thing, name):
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'$"):
        getattr(thing, name)


# Old names: the changelog lists them.
ROWS = re.findall(
    r"^\| (`(?:lw|model|builder)\..*) \| `.*` \|$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
)
OLD = [name for row in ROWS for name in re.findall(r"`([^`]+)`", row)]


def old_of(what: str) -> str:
    return rf"(?:{'|'.join(re.escape(name.partition('.')[2]) for name in OLD if name.startswith(f'{what}.'))})"


def test_old_names_are_gone():
    owners = {"lw": lw, "model": stanford_arm(), "builder": lw.ModelBuilder("b")}
    plain = [name for name in OLD if name.count(".") == 1]
    assert len(plain) > 90
    assert [name for name in plain if hasattr(owners[name.partition(".")[0]], name.partition(".")[2])] == []


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_we_show_has_no_old_name(path):
    """Code in pages and examples also runs, in other tests: this is about what stands in their sentences."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(rf"(?<![\w.])(?:lw|linkwise)\.{old_of('lw')}(?!\w)", text)
    found += re.findall(rf"(?<![\w.])(?:model|arm|robot|panda|mechanism)\.{old_of('model')}(?!\w)", text)
    found += re.findall(r"(?:lw|linkwise)\.ensemble\.\w+", text)
    found += re.findall(r"\b(?:add|with)_constraint\b", text)
    assert found == []


def test_time_is_given_by_name():
    """Wherever ``t`` is one argument beside a state; where it is what is asked for (``path.q(t)``), it comes first."""
    for kind in (lw.Model, *(type(getattr(stanford_arm(), g)) for g in ("constraints", "statics"))):
        for name in public(kind):
            method = getattr(kind, name, None)
            if callable(method) and hasattr(method, "__code__"):
                code = method.__code__
                assert "t" not in code.co_varnames[: code.co_argcount], f"{kind.__name__}.{name}"
