"""What a mechanism is: bodies, joints, frames, gravity. Frozen; every change gives a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.model.actuation import SENSOR_KINDS, Actuator, Sensor, Spring
from linkwise.model.closures.attach import closure_between, relation_between, relation_of_function
from linkwise.model.closures.base import Closure, Relation
from linkwise.model.closures.instances import ClosureInstance, RelationInstance
from linkwise.model.closures.reference import Reference
from linkwise.model.configurations import Configurations, configuration_of
from linkwise.model.description import Geometry, JointLimits, Mimic
from linkwise.model.equipment import fitted_drives, fitted_sensors
from linkwise.model.joints import Joint
from linkwise.once import cached_property

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody

Pose = tuple[tuple[float, ...], ...]  # 4×4 as rows: hashable, comparable, and safe to share
IDENTITY: Pose = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Part:
    """A rigid piece of a body: its own inertia, placed in the body's frame. Bodies welded together are parts of one."""

    name: str
    placement: Pose
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float]
    """About the mass centre, in the part's axes: xx, yy, zz, xy, xz, yz."""
    node: int = 0
    """Of a flexible body, the place in its ``nodes`` that ``placement`` starts from."""


@dataclass(frozen=True)
class Body:
    """A moving body: where its inboard joint sits in the parent, and the parts that make it up."""

    name: str
    index: int
    parent: int
    """Index of the parent body; -1 for the world."""
    placement: Pose
    """The inboard joint's frame in the parent body's frame."""
    parts: tuple[Part, ...]
    visuals: tuple[Geometry, ...] = ()
    collisions: tuple[Geometry, ...] = ()
    """Shapes for contact, as given: kept and written out again, but nothing computes contact with them."""
    joint_frame: Pose = IDENTITY
    """The inboard joint's frame in this body's own frame: the two placements coincide at the joint's zero position."""
    node: int = 0
    """Of a flexible parent, the place in its ``nodes`` that ``placement`` starts from."""
    flexible: FlexibleBody | None = None
    """What deforms; its root is this body's frame."""
    q_slice: slice = field(default_factory=lambda: slice(0, 0), hash=False)
    """The modal coordinates η of a flexible body in q, right before those of its joint; empty for a rigid one."""
    v_slice: slice = field(default_factory=lambda: slice(0, 0), hash=False)
    """Their rates η̇ in v."""

    @property
    def modes(self) -> int:
        """The number of modal coordinates."""
        return 0 if self.flexible is None else self.flexible.modes

    @property
    def mass(self) -> float:
        """Mass in kg, welded parts included."""
        return sum(part.mass for part in self.parts) + (0.0 if self.flexible is None else self.flexible.mass)

    @property
    def com(self) -> np.ndarray:
        """Mass centre (3) in the body's frame, m, welded parts included; undeformed. NaN for a body without mass."""
        pieces = self._pieces()
        total = sum(m for m, _, _ in pieces)
        if not total > 0.0:
            return np.full(3, np.nan)
        centre: np.ndarray = np.sum([m * c for m, c, _ in pieces], axis=0) / total
        return centre

    @property
    def inertia(self) -> np.ndarray:
        """3×3 about the mass centre, in the body's axes, kg m², welded parts included; undeformed."""
        pieces, centre = self._pieces(), np.nan_to_num(self.com)
        whole = np.zeros((3, 3))
        for m, c, J in pieces:
            d = c - centre
            whole += J + m * (d @ d * np.eye(3) - np.outer(d, d))
        return whole

    def _pieces(self) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Mass, mass centre and inertia about it of everything the body is made of, in its frame."""
        found = []
        if self.flexible is not None:
            found.append((self.flexible.mass, self.flexible.com, self.flexible.inertia))
        for part in self.parts:
            T = np.array(part.placement, float)
            if self.flexible is not None:
                T[:3, 3] += self.flexible.nodes[part.node].position
            xx, yy, zz, xy, xz, yz = part.inertia
            J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)
            found.append((part.mass, T[:3, :3] @ np.array(part.com) + T[:3, 3], T[:3, :3] @ J @ T[:3, :3].T))
        return found


@dataclass(frozen=True)
class JointInstance:
    """The inboard joint of one body: its type, its place in q and v, and what else is known of it.

    ``armature`` (rotor inertia seen at the joint, kg m² or kg) enters every dynamics function. ``damping``,
    ``friction``, springs (``stiffness``, relaxed at ``rest``) and ``limits`` do not: the equations of motion are those
    of the ideal joint. Simulation uses them all; ``random_configuration`` uses the position limits.
    """

    name: str
    index: int
    type: Joint
    q_slice: slice
    """This joint's part of q; that of the joint it follows, for a mimic."""
    v_slice: slice
    limits: tuple[JointLimits, ...]
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    mimic: Mimic | None = None
    stiffness: tuple[float, ...] = ()
    """N m/rad or N/m, one for each freedom."""
    rest: tuple[float, ...] = ()
    """The coordinates at which the springs are relaxed, one for each freedom."""

    @property
    def nq(self) -> int:
        """Numbers in this joint's part of q."""
        return self.type.nq

    @property
    def nv(self) -> int:
        """Numbers in this joint's part of v."""
        return self.type.nv


