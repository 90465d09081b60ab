"""A closure that took hold where its frames happened to be."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.base import Closure
from linkwise.spatial import quaternions
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, clip
from linkwise.spatial.vectors import Motion, Vec


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
