"""Frames that the world of a simulation may be: what an orbit promises to ``simulate(..., frame=orbit)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from linkwise.model.model import Model
from linkwise.sim.elements import Element


@runtime_checkable
class Frame(Protocol):
    """Frame that moves: it knows how elements act in it, and which it adds."""

    def enter(self, model: Model, elements: Sequence[Element]) -> tuple[Element, ...]:
        """Elements as they act in this frame."""
        ...
