"""Arrays over the freedoms of a mechanism: limits, damping, friction, armature, one for each freedom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.errors import InputError
from linkwise.mechanism.bodies_and_joints import Body, JointInstance, Named
from linkwise.memoized import cached_property


class Limits(NamedTuple):
    """Limits of the joints of a mechanism, infinite where there are none."""

    lower: FloatArray
    """The least position, one for each number of q."""
    upper: FloatArray
    """The greatest position, one for each number of q."""
    velocity: FloatArray
    """The greatest speed, one for each number of v."""
    effort: FloatArray
    """The greatest force, one for each number of v."""


class JointConstants(NamedTuple):
    """Constants of the joints of a mechanism, one for each number of v."""

    armature: FloatArray
    """Rotor inertia; part of every dynamics function."""
    damping: FloatArray
    """Viscous damping; used by simulation only."""
    friction: FloatArray
    """Dry friction; used by simulation only."""
    stiffness: FloatArray
    """Springs of the joints; used by simulation only."""


class PerFreedom:
    """Numbers of the joints of a mechanism, one for each number of q or v."""

    @cached_property
    def limits(self) -> Limits:
        """Limits of position, one for each number of q, and of velocity and effort, one for each number of v."""
        return Limits(
            self._positions("lower", -np.inf),
            self._positions("upper", np.inf),
            self._per_velocity(lambda joint: [limit.velocity for limit in joint.limits]),
            self._per_velocity(lambda joint: [limit.effort for limit in joint.limits]),
        )

    @cached_property
    def joint_constants(self) -> JointConstants:
        """Armature, damping, friction and stiffness of the joints, one for each number of v."""
        return JointConstants(
            self._per_velocity(lambda joint: joint.armature, 0.0),
            self._per_velocity(lambda joint: joint.damping, 0.0),
            self._per_velocity(lambda joint: joint.friction, 0.0),
            self._per_velocity(lambda joint: joint.stiffness, 0.0),
        )

    def _positions(self, side: str, otherwise: float) -> FloatArray:
        values = np.full(self.nq, otherwise)
        for joint in self.joints:
            if joint.mimic is None and len(joint.limits) == joint.nq:
                values[joint.q_slice] = [getattr(limit, side) for limit in joint.limits]
        values.flags.writeable = False
        return values

    def _per_velocity(self, of: Callable[[JointInstance], Sequence[float]], otherwise: float = np.inf) -> FloatArray:
        values = np.full(self.nv, otherwise)
        for joint in self.joints:
            if joint.mimic is None and len(of(joint)) == joint.nv:
                values[joint.v_slice] = of(joint)
        values.flags.writeable = False
        return values

    # Changed copies.
    def with_joint_constants(
        self,
        *,
        armature: Sequence[float] | float | None = None,
        damping: Sequence[float] | float | None = None,
        friction: Sequence[float] | float | None = None,
    ) -> Self:
        """A copy with other rotor inertias, viscous damping or dry friction; what is not given stays.

        Each is one number for each number of v, or one for all.
        """
        changed = self
        for what, values in (("armature", armature), ("damping", damping), ("friction", friction)):
            if values is not None:
                changed = changed._with_per_velocity(what, values)
        return changed

    def _with_per_velocity(self, what: str, values: Sequence[float] | float) -> Self:
        try:
            array = np.broadcast_to(np.asarray(values, float), (self.nv,))
        except ValueError:
            raise InputError(
                f"{what} has the wrong length",
                got=f"shape {np.shape(values)}",
                allowed=f"one number, or nv = {self.nv}",
            ) from None
        if not (np.isfinite(array).all() and (array >= 0).all()):
            raise InputError(f"{what} must be finite and not negative", got=str(array), allowed="numbers >= 0")
        for body in self.bodies:
            if np.ndim(values) and array[body.v_slice].any():
                raise InputError(
                    f"the modes of the flexible body {body.name!r} have no {what}",
                    got=str(array[body.v_slice]),
                    allowed="zeros there, or one number for all joints",
                    do="give the flexible body itself another damping" if what == "damping" else None,
                )
        changes: list[dict[str, Any]] = [{what: tuple(float(x) for x in array[j.v_slice])} for j in self.joints]
        joints = tuple(j if j.mimic else replace(j, **c) for j, c in zip(self.joints, changes, strict=True))
        return replace(self, joints=joints)

    # What the mechanism itself gives.
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]
        nq: int
        nv: int
        bodies: Named[Body]
        joints: Named[JointInstance]
