"""Laws of motion along a stretch of a path, over any scalar, and the time that a stretch must take within limits.

A stretch leads from q₀ by q(u) = q₀ ⊕ b₁(u) w₁ ⊕ b₂(u) w₂ ⊕ …, u running from 0 to 1; a law gives the b. Velocities and
accelerations follow by differentiation, on any joints: v is the derivative of q(u + ε) ⊖ q(u).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.algorithms.configuration import difference, integrate
from linkwise.array_types import Array
from linkwise.mechanism.tree import Tree
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Flat, Scalar, where


@dataclass(frozen=True)
class Law:
    """How a stretch is run through, from rest to rest for a law with one term."""

    name: str
    terms: int
    """How many w there are."""
    shape: Callable[[Scalar, Scalar], list[Scalar]]
    """The b at u, for a law with a number of its own (the share of a ramp)."""


def _quintic(u: Scalar, _: Scalar) -> list[Scalar]:
    """Velocity and acceleration zero at both ends."""
    return [u * u * u * (10.0 + u * (-15.0 + u * 6.0))]


def _trapezoidal(u: Scalar, ramp: Scalar) -> list[Scalar]:
    """Constant acceleration for a share ``ramp`` of the time, constant velocity, constant deceleration."""
    peak = 1.0 / (1.0 - ramp)
    rest = 1.0 - u
    up, down = peak * u * u / (2.0 * ramp), 1.0 - peak * rest * rest / (2.0 * ramp)
    return [where(u < ramp, up, where(u < 1.0 - ramp, peak * (u - 0.5 * ramp), down))]


def _spline(u: Scalar, _: Scalar) -> list[Scalar]:
    """Sums of Bernstein's polynomials: a cubic with given velocities at its ends (Kim, Kim and Shin 1995)."""
    rest = 1.0 - u
    return [1.0 - rest * rest * rest, u * u * (3.0 - 2.0 * u), u * u * u]


QUINTIC = Law("quintic", 1, _quintic)
TRAPEZOIDAL = Law("trapezoidal", 1, _trapezoidal)
SPLINE = Law("spline", 3, _spline)
LAWS = {law.name: law for law in (QUINTIC, TRAPEZOIDAL, SPLINE)}


def place(law: Law, tree: Tree, q0: Flat, w: Flat, ramp: Scalar, u: Scalar) -> list[Scalar]:
    """The configuration at u; w has its terms one behind the other."""
    q, n = list(q0), tree.nv
    for k, b in enumerate(law.shape(u, ramp)):
        q = integrate(tree, q, [b * x for x in w[k * n : (k + 1) * n]])
    return q


def motion(
    law: Law, tree: Tree, q0: Flat, w: Flat, ramp: Scalar, u: Scalar, rate: Scalar
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """q, v and v̇ at u, which changes at the given rate (1/s)."""

    def velocity(at: Flat) -> list[Scalar]:
        q, q_dot = derivative(lambda x: place(law, tree, q0, w, ramp, x[0]), at, [rate])
        return derivative(lambda x: difference(tree, q, x), q, q_dot)[1]

    v, vdot = derivative(velocity, [u], [rate])
    return place(law, tree, q0, w, ramp, u), v, vdot


_QUINTIC_VELOCITY = 15.0 / 8.0  # the largest ṡ of a stretch that takes 1 s
_QUINTIC_ACCELERATION = 10.0 / math.sqrt(3.0)
_RAMP = 0.25  # of the time, where no acceleration is limited


def rates(delta: Array, velocity: Array, acceleration: Array) -> tuple[float, float]:
    """The largest ṡ and s̈ with which s δ keeps within limits; infinite where there are none."""
    size = np.abs(delta)
    moves = size > 0.0
    fastest = float((velocity[moves] / size[moves]).min(initial=np.inf))
    strongest = float((acceleration[moves] / size[moves]).min(initial=np.inf))
    return fastest, strongest


def quintic_time(delta: Array, velocity: Array, acceleration: Array) -> float:
    """The least time from rest to rest, s."""
    fastest, strongest = rates(delta, velocity, acceleration)
    return max(_QUINTIC_VELOCITY / fastest, math.sqrt(_QUINTIC_ACCELERATION / strongest))


def trapezoidal_time(delta: Array, velocity: Array, acceleration: Array) -> tuple[float, float]:
    """The least time from rest to rest, s, and the share of it that each ramp takes."""
    fastest, strongest = rates(delta, velocity, acceleration)
    if math.isinf(strongest):
        return 1.0 / ((1.0 - _RAMP) * fastest), _RAMP
    if fastest * fastest >= strongest:  # the top speed is not reached
        return 2.0 / math.sqrt(strongest), 0.5
    time = 1.0 / fastest + fastest / strongest
    return time, fastest / strongest / time


def knot_velocities(times: Array, q: Array, deltas: Array, plain: list[tuple[int, int]], nv: int) -> Array:
    """Velocities (points, nv) at the points of a spline that begins and ends at rest.

    Where v is q̇ (``plain``: places in v and q), those of the cubic spline with continuous acceleration. Elsewhere, the
    mean of the velocities before and after, each weighted with the other's time (Catmull and Rom).
    """
    from scipy.interpolate import CubicSpline

    h = np.diff(times)[:, None]
    v = np.zeros((len(times), nv))
    slopes = deltas / h
    v[1:-1] = (h[1:] * slopes[:-1] + h[:-1] * slopes[1:]) / (h[1:] + h[:-1])
    if plain:
        in_v, in_q = (list(x) for x in zip(*plain, strict=True))
        v[:, in_v] = CubicSpline(times, q[:, in_q], bc_type="clamped")(times, 1)
    return v
