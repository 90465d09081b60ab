"""Motions that are given: of a joint, or of the frame in which a closure holds; and where a closure took hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from linkwise.array_types import is_several
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.joints import Joint
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.constraint import Closure, Relation, checked_function, values_of
from linkwise.mechanism.closures.from_joint import closure_of
from linkwise.spatial import quaternions
from linkwise.spatial.dual import derivative
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar, clip
from linkwise.spatial.vectors import Motion, Vec


@dataclass(frozen=True, init=False)
class Prescribed(Relation):
    """The coordinate of a joint with one freedom is a given function of time.

    Args:
        joint: its name.
        motion: function of the time t in s that returns the coordinate (rad or m); written with ``lw.math.sin``, … and
            arithmetic, twice differentiable.

    Example:
        ``builder.add_coupling("drive", lw.closures.Prescribed("crank_joint", lambda t: 2.0 * t))``
    """

    joints: tuple[str, ...]
    motion: Callable[[Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"motion": ("t",)}

    single_freedoms: ClassVar[bool] = True
    equations = ("coordinate",)
    time_dependent = True

    def __init__(self, joint: str, motion: Callable[[Scalar], Scalar]) -> None:
        object.__setattr__(self, "joints", (str(joint),))
        object.__setattr__(self, "motion", checked_function(motion, "the motion of Prescribed", "a function of t"))

    def residual(self, q: Flat, t: Scalar) -> list[Scalar]:
        (due,) = values_of(self.motion, [t], 1, "the motion of Prescribed")
        return [q[0] - due]


@dataclass(frozen=True, init=False)
class PrescribedFrame(Closure):
    """A closure that holds not in frame a but in one that moves against a as a function of time says.

    A hand led along a path is ``PrescribedFrame(lw.Spherical(), path)``; led with its orientation, it is
    ``PrescribedFrame(lw.Fixed(), pose)``; a ball on a turntable,
    ``PrescribedFrame(lw.closures.Rolling(0.1), turning)``.

    Args:
        joint: the joint type that says what stays free, or a closure.
        pose: function of the time t in s that returns the place of the moving frame in a: three numbers, or 4×4
            nested sequences, the upper left 3×3 a rotation.
    """

    closure: Closure
    pose: Callable[[Scalar], Sequence[Scalar]]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"pose": ("t",)}

    def __init__(self, joint: Joint | Closure, pose: Callable[[Scalar], Sequence[Scalar]]) -> None:
        object.__setattr__(self, "closure", closure_of(joint))
        object.__setattr__(
            self, "pose", checked_function(pose, "the motion of PrescribedFrame", "a function of t: (x, y, z) or 4x4")
        )

    @property
    def equations(self) -> tuple[str, ...]:
        return self.closure.equations

    @property
    def rate_equations(self) -> tuple[str, ...]:
        return self.closure.rate_equations

    @property
    def time_dependent(self) -> bool:
        return True

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return self.closure.residual(X.seen_from(self._at(t)), t)

    def rate_residual(self, X: RelativePose, V: Motion, t: Scalar) -> list[Scalar]:
        flat, rate = derivative(lambda time: self._flat(time[0]), [t], [1.0])
        A, A_dot = _pose_of(flat), _pose_of(rate)
        turning = A_dot.R.times(A.R.T).m
        omega = Vec(turning[2][1], turning[0][2], turning[1][0])
        # What the moving frame would do to a point it carries where b's origin is.
        carried = A_dot.p + omega.cross(X.p - A.p)
        V = V - Motion(X.R.transpose_times(omega), X.R.transpose_times(carried))
        return self.closure.rate_residual(X.seen_from(A), V, t)

    def _at(self, t: Scalar) -> RelativePose:
        try:
            place = self.pose(t)
            if len(place) == 3 and not is_several(place[0]):
                return RelativePose(Mat3.identity(), Vec.of(list(place)))
            return RelativePose.from_matrix(place)
        except (TypeError, AttributeError, IndexError) as error:
            raise InputError(
                "the motion of PrescribedFrame failed, or is not a place",
                got=f"{type(error).__name__}: {error}",
                allowed="a function of t that returns (x, y, z) or 4x4 nested lists",
                do="use lw.math.sin, lw.math.cos, … instead of math functions",
            ) from error

    def _flat(self, t: Scalar) -> list[Scalar]:
        A = self._at(t)
        return [*A.R.m[0], *A.R.m[1], *A.R.m[2], *A.p]


def _pose_of(flat: list[Scalar]) -> RelativePose:
    return RelativePose(Mat3([flat[0:3], flat[3:6], flat[6:9]]), Vec.of(flat[9:12]))


@dataclass(frozen=True)
class CapturedClosure(Closure):
    """A closure that holds not in frame a but where frame b was when it took hold; a latch then draws it in.

    Args:
        closure: what holds.
        latch: s in which what was open is drawn to nothing, smoothly; 0: it stays as it was.
        offset: where b was, seen from a: a rotation vector (3), rad, and a shift (3), m.
        since: when that was, s.
    """

    closure: Closure
    latch: float = 0.0
    offset: tuple[Scalar, ...] = (0.0,) * 6
    since: Scalar = 0.0

    @property
    def numbers(self) -> tuple[str, ...]:
        return ("offset", "since")

    @property
    def kind(self) -> str:
        return self.closure.kind

    @property
    def equations(self) -> tuple[str, ...]:
        return self.closure.equations

    @property
    def time_dependent(self) -> bool:
        return self.latch > 0.0 or self.closure.time_dependent

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return self.closure.residual(X.seen_from(self._at(t)), t)

    def rate_residual(self, X: RelativePose, V: Motion, t: Scalar) -> list[Scalar]:
        return []

    def _at(self, t: Scalar) -> RelativePose:
        """The frame in which the closure holds, seen from a."""
        left: Scalar = 1.0
        if self.latch > 0.0:  # with no jump of velocity or acceleration at either end
            s = clip((t - self.since) * (1.0 / self.latch), 0.0, 1.0)
            left = 1.0 - s * s * s * (10.0 - s * (15.0 - s * 6.0))
        turn, shift = (Vec.of([x * left for x in part]) for part in (self.offset[:3], self.offset[3:]))
        return RelativePose(Mat3(quaternions.rotation_matrix(quaternions.moved((1.0, 0.0, 0.0, 0.0), turn)).m), shift)
