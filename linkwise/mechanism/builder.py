"""Putting a mechanism together body by body. Nothing half-built comes out: ``build`` checks the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.joints import Fixed, Joint, Revolute
from linkwise.mechanism.actuation import Actuator, Sensor, Spring
from linkwise.mechanism.bodies_and_joints import IDENTITY, Part, Pose, number_of_node
from linkwise.mechanism.body_checks import (
    checked_inertia,
    checked_mass,
    checked_pose,
    checked_vector,
    per_freedom,
    warn_of_degrees,
)
from linkwise.mechanism.closures import Closure, Relation
from linkwise.mechanism.closures.instances import checked_numbers, checked_placement, named_closure, relation_of
from linkwise.mechanism.description import Geometry, JointLimits, Mimic
from linkwise.mechanism.entry import (
    Entry,
    check_shape,
    checked_bodies,
    checked_flexible,
    checked_limits,
    checked_mimic,
    checked_springs,
)
from linkwise.mechanism.fields import Field
from linkwise.mechanism.joined_bodies import joined
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.shapes import BodyShape
from linkwise.memoized import no_search_for_cycles
from linkwise.spatial.scalar import Flat, Scalar

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody

_IDENTITY = np.eye(4)


T = TypeVar("T")


class Builder:
    """Collects bodies, frames and closures; see :class:`linkwise.ModelBuilder` for the public face."""

    def __init__(self, name: str = "model", gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> None:
        self.name = str(name)
        self.gravity = checked_vector(gravity, "gravity")
        self._entries: dict[str, Entry] = {}
        self._frames: dict[str, tuple[str, Pose, int]] = {}
        self._joint_names: set[str] = set()
        self._closing: list[Callable[[Mechanism], Mechanism]] = []
        self._actuators: list[Actuator] = []
        self._sensors: list[Sensor] = []
        self._springs: list[Spring] = []
        self._fields: list[Field] = []
        self._configurations: dict[str, tuple[ArrayLike | Mapping[str, ArrayLike], ...]] = {}
        self._world_collisions: list[Geometry] = []
        self._contact_excludes: list[tuple[str, str]] = []

    def add_body(
        self,
        name: str,
        parent: str = "world",
        joint: Joint | None = None,
        placement: ArrayLike = _IDENTITY,
        mass: float = 0.0,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        inertia: ArrayLike = ((0.0,) * 3,) * 3,
        *,
        joint_name: str | None = None,
        limits: JointLimits | Sequence[JointLimits] | None = None,
        armature: float | Sequence[float] = 0.0,
        damping: float | Sequence[float] = 0.0,
        friction: float | Sequence[float] = 0.0,
        mimic: Mimic | None = None,
        visuals: Sequence[Geometry] = (),
        collisions: Sequence[Geometry] = (),
        check_inertia: bool = True,
        joint_frame: ArrayLike | None = None,
        stiffness: float | Sequence[float] = 0.0,
        rest: float | Sequence[float] = 0.0,
        flexible: FlexibleBody | None = None,
        at: str | int | None = None,
        shape: BodyShape | None = None,
    ) -> None:
        """Add a body and its inboard joint.

        Args:
            name: the body's name, unlike any other.
            parent: name of a body added before, or "world".
            joint: the joint type; ``Fixed()`` (the default) welds the body to its parent.
            placement: 4×4 pose of the joint frame in the parent's frame; at q = neutral it is where ``joint_frame`` is.
            mass: kg.
            com: mass centre in the body's frame, m.
            inertia: 3×3 about the mass centre, body axes, kg m².
            joint_name: the joint's name; the body's name with ``_joint`` if not given.
            limits: position, velocity and effort limits, one for each freedom (or one for all).
            armature: rotor inertia at the joint, kg m² or kg; part of the dynamics.
            damping: viscous coefficient, N m s/rad or N s/m; used by simulation.
            friction: dry friction, N m or N; used by simulation.
            mimic: makes the joint follow another one instead of having a coordinate of its own.
            visuals: shapes to draw.
            collisions: shapes for contact.
            check_inertia: whether to refuse a negative principal moment and warn of an impossible one; False where
                the numbers are to be used as they are.
            joint_frame: 4×4 pose of the joint frame in the body's own frame; if not given, that frame itself: then
                ``placement`` is the body's frame at q = neutral.
            stiffness: of a spring at each freedom, N m/rad or N/m; used by simulation.
            rest: the coordinates at which the springs are relaxed, rad or m.
            flexible: makes the body deform; its root is on the joint, its mass is its own. Its modal coordinates η
                come in q, and η̇ in v, right before those of the joint: ``model.bodies[name].q_slice`` and ``.v_slice``.
                Elastic forces -(Kη + Dη̇) are part of all dynamics functions, ½η*Kη of the potential energy.
            at: a node of a flexible parent, by name or number: ``placement`` then is a pose in the node's frame, which
                is parallel to that of the parent while nothing is deformed. The root if not given.
            shape: gives mass, mass centre, inertia, looks and outline for contact at once:
                ``lw.shapes.box((1, 1, 1), density=600)``. Visuals and collisions given besides are added.
        """
        joint = Fixed() if joint is None else joint
        name = str(name)
        joint_name = f"{name}_joint" if joint_name is None else str(joint_name)
        if not isinstance(joint, Joint):
            raise InputError(
                f"the joint of body {name!r} is not a joint",
                got=repr(joint),
                allowed="e.g. lw.Revolute(axis=(0, 0, 1))",
            )
        self._check_new(name)
        if joint_name in self._joint_names:
            raise ModelError(
                f"the joint name {joint_name!r} is taken",
                allowed="a name unlike any other joint",
                do="give joint_name=…",
            )
        if parent != "world" and parent not in self._entries:
            raise UnknownNameError(
                "parent body", parent, ["world", *self._entries], do="add the parent before its children"
            )
        if shape is not None:
            check_shape(shape, name, mass, com, inertia)
            mass, com, inertia = shape.mass, shape.com.tolist(), shape.inertia
            visuals = [*shape.named(name).visuals, *visuals]
            collisions = [*shape.named(name).collisions, *collisions]
        follows = checked_mimic(mimic, joint, joint_name)
        each = checked_limits(limits, joint, joint_name)
        if joint.turns:
            ends = (end for limit in each for end in (limit.lower, limit.upper))
            warn_of_degrees(f"the range of joint {joint_name!r}", ends, callers=2)
        springs, relaxed = checked_springs(stiffness, rest, joint, joint_name)
        deforms = checked_flexible(flexible, name, mass, com, inertia, mimic)
        part = Part(
            name,
            IDENTITY,
            checked_mass(mass, name),
            checked_vector(com, f"the mass centre of {name!r}"),
            checked_inertia(inertia, name, check_inertia),
        )
        seat = IDENTITY if joint_frame is None else checked_pose(joint_frame, f"the joint frame of body {name!r}")
        entry = Entry(
            name=name,
            parent=str(parent),
            joint=joint,
            joint_name=joint_name,
            placement=checked_pose(placement, f"the placement of body {name!r}"),
            part=part,
            limits=each,
            armature=per_freedom(armature, joint.nv, f"the armature of joint {joint_name!r}"),
            damping=per_freedom(damping, joint.nv, f"the damping of joint {joint_name!r}"),
            friction=per_freedom(friction, joint.nv, f"the friction of joint {joint_name!r}"),
            mimic=follows,
            visuals=_shapes_of(name, "visuals", visuals),
            collisions=_shapes_of(name, "collisions", collisions),
            joint_frame=seat,
            stiffness=springs,
            rest=relaxed,
            flexible=deforms,
            node=self._node(str(parent), at, f"body {name!r}"),
        )
        self._joint_names.add(joint_name)
        self._entries[name] = entry

    def add_bodies(
        self,
        names: str | Sequence[str],
        parents: Sequence[int] | Array,
        joints: Joint | Sequence[Joint] | type[Joint],
        placements: ArrayLike = _IDENTITY,
        masses: ArrayLike = 0.0,
        coms: ArrayLike = (0.0, 0.0, 0.0),
        inertias: ArrayLike = ((0.0,) * 3,) * 3,
        *,
        root: str = "world",
        axes: ArrayLike | None = None,
        armature: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        check_inertia: bool = True,
    ) -> tuple[str, ...]:
        """Add many bodies at once, from arrays; the same as :meth:`add_body` for each, and far quicker.

        Everything but ``parents`` is given once for all bodies or once for each.

        Args:
            names: a name for each body, or what comes before its number: ``"link"`` names link0, link1, …
            parents: (n) for each body the place of its parent among these bodies, -1 for ``root``.
            joints: a joint type with its constants, or one for each; or a class such as ``lw.Revolute`` with ``axes``.
            placements: (4, 4) or (n, 4, 4), poses of the joint frames in the parents' frames.
            masses: () or (n), kg.
            coms: (3) or (n, 3), mass centres in the bodies' frames, m.
            inertias: (3, 3) or (n, 3, 3) about the mass centres, body axes, kg m².
            root: name of a body added before, or "world".
            axes: (3) or (n, 3), directions of the joints' axes, where ``joints`` is a class.
            armature: () or (n), rotor inertias at the joints, kg m² or kg.
            damping: () or (n), viscous coefficients, N m s/rad or N s/m.
            friction: () or (n), dry friction, N m or N.
            check_inertia: whether to refuse negative principal moments and warn of impossible ones.

        Returns:
            The names of the bodies.

        >>> import linkwise as lw
        >>> b = lw.ModelBuilder("star")
        >>> arms = b.add_bodies("arm", [-1, -1, -1, 0], lw.Revolute, masses=1.0, coms=(0.5, 0, 0), axes=(0, 0, 1))
        >>> b.build().parents
        (-1, -1, -1, 0)
        """
        with no_search_for_cycles():
            made = checked_bodies(
                names, parents, joints, placements, masses, coms, inertias, axes, armature, damping, friction,
                check_inertia, root,
            )  # fmt: skip
            self._take(made, root)
        return tuple([entry.name for entry in made])

    def add_chain(
        self,
        names: str | Sequence[str],
        links: int,
        parent: str = "world",
        joints: Joint | Sequence[Joint] | type[Joint] = Revolute,
        placements: ArrayLike = _IDENTITY,
        masses: ArrayLike = 0.0,
        coms: ArrayLike = (0.0, 0.0, 0.0),
        inertias: ArrayLike = ((0.0,) * 3,) * 3,
        **more: Any,
    ) -> tuple[str, ...]:
        """Add a chain, each body on the one before: :meth:`add_bodies` with parents -1, 0, 1 and so on.

        Args:
            names: a name for each body, or what comes before its number.
            links: how many bodies.
            parent: what the first one hangs on: a body added before, or "world".
            joints, placements, masses, coms, inertias: one for all bodies or one for each, as in :meth:`add_bodies`.
            more: ``axes``, ``armature``, ``damping``, ``friction``, ``check_inertia`` as there.

        Returns:
            The names of the bodies.

        >>> import linkwise as lw
        >>> b = lw.ModelBuilder("rope")
        >>> step = lw.transform(xyz=(0, 0, -0.1))
        >>> names = b.add_chain("link", 1000, placements=step, masses=0.01, coms=(0, 0, -0.05), axes=(0, 1, 0))
        >>> b.build().nv
        1000
        """
        return self.add_bodies(
            names, np.arange(links) - 1, joints, placements, masses, coms, inertias, root=parent, **more
        )

    def add_frame(
        self, name: str, body: str, placement: ArrayLike = _IDENTITY, *, node: str | int | None = None
    ) -> None:
        """Name a place on a body, to be used wherever a body name is (poses, Jacobians).

        Args:
            name: the frame's name, unlike any other body or frame.
            body: name of a body added before, or "world".
            placement: 4×4 pose in the body's frame, or in that of the node.
            node: of a flexible body, a node by name or number; the root if not given.
        """
        name = str(name)
        self._check_new(name)
        if body != "world" and body not in self._entries:
            raise UnknownNameError("body", body, ["world", *self._entries])
        place = checked_pose(placement, f"the placement of frame {name!r}")
        self._frames[name] = (str(body), place, self._node(str(body), node, f"frame {name!r}"))

    def add_closure(
        self,
        name: str,
        body_a: str,
        placement_a: ArrayLike | None = None,
        body_b: str = "world",
        placement_b: ArrayLike | None = None,
        *,
        joint: Joint | Closure,
        node_a: str | int | None = None,
        node_b: str | int | None = None,
        limits: JointLimits | Sequence[JointLimits] | None = None,
        damping: float | Sequence[float] = 0.0,
        friction: float | Sequence[float] = 0.0,
        stiffness: float | Sequence[float] = 0.0,
        rest: float | Sequence[float] = 0.0,
    ) -> None:
        """Close a loop: hold a frame a on one body and a frame b on another together, but for what a joint leaves free.

        Bodies are looked up when the model is built, so they may be added later.

        Args:
            name: the closure's name, unlike any other closure or coupling.
            body_a: name of a body or frame, or "world".
            placement_a: 4×4 pose of frame a on it; the body's own frame if not given.
            body_b: name of a body or frame that moves against the first.
            placement_b: 4×4 pose of frame b on it; the body's own frame if not given.
            joint: what stays free: a joint type, a being the joint's frame and b the child's; or ``PointOnPlane``,
                ``PointOnSurface``, ``PointOnCurve`` (they hold b's origin on something fixed in a), ``Distance``,
                ``Rolling`` (b rolls on a plane of a), ``PrescribedFrame``, or a :class:`linkwise.closures.Closure` of
                your own.
            node_a: of a flexible body a, the node that ``placement_a`` starts from, by name or number; else its root.
            node_b: likewise of body b.
            limits, damping, friction, stiffness, rest: of the freedoms that a joint type leaves, as in
                :meth:`add_body`: they act as those of a joint in the tree. Their coordinates are
                ``model.constraints.coordinates(q)``; of a turn, within half a turn of the middle of its limits, or of
                its rest.
        """
        name = str(name)
        closure = named_closure(name, joint)
        self._closing.append(
            partial(
                Mechanism.with_closure,
                name=name,
                body_a=body_a,
                placement_a=checked_placement(name, "a", placement_a),
                body_b=body_b,
                placement_b=checked_placement(name, "b", placement_b),
                joint=closure,
                node_a=node_a,
                node_b=node_b,
                **checked_numbers(name, closure, limits, damping, friction, stiffness, rest),
            )
        )

    def add_coupling(
        self,
        name: str,
        coupling: Relation | Callable[..., Scalar | Flat],
        equations: int | Sequence[str] = 1,
        joints: Sequence[str] | None = None,
    ) -> None:
        """Couple joints: gears, screws, belts, differentials, prescribed motions, or a relation of your own.

        Joints are looked up when the model is built, so they may be added later.

        Args:
            name: the coupling's name, unlike any other closure or coupling.
            coupling: ``Coupling.gear(…)`` and its kin, ``Prescribed``, ``JointFunction``, ``RateFunction``; or a
                function that is held at zero, of the configuration, ``fn(q)`` or ``fn(q, t)``, or of rates,
                ``fn(q, v, t)``, which returns a number or a list of them.
            equations: of a function, how many numbers it returns, or a name for each.
            joints: of a function, names of the joints whose coordinates, one after the other, are q; those of the whole
                model if not given.
        """
        relation = relation_of(str(name), coupling, equations, joints)
        self._closing.append(partial(Mechanism.with_coupling, name=str(name), coupling=relation))

    def add_actuator(self, actuator: Actuator) -> None:
        """Describe what drives the mechanism; it acts through :class:`linkwise.Drives`.

        Joints and frames are looked up when the model is built, so they may be added later.
        """
        self._actuators.append(
            _of_kind(
                actuator, Actuator, 'lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"knee": 1.0}))'
            )
        )

    def add_sensor(self, sensor: Sensor) -> None:
        """Describe what measures the mechanism; it reads through :class:`linkwise.Instruments`."""
        self._sensors.append(_of_kind(sensor, Sensor, 'lw.equipment.Sensor("gyro", "gyroscope", "hull")'))

    def add_spring(self, spring: Spring) -> None:
        """Add a spring and damper across several joints, or at a frame; it acts in every simulation."""
        example = (
            'lw.equipment.Spring("band", lw.equipment.JointTransmission({"hip": 1.0, "knee": -1.0}), stiffness=100.0)'
        )
        self._springs.append(_of_kind(spring, Spring, example))

    def add_field(self, field: Field) -> None:
        """Add compensation of gravity or the force of a fluid at a frame; it acts in every simulation.

        Args:
            field: :class:`~linkwise.equipment.GravityCompensation`, :class:`~linkwise.equipment.FluidBox` or
                :class:`~linkwise.equipment.FluidEllipsoid`.
        """
        if not isinstance(field, Field):
            raise InputError(
                "this is not a field",
                got=repr(field)[:80],
                allowed='lw.equipment.GravityCompensation("held", "hand", mass=1.0)',
            )
        self._fields.append(field)

    def add_configuration(
        self,
        name: str,
        q: ArrayLike | Mapping[str, ArrayLike],
        v: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Give a configuration a name: ``model.configurations[name]``.

        Args:
            name: the configuration's name; one that is there already is replaced.
            q: the whole of it (nq), or a mapping of joint names to their coordinates, the others at zero.
            v: velocity of a motion that begins there (nv), or a mapping, likewise; at rest if not given.
        """
        self._configurations[str(name)] = (q,) if v is None else (q, v)

    def add_world_collision(self, shape: Geometry) -> None:
        """Fix a shape for contact to the world: a floor, a wall, a terrain."""
        self._world_collisions.append(_of_kind(shape, Geometry, 'lw.Geometry("plane", …)'))

    def exclude_contact(self, link: str, other: str) -> None:
        """Keep the shapes of two links from touching.

        Args:
            link: the name of a body, or of one that is welded to another; "world" too.
            other: likewise.
        """
        for name in (link, other):
            if name != "world" and name not in self._entries:
                raise UnknownNameError("body", name, ["world", *self._entries])
        self._contact_excludes.append((str(link), str(other)))

    def mechanism(self, *, allow_massless: bool = False) -> dict[str, Any]:
        """The fields of the finished :class:`Mechanism`; ``allow_massless`` where only its kinematics are wanted."""
        with no_search_for_cycles():
            tree = joined(self._entries.values(), self._frames, allow_massless)
            tree |= {"name": self.name, "gravity": self.gravity, "_contact_excludes": tuple(self._contact_excludes)}
            tree["_base_collisions"] = (*self._world_collisions, *tree["_base_collisions"])
            return tree | self._equipped(self._closed(Mechanism(**tree)))

    def build(self) -> Mechanism:
        """The finished mechanism."""
        return Mechanism(**self.mechanism())

    def _check_new(self, name: str) -> None:
        if name == "world" or name in self._entries or name in self._frames:
            raise ModelError(
                f"the name {name!r} is taken", allowed="a name unlike any other body or frame", do="choose another name"
            )

    def _take(self, made: Sequence[Entry], root: str) -> None:
        if root != "world" and root not in self._entries:
            raise UnknownNameError("parent body", root, ["world", *self._entries], do="add the parent before these")
        names = {entry.name: entry for entry in made}
        joint_names = [entry.joint_name for entry in made]
        taken = [name for name in names if name == "world" or name in self._entries or name in self._frames]
        taken += [name for name in joint_names if name in self._joint_names]
        if taken:
            raise ModelError(
                f"the name {taken[0]!r} is taken",
                allowed="names unlike those of any other body, joint or frame",
                do="choose other names",
            )
        self._joint_names.update(joint_names)
        self._entries.update(names)

    def _node(self, body: str, node: str | int | None, what: str) -> int:
        """The place of a node among those of a flexible body that was added before."""
        if node is None:
            return 0
        beam = self._entries[body].flexible if body in self._entries else None
        if beam is None:
            raise InputError(
                f"{what} cannot sit on a node of {body!r}, which is rigid",
                got=f"node {node!r}",
                allowed="nodes of a body added with flexible=…",
                do="leave the node out and give a placement",
            )
        return number_of_node(beam, node)

    def _closed(self, mechanism: Mechanism) -> Mechanism:
        for close in self._closing:
            mechanism = close(mechanism)
        return mechanism

    def _equipped(self, mechanism: Mechanism) -> dict[str, Any]:
        mechanism = mechanism.with_equipment(
            actuators=self._actuators, sensors=self._sensors, springs=self._springs, fields=self._fields
        )
        for name, state in self._configurations.items():
            mechanism = mechanism.with_configuration(name, *state)
        parts = ("closures", "actuators", "sensors", "springs", "fields", "configurations")
        return {part: getattr(mechanism, part) for part in parts}


def _shapes_of(body: str, argument: str, given: object) -> tuple[Geometry, ...]:
    """Shapes of a body, each with the name of its link."""
    found = []
    for shape in given if isinstance(given, Iterable) else (given,):
        if not isinstance(shape, Geometry) or shape is given:
            raise InputError(
                f"the {argument} of body {body!r} are not a list of shapes",
                got=repr(given)[:80],
                allowed=f'{argument}=[lw.Geometry("box", (1, 1, 1), …), …]',
                do="shape=lw.shapes.box(…) gives a body mass, looks and outline at once",
            )
        found.append(replace(shape, name=shape.name or body))
    return tuple(found)


def _of_kind(element: object, kind: type[T], example: str) -> T:
    if not isinstance(element, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise InputError(f"what is needed is {article} {kind.__name__}", got=repr(element)[:80], allowed=example)
    return element
