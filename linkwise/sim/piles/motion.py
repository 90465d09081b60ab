"""Contacts of a pile's motion: how many, which bodies, their forces, and how well the laws were obeyed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import UnknownNameError
from linkwise.sim.piles.neighbours import PileContacts


@dataclass(frozen=True)
class Touched:
    """Contacts of a step: points, impulses in the world's axes (m, 3) in N s, and what laws are missed by (m), m/s."""

    contacts: PileContacts
    impulse: Array
    missed: Array


class PileMotionContacts:
    """Contacts of a pile, sample by sample; their number changes. Forces are the means of the step before a sample."""

    def __init__(self, names: Sequence[str], t: Array, h: float, touched: Sequence[Touched | None]) -> None:
        self.names, self.t, self.h, self.touched = tuple(names), t, h, touched

    def __repr__(self) -> str:
        return f"<Contacts of {len(self.names)} bodies at {len(self.t)} times, {int(self.count[-1])} at the last>"

    @property
    def count(self) -> Array:
        """Points that press at each sample (T)."""
        return np.array([0 if one is None else int(np.any(one.impulse != 0.0, axis=1).sum()) for one in self.touched])

    @property
    def residual(self) -> Array:
        """By how much Signorini's condition and Coulomb's law are missed at most (T), m/s."""
        return np.array([0.0 if one is None else float(one.missed.max(initial=0.0)) for one in self.touched])

    @property
    def deepest(self) -> Array:
        """The least gap of all points before each sample's step (T), m; infinite where nothing is near."""
        return np.array([np.inf if one is None else one.contacts.gap.min(initial=np.inf) for one in self.touched])

    @property
    def overflow(self) -> Array:
        """Points for which there was no room (T)."""
        return np.array([0 if one is None else one.contacts.overflow for one in self.touched])

    def force(self, body: str, on: str | None = None) -> Array:
        """Forces on a body in the world's axes (T, 3), N: of all that it touches, or of one other body.

        Args:
            body: its name.
            on: name of the other; ``"ground"`` for what is fixed.
        """
        first, other = self._number(body), None if on is None else self._number(on)
        return np.array([np.zeros(3) if one is None else self._sum(one, first, other) for one in self.touched])

    def _sum(self, one: Touched, body: int, other: int | None) -> Array:
        total = np.zeros(3)
        for side, sign in ((0, 1.0), (1, -1.0)):
            own = one.contacts.body[:, side] == body
            if other is not None:
                own &= one.contacts.body[:, 1 - side] == other
            total += sign * one.impulse[own].sum(axis=0)
        return np.asarray(total / self.h)

    def _number(self, name: str) -> int:
        known = (*self.names, "ground")
        if name not in known:
            raise UnknownNameError("body", name, known)
        return known.index(name)
