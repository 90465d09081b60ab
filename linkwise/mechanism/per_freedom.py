"""What is known of the joints of a mechanism as arrays: limits, damping, friction, armature, one for each freedom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.errors import InputError
from linkwise.memoized import cached_property


class PerFreedom:
    """Numbers of the joints of a mechanism, one for each number of q or v."""

    @cached_property
    def lower(self) -> FloatArray:
        """Lower position limits, one for each number of q (-inf where none)."""
        return self._limits("lower", -np.inf)

    @cached_property
    def upper(self) -> FloatArray:
        """Upper position limits, one for each number of q (inf where none)."""
        return self._limits("upper", np.inf)

    def _limits(self, side: str, otherwise: float) -> FloatArray:
        values = np.full(self.nq, otherwise)
        for joint in self.joints:
            if joint.mimic is None and len(joint.limits) == joint.nq:
                values[joint.q_slice] = [getattr(limit, side) for limit in joint.limits]
        values.flags.writeable = False
        return values

    @cached_property
    def velocity_limit(self) -> FloatArray:
        """Velocity limits, one for each number of v (inf where none)."""
        return self._per_velocity(lambda joint: [limit.velocity for limit in joint.limits])

    @cached_property
    def effort_limit(self) -> FloatArray:
        """Effort limits, one for each number of v (inf where none)."""
        return self._per_velocity(lambda joint: [limit.effort for limit in joint.limits])

    @cached_property
    def damping(self) -> FloatArray:
        """Viscous damping, one for each number of v; used by simulation only."""
        return self._per_velocity(lambda joint: joint.damping, 0.0)

    @cached_property
    def friction(self) -> FloatArray:
        """Dry friction, one for each number of v; used by simulation only."""
        return self._per_velocity(lambda joint: joint.friction, 0.0)

    @cached_property
    def stiffness(self) -> FloatArray:
        """Springs of the joints, one for each number of v; used by simulation only."""
        return self._per_velocity(lambda joint: joint.stiffness, 0.0)

    @cached_property
    def armature(self) -> FloatArray:
        """Rotor inertia, one for each number of v; part of every dynamics function."""
        return self._per_velocity(lambda joint: joint.armature, 0.0)

    def _per_velocity(self, of: Any, otherwise: float = np.inf) -> FloatArray:
        values = np.full(self.nv, otherwise)
        for joint in self.joints:
            if joint.mimic is None and len(of(joint)) == joint.nv:
                values[joint.v_slice] = of(joint)
        values.flags.writeable = False
        return values

    # Changed copies.
    def with_armature(self, armature: Sequence[float] | float) -> Self:
        """A copy with other rotor inertias, one for each number of v (or one for all)."""
        return self._with_per_velocity("armature", armature)

    def with_damping(self, damping: Sequence[float] | float) -> Self:
        """A copy with other viscous damping, one for each number of v (or one for all)."""
        return self._with_per_velocity("damping", damping)

    def with_friction(self, friction: Sequence[float] | float) -> Self:
        """A copy with other dry friction, one for each number of v (or one for all)."""
        return self._with_per_velocity("friction", friction)

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
        nq: Any
        nv: Any
        bodies: Any
        joints: Any
