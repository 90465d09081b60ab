"""The closure that leaves free what a joint leaves free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.joints import Joint
from linkwise.joints.directions import RelativePose, solution, turn_z_to
from linkwise.mechanism.closures.constraint import Closure, Relation
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar, dot
from linkwise.spatial.vectors import Force, Vec


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

    def coordinates(self, X: RelativePose, centre: float = 0.0) -> list[Scalar]:
        """The joint's coordinates at a pose that it can have; of a single turn, within half a turn of ``centre``."""
        A = self._about_z
        Y = RelativePose(A.T.times(X.R).times(A), A.transpose_times(X.p))
        if not centre:
            return list(self.joint.nearest(Y))
        # Of a joint of one freedom with a fixed axis, its motion beyond the centre is its motion from zero.
        Y = Y.seen_from(RelativePose.from_transform(self.joint.transform([centre])))
        return [x + centre for x in self.joint.nearest(Y)]

    def pushes(self, x: Flat) -> list[Force]:
        """For each freedom, the force on b for a unit joint force, in b's axes: dual to S and in its span.

        Its power is what that freedom moves with, and nothing of it is left to the equations that hold the closure.
        """
        S = [list(column) for column in self.joint.subspace(x)]
        square = [[dot(a, b) for b in S] for a in S]
        A = self._about_z
        found = []
        for k in range(len(S)):
            share = solution(square, [1.0 if i == k else 0.0 for i in range(len(S))])
            W = [sum((c * column[i] for c, column in zip(share, S, strict=True)), 0.0) for i in range(6)]
            found.append(Force(A @ Vec.of(W[:3]), A @ Vec.of(W[3:])))
        return found

    @property
    def _about_z(self) -> Mat3:
        """The rotation from the joint's axes about z to those that it was given in."""
        axis = self.joint.axis
        return Mat3.identity() if axis is None else Mat3(turn_z_to(axis).tolist())

    def nominal(self, name: str) -> tuple[float, ...]:
        return (float(getattr(self.joint, name)),)

    def with_numbers(self, values: Mapping[str, Flat]) -> Self:
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
