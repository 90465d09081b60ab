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


def test_a_scene_names_bodies_of_the_model(tmp_path: Path) -> None:
    name = block().bodies[0].name
    path = tmp_path / "block.lw.json"
    block().with_contacts(lw.Ground(), only=[name]).save(path)
    record = json.loads(path.read_text())
    record["contact_scene"]["only"] = ["ghost"]
    path.write_text(json.dumps(record))
    with pytest.raises(lw.errors.ModelFileError, match="ghost"):
        lw.load(path)
