"""Motion beside a reference orbit: exact differences of gravity, and the equations of Hill, Clohessy and Wiltshire.

Hill's axes: x away from the planet, y along the orbit (towards the velocity of a circle), z along its normal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Scalar, sqrt
from linkwise.spatial.vectors import Vec


def difference_of_pull(origin: Vec, offset: Vec, mu: Scalar) -> Vec:
    """Difference of a point's gravity between origin + offset and origin, in m/s², without loss of digits.

    Battin's way: with q = (ρ·ρ + 2 R·ρ)/R² the quotient of the cubes of both distances differs from one by F(q), which
    is written without a subtraction.
    """
    q = offset.dot(offset + origin * 2.0) * (1.0 / origin.dot(origin))
    cube = (1.0 + q) * sqrt(1.0 + q)
    F = q * (3.0 + q * (3.0 + q)) / (cube * (1.0 + cube))
    difference: Vec = (offset - (origin + offset) * F) * (inverse_cube(origin) * -mu)
    return difference


def inverse_cube(r: Vec) -> Scalar:
    """1/|r|³."""
    inverse = 1.0 / r.dot(r)
    return inverse * sqrt(inverse)


def tensor_of_pull(r: Vec, mu: Scalar) -> Sym3:
    """Gradient of a point's gravity at r from it: μ/r³ (3 r r* / r² - 1), 1/s²."""
    scale = inverse_cube(r) * mu
    along = r * (3.0 * (1.0 / r.dot(r)) * scale)
    return Sym3.build_symmetric(lambda i, j: along[i] * r[j] - (scale if i == j else 0.0))


def local_axes(r: Vec, v: Vec) -> tuple[Vec, Vec, Vec]:
    """Hill's axes x, y, z of a state, as unit vectors."""
    h = r.cross(v)
    x, z = r * (1.0 / sqrt(r.dot(r))), h * (1.0 / sqrt(h.dot(h)))
    return x, z.cross(x), z


def hill_transition(n: float, t: ArrayLike) -> Array:
    """Matrix (..., 6, 6) that leads from [position, velocity] in Hill's axes at 0 to those at t, s.

    Args:
        n: mean motion of the reference orbit, a circle, rad/s.
        t: time or times (...), s.

    >>> hill_transition(1e-3, 0.0).tolist() == np.eye(6).tolist()
    True
    """
    t = np.asarray(t, float)
    s, c = np.sin(n * t), np.cos(n * t)
    out = np.zeros((*t.shape, 6, 6))
    entries: dict[tuple[int, int], ArrayLike] = {
        (0, 0): 4 - 3 * c, (0, 3): s / n, (0, 4): 2 * (1 - c) / n,
        (1, 0): 6 * (s - n * t), (1, 1): 1.0, (1, 3): -2 * (1 - c) / n, (1, 4): (4 * s - 3 * n * t) / n,
        (2, 2): c, (2, 5): s / n,
        (3, 0): 3 * n * s, (3, 3): c, (3, 4): 2 * s,
        (4, 0): -6 * n * (1 - c), (4, 3): -2 * s, (4, 4): 4 * c - 3,
        (5, 2): -n * s, (5, 5): c,
    }  # fmt: skip
    for (i, j), value in entries.items():
        out[..., i, j] = value
    return out


def hill_transfer(n: float, start: ArrayLike, end: ArrayLike, duration: float) -> tuple[Array, Array]:
    """Velocities (..., 3) at both ends of a way between two places in Hill's axes, by the linear equations.

    Args:
        n: mean motion of the reference orbit, a circle, rad/s.
        start: place at 0 (..., 3), m.
        end: place at the end (..., 3), m.
        duration: s; whole half turns of the orbit have no answer out of the plane.

    >>> v, _ = hill_transfer(1.0780076e-3, [0.0, -1000.0, 0.0], [0.0, 0.0, 0.0], 1457.129)
    >>> v.round(6).tolist()
    [-0.6558, 0.3279, 0.0]
    """
    matrix = hill_transition(n, duration)
    near, rate = matrix[:3, :3], matrix[:3, 3:]
    if np.linalg.cond(rate * n) > 1e9:
        raise InputError(
            "in this time every velocity leads to the same place", got=f"{duration} s", do="choose another duration"
        )
    first, last = np.asarray(start, float), np.asarray(end, float)
    v0 = np.linalg.solve(rate, (last - first @ near.T)[..., None])[..., 0]
    v1 = first @ matrix[3:, :3].T + v0 @ matrix[3:, 3:].T
    return v0, v1
