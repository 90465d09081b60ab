"""Included models: found where they may be, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.files.test_sdf_reads import joint, link, placed, sdf

WHEEL = sdf(
    link("rim", "0 0 1 0 0 0"), link("hub"), joint("turn", "revolute", "hub", "rim"), pose="9 9 9 0 0 0"
).replace('name="m"', 'name="wheel"')  # fmt: skip


def car(include: str, *more: str, version: str = "1.9") -> str:
    parts = (link("body"), include, joint("root", "prismatic", "world", "body"), *more)
    return sdf(*parts, version=version).replace('name="m"', 'name="car"')


def include(uri: str, inside: str = "", attributes: str = "") -> str:
    return f"<include{attributes}><uri>{uri}</uri>{inside}</include>"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "wheel"
    folder.mkdir(parents=True)
    (folder / "model.config").write_text(
        '<model><name>wheel</name><sdf version="1.4">old.sdf</sdf><sdf version="1.9">wheel.sdf</sdf></model>'
    )
    (folder / "wheel.sdf").write_text(WHEEL)
    (folder / "old.sdf").write_text("not this one")
    (tmp_path / "cars").mkdir()
    return tmp_path


def written(models: Path, text: str) -> Path:
    path = models / "cars" / "car.sdf"
    path.write_text(text)
    return path


def test_by_name_on_the_search_path(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = joint("hold", "fixed", "body", "left::hub", "")
    text = car(include("model://wheel", "<name>left</name><pose>0 1 0 0 0 0</pose>"), hold)
    path = written(models, text)
    for model in (lw.load(path, search=[models / "models"]), lw.loads(text, search=[str(models / "models")])):
        assert [joint.name for joint in model.joints] == ["root", "left::turn"]
        assert np.allclose(
            placed(model, "left::rim")[:3, 3], (0, 1, 1)
        )  # the include's pose takes the place of its own
    with pytest.raises(lw.errors.ModelFileError, match=r"car.sdf:2: an included model: the file was not found"):
        lw.load(path)
    monkeypatch.setenv("LINKWISE_MODEL_PATH", str(models / "models"))
    assert lw.load(path).nv == 2


def test_the_models_own_pose_counts_where_the_include_has_none(models: Path) -> None:
    text = car(include("model://wheel"), joint("hold", "fixed", "body", "wheel::hub", ""))
    model = lw.loads(text, search=[models / "models"])
    assert np.allclose(placed(model, "wheel::hub")[:3, 3], (9, 9, 9))


def test_beside_the_file(models: Path) -> None:
    (models / "cars" / "parts").mkdir()
    (models / "cars" / "parts" / "wheel.sdf").write_text(WHEEL)
    for uri in ("parts/wheel.sdf", "file://parts/wheel.sdf", "model://parts/wheel.sdf"):
        path = written(models, car(include(uri), joint("hold", "fixed", "body", "wheel::hub", "")))
        assert lw.load(path).nv == 2


def test_relative_to_frames_inside_and_outside(models: Path) -> None:
    placed_there = '<pose relative_to="f">1 0 0 0 0 0</pose><placement_frame>rim</placement_frame>'
    text = car(
        include("model://wheel", placed_there),
        '<frame name="f" attached_to="body"><pose>0 0 5 0 0 0</pose></frame>',
        joint("hold", "fixed", "body", "wheel::hub", ""),
    )
    model = lw.loads(text, search=[models / "models"])
    assert np.allclose(placed(model, "wheel::rim")[:3, 3], (1, 0, 5))
    assert np.allclose(placed(model, "wheel::hub")[:3, 3], (1, 0, 4))


def test_merged(models: Path) -> None:
    text = car(
        include("model://wheel", "<pose>0 1 0 0 0 0</pose>", ' merge="true"'), joint("hold", "fixed", "body", "hub", "")
    )
    model = lw.loads(text, search=[models / "models"])
    assert [joint.name for joint in model.joints] == ["root", "turn"]
    assert np.allclose(placed(model, "rim")[:3, 3], (0, 1, 1))


def test_each_file_has_its_own_version(models: Path) -> None:
    """The axis of an old file is in its model's frame, whatever file includes it."""
    old = sdf(
        link("hub", "0 0 0 0 0 1.5707963267948966"),
        joint("turn", "revolute", "world", "hub", "<axis><xyz>1 0 0</xyz></axis>"),
        version="1.4",
    )
    (models / "models" / "wheel" / "wheel.sdf").write_text(old)
    model = lw.loads(car(include("model://wheel")), search=[models / "models"])
    assert np.allclose(model.joints["m::turn"].type.axis, (0, -1, 0))


def test_static_by_the_include(models: Path) -> None:
    model = lw.loads(car(include("model://wheel", "<static>true</static>")), search=[models / "models"])
    assert model.nv == 1


def test_a_world_of_includes(models: Path) -> None:
    sun = models / "models" / "sun"
    sun.mkdir()
    (sun / "model.sdf").write_text('<sdf version="1.6"><light name="sun" type="directional"/></sdf>')
    world = f'<sdf version="1.6"><world name="w">{include("model://sun")}{include("model://wheel")}</world></sdf>'
    model = lw.loads(world, search=[models / "models"], floating=True)
    assert [joint.name for joint in model.joints] == ["root_joint", "wheel::turn"]


