"""The inertias of all links at once: the same texts as for one, with an array over the parts for every number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.mechanism.bodies_and_joints import IDENTITY
from linkwise.mechanism.frames import poses, rows_of, snapped, times
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.terms import Terms
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.transforms import Shift
from linkwise.spatial.vectors import Vec


class Parts:
    """Parts of the bodies of a rigid mechanism, as arrays with a row for each."""

    def __init__(self, mechanism: Mechanism) -> None:
        parts = [part for body in mechanism.bodies for part in body.parts]
        self.count = len(mechanism.bodies)
        self.body = np.repeat(np.arange(self.count), [len(body.parts) for body in mechanism.bodies])
        self.mass = np.array([part.mass for part in parts], float)
        self.com = rows_of([part.com for part in parts], 3)
        self.six = rows_of([part.inertia for part in parts], 6)
        placed = [i for i, part in enumerate(parts) if part.placement is not IDENTITY]
        self.X = np.tile(np.eye(4), (len(parts), 1, 1))
        self.X[placed] = poses([parts[i].placement for i in placed])

    def centres(self) -> Array:
        """The mass centre of each body (n, 3) in its frame; NaN for one without mass."""
        moments = self.mass[:, None] * (times(self.X[:, :3, :3], self.com) + self.X[:, :3, 3])
        total = self._summed(self.mass)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total[:, None] == 0.0, np.nan, self._summed(moments) / total[:, None])

    def inertias(self, R: Array, o: Array) -> tuple[Array, Array]:
        """Each link's m, h (3) and J (6) in its frame, and the sums of absolute values that each came from: (n, 10).

        ``R``, ``o``: the link frames in those of the bodies.
        """
        back = R[self.body].transpose(0, 2, 1)
        turn = snapped(back @ self.X[:, :3, :3], 1.0)
        l = snapped(times(back, self.X[:, :3, 3] - o[self.body]), 1.0)
        com, shift = Vec(*self.com.T), Vec(*l.T)
        about_com = RigidInertia(self.mass, Vec.zero(), Sym3.of(*self.six.T))
        nothing: Any = np.zeros_like(self.mass)
        about = Terms(np.abs(self.mass), (nothing,) * 3, tuple(np.abs(self.six.T)))
        summed = about.shifted(np.abs(self.com.T)).turned(np.abs(turn).transpose(1, 2, 0))
        summed = summed.shifted(np.abs(l.T))
        own = RigidInertia.from_com(self.mass, com, about_com.J)
        M = Shift(shift).rigid_in(_turned(turn, own))
        terms = self._summed(_rows(summed.m, summed.h, summed.J))
        total = self._summed(_rows(M.m, M.h, M.J.six()))
        return snapped_by(total, terms), terms

    def _summed(self, rows: Array) -> Array:
        """Over the parts of each body, in order."""
        if len(rows) == self.count and (self.body == np.arange(self.count)).all():
            return rows + 0.0
        total = np.zeros((self.count, *rows.shape[1:]))
        np.add.at(total, self.body, rows)
        return total


def snapped_by(M: Array, terms: Array) -> Array:
    """Inertias (n, 10), with zeros for the numbers that rounding left where a zero belongs."""
    small = np.abs(M) < 2e-15 * terms
    small[:, 0] = False
    return np.where(small, 0.0, M)


def _rows(m: Any, h: Iterable[Any], J: Iterable[Any]) -> Array:
    return np.stack((m, *h, *J), axis=1)


def _turned(R: Array, M: RigidInertia) -> RigidInertia:
    """Inertias in turned axes: R h and R J Rᵀ in full, each entry from what it depends on.

    A trace that is kept would save one of them at the cost of its digits where another moment is far larger.
    """
    J = np.stack([x for row in M.J.m for x in row], axis=1).reshape(-1, 3, 3)
    turned = R @ J @ R.transpose(0, 2, 1)
    six = (turned[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    return RigidInertia(M.m, Vec(*times(R, np.stack(list(M.h), axis=1)).T), Sym3.of(*six))
