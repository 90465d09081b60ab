"""A small slice of the campaign, always the same: some trials of every kind, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.kinds import KINDS
from campaign.runner import Run

SLICE = {
    "calls": 40,
    "bounds": 2,
    "sanitizers": 1,
    "interrupts": 60,
    "forks": 2,
    "collections": 6,
    "captures": 4,
    "files": 600,
    "xacro": 100,
    "frames": 40,
    "switches": 20,
    "exports": 20,
    "states": 2 * 16_384,
    "edges": 10,
    "contacts": 4,
    "memory": 20,
    "device": 1,
}


def test_every_kind_has_its_part() -> None:
    assert set(SLICE) == set(KINDS)


@pytest.mark.parametrize("name", SLICE)
def test_slice(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = KINDS[name]
    reason = trial.unavailable()
    if reason:
        pytest.skip(reason)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "objects").mkdir(mode=0o700)
    found = Run(trial, 20, tmp_path, 1, failures=1).go(0, SLICE[name], 200.0)
    assert not found.failures, found.failures[0]
    assert found.done == SLICE[name]
