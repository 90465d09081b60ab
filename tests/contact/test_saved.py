"""Models whose bodies touch, saved and loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import linkwise as lw
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
