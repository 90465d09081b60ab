"""Rotations and poses from the numbers that people and model files write."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.mechanism.body_checks import checked_vector, warn_of_degrees

ANGLE_SNAP = 1e-11
"""Radians. An angle this near to a multiple of π/2 is taken to be that multiple (see `cos_sin`)."""

_MOST_QUARTERS = 1000  # beyond, the rounding of the multiples themselves comes near to the snap
_QUARTERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


def cos_sin(angle: float, snap: float = ANGLE_SNAP) -> tuple[float, float]:
    """Cosine and sine, exactly 0 or ±1 where the angle is a multiple of π/2 to within `snap`.

    ``math.cos(math.pi / 2)`` is 6e-17. That is harmless as a number but not as a structure: it turns a zero of the
    mechanism, which costs nothing once folded away, into a multiplication for every state.
    """
    nearest = round(angle / (math.pi / 2))
    if abs(nearest) <= _MOST_QUARTERS and abs(angle - nearest * (math.pi / 2)) <= snap:
        return _QUARTERS[nearest % 4]
    return math.cos(angle), math.sin(angle)


def rotation_rpy(rpy: Sequence[float], snap: float = ANGLE_SNAP) -> FloatArray:
    """``R = Rz(yaw) Ry(pitch) Rx(roll)``: roll, pitch and yaw about the fixed axes x, y, z, in this order."""
    (cr, sr), (cp, sp), (cy, sy) = (cos_sin(angle, snap) for angle in rpy)
    R = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return R + 0.0  # no negative zeros


def rpy_of(R: Sequence[Sequence[float]] | FloatArray) -> tuple[float, float, float]:
    """Roll, pitch and yaw of a rotation, or of the pose that begins with it."""
    flat = math.hypot(R[0][0], R[1][0])
    pitch = math.atan2(-R[2][0], flat)
    if flat < 1e-12:  # roll and yaw turn about one line: all of it is called yaw
        return (0.0, pitch, math.atan2(-R[0][1], R[1][1]))
    # Roll from Rz(-yaw) R: near that line only roll ± yaw is well defined, and must come out right.
    c, s = R[0][0] / flat, R[1][0] / flat
    roll = math.atan2(s * R[0][2] - c * R[1][2], c * R[1][1] - s * R[0][1])
    return (roll, pitch, math.atan2(R[1][0], R[0][0]))


def axis_rotation(axis: Sequence[float], angle: float, snap: float = ANGLE_SNAP) -> FloatArray:
    """The rotation by `angle` about a unit axis (Rodrigues)."""
    x, y, z = axis
    c, s = cos_sin(angle, snap)
    t = 1.0 - c
    R = np.array(
        [
            [t * x * x + c, t * x * y - s * z, t * x * z + s * y],
            [t * x * y + s * z, t * y * y + c, t * y * z - s * x],
            [t * x * z - s * y, t * y * z + s * x, t * z * z + c],
        ]
    )
    return R + 0.0


def pose(xyz: Sequence[float] = (0.0, 0.0, 0.0), R: FloatArray | None = None) -> FloatArray:
    """The 4x4 pose with this translation and rotation."""
    X = np.eye(4)
    X[:3, 3] = xyz
    if R is not None:
        X[:3, :3] = R
    return X


def inverse_pose(X: FloatArray) -> FloatArray:
    """The pose of the first frame in the second, from the second's in the first."""
    R = X[:3, :3].T
    back = np.eye(4)
    back[:3, :3] = R
    back[:3, 3] = -(R @ X[:3, 3]) + 0.0
    return back


def transform(xyz: Sequence[float] = (0.0, 0.0, 0.0), rpy: Sequence[float] = (0.0, 0.0, 0.0)) -> FloatArray:
    """The 4×4 pose at ``xyz`` (m) with R = Rz(yaw) Ry(pitch) Rx(roll), ``rpy`` = (roll, pitch, yaw) in rad."""
    angles = checked_vector(rpy, "rpy")
    warn_of_degrees("rpy", angles, callers=2)
    return pose(checked_vector(xyz, "xyz"), rotation_rpy(angles))


def quaternions_of(R: FloatArray) -> FloatArray:
    """(..., 4), w first, of rotation matrices (..., 3, 3): ten thousand of them in a millisecond.

    4qq* is linear in R (Shepperd 1978); its row with the largest diagonal entry is q, but for its length.
    """
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    wx, wy, wz = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    xy, xz, yz = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    rows = np.stack(
        [
            np.stack([1.0 + xx + yy + zz, wx, wy, wz], -1),
            np.stack([wx, 1.0 + xx - yy - zz, xy, xz], -1),
            np.stack([wy, xy, 1.0 - xx + yy - zz, yz], -1),
            np.stack([wz, xz, yz, 1.0 - xx - yy + zz], -1),
        ],
        -2,
    )
    largest = np.argmax(np.diagonal(rows, axis1=-2, axis2=-1), axis=-1)
    found = np.take_along_axis(rows, largest[..., None, None], -2)[..., 0, :]
    unit: FloatArray = found / np.linalg.norm(found, axis=-1, keepdims=True)
    return unit