def test_errors_name_the_file_they_are_in(models: Path) -> None:
    wheel = models / "models" / "wheel" / "wheel.sdf"
    for bad, words in [
        (WHEEL.replace("revolute", "revolt"), "unknown type"),
        (WHEEL.replace("<ixx>0.3", "<ixx>-3"), "negative about some axis"),
        (WHEEL.replace("<xyz>0 0 1</xyz>", "<xyz>0 0 0</xyz>"), "zero axis"),
        (WHEEL.replace('"1.9"', '"3.1"'), "version of SDF"),
        (WHEEL.replace("<mass>2", "<mass>two"), "not a finite number"),
        (WHEEL.replace("</model>", ""), "not well-formed"),
        (WHEEL.replace("<pose>9 9 9 0 0 0", "<pose>9 9 9"), "must be 6 numbers"),
    ]:
        wheel.write_text(bad)
        with pytest.raises(lw.errors.ModelFileError, match=words) as caught:
            lw.loads(car(include("model://wheel")), search=[models / "models"], floating=True)
        assert str(caught.value).startswith(f"{wheel.resolve()}:"), str(caught.value)


def refused(path: Path, text: str, **options: object) -> str:
    path.write_text(text)
    with pytest.raises(lw.errors.ModelFileError) as caught:
        lw.load(path, **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{path}:2: ")
    return str(caught.value)


@pytest.mark.parametrize(
    "uri",
    ["../secret.sdf", "file://../secret.sdf", "model://../secret.sdf", "parts/../../secret.sdf", "{}", "file://{}"],
)
def test_nothing_outside_the_folders(models: Path, uri: str) -> None:
    secret = models / "secret.sdf"
    secret.write_text(WHEEL)
    text = car(include(uri.format(secret)))
    message = refused(models / "cars" / "car.sdf", text)
    assert "leads out of the folders" in message


def test_nothing_outside_by_a_link(models: Path) -> None:
    (models / "secret.sdf").write_text(WHEEL)
    (models / "cars" / "inside.sdf").symlink_to(models / "secret.sdf")
    assert "leads out" in refused(models / "cars" / "car.sdf", car(include("inside.sdf")))


@pytest.mark.parametrize(
    "uri", ["http://x.org/wheel", "https://fuel.gazebosim.org/1.0/x/models/y", "ftp://x", "data://x"]
)
def test_nothing_is_fetched(models: Path, uri: str) -> None:
    assert "nothing is fetched" in refused(models / "cars" / "car.sdf", car(include(uri)))


def test_circles_and_floods_end(models: Path) -> None:
    path = models / "cars" / "car.sdf"
    assert "in a circle" in refused(path, car(include("car.sdf")))
    for k in range(30):  # each file includes the next twice: two to the thirty files
        (models / "cars" / f"f{k}.sdf").write_text(
            car(include(f"f{k + 1}.sdf", "<name>x</name>") + include(f"f{k + 1}.sdf", "<name>y</name>"))
        )
    path.write_text(car(include("f0.sdf")))
    with pytest.raises(lw.errors.ModelFileError, match=r"too deeply|too many"):
        lw.load(path)


def test_nesting_is_not_counted_as_including(models: Path) -> None:
    inside = include("model://wheel")
    for k in range(30):
        inside = f'<model name="m{k}">{inside}</model>'
    model = lw.loads(car(inside), search=[models / "models"], floating=False)
    assert sum(name.endswith("wheel::turn") for name in (joint.name for joint in model.joints)) == 1


def test_a_folder_without_a_model(models: Path) -> None:
    (models / "models" / "empty").mkdir()
    assert "no model file" in refused(
        models / "cars" / "car.sdf", car(include("model://empty")), search=[models / "models"]
    )
    (models / "models" / "empty" / "model.config").write_text(
        '<model><sdf version="1.9">../../secret.sdf</sdf></model>'
    )
    (models / "secret.sdf").write_text(WHEEL)
    assert "no model file" in refused(
        models / "cars" / "car.sdf", car(include("model://empty")), search=[models / "models"]
    )


def test_the_path_must_be_a_list(models: Path) -> None:
    with pytest.raises(lw.InputError, match="list of folders"):
        lw.loads(car(""), search=str(models))


def test_merged_models_placed_by_each_other(models: Path) -> None:
    """Each model's placement frame is relative to a frame in the other: a circle that no single file shows."""
    for name, own, other in (("one", "f1", "g2"), ("two", "f2", "g1")):
        parts = f'<frame name="{own}"><pose relative_to="{other}"/></frame><frame name="g{own[1]}"/>'
        folder = models / "models" / name
        folder.mkdir()
        (folder / "model.sdf").write_text(sdf(link(name), parts))
    text = car(
        *(
            include(
                f"model://{name}", f"<pose>1 0 0 0 0 0</pose><placement_frame>{own}</placement_frame>", ' merge="1"'
            )
            for name, own in (("one", "f1"),)
        ),
        include("model://two", "<pose>0 1 0 0 0 0</pose><placement_frame>f2</placement_frame>", ' merge="1"'),
    )
    with pytest.raises(lw.errors.ModelFileError, match="in a circle"):
        lw.loads(text, search=[models / "models"])


def test_many_links_that_nothing_connects() -> None:
    parts = [f'<link name="l{k}"/>' for k in range(3000)]
    with pytest.warns(lw.errors.ModelWarning, match="without <inertial>"):
        model = lw.loads(sdf(*parts))
    assert model.nv == 0
