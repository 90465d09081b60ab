"""Quaternions [w, x, y, z] as rotations, over any scalar.

Only the direction of a quaternion counts, not its length, however large or small: the squares of the usual lengths are
far from overflow, those of unusual ones are brought there by a power of two. The zero quaternion has no direction; what
is computed from it is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, atan2, cos, is_exact, quotient, sin, sqrt, where
from linkwise.spatial.vectors import Vec


def rotation_matrix(quat_wxyz: Sequence[Scalar]) -> Mat3:
    """The rotation of a quaternion of any length but zero: only its direction counts."""
    w, x, y, z = _balanced(quat_wxyz)
    s = quotient(2.0, w * w + x * x + y * y + z * z)
    xs, ys, zs = x * s, y * s, z * s
    wx, wy, wz, xx, xy, xz, yy, yz, zz = w * xs, w * ys, w * zs, x * xs, x * ys, x * zs, y * ys, y * zs, z * zs
    return Mat3(
        (
            (1.0 - (yy + zz), xy - wz, xz + wy),
            (xy + wz, 1.0 - (xx + zz), yz - wx),
            (xz - wy, yz + wx, 1.0 - (xx + yy)),
        )
    )


def from_matrix(R: Mat3) -> tuple[Scalar, ...]:
    """A quaternion of a rotation, not of length one: of four formulas the one that divides nothing by little.

    Row k of 4 q qᵀ is q times 4 q[k]; the row with the largest diagonal entry is well away from zero.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.m
    rows = (
        (1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy),
        (zy - yz, 1.0 + xx - yy - zz, yx + xy, xz + zx),
        (xz - zx, yx + xy, 1.0 - xx + yy - zz, zy + yz),
        (yx - xy, xz + zx, zy + yz, 1.0 - xx - yy + zz),
    )
    best, size = rows[0], rows[0][0]
    for k in (1, 2, 3):
        larger = rows[k][k] > size
        best = tuple(where(larger, a, b) for a, b in zip(rows[k], best, strict=True))
        size = where(larger, rows[k][k], size)
    return best


def multiply(a: Sequence[Scalar], b: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The quaternion product a b: first b's rotation, then a's."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def conjugate(a: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The reverse rotation."""
    return (a[0], -a[1], -a[2], -a[3])


def normalized(a: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Quaternion of length one in the same direction."""
    return _unit(_balanced(a))


def _unit(a: Sequence[Scalar]) -> tuple[Scalar, ...]:
    scale = quotient(1.0, sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3]))
    return tuple(x * scale for x in a)


def _balanced(a: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Quaternion in the same direction with a length whose square is a number: itself, where that is so.

    The factor is made of comparisons and constants only, so it is exact and has no derivative. In single precision the
    outer two steps are out of reach, and their constants zero or infinite beside any length.
    """
    if any(map(is_exact, a)):
        return tuple(a)
    size = abs(a[0]) + abs(a[1]) + abs(a[2]) + abs(a[3])
    up = where(size < 2.0**-500, 2.0**750, where(size < 2.0**-40, 2.0**80, 1.0))
    factor = where(size > 2.0**500, 2.0**-750, where(size > 2.0**40, 2.0**-80, up))
    return tuple(x * factor for x in a)


def moved(quat_wxyz: Sequence[Scalar], rotation: Vec) -> tuple[Scalar, ...]:
    """Turned further by a rotation vector in the body's frame, with length one."""
    return _unit(multiply(_balanced(quat_wxyz), exponential(rotation)))


def between(first: Sequence[Scalar], second: Sequence[Scalar]) -> Vec:
    """The rotation vector in the body's frame, of length at most π, that leads from one to the other."""
    return logarithm(multiply(conjugate(normalized(first)), normalized(second)))


def exponential(rotation: Vec) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """The quaternion of a rotation vector (axis times angle); a series near zero, where sin(θ)/θ loses its digits."""
    w, sinc, _, _ = _half_turn(rotation)
    v = rotation * (sinc * 0.5)
    return (w, v.x, v.y, v.z)


def _half_turn(rotation: Vec) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Of θ/2: cosine, sine over itself, square, and whether it is small."""
    square = rotation.dot(rotation) * 0.25
    small = square < 1e-4
    half = sqrt(where(small, 1.0, square))
    sinc = where(small, 1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0))), sin(half) / half)
    w = where(small, 1.0 - square * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0))), cos(half))
    return w, sinc, square, small


def vector_rate(rotation: Vec, omega: Vec) -> Vec:
    """The rate of a rotation vector u whose exponential turns with an angular velocity in the turned axes.

    u̇ = ω + ½ u×ω + c u×(u×ω), c = (1 - (θ/2) cot(θ/2)) / θ².
    """
    w, sinc, square, small = _half_turn(rotation)
    near = 1.0 / 12.0 + square * (1.0 / 180.0 + square * (1.0 / 1890.0))
    c = where(small, near, (sinc - w) / (sinc * where(small, 1.0, square) * 4.0))
    across = rotation.cross(omega)
    rate: Vec = omega + across * 0.5 + rotation.cross(across) * c
    return rate


def logarithm(quat_wxyz: Sequence[Scalar]) -> Vec:
    """The rotation vector of a unit quaternion, of length at most π."""
    w, x, y, z = quat_wxyz
    sign = where(w < 0.0, -1.0, 1.0)
    w, v = w * sign, Vec(x * sign, y * sign, z * sign)
    square = v.dot(v)
    small = square < 1e-12
    length = sqrt(where(small, 1.0, square))
    # 2 atan2(|v|, w)/|v|; near zero, w = 1 - |v|²/2 + … and the quotient is 2 (1 + |v|²/6 + …).
    scale = where(small, 2.0 * (1.0 + square * (1.0 / 6.0)), 2.0 * atan2(length, w) / length)
    return Vec(v.x * scale, v.y * scale, v.z * scale)


def rate(quat_wxyz: Sequence[Scalar], omega_body: Vec) -> tuple[Scalar, ...]:
    """q̇ = ½ q ω for a body-frame angular velocity."""
    return tuple(x * 0.5 for x in multiply(quat_wxyz, (0.0, omega_body.x, omega_body.y, omega_body.z)))