@dataclass(frozen=True)
class Frame:
    """A named place on a body (or on the world, ``body`` = -1)."""

    name: str
    body: int
    placement: Pose
    node: int = 0
    """Of a flexible body, the place in its ``nodes`` that ``placement`` starts from."""


def number_of_node(flexible: FlexibleBody, key: Any) -> int:
    """The place of a node in ``flexible.nodes``, from its name or number."""
    node = flexible.node(key)
    return next(i for i, known in enumerate(flexible.nodes) if known is node)


class Named(tuple[Any, ...]):
    """A tuple whose elements are also found by name."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            for element in self:
                if element.name == key:
                    return element
            raise UnknownNameError("element", key, [e.name for e in self])
        return super().__getitem__(key)


@dataclass(frozen=True)
class Mechanism:
    """A tree of bodies. Body ``k`` hangs on ``joints[k]``; ``parents[k] < k``."""

    name: str
    gravity: tuple[float, float, float]
    bodies: tuple[Body, ...]
    joints: tuple[JointInstance, ...]
    frames: tuple[Frame, ...] = ()
    base_parts: tuple[Part, ...] = ()
    """What is welded to the world."""
    base_visuals: tuple[Geometry, ...] = ()
    parameter_names: tuple[str, ...] = ()
    closures: tuple[ClosureInstance | RelationInstance, ...] = ()
    """What closes loops and couples joints, in the order it was added; also found by name."""
    closure_solver: str = "auto"
    """How accelerations under closures are found, by name."""
    closure_reference: Reference | None = None
    """Where a solver that needs to know it beforehand chooses its freedoms."""
    actuators: tuple[Actuator, ...] = ()
    """What a file says drives it, also found by name; they act through :class:`linkwise.Actuators`."""
    sensors: tuple[Sensor, ...] = ()
    """What a file says measures it, also found by name; they read through :class:`linkwise.Sensors`."""
    springs: tuple[Spring, ...] = ()
    """Springs and dampers across several joints, or at frames; used by simulation, as those of the joints."""
    configurations: Configurations = Configurations()  # noqa: RUF009  # it does not change
    """Configurations with a name: a read-only mapping of names to q (nq)."""

    def __post_init__(self) -> None:
        for named in ("actuators", "sensors", "springs"):
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
    def is_flexible(self) -> bool:
        """Whether some body deforms."""
        return self._modes > 0

    @cached_property
    def _modes(self) -> int:
        return sum([body.modes for body in self.bodies if body.flexible is not None])

    @cached_property
    def independent(self) -> tuple[JointInstance, ...]:
        """What q and v are made of, in order: joints that follow no other, and modes, which stand as ``<body>.eta``."""
        own = [joint for joint in self.joints if joint.mimic is None]
        if self.is_flexible:
            from linkwise.model.joints.modes import Modal

            for body in self.bodies:
                if body.modes:
                    none = (0.0,) * body.modes
                    kind, q, v = Modal(body.modes), body.q_slice, body.v_slice
                    own.append(JointInstance(f"{body.name}.eta", body.index, kind, q, v, (), none, none, none))
        return tuple(sorted(own, key=lambda joint: joint.v_slice.start))

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """Names of the moving bodies, in order."""
        return tuple(body.name for body in self.bodies)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of their inboard joints, in order; those that follow others too."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def freedom_names(self) -> tuple[str, ...]:
        """A name for each number of v: its joint, with an index where it has several; modes are ``<body>.eta[k]``."""
        names = [""] * self.nv
        for joint in self.independent:
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

    def joint(self, name: str) -> JointInstance:
        """The joint of this name."""
        found: JointInstance = self._find("joint", name, self.joints)
        return found

    def body(self, name: str) -> Body:
        """The moving body of this name."""
        found: Body = self._find("body", name, self.bodies)
        return found

    def closure(self, name: str) -> ClosureInstance | RelationInstance:
        """The closure or coupling of this name."""
        found: ClosureInstance | RelationInstance = self._find("closure", name, self.closures)
        return found

    def frame(self, name: str, node: Any = None) -> Frame:
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

    @staticmethod
    def _find(kind: str, name: str, elements: Iterable[Any]) -> Any:
        for element in elements:
            if element.name == name:
                return element
        raise UnknownNameError(kind, name, [e.name for e in elements])

    @cached_property
    def lower(self) -> np.ndarray:
        """Lower position limits, one for each number of q (-inf where none)."""
        return self._limits("lower", -np.inf)

    @cached_property
    def upper(self) -> np.ndarray:
        """Upper position limits, one for each number of q (inf where none)."""
        return self._limits("upper", np.inf)

    def _limits(self, side: str, otherwise: float) -> np.ndarray:
        values = np.full(self.nq, otherwise)
        for joint in self.joints:
            if joint.mimic is None and len(joint.limits) == joint.nq:
                values[joint.q_slice] = [getattr(limit, side) for limit in joint.limits]
        values.flags.writeable = False
        return values

    @cached_property
    def velocity_limit(self) -> np.ndarray:
        """Velocity limits, one for each number of v (inf where none)."""
        return self._per_velocity(lambda joint: [limit.velocity for limit in joint.limits])

    @cached_property
    def effort_limit(self) -> np.ndarray:
        """Effort limits, one for each number of v (inf where none)."""
        return self._per_velocity(lambda joint: [limit.effort for limit in joint.limits])

    @cached_property
    def damping(self) -> np.ndarray:
        """Viscous damping, one for each number of v; used by simulation only."""
        return self._per_velocity(lambda joint: joint.damping, 0.0)

    @cached_property
    def friction(self) -> np.ndarray:
        """Dry friction, one for each number of v; used by simulation only."""
        return self._per_velocity(lambda joint: joint.friction, 0.0)

    @cached_property
    def stiffness(self) -> np.ndarray:
        """Springs of the joints, one for each number of v; used by simulation only."""
        return self._per_velocity(lambda joint: joint.stiffness, 0.0)

    @cached_property
    def armature(self) -> np.ndarray:
        """Rotor inertia, one for each number of v; part of every dynamics function."""
        return self._per_velocity(lambda joint: joint.armature, 0.0)

    def _per_velocity(self, of: Any, otherwise: float = np.inf) -> np.ndarray:
        values = np.full(self.nv, otherwise)
        for joint in self.joints:
            if joint.mimic is None and len(of(joint)) == joint.nv:
                values[joint.v_slice] = of(joint)
        values.flags.writeable = False
        return values

    # Changed copies.
    def with_gravity(self, gravity: Sequence[float]) -> Self:
        """A copy with another gravity vector, in m/s²."""
        from linkwise.model.checks import checked_vector

        return replace(self, gravity=checked_vector(gravity, "gravity"))

    def with_name(self, name: str) -> Self:
        """A copy with another name."""
        return replace(self, name=str(name))

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

    def with_body(
        self,
        name: str,
        *,
        mass: float | None = None,
        com: Sequence[float] | None = None,
        inertia: Any = None,
    ) -> Self:
        """A copy in which one body (or a body welded to another) has another mass, mass centre or inertia (3×3)."""
        from linkwise.model.checks import checked_inertia, checked_mass, checked_vector

        if any(body.name == name and body.flexible is not None for body in self.bodies):
            raise InputError(
                f"the mass of the flexible body {name!r} is its own",
                do="build the model with another flexible body, or change what is welded to its nodes",
            )
        found = False

        def changed(part: Part) -> Part:
            nonlocal found
            if part.name != name:
                return part
            found = True
            new_mass = part.mass if mass is None else checked_mass(mass, name)
            new_com = part.com if com is None else checked_vector(com, f"the mass centre of {name!r}")
            new_inertia = part.inertia if inertia is None else checked_inertia(inertia, name)
            return replace(part, mass=new_mass, com=new_com, inertia=new_inertia)

        bodies = tuple(replace(b, parts=tuple(changed(p) for p in b.parts)) for b in self.bodies)
        base = tuple(changed(p) for p in self.base_parts)
        if not found:
            raise UnknownNameError("body", name, [p.name for b in self.bodies for p in b.parts])
        return replace(self, bodies=bodies, base_parts=base)

    def with_configuration(self, name: str, q: Any) -> Self:
        """A copy with a configuration of this name: q (nq), or a mapping of joints to their coordinates."""
        chosen = configuration_of(self, str(name), q)
        return replace(self, configurations=self.configurations.with_configuration(name, chosen))

    def with_actuators(self, actuators: Iterable[Actuator]) -> Self:
        """A copy with these actuators and no others; sensors of actuators that are gone, are gone with them."""
        chosen = fitted_drives(self, actuators, "actuator")
        left = {actuator.name for actuator in chosen}
        sensors = [s for s in self.sensors if SENSOR_KINDS[s.kind][0] != "actuator" or s.target in left]
        return replace(self, actuators=chosen, sensors=fitted_sensors(self, sensors, chosen))

    def with_sensors(self, sensors: Iterable[Sensor]) -> Self:
        """A copy with these sensors and no others."""
        return replace(self, sensors=fitted_sensors(self, sensors, self.actuators))

    def with_springs(self, springs: Iterable[Spring]) -> Self:
        """A copy with these springs across joints and no others; those of the joints stay."""
        return replace(self, springs=fitted_drives(self, springs, "spring"))

    def with_closure(
        self,
        name: str,
        body_a: str,
        placement_a: Any = None,
        body_b: str = "world",
        placement_b: Any = None,
        *,
        joint: Joint | Closure,
        node_a: Any = None,
        node_b: Any = None,
    ) -> Self:
        """A copy with one closure more; see :meth:`linkwise.ModelBuilder.add_closure`."""
        name = str(name)
        return self._with(closure_between(self, name, body_a, placement_a, body_b, placement_b, joint, node_a, node_b))

    def with_coupling(self, name: str, coupling: Relation) -> Self:
        """A copy with one relation between joints more; see :meth:`linkwise.ModelBuilder.add_coupling`."""
        return self._with(relation_between(self, str(name), coupling))

    def with_constraint(
        self,
        name: str,
        fn: Callable[..., Any],
        equations: int | Sequence[str] = 1,
        joints: Sequence[str] | None = None,
    ) -> Self:
        """A copy with one user-defined constraint more; see :meth:`linkwise.ModelBuilder.add_constraint`."""
        return self.with_coupling(name, relation_of_function(str(name), fn, equations, joints))

    def without_closure(self, name: str) -> Self:
        """A copy without the closure or coupling of this name."""
        from linkwise.model.parameters import check_names

        gone = self.closure(name)
        left = replace(self, closures=tuple(c for c in self.closures if c is not gone))
        check_names(left, self.parameter_names)  # lest one of them be a number of the closure that is gone
        return left

    def _with(self, closure: ClosureInstance | RelationInstance) -> Self:
        if any(known.name == closure.name for known in self.closures):
            raise ModelError(
                f"the closure name {closure.name!r} is taken",
                allowed="a name unlike any other closure or coupling",
                do="choose another name",
            )
        return replace(self, closures=(*self.closures, closure))
