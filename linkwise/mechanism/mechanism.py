"""Mechanism: bodies, joints, frames, gravity, and arrays over its freedoms. Frozen; every change gives a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.actuation import Actuator, Sensor, Spring
from linkwise.mechanism.bodies_and_joints import IDENTITY, Body, Frame, JointInstance, Named, Part, number_of_node
from linkwise.mechanism.changed_copies import ChangedCopies, Configurations
from linkwise.mechanism.closures.instances import (
    ClosureFreedoms,
    ClosureInstance,
    Reference,
    RelationInstance,
    freedoms_of_closures,
)
from linkwise.mechanism.contacts import ContactScene
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.fields import Field
from linkwise.memoized import cached_property

if TYPE_CHECKING:
    from linkwise.flexible.structure import NodeKey


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


@dataclass(frozen=True)
class Mechanism(ChangedCopies, PerFreedom):
    """A tree of bodies. Body ``k`` hangs on ``joints[k]``; ``parents[k] < k``."""

    name: str
    gravity: tuple[float, float, float]
    bodies: Named[Body]
    joints: Named[JointInstance]
    frames: tuple[Frame, ...] = ()
    base_parts: tuple[Part, ...] = ()
    """Parts welded to the world."""
    base_visuals: tuple[Geometry, ...] = ()
    _parameter_names: tuple[str, ...] = ()
    closures: Named[ClosureInstance | RelationInstance] = Named()  # it does not change
    """Closures of loops and couplings of joints, in the order they were added; also found by name."""
    _closure_solver: str = "auto"
    """The name of the way in which accelerations under closures are found."""
    _closure_reference: Reference | None = None
    """Configuration at which a solver chooses its freedoms, if it must do so beforehand."""
    actuators: tuple[Actuator, ...] = ()
    """Actuators by a file, also found by name; they act through :class:`linkwise.Drives`."""
    sensors: tuple[Sensor, ...] = ()
    """Sensors by a file, also found by name; they read through :class:`linkwise.Instruments`."""
    springs: tuple[Spring, ...] = ()
    """Springs and dampers across several joints, or at frames; used by simulation, as those of the joints."""
    fields: tuple[Field, ...] = ()
    """Fields that act on bodies where they are: compensation of gravity, a fluid; simulation uses them, as springs."""
    configurations: Configurations = Configurations()  # it does not change
    """Configurations with a name: a read-only mapping of names to q (nq)."""
    _contact_scene: ContactScene | None = None
    """Scene of contacts, if anything may touch: see :meth:`with_contacts`."""
    _base_collisions: tuple[Geometry, ...] = ()
    """Shapes for contact that are fixed to the world: the ground, and links that are welded to it."""
    _contact_excludes: tuple[tuple[str, str], ...] = ()
    """Pairs of links, by name, whose shapes do not touch; either order."""

    def __post_init__(self) -> None:
        for named in ("actuators", "sensors", "springs", "fields"):
            object.__setattr__(self, named, Named(getattr(self, named)))
        object.__setattr__(self, "bodies", Named(self.bodies))
        object.__setattr__(self, "joints", Named(self.joints))
        object.__setattr__(self, "closures", Named(self.closures))

    @cached_property
    def nq(self) -> int:
        """Numbers in a configuration q."""
        return sum([j.type.nq for j in self.joints if j.mimic is None]) + self._modes

    @cached_property
    def nv(self) -> int:
        """Numbers in a velocity v: the degrees of freedom of the tree."""
        return sum([j.type.nv for j in self.joints if j.mimic is None]) + self._modes

    @cached_property
    def _is_flexible(self) -> bool:
        """Whether some body deforms."""
        return self._modes > 0

    @cached_property
    def _modes(self) -> int:
        return sum([body.modes for body in self.bodies if body.flexible is not None])

    @cached_property
    def _independent(self) -> tuple[JointInstance, ...]:
        """Constituents of q and v, in order: joints that follow no other, and modes, which stand as ``<body>.eta``."""
        own = [joint for joint in self.joints if joint.mimic is None]
        if self._is_flexible:
            from linkwise.joints.modes import Modal

            for body in self.bodies:
                if body.modes:
                    none = (0.0,) * body.modes
                    kind, q, v = Modal(body.modes), body.q_slice, body.v_slice
                    own.append(JointInstance(f"{body.name}.eta", body.index, kind, q, v, (), none, none, none))
        return tuple(sorted(own, key=lambda joint: joint.v_slice.start))

    @cached_property
    def freedom_names(self) -> tuple[str, ...]:
        """A name for each number of v: its joint, with an index where it has several; modes are ``<body>.eta[k]``."""
        names = [""] * self.nv
        for joint in self._independent:
            part = range(self.nv)[joint.v_slice]
            for k, place in enumerate(part):
                names[place] = joint.name if len(part) == 1 else f"{joint.name}[{k}]"
        return tuple(names)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Parent index of each body, -1 for the world."""
        return tuple([body.parent for body in self.bodies])

    @cached_property
    def mass(self) -> float:
        """Mass of all moving bodies in kg."""
        return sum(body.mass for body in self.bodies)

    @cached_property
    def _closure_freedoms(self) -> Named[ClosureFreedoms]:
        """The freedoms of the closures that leave some as a joint does, in order and by the closures' names."""
        return Named(freedoms_of_closures(self.closures))

    def frame(self, name: str, node: NodeKey | None = None) -> Frame:
        """A body, a body welded to another, or a named frame: where it sits and on which moving body.

        Args:
            name: of the body or frame.
            node: of a flexible body, a node by its name or number, if not the root.
        """
        if name == "world" and node is None:
            return Frame("world", -1, IDENTITY)
        known = self._frames_by_name if name != "world" else {name: Frame(name, -1, IDENTITY)}
        if name not in known:
            raise UnknownNameError("body or frame", name, known)
        found = known[name]
        if node is None:
            return found
        body = self.bodies[found.body] if found.body >= 0 else None
        flexible = body.flexible if body is not None and body.name == name else None
        if flexible is None:
            raise InputError(
                f"{name!r} has no nodes",
                got=f"node={node!r}",
                allowed="a node of a flexible body",
                do="leave node out, or name the flexible body",
            )
        return replace(found, node=number_of_node(flexible, node))

    @cached_property
    def _frames_by_name(self) -> dict[str, Frame]:
        own = {body.name: Frame(body.name, body.index, IDENTITY) for body in self.bodies}
        return own | {frame.name: frame for frame in self.frames}
