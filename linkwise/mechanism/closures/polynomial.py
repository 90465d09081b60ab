"""A joint, or a sum of several, as a polynomial of another: cams, and linkages that were measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from linkwise.errors import InputError
from linkwise.mechanism.closures.base import Relation
from linkwise.spatial.scalar import Flat, Scalar


@dataclass(frozen=True, init=False)
class PolynomialCoupling(Relation):
    """Σ c q = a₀ + a₁ x + a₂ x² + … with x = Σ d q - start, over joints with one freedom each.

    Args:
        left: c for each joint's name.
        right: d for each joint's name; no joint of ``left``.
        polynomial: a₀, a₁, …
        start: where x is zero.

    Example:
        A follower on a cam: ``lw.closures.PolynomialCoupling({"follower": 1.0}, {"cam": 1.0}, (0.0, 0.0, 0.05))``
    """

    joints: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    polynomial: tuple[float, ...]
    start: float

    single_freedoms: ClassVar[bool] = True
    equations = ("coupling",)

    def __init__(
        self, left: Mapping[str, float], right: Mapping[str, float], polynomial: Sequence[float], start: float = 0.0
    ) -> None:
        try:
            c, d = ({str(joint): float(x) for joint, x in side.items()} for side in (left, right))
            a, start = tuple(float(x) for x in polynomial), float(start)
        except (AttributeError, TypeError, ValueError):
            raise InputError(
                "a polynomial coupling is a number for each joint, and coefficients",
                got=f"{left!r}, {right!r}, {polynomial!r}, start={start!r}",
                allowed='e.g. {"follower": 1.0}, {"cam": 1.0}, (0.0, 0.0, 0.05)',
            ) from None
        numbers = (*c.values(), *d.values(), *a, start)
        if not c or not d or not a or not all(map(math.isfinite, numbers)) or set(c) & set(d):
            raise InputError(
                "the coefficients of a polynomial coupling are not possible",
                got=f"{c}, {d}, {a}, start={start!r}",
                allowed="finite numbers, joints on both sides, none on both",
            )
        for name, value in (
            ("joints", (*c, *d)),
            ("left", tuple(c.values())),
            ("right", tuple(d.values())),
            ("polynomial", a),
            ("start", start),
        ):
            object.__setattr__(self, name, value)

    def residual(self, q: Flat, t: Scalar) -> list[Scalar]:
        n = len(self.left)
        x: Scalar = -self.start
        for d, own in zip(self.right, q[n:], strict=True):
            x = x + own * d
        value: Scalar = self.polynomial[-1]
        for a in self.polynomial[-2::-1]:
            value = value * x + a
        total: Scalar = 0.0
        for c, own in zip(self.left, q[:n], strict=True):
            total = total + own * c
        return [total - value]
