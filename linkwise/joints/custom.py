"""A joint the user writes: a function of q that gives the transform. All else is differentiated from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import ClassVar

from linkwise.errors import InputError
from linkwise.joints.base import Joint
from linkwise.spatial.dual import derivative
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Rotation, Shift, Transform
from linkwise.spatial.vectors import Motion, Vec


class CustomJoint(Joint):
    """A user-defined joint with ``n`` coordinates and q̇ = v.

    Args:
        transform: function of a list of ``n`` scalars that returns the child's pose in the joint frame: 4×4 nested
            sequences, the upper left 3×3 a rotation. Written with ``lw.math.sin``, ``lw.math.sqrt``, … and
            arithmetic, so that it runs on any scalar. A model takes its formulas when it is built: what changes
            later of the values that the function reads makes no difference.
        n: number of coordinates.
        name: shown in messages.

    Example:
        A joint that rolls along a circle of radius 2::

            def rolling(q):
                c, s = lw.math.cos(q[0]), lw.math.sin(q[0])
                return [[c, -s, 0, 2 * s], [s, c, 0, 2 - 2 * c], [0, 0, 1, 0], [0, 0, 0, 1]]

            joint = lw.CustomJoint(rolling, n=1)
    """

    word: ClassVar[str] = ""
    fixed_axes: ClassVar[bool] = False
    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"pose": ("q",)}

    def __init__(self, transform: Callable[[Flat], Sequence[Flat]], n: int, name: str = "custom") -> None:
        self.nq = self.nv = index(n) if hasattr(n, "__index__") else 0
        if self.nq < 1:
            raise InputError(
                f"the joint {name!r} has no number of coordinates", got=f"n={n!r}", allowed="n = 1, 2, 3, …"
            )
        self.pose = transform
        self.name = name
        R, _ = self._pose([0.1 * (i + 1) for i in range(n)])
        error = max(
            abs(float(sum(R.m[i][k] * R.m[j][k] for k in range(3))) - (i == j)) for i in range(3) for j in range(3)
        )
        handed = float(R.column(0).cross(R.column(1)).dot(R.column(2)))
        if not error < 1e-9 or not handed > 0.0:
            raise InputError(
                f"the transform of the joint {name!r} is not a rotation and a shift",
                got=f"a 3x3 part R with |R Rᵀ - 1| = {error:.1e} and det R = {handed:.3g} at q = 0.1, 0.2, …",
                allowed="an orthonormal, right-handed 3x3 part: det R = 1",
                do="build it from lw.math.sin and lw.math.cos of the same angle; check the signs, "
                "a mirror image is not a motion",
            )

    def transform(self, q: Flat) -> Transform:
        R, p = self._pose(q)
        return Transform(Shift(p), Rotation(R))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return tuple(self._column(q, [1.0 if i == j else 0.0 for i in range(self.nq)]) for j in range(self.nq))

    def subspace_rate(self, q: Flat, v: Flat) -> Motion:
        # d/dt (S v) with v held: differentiate S(q) v along q̇ = v.
        _, rate = derivative(lambda x: list(self._column(x, v)), q, v)
        return Motion.of(rate)

    def _column(self, q: Flat, direction: Flat) -> Motion:
        """S · direction: the velocity of the child's frame, in its own axes."""
        flat, rate = derivative(self._flat, q, direction)
        R, dR = Mat3([flat[0:3], flat[3:6], flat[6:9]]), Mat3([rate[0:3], rate[3:6], rate[6:9]])
        turning = R.T.times(dR).m
        return Motion(Vec(turning[2][1], turning[0][2], turning[1][0]), R.transpose_times(Vec.of(rate[9:12])))

    def _flat(self, q: Flat) -> list[Scalar]:
        R, p = self._pose(q)
        return [*R.m[0], *R.m[1], *R.m[2], *p]

    def _pose(self, q: Flat) -> tuple[Mat3, Vec]:
        try:
            rows = self.pose(list(q))
            R = Mat3([rows[i][:3] for i in range(3)])
            p = Vec(*(rows[i][3] for i in range(3)))
        except (TypeError, IndexError, ValueError) as error:
            raise InputError(
                f"the transform of the joint {self.name!r} failed or is not 4x4",
                got=f"{type(error).__name__}: {error}",
                allowed="a function of a list of n scalars that returns 4x4 nested lists",
                do="use lw.math.sin, lw.math.cos, … instead of math or numpy functions",
            ) from error
        return R, p
