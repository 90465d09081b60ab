"""Models whose bodies touch, saved and loaded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli.motion_files import motion_of
from tests.contact.scenes import block


def test_what_may_touch_is_kept(tmp_path: Path) -> None:
    rubber = lw.Material(friction=(0.9, 0.4), restitution=0.3, stiffness=1e5, damping=0.01, law="hunt_crossley")
    belt = lw.Ground(velocity=(0.5, 0.0, 0.0), material=lw.Material(friction=0.3), name="belt")
    name = block().bodies[0].name
    model = block().with_contacts(belt, only=[name], material={name: rubber}, rules=lw.ContactRules(sweeps=20))
    model.save(tmp_path / "block.lw.json")
    again = lw.load(tmp_path / "block.lw.json")
    assert again.contacts.scene == model.contacts.scene
    assert again == model


def test_hills_are_kept(tmp_path: Path) -> None:
    """Shapes need no names."""
    hills = lw.shapes.heightfield([[0.0, 0.1], [0.1, 0.0]], (1.0, 1.0))
    slope = lw.shapes.terrain([[0, 0, 0], [1, 0, 0], [0, 1, 1]], [[0, 1, 2]])
    model = block().with_contacts(lw.Ground(shape=hills, name="hills"), lw.Ground(shape=slope, name="slope"))
    model.save(tmp_path / "hills.lw.json")
    assert lw.load(tmp_path / "hills.lw.json") == model


def test_a_scene_names_bodies_of_the_model(tmp_path: Path) -> None:
    name = block().bodies[0].name
    path = tmp_path / "block.lw.json"
    block().with_contacts(lw.Ground(), only=[name]).save(path)
    record = json.loads(path.read_text())
    record["contact_scene"]["only"] = ["ghost"]
    path.write_text(json.dumps(record))
    with pytest.raises(lw.errors.ModelFileError, match="ghost"):
        lw.load(path)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_contacts_of_a_motion_are_kept(tmp_path: Path, suffix: str) -> None:
    model = block().with_contacts(lw.Ground())
    q = model.neutral()
    q[6] = 0.2
    motion = lw.simulate(model, [q, q], [[0.0] * 6, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]], duration=0.3, dt=0.002)
    assert motion.contacts.force[:, -1].max() > 0.0
    path = motion.save(tmp_path / f"motion{suffix}")
    again = lw.Trajectory.load(path, model).contacts
    for name in ("force", "gap", "mode", "residual", "points", "overflow"):
        assert (getattr(again, name) == getattr(motion.contacts, name)).all(), name
    with pytest.raises(lw.LinkwiseError, match="contacts needs the model"):
        _ = lw.Trajectory.load(path).contacts


FLOOR = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
  <body name="ball" pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""


def test_a_motion_that_was_saved_has_its_contacts_again(tmp_path: Path) -> None:
    model = lw.loads(FLOOR)
    motion = lw.simulate(model, duration=0.01, dt=0.002)
    motion.save(tmp_path / "motion.npz")
    again = lw.Trajectory.load(tmp_path / "motion.npz", model)  # as it came from its file, with a floor
    assert again.contacts.name_of(-1, 0) == "ball on floor"
    assert np.array_equal(again.contacts.force_on("ball"), motion.contacts.force_on("ball"))
    two = model.with_contacts(lw.Ground(lw.transform(xyz=(0, 0, -1))))
    other = lw.Trajectory.load(tmp_path / "motion.npz", two)
    with pytest.raises(lw.InputError, match="not those of its model") as told:
        print(other.contacts)
    assert "1 contact points; 2 of" in str(told.value) and "--ground" in str(told.value)


def test_a_page_of_a_motion_in_a_file_shows_its_contacts(tmp_path: Path) -> None:
    (tmp_path / "ball.xml").write_text(FLOOR)
    model = lw.load(tmp_path / "ball.xml")
    lw.simulate(model, duration=0.01, dt=0.002).save(tmp_path / "motion.npz")
    found = motion_of(str(tmp_path / "motion.npz"), model)
    assert np.isclose(found.contacts.force_on("ball")[-1, 2], 9.81)


def test_a_body_may_be_kept_off_what_is_fixed_in_the_world(tmp_path: Path) -> None:
    """The floor of a file makes room for other ground; names are checked, here and in files."""
    hills = lw.Ground(shape=lw.shapes.heightfield([[-0.1, -0.1], [-0.1, -0.1]], (8.0, 8.0)), name="hills")
    model = lw.loads(FLOOR).with_contacts(hills, exclude=[("ball", "floor")])
    assert model.contacts.pairs == ("ball on hills",)
    assert lw.loads(FLOOR).with_contacts(hills, exclude=[("ball", "hills")]).contacts.pairs == ("ball on floor",)
    model.save(tmp_path / "hills.lw.json")
    assert lw.load(tmp_path / "hills.lw.json").contacts.pairs == model.contacts.pairs
    with pytest.raises(lw.errors.UnknownNameError, match=r"(?s)no body or ground of this name.*hills.*floor"):
        model.with_contacts(exclude=[("ball", "hills")])
    path = tmp_path / "hills.lw.json"
    record = json.loads(path.read_text())
    record["contact_scene"]["exclude"] = [["ball", "flow"]]
    path.write_text(json.dumps(record))
    with pytest.raises(lw.errors.ModelFileError, match="no body or ground of this name"):
        lw.load(path)
