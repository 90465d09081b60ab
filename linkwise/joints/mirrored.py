"""The mirror image of a joint.

The mirror is a coordinate plane; S is its reflection, with one -1 on the diagonal. What points (positions, forces,
directions of slides) becomes S x there, what turns (angular velocities, moments, axes of hinges) -S x.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.joints.base import Handle, Joint
from linkwise.joints.directions import RelativePose, turn_z_to
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar, is_zero
from linkwise.spatial.transforms import Rotation, Shift, Transform
from linkwise.spatial.vectors import Motion, Vec

Signs = tuple[float, float, float]
"""The diagonal of a reflection: one of -1, two of 1."""


@dataclass(frozen=True)
class MirrorImage:
    """A joint seen in a mirror.

    Args:
        joint: the joint of the image.
        q_signs: of each of its coordinates, as a multiple of the original's; empty for all the same.
        v_signs: the same of velocities.
        tail: rotation to be appended to the placements of its two frames, if any.
    """

    joint: Joint
    q_signs: tuple[float, ...] = ()
    v_signs: tuple[float, ...] = ()
    tail: tuple[tuple[float, ...], ...] | None = None


def reflected_axes(joint: Joint, signs: Signs) -> MirrorImage:
    """The image of any joint: the same motion, with the same coordinates, seen in reflected axes."""
    image = Mirrored(joint, signs if joint.axis is None else ACROSS_Y)
    # With A that turns z to the axis, the motion is A P(q) A*, and its image S A T · T P(q) T · T A* S.
    return MirrorImage(image, (), image.flips, None if joint.axis is None else mirrored_tail(joint.axis, signs))


class Mirrored(Joint):
    """A joint seen in a mirror: its motion in reflected axes, with the same coordinates.

    Args:
        joint: the original.
        signs: diagonal of the reflection.
    """

    fixed_axes: ClassVar[bool] = False
    quasi_velocities: ClassVar[bool] = True

    def __init__(self, joint: Joint, signs: Sequence[float]) -> None:
        x, y, z = map(float, signs)
        if sorted((x, y, z)) != [-1.0, 1.0, 1.0]:
            raise InputError("this is not a reflection", got=repr(signs), allowed="one of -1 and two of 1")
        self.joint, self.signs = joint, (x, y, z)
        self.nq, self.nv = joint.nq, joint.nv
        vars(self).update(fixed_axes=joint.fixed_axes, quasi_velocities=joint.quasi_velocities, usual=joint.usual)
        columns = [list(self._seen(column)) for column in joint.subspace(joint.neutral())]
        # Where v is not q̇, the columns of S are coordinate directions, and none of their opposites: v has the sign.
        self.flips = tuple(-1.0 if joint.quasi_velocities and min(column) < 0.0 else 1.0 for column in columns)

    def neutral(self) -> tuple[float, ...]:
        return self.joint.neutral()

    def transform(self, q: Flat) -> Transform:
        image = _reflected(RelativePose.from_transform(self.joint.transform(q)), self.signs)
        return Transform(Shift(image.p), Rotation(image.R))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        columns = map(self._seen, self.joint.subspace(q))
        return tuple(column * flip for column, flip in zip(columns, self.flips, strict=True))

    def subspace_rate(self, q: Flat, v: Flat) -> Motion:
        return self._seen(self.joint.subspace_rate(q, self._flipped(v)))

    def rate(self, q: Flat, v: Flat) -> tuple[Scalar, ...]:
        return self.joint.rate(q, self._flipped(v))

    def integrate(self, q: Flat, dv: Flat) -> tuple[Scalar, ...]:
        return self.joint.integrate(q, self._flipped(dv))

    def difference(self, q0: Flat, q1: Flat) -> tuple[Scalar, ...]:
        return tuple(self._flipped(self.joint.difference(q0, q1)))

    def random(self, rng: np.random.Generator, lower: Sequence[float], upper: Sequence[float]) -> tuple[float, ...]:
        return self.joint.random(rng, lower, upper)

    def nearest(self, X: RelativePose) -> Flat:
        return self.joint.nearest(_reflected(X, self.signs))

    def handles(self) -> tuple[Handle, ...]:
        return self.joint.handles()

    def _flipped(self, v: Flat) -> list[Scalar]:
        return [x if flip > 0.0 else -x for x, flip in zip(v, self.flips, strict=True)]

    def _seen(self, V: Motion) -> Motion:
        return Motion(Vec.of(turning(V.ang, self.signs)), Vec.of(pointing(V.lin, self.signs)))


ACROSS_Y: Signs = (1.0, -1.0, 1.0)
"""The reflection in which the image of a joint about z is told, where its axis is turned there first."""


def pointing(x: Iterable[Scalar], signs: Signs) -> tuple[Scalar, ...]:
    """A position, a force, the direction of a slide in the mirror."""
    return tuple(_signed(a, s) for a, s in zip(x, signs, strict=True))


def turning(x: Iterable[Scalar], signs: Signs) -> tuple[Scalar, ...]:
    """An angular velocity, a moment, the axis of a hinge in the mirror."""
    return tuple(_signed(a, -s) for a, s in zip(x, signs, strict=True))


def _signed(x: Scalar, sign: float) -> Scalar:
    return x if sign > 0.0 or is_zero(x) else -x


def mirrored_tail(axis: Sequence[float], signs: Signs) -> tuple[tuple[float, ...], ...]:
    """S A T, 4×4, where A turns z to the axis and T is the reflection :data:`ACROSS_Y`."""
    A = turn_z_to(axis).tolist()
    rows = [tuple(s * a * t + 0.0 for a, t in zip(row, ACROSS_Y, strict=True)) for s, row in zip(signs, A, strict=True)]
    return (*((*row, 0.0) for row in rows), (0.0, 0.0, 0.0, 1.0))


def _reflected(X: RelativePose, signs: Signs) -> RelativePose:
    """S X S."""
    R = Mat3.build(lambda i, j: _signed(X.R.m[i][j], signs[i] * signs[j]))
    return RelativePose(R, Vec.of(pointing(X.p, signs)), closed=X.closed)
