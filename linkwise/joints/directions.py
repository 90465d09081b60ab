"""Directions that an axis makes, the pose of one frame in another, and turns told without false roots.

These are the words in which a joint type says what holds where it closes a loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Matrix, Scalar, Value, atan2, dot, is_zero, sqrt, where
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec, coordinate_axis

if TYPE_CHECKING:
    from linkwise.joints.base import Joint

_LETTERS = "xyz"
_SEARCH = 8  # Newton steps to the nearest pose: four reach the last digit from nearly half a turn away
_STRAIGHT = 1e-28  # sin²θ past a quarter turn: below it, rounding alone says where the turn leads


class RelativePose(Value):
    """Pose of frame b, seen from frame a: R takes b's axes to a's, p is b's origin in a.

    ``closed``: the pose is known to close, and its rates alone are asked for. A text may then say the same more
    cheaply, if it agrees to second order there.
    """

    __slots__ = ("R", "closed", "p")

    def __init__(self, R: Mat3, p: Vec, *, closed: bool = False) -> None:
        self.R = R
        self.p = p
        self.closed = closed

    @classmethod
    def from_matrix(cls, rows: Sequence[Flat]) -> RelativePose:
        """From a 4×4 pose, or its first three rows."""
        return cls(Mat3([rows[i][:3] for i in range(3)]), Vec(*(rows[i][3] for i in range(3))))

    @classmethod
    def from_transform(cls, phi: Transform) -> RelativePose:
        """From the φ of a and b."""
        return cls(*phi.matrix())

    def seen_from(self, a: RelativePose) -> RelativePose:
        """a⁻¹ b, where both poses are given in one frame."""
        return RelativePose(a.R.T.times(self.R), a.R.transpose_times(self.p - a.p), closed=self.closed)

    def __repr__(self) -> str:
        return f"RelativePose(R={self.R.m!r}, p={self.p!r})"


@dataclass(frozen=True, eq=False)
class Directions:
    """A unit axis and two more, at right angles to it and to each other."""

    axis: Vec
    across: tuple[Vec, Vec]
    axis_name: str
    across_names: tuple[str, str]

    def along(self, p: Vec) -> Scalar:
        """Distance of p along the axis."""
        return self.axis.dot(p)

    def off(self, p: Vec) -> list[Scalar]:
        """Distances of p from the axis, in the two directions across."""
        return [e.dot(p) for e in self.across]

    def tilt(self, X: RelativePose) -> list[Scalar]:
        """The turns about the two directions across that lead the axis u to R u; see :func:`half_angle`."""
        turned = X.R @ self.axis
        sines = self.off(self.axis.cross(turned))
        return sines if X.closed else half_angle(self.axis.dot(turned), sines)


@cache
def directions(axis: tuple[float, float, float]) -> Directions:
    """Across a coordinate axis, the two others; across any other, two that no letter names."""
    u = Vec.of(axis)
    k = coordinate_axis(axis)
    if k is not None:
        i, j = (n for n in range(3) if n != k)
        return Directions(u, (Vec.unit(i), Vec.unit(j)), _LETTERS[k], (_LETTERS[i], _LETTERS[j]))
    least = min(range(3), key=lambda n: abs(axis[n]))
    e1 = u.cross(Vec.unit(least))
    e1 = e1 * (1.0 / e1.dot(e1) ** 0.5)
    return Directions(u, (e1, u.cross(e1)), "along", ("across 1", "across 2"))


def turn(X: RelativePose) -> list[Scalar]:
    """The turn that leads frame a's axes to frame b's, in three parts; see :func:`half_angle`."""
    m, sines = X.R.m, axial(X.R)
    return sines if X.closed else half_angle((m[0][0] + m[1][1] + m[2][2] - 1.0) * 0.5, sines)


def turn_about_z(R: Mat3) -> Scalar:
    """The angle, in (-π, π], of the turn about z that comes nearest to a rotation."""
    m = R.m
    return atan2(m[1][0] - m[0][1], m[0][0] + m[1][1])


def axial(R: Mat3) -> list[Scalar]:
    """Sin θ n of a rotation by θ about n."""
    m = R.m
    return [(m[2][1] - m[1][2]) * 0.5, (m[0][2] - m[2][0]) * 0.5, (m[1][0] - m[0][1]) * 0.5]


def half_angle(cosine: Scalar, sines: Flat) -> list[Scalar]:
    """2 sin(θ/2) n from cos θ and sin θ n: the vector part of a quaternion, twice, with its sign chosen.

    It grows from 0 to 2 with θ from 0 to π, and vanishes for θ = 0 alone, where it is sin θ n up to terms of third
    order. No such function is continuous everywhere: at half a turn, where n and -n say the same, it jumps.
    """
    near = cosine > 0.0
    square: Scalar = sum((s * s for s in sines), 0.0)
    straight = square > _STRAIGHT
    # 2 sin(θ/2) / sin θ: past a quarter turn as the quotient of its parts, without the difference 1 + cos θ.
    above = where(near, 2.0, (1.0 - cosine) * 2.0)
    factor = sqrt(above / where(near, 1.0 + cosine, where(straight, square, 1.0)))
    made = [s * factor for s in sines]
    # At half a turn no number tells where to; some direction, but none that the mechanism never turns about.
    k = next((i for i, s in enumerate(sines) if not is_zero(s)), 0)
    made[k] = where(near, made[k], where(straight, made[k], factor))
    return made


def turn_z_to(axis: ArrayLike) -> Array:
    """A rotation whose z column is the axis."""
    turned: Array = turns_z_to(np.asarray(axis, float)[None])[0]
    return turned


def turns_z_to(axes: Array) -> Array:
    """Rotations (n, 3, 3) whose z column is the axis; permutations of axes where the axis is a coordinate axis."""
    R = np.zeros((len(axes), 3, 3))
    along = coordinate_axes(axes)
    for k in range(3):
        here = along == k
        R[here, (k + 1) % 3, 0] = 1.0
        R[here, (k + 2) % 3, 1] = R[here, k, 2] = np.sign(axes[here, k])
    skew = along < 0
    z = axes[skew]
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z), axis=1)])
    x /= np.sqrt((x * x).sum(axis=1))[:, None]
    R[skew] = np.stack((x, np.cross(z, x), z), axis=2)
    return R


def coordinate_axes(axes: Array) -> Array:
    """The coordinate axis that each unit vector lies along, -1 for any other direction."""
    which = np.full(len(axes), -1)
    near = np.flatnonzero((np.abs(axes) > 0.9999).any(axis=1))
    which[near] = [-1 if (k := coordinate_axis(axis)) is None else k for axis in axes[near].tolist()]
    return which


def nearest_coordinates(joint: Joint, X: RelativePose) -> Flat:
    """The coordinates at which a joint about z comes nearest to X, by Newton steps from its zero position."""
    q: Flat = joint.neutral()
    for _ in range(_SEARCH if joint.nv else 0):
        S, e = [list(column) for column in joint.subspace(q)], _apart(joint, q, X)
        q = joint.integrate(q, solution([[dot(a, b) for b in S] for a in S], [dot(a, e) for a in S]))
    return q


def differences(joint: Joint, q: Flat, X: RelativePose) -> list[Scalar]:
    """Turns and shifts from a joint's pose at q to X, along the twists that it does not have at its zero position."""
    e = _apart(joint, q, X)
    return [dot(across, e) for across in _across(joint)]


