"""Impacts at one instant: velocities jump, nothing moves, forces do not count.

    𝓜(v⁺ - v) = J*λ

with the laws of a step (:mod:`linkwise.contact.step`) for the points that are closed: their surfaces part with the
restitution of their material, friction and closures act with impulses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from linkwise.algorithms.equations import Constraint
from linkwise.algorithms.sweeps import each
from linkwise.contact.cones import Response
from linkwise.contact.implicit import Solution
from linkwise.contact.results import Impact
from linkwise.contact.step import MiddleOfStep
from linkwise.contact.touching import PlacedPoint, Touch
from linkwise.mechanism.contacts import USUAL, ContactRules
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar, hold, where

Flat = Sequence[Scalar]

CLOSED = 1e-7
"""m, below which surfaces touch."""

_OPEN = 1e9  # m/s, at which nothing approaches


def impact(
    tree: Tree,
    touches: Sequence[Touch],
    q: Flat,
    v: Flat,
    rules: ContactRules = USUAL,
    constraints: Sequence[Constraint] = (),
    t: Scalar = 0.0,
) -> Impact:
    """The velocity after an impact at a configuration q with the velocity v."""
    now = _Instant(tree, touches, q, v, 0.0, None, (), constraints, t)
    if any(hold(x) is not x for x in (*q, *v)):  # what is differentiated
        now.solution = Solution(now, [0.0] * tree.nv, None)
    still, at_rest = each(tree, lambda link: [0.0] * link.joint.nv), [0.0] * tree.nv
    response = Response(now.cones(0.0), now.Lambda)
    end = now.solved(response, now.held_still(), [0.0] * len(now.pulled.rows), still, at_rest, rules)
    if now.expanding:
        response = Response(now.expansion(end.impulses), now.Lambda)
        end = now.solved(response, end.V, end.impulses, still, at_rest, rules)
    return Impact(end.v, end.impulses)


class _Instant(MiddleOfStep):
    """A step of no length."""

    def held_still(self) -> list[Scalar]:
        """Velocities along the pulls once closures hold, without impulses of contacts."""
        felt = self.holding.felt(self.holding.impulses([0.0] * self.holding.pulls.count, [0.0] * len(self.before)))
        return [a + b for a, b in zip(self.before, felt, strict=True)]

    def _normal(
        self, point: PlacedPoint, approach: Scalar, gap: Scalar, pivots: Scalar, recovery: float
    ) -> tuple[Scalar, Scalar, Any]:
        """Closed points of rigid surfaces do not approach; others are not there."""
        if not point.touch.material.is_rigid:
            return _OPEN, 0.0, point.gap < -math.inf
        closed = point.gap < CLOSED
        return where(closed, 0.0, _OPEN), 0.0, closed
