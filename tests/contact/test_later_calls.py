"""Later calls about a model with contacts find its pairs as the first one left them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact import scene
from tests.contact.scenes import ball, placed


def test_pairs_are_chosen_once_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []
    choose = scene.meetings

    def counted(mechanism: Any, **given: Any) -> Any:
        chosen.append(mechanism.name)
        return choose(mechanism, **given)

    monkeypatch.setattr(scene, "meetings", counted)
    model = ball().with_contacts(lw.Ground())
    counts = []
    for _ in range(3):
        motion = lw.simulate(model, placed(0.1), duration=0.01, dt=0.002)
        motion.contacts.force_on("thing")
        model.distances(placed(0.1))
        model.contact_step(placed(0.1), np.zeros(6), np.zeros(6))
        counts.append(len(chosen))
    assert counts == [counts[0]] * 3
    assert counts[0] <= 2  # the model's and, while a step is traced, a plain mechanism's
    lower = lw.Ground(lw.transform(xyz=(0, 0, -1)))
    assert len(model.with_contacts(lw.Ground(), lower).contacts.pairs) == 2  # a copy has pairs of its own
    assert len(model.contacts.pairs) == 1