def _apart(joint: Joint, q: Flat, X: RelativePose) -> list[Scalar]:
    """The turn and the shift from the joint's pose at q to X, in the child's axes."""
    Y = RelativePose(X.R, X.p).seen_from(RelativePose.from_transform(joint.transform(q)))
    return [*turn(Y), *Y.p]


def _across(joint: Joint) -> list[list[float]]:
    """Orthonormal twists at right angles to those of the joint at its zero position."""
    basis: list[list[float]] = []
    twists = [list(column) for column in joint.subspace(joint.neutral())]
    for _ in range(6):
        units = [[1.0 if i == k else 0.0 for i in range(6)] for k in range(6)]
        left = [_less(each, basis) for each in (twists[:1] or units)]
        twists = twists[1:]
        best = max(left, key=lambda x: dot(x, x))
        basis.append([x / math.sqrt(dot(best, best)) for x in best])
    return basis[joint.nv :]


def _less(x: list[float], basis: list[list[float]]) -> list[float]:
    """Part of x at right angles to the basis."""
    for each in basis:
        along = dot(x, each)
        x = [a - along * b for a, b in zip(x, each, strict=True)]
    return x


def solution(A: Matrix, b: list[Scalar]) -> list[Scalar]:
    """x of A x = b for a positive definite A, by elimination."""
    n = len(b)
    A, b = [list(row) for row in A], list(b)
    for k in range(n):
        for i in range(k + 1, n):
            factor = A[i][k] / A[k][k]
            A[i] = [a - factor * c for a, c in zip(A[i], A[k], strict=True)]
            b[i] = b[i] - factor * b[k]
    x: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        x[k] = (b[k] - dot(A[k][k + 1 :], x[k + 1 :])) / A[k][k]
    return x
