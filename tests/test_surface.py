"""The names that people see: few, each found in one place, and none of the old ones in what we show."""

import inspect
import pickle
import re
from dataclasses import fields
from pathlib import Path

import pytest

import linkwise as lw
from linkwise import renamed
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


# Old names.
def new_of(thing: object, new: str) -> object:
    """The thing at the beginning of a new name: ``limits.lower``, ``bodies[name]``, ``save("name.urdf")``."""
    for name in re.match(r"[\w.]+", new)[0].split("."):
        thing = getattr(thing, name)
    return thing


@pytest.mark.parametrize(
    ("thing", "names"),
    [(lw, renamed.MODULE), (stanford_arm(), renamed.MODEL), (lw.ModelBuilder("b"), renamed.BUILDER)],
    ids=["lw", "model", "builder"],
)
def test_an_old_name_is_gone_and_its_error_says_the_new_one(thing, names):
    for old, new in names.items():
        with pytest.raises(AttributeError, match=re.escape(f"{old!r}; instead: ") + r"\w+\." + re.escape(new)):
            getattr(thing, old)
        new_of(thing, new)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        _ = thing.nothing


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_we_show_has_no_old_name(path):
    """Code in pages and examples also runs, in other tests: this is about what stands in their sentences."""
    text = path.read_text(encoding="utf-8")
    of_module, of_model = (rf"(?:{'|'.join(map(re.escape, names))})" for names in (renamed.MODULE, renamed.MODEL))
    found = re.findall(rf"(?<![\w.])(?:lw|linkwise)\.{of_module}(?!\w)", text)
    found += re.findall(rf"(?<![\w.])(?:model|arm|robot|panda|mechanism)\.{of_model}(?!\w)", text)
    found += re.findall(r"(?:lw|linkwise)\.ensemble\.\w+", text)
    found += re.findall(r"\b(?:add|with)_constraint\b", text)
    assert found == []


def test_the_table_has_every_old_name_once():
    rows = renamed.table().splitlines()[2:]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    expected = [f"lw.{n}" for n in renamed.MODULE] + [f"model.{n}" for n in renamed.MODEL]
    expected += [f"builder.{n}" for n in renamed.BUILDER]
    assert sorted(listed[:-1]) == sorted(expected)
    assert "ensemble" in listed[-1]


def test_time_is_given_by_name():
    """Wherever ``t`` is one argument beside a state; where it is what is asked for (``path.q(t)``), it comes first."""
    for kind in (lw.Model, *(type(getattr(stanford_arm(), g)) for g in ("constraints", "statics"))):
        for name in public(kind):
            method = getattr(kind, name, None)
            if callable(method) and hasattr(method, "__code__"):
                code = method.__code__
                assert "t" not in code.co_varnames[: code.co_argcount], f"{kind.__name__}.{name}"
