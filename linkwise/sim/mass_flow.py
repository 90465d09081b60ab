"""Forces of mass that flows through a body and leaves it: what is beside the thrust, jet damping above all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.spatial.scalar import Scalar

Vector = Sequence[Scalar]


def flow_wrench(omega: Vector, flow: Scalar, outlet: Vector, h_rate: Vector, J_rate: Any) -> list[Scalar]:
    """Wrench [moment, force] (6) on a body, at its origin and in its axes, of mass that flows to an outlet, N m and N.

    For a body whose mass, mass centre and inertia change by ``Element.parameters``. These alone let mass vanish where
    it is, with the momentum that it has there. In truth it goes to the outlet first, and leaves from there:

        F = -2ω × (ḣ + ṁ r),    N = -ṁ r × (ω × r) - J̇ω,

    ṁ being what flows out, r the outlet, h and J the first and second moments of the mass about the origin. Together
    they are the balance of momentum of body and fluid, for a steady flow without swirl; the thrust is not among them.

    Args:
        omega: ω of the body (3) in its axes, rad/s.
        flow: ṁ, what flows out, kg/s, positive.
        outlet: r (3), m.
        h_rate: ḣ (3), kg m/s.
        J_rate: J̇ (3, 3), kg m²/s.

    Example:
        >>> flow_wrench([0, 0, 0.1], 0.25, [2, 0, 0], [-0.5, 0, 0], [[0, 0, 0], [0, -0.5, 0], [0, 0, -0.5]])
        [0.0, 0.0, -0.05, 0.0, 0.0, 0.0]
    """
    w, r = np.array(list(omega), object), np.array(list(outlet), object)
    moving = np.array(list(h_rate), object) + r * flow
    J = np.array(J_rate, object)
    moment = -_cross(r, _cross(w, r)) * flow - J @ w
    force = _cross(w, moving) * -2.0
    return [x + 0.0 for x in (*moment, *force)]


def _cross(a: Any, b: Any) -> Any:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], object)
