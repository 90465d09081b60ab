"""Modal coordinates of a flexible body, alone and together with its joint; neither is a joint that a user places."""

from __future__ import annotations

from typing import ClassVar

from linkwise.joints.base import Joint
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Motion


class Modal(Joint):
    """Modal coordinates alone: as many freedoms as modes, with nothing to turn."""

    word: ClassVar[str] = ""

    def __init__(self, modes: int) -> None:
        self.nq = self.nv = modes

    def transform(self, q: Flat) -> Transform:
        return Transform()

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return (Motion.zero(),) * self.nv


class Modes(Joint):
    """Modal coordinates η, then those of the joint that holds the body: together what its link moves by."""

    word: ClassVar[str] = ""
    fixed_axes: ClassVar[bool] = False
    quasi_velocities: ClassVar[bool] = True

    def __init__(self, modes: int, joint: Joint) -> None:
        self.modes = modes
        self.joint = joint
        self.nq = modes + joint.nq
        self.nv = modes + joint.nv
        vars(self).update(quasi_velocities=joint.quasi_velocities)

    def neutral(self) -> tuple[float, ...]:
        return (*(0.0,) * self.modes, *self.joint.neutral())

    def transform(self, q: Flat) -> Transform:
        return self.joint.transform(q[self.modes :])

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        """Of the joint, in the child's frame, after one column of zeros for each mode."""
        return (*(Motion.zero(),) * self.modes, *self.joint.subspace(q[self.modes :]))

    def subspace_rate(self, q: Flat, v: Flat) -> Motion:
        return self.joint.subspace_rate(q[self.modes :], v[self.modes :])

    def rate(self, q: Flat, v: Flat) -> tuple[Scalar, ...]:
        m = self.modes
        return (*v[:m], *self.joint.rate(q[m:], v[m:]))

    def integrate(self, q: Flat, dv: Flat) -> tuple[Scalar, ...]:
        m = self.modes
        return (*(x + d for x, d in zip(q[:m], dv[:m], strict=True)), *self.joint.integrate(q[m:], dv[m:]))

    def difference(self, q0: Flat, q1: Flat) -> tuple[Scalar, ...]:
        m = self.modes
        return (*(b - a for a, b in zip(q0[:m], q1[:m], strict=True)), *self.joint.difference(q0[m:], q1[m:]))
