"""One moment of an environment, as its functions see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkwise.model.model import Model


@dataclass(frozen=True)
class Moment:
    """Moment of one environment: arrays of numbers that are traced, so that functions of them become machine code.

    Attributes:
        model: the mechanism.
        q: its configuration (nq).
        v: its velocity (nv).
        action: action in force (size of an action); zeros right after a reset.
        goal: numbers that a reset has chosen for the whole episode.
        p: run-time parameters of the model, for ``model.pose(q, body, p=moment.p)`` and others; None if it has none.
        time: since the beginning of the episode, s.
        impulses: those of the contacts in the last step, N s; empty without contacts.
    """

    model: Model
    q: Any
    v: Any
    action: Any
    goal: Any
    p: Any
    time: Any
    impulses: Any
