"""The closure that leaves free what a joint leaves free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from linkwise.errors import InputError
from linkwise.joints import Joint
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.base import Closure, Relation
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class JointClosure(Closure):
    """Frame a is a joint's frame, frame b the child's: what holds is what the joint's own type says."""

    joint: Joint

    @property
    def joins_origins(self) -> bool:
        return self.joint.joins_origins

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.joint.numbers

    @property
    def kind(self) -> str:
        return type(self.joint).__name__

    @property
    def equations(self) -> tuple[str, ...]:
        return self.joint.closing_equations()

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return self.joint.closing_residual(X)

    def nominal(self, name: str) -> tuple[float, ...]:
        return (float(getattr(self.joint, name)),)

    def with_numbers(self, values: Mapping[str, Sequence[Scalar]]) -> Self:
        return replace(self, joint=self.joint.changed(**{name: value[0] for name, value in values.items()}))


def closure_of(joint: Joint | Closure) -> Closure:
    """The closure of a joint: frame a is the joint's frame, frame b the child's. A closure is its own."""
    if isinstance(joint, Closure):
        return joint
    if isinstance(joint, Joint):
        return JointClosure(joint.closing())
    raise InputError(
        "what closes two frames is a joint type or a closure",
        got=repr(joint),
        allowed="a joint, e.g. lw.Revolute(), or PointOnPlane, PointOnSurface, PointOnCurve, Distance, Rolling, "
        "PrescribedFrame",
        do="use add_coupling for relations between joints" if isinstance(joint, Relation) else None,
    )
