"""Putting a mechanism together body by body. Nothing half-built comes out: ``build`` checks the whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.model.actuation import Actuator, Sensor, Spring
from linkwise.model.checks import checked_inertia, checked_mass, checked_pose, checked_vector, per_freedom
from linkwise.model.closures import Closure, Relation
from linkwise.model.closures.attach import checked_placement, named_closure, relation_of_function
from linkwise.model.collecting import paused
from linkwise.model.description import Geometry, JointLimits, Mimic
from linkwise.model.joints import Fixed, Joint, Revolute
from linkwise.model.mechanism import Mechanism
from linkwise.model.numbering import numbered
from linkwise.model.pieces import IDENTITY, Body, Frame, JointInstance, Part, Pose, number_of_node
from linkwise.model.placement import inverse_pose

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody
    from linkwise.model.many_bodies import ManyBodies

_IDENTITY = np.eye(4)
_NO_MODES = slice(0, 0)


@dataclass(frozen=True)
class Entry:
    """One ``add_body`` call, checked."""

    name: str
    parent: str
    joint: Joint
    joint_name: str
    placement: Any
    part: Part
    limits: tuple[JointLimits, ...]
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    mimic: Mimic | None
    visuals: tuple[Geometry, ...]
    collisions: tuple[Geometry, ...]
    joint_frame: Pose
    stiffness: tuple[float, ...]
    rest: tuple[float, ...]
    flexible: FlexibleBody | None = None
    node: int = 0


@dataclass(slots=True)
class _Home:
    """Where a named body is: a pose on a moving body (-1: the world), or on a node of one that deforms."""

    body: int
    pose: np.ndarray | None
    """None: the body's own frame."""
    node: int = 0

    def placed(self, placement: Pose) -> Pose:
        """A pose on the named body as one on the body that carries it."""
        return placement if self.pose is None else _rows(self.pose @ np.array(placement))


class Builder:
    """Collects bodies, frames and closures; see :class:`linkwise.ModelBuilder` for the public face."""

    def __init__(self, name: str = "model", gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> None:
        self.name = str(name)
        self.gravity = checked_vector(gravity, "gravity")
        self._entries: dict[str, Entry] = {}
        self._frames: dict[str, tuple[str, Any, int]] = {}
        self._joint_names: set[str] = set()
        self._closing: list[Callable[[Mechanism], Mechanism]] = []
        self._actuators: list[Actuator] = []
        self._sensors: list[Sensor] = []
        self._springs: list[Spring] = []
        self._configurations: dict[str, Any] = {}

    def add_body(
        self,
        name: str,
        parent: str = "world",
        joint: Joint | None = None,
        placement: Any = _IDENTITY,
        mass: float = 0.0,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        inertia: Any = ((0.0,) * 3,) * 3,
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
        joint_frame: Any = None,
        stiffness: float | Sequence[float] = 0.0,
        rest: float | Sequence[float] = 0.0,
        flexible: FlexibleBody | None = None,
        at: str | int | None = None,
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
            collisions: shapes for contact, kept with the body; nothing here reads them.
            check_inertia: whether to refuse a negative principal moment and warn of an impossible one; False where
                the numbers are to be used as they are.
            joint_frame: 4×4 pose of the joint frame in the body's own frame; if not given, that frame itself: then
                ``placement`` is the body's frame at q = neutral.
            stiffness: of a spring at each freedom, N m/rad or N/m; used by simulation.
            rest: the coordinates at which the springs are relaxed, rad or m.
            flexible: makes the body deform; its root is on the joint, its mass is its own. Its modal coordinates η
                come in q, and η̇ in v, right before those of the joint: ``model.body(name).q_slice`` and ``.v_slice``.
                Elastic forces -(Kη + Dη̇) are part of all dynamics functions, ½η*Kη of the potential energy.
            at: a node of a flexible parent, by name or number: ``placement`` then is a pose in the node's frame, which
                is parallel to that of the parent while nothing is deformed. The root if not given.
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
        if name == "world" or name in self._entries or name in self._frames:
            raise ModelError(
                f"the name {name!r} is taken", allowed="a name unlike any other body or frame", do="choose another name"
            )
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
        if mimic is not None and (joint.nq != 1 or joint.nv != 1):
            raise ModelError(
                f"joint {joint_name!r} cannot follow another", got=repr(joint), allowed="a joint with one freedom"
            )
        if mimic is not None and not (math.isfinite(mimic.multiplier) and math.isfinite(mimic.offset)):
            raise ModelError(f"the mimic of joint {joint_name!r} is not finite", got=repr(mimic))
        each = _limits(limits, joint, joint_name)
        springs, relaxed = _springs(stiffness, rest, joint, joint_name)
        beam = _checked_flexible(flexible, name, mass, com, inertia, mimic)
        part = Part(
            name,
            IDENTITY,
            checked_mass(mass, name),
            checked_vector(com, f"the mass centre of {name!r}"),
            checked_inertia(inertia, name, check_inertia),
        )
        self._joint_names.add(joint_name)
        self._entries[name] = Entry(
            name,
            str(parent),
            joint,
            joint_name,
            checked_pose(placement, f"the placement of body {name!r}"),
            part,
            each,
            per_freedom(armature, joint.nv, f"the armature of joint {joint_name!r}"),
            per_freedom(damping, joint.nv, f"the damping of joint {joint_name!r}"),
            per_freedom(friction, joint.nv, f"the friction of joint {joint_name!r}"),
            mimic,
            tuple(visuals),
            tuple(collisions),
            IDENTITY if joint_frame is None else checked_pose(joint_frame, f"the joint frame of body {name!r}"),
            springs,
            relaxed,
            beam,
            self._node(str(parent), at, f"body {name!r}"),
        )

    def add_bodies(
        self,
        names: str | Sequence[str],
        parents: Sequence[int] | np.ndarray,
        joints: Joint | Sequence[Joint] | type[Joint],
        placements: Any = _IDENTITY,
        masses: Any = 0.0,
        coms: Any = (0.0, 0.0, 0.0),
        inertias: Any = ((0.0,) * 3,) * 3,
        *,
        root: str = "world",
        axes: Any = None,
        armature: Any = 0.0,
        damping: Any = 0.0,
        friction: Any = 0.0,
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
        from linkwise.model.many_bodies import checked_bodies

        with paused(len(parents)):
            made = checked_bodies(
                names, parents, joints, placements, masses, coms, inertias, axes, armature, damping, friction,
                check_inertia,
            )  # fmt: skip
            self._take(made, root)
        return tuple(made.names)

    def _take(self, made: ManyBodies, root: str) -> None:
        if root != "world" and root not in self._entries:
            raise UnknownNameError("parent body", root, ["world", *self._entries], do="add the parent before these")
        taken = [name for name in made.names if name == "world" or name in self._entries or name in self._frames]
        taken += [name for name in made.joint_names if name in self._joint_names]
        if taken:
            raise ModelError(
                f"the name {taken[0]!r} is taken",
                allowed="names unlike those of any other body, joint or frame",
                do="choose other names",
            )
        self._joint_names.update(made.joint_names)
        self._entries.update(zip(made.names, made.entries(root), strict=True))

    def add_chain(
        self,
        names: str | Sequence[str],
        links: int,
        parent: str = "world",
        joints: Joint | Sequence[Joint] | type[Joint] = Revolute,
        placements: Any = _IDENTITY,
        masses: Any = 0.0,
        coms: Any = (0.0, 0.0, 0.0),
        inertias: Any = ((0.0,) * 3,) * 3,
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

    def add_frame(self, name: str, body: str, placement: Any = _IDENTITY, *, node: str | int | None = None) -> None:
        """Name a place on a body, to be used wherever a body name is (poses, Jacobians).

        Args:
            name: the frame's name, unlike any other body or frame.
            body: name of a body added before, or "world".
            placement: 4×4 pose in the body's frame, or in that of the node.
            node: of a flexible body, a node by name or number; the root if not given.
        """
        name = str(name)
        if name == "world" or name in self._entries or name in self._frames:
            raise ModelError(
                f"the name {name!r} is taken", allowed="a name unlike any other body or frame", do="choose another name"
            )
        if body != "world" and body not in self._entries:
            raise UnknownNameError("body", body, ["world", *self._entries])
        place = checked_pose(placement, f"the placement of frame {name!r}")
        self._frames[name] = (str(body), place, self._node(str(body), node, f"frame {name!r}"))

    def add_closure(
        self,
        name: str,
        body_a: str,
        placement_a: Any = None,
        body_b: str = "world",
        placement_b: Any = None,
        *,
        joint: Joint | Closure,
        node_a: str | int | None = None,
        node_b: str | int | None = None,
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
                ``Rolling`` (b rolls on a plane of a), ``PrescribedFrame``, or a :class:`linkwise.Closure` of your own.
            node_a: of a flexible body a, the node that ``placement_a`` starts from, by name or number; else its root.
            node_b: likewise of body b.
        """
        name = str(name)
        self._closing.append(
            partial(
                Mechanism.with_closure,
                name=name,
                body_a=body_a,
                placement_a=checked_placement(name, "a", placement_a),
                body_b=body_b,
                placement_b=checked_placement(name, "b", placement_b),
                joint=named_closure(name, joint),
                node_a=node_a,
                node_b=node_b,
            )
        )

    def add_coupling(self, name: str, coupling: Relation) -> None:
        """Couple joints: gears, screws, belts, differentials, prescribed motions, or a relation of your own.

        Joints are looked up when the model is built, so they may be added later.

        Args:
            name: the coupling's name, unlike any other closure or coupling.
            coupling: ``Coupling.gear(…)`` and its kin, ``Prescribed``, ``JointFunction``, ``RateFunction``.
        """
        self._closing.append(partial(Mechanism.with_coupling, name=str(name), coupling=coupling))

    def add_constraint(
        self,
        name: str,
        fn: Callable[..., Any],
        equations: int | Sequence[str] = 1,
        joints: Sequence[str] | None = None,
    ) -> None:
        """Hold a function of the configuration at zero: ``fn(q)`` or ``fn(q, t)``; or of rates: ``fn(q, v, t)``.

        Args:
            name: the constraint's name, unlike any other closure or coupling.
            fn: returns a number, or a list of them; see :class:`linkwise.JointFunction` and
                :class:`linkwise.RateFunction`.
            equations: how many numbers it returns, or a name for each.
            joints: names of the joints whose coordinates, one after the other, are q; those of the whole model if not
                given.
        """
        self.add_coupling(name, relation_of_function(str(name), fn, equations, joints))

    def add_actuator(self, actuator: Actuator) -> None:
        """Describe what drives the mechanism; it acts through :class:`linkwise.Actuators`.

        Joints and frames are looked up when the model is built, so they may be added later.
        """
        self._actuators.append(
            _of_kind(actuator, Actuator, 'lw.Actuator("motor", lw.JointTransmission({"knee": 1.0}))')
        )

    def add_sensor(self, sensor: Sensor) -> None:
        """Describe what measures the mechanism; it reads through :class:`linkwise.Sensors`."""
        self._sensors.append(_of_kind(sensor, Sensor, 'lw.Sensor("gyro", "gyroscope", "hull")'))

    def add_spring(self, spring: Spring) -> None:
        """Add a spring and damper across several joints, or at a frame; it acts in every simulation."""
        example = 'lw.Spring("band", lw.JointTransmission({"hip": 1.0, "knee": -1.0}), stiffness=100.0)'
        self._springs.append(_of_kind(spring, Spring, example))

    def add_configuration(self, name: str, q: Any) -> None:
        """Give a configuration a name: ``model.configurations[name]``.

        Args:
            name: the configuration's name; one that is there already is replaced.
            q: the whole of it (nq), or a mapping of joint names to their coordinates, the others at zero.
        """
        self._configurations[str(name)] = q

    def mechanism(self, *, allow_massless: bool = False) -> dict[str, Any]:
        """The fields of the finished :class:`Mechanism`; ``allow_massless`` where only its kinematics are wanted."""
        with paused(len(self._entries)):
            return self._mechanism(allow_massless)

    def _mechanism(self, allow_massless: bool) -> dict[str, Any]:
        home: dict[str, _Home] = {"world": _Home(-1, None)}
        bodies: list[Body] = []
        entries: list[Entry] = []
        base: list[Part] = []
        base_visuals: list[Geometry] = []
        frames: list[Frame] = []
        for entry in self._entries.values():
            on = home[entry.parent]
            parent, node = on.body, entry.node or on.node
            rows = on.placed(entry.placement)
            if isinstance(entry.joint, Fixed) and entry.flexible is None:
                placement = np.array(rows)
                if entry.joint_frame != IDENTITY:
                    placement = placement @ inverse_pose(np.array(entry.joint_frame))
                home[entry.name] = _Home(parent, placement, node)
                frames.append(Frame(entry.name, parent, _rows(placement), node))
                part = replace(entry.part, placement=_rows(placement), node=node)
                at_rest = _at_rest(bodies, parent, node) @ placement
                visuals = tuple(_moved(g, at_rest) for g in entry.visuals)
                collisions = tuple(_moved(g, at_rest) for g in entry.collisions)
                if parent < 0:
                    base.append(part)
                    base_visuals.extend(visuals)
                else:
                    b = bodies[parent]
                    bodies[parent] = replace(
                        b, parts=(*b.parts, part), visuals=b.visuals + visuals, collisions=b.collisions + collisions
                    )
                continue
            home[entry.name] = _Home(len(bodies), None)
            bodies.append(
                Body(
                    entry.name,
                    len(bodies),
                    parent,
                    rows,
                    (entry.part,),
                    entry.visuals,
                    entry.collisions,
                    entry.joint_frame,
                    node,
                    entry.flexible,
                    _NO_MODES,
                    _NO_MODES,
                )
            )
            entries.append(entry)
        for name, (body, place, own_node) in self._frames.items():
            on = home[body]
            frames.append(Frame(name, on.body, on.placed(place), own_node or on.node))
        placed, joints = numbered(bodies, _joints(entries))
        if not allow_massless:
            _check_massless_leaves(placed, entries)
        tree: dict[str, Any] = {
            "name": self.name,
            "gravity": self.gravity,
            "bodies": placed,
            "joints": joints,
            "frames": tuple(frames),
            "base_parts": tuple(base),
            "base_visuals": tuple(base_visuals),
        }
        return tree | self._equipped(self._closed(Mechanism(**tree)))

    def _closed(self, mechanism: Mechanism) -> Mechanism:
        for close in self._closing:
            mechanism = close(mechanism)
        return mechanism

    def _equipped(self, mechanism: Mechanism) -> dict[str, Any]:
        mechanism = mechanism.with_actuators(self._actuators).with_sensors(self._sensors).with_springs(self._springs)
        for name, q in self._configurations.items():
            mechanism = mechanism.with_configuration(name, q)
        parts = ("closures", "actuators", "sensors", "springs", "configurations")
        return {part: getattr(mechanism, part) for part in parts}

    def build(self) -> Mechanism:
        """The finished mechanism."""
        return Mechanism(**self.mechanism())


def _of_kind(element: Any, kind: Any, example: str) -> Any:
    if not isinstance(element, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise InputError(f"what is needed is {article} {kind.__name__}", got=repr(element)[:80], allowed=example)
    return element


def _limits(
    limits: JointLimits | Sequence[JointLimits] | None, joint: Joint, joint_name: str
) -> tuple[JointLimits, ...]:
    """One for each freedom, or none at all."""
    each = (limits,) * joint.nv if isinstance(limits, JointLimits) else tuple(limits or ())
    if not all(isinstance(limit, JointLimits) for limit in each):
        raise InputError(
            f"the limits of joint {joint_name!r} are not limits",
            got=repr(limits),
            allowed="lw.JointLimits(lower, upper, velocity, effort), or a list of them",
        )
    if each and len(each) != joint.nv:
        raise InputError(
            f"joint {joint_name!r} has {joint.nv} freedoms",
            got=f"{len(each)} limits",
            allowed="one for each freedom, or one for all",
        )
    bounded = [limit for limit in each if math.isfinite(limit.lower) or math.isfinite(limit.upper)]
    if bounded and joint.nq != joint.nv:
        raise InputError(
            f"the position of joint {joint_name!r} cannot be limited: a freedom of it has no coordinate of its own",
            got=f"{bounded[0]!r} for {joint!r}",
            allowed="limits of velocity and effort",
            do="drop lower and upper, or build the joint from Revolute and Prismatic ones",
        )
    return each


def _springs(stiffness: Any, rest: Any, joint: Joint, joint_name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """One stiffness and one place of rest for each freedom."""
    if isinstance(stiffness, float) and isinstance(rest, float) and stiffness == 0.0 == rest:  # most joints
        return (0.0,) * joint.nv, (0.0,) * joint.nv
    springs = per_freedom(stiffness, joint.nv, f"the stiffness of joint {joint_name!r}")
    try:
        relaxed = np.broadcast_to(np.asarray(rest, float), (joint.nv,))
    except (TypeError, ValueError):
        relaxed = np.full(1, np.nan)
    if not np.isfinite(relaxed).all():
        raise InputError(
            f"the springs of joint {joint_name!r} have no place of rest",
            got=f"rest={rest!r}",
            allowed=f"one finite number, or {joint.nv}",
        )
    if any(springs) and joint.nq != joint.nv:
        raise InputError(
            f"joint {joint_name!r} cannot have a spring: a freedom of it has no coordinate of its own",
            got=f"stiffness={stiffness!r} for {joint!r}",
            do="use lw.JointSprings in the simulation",
        )
    return springs, tuple(relaxed.tolist())


def _at_rest(bodies: list[Body], body: int, node: int) -> np.ndarray:
    """Where a node is in its body's frame while nothing is deformed."""
    pose = np.eye(4)
    flexible = bodies[body].flexible if body >= 0 else None
    if flexible is not None:
        pose[:3, 3] = flexible.nodes[node].position
    return pose


def _checked_flexible(
    flexible: Any, name: str, mass: Any, com: Any, inertia: Any, mimic: Mimic | None
) -> FlexibleBody | None:
    """What deforms, if anything does and nothing contradicts it."""
    if flexible is None:
        return None
    from linkwise.flexible.body import FlexibleBody

    if not isinstance(flexible, FlexibleBody):
        raise InputError(
            f"body {name!r} was given a flexible body that is none",
            got=repr(flexible),
            allowed="e.g. lw.FlexibleBody.beam(…)",
        )
    if not flexible.modes:
        raise ModelError(
            f"the flexible body {name!r} has no modes: it is rigid",
            got=repr(flexible),
            do="give mass=flexible.mass, com=flexible.com and inertia=flexible.inertia instead, or keep some modes",
        )
    if np.any(np.asarray(mass)) or np.any(np.asarray(com)) or np.any(np.asarray(inertia)):
        raise ModelError(
            f"the mass of the flexible body {name!r} is its own",
            got="mass, com or inertia beside flexible",
            do="weld what is rigid to one of its nodes: add_body(…, parent=…, at=…)",
        )
    if mimic is not None:
        raise ModelError(
            f"the joint of the flexible body {name!r} cannot follow another",
            got=repr(mimic),
            do="let a rigid body follow and weld the flexible one to it",
        )
    return flexible


def _joints(entries: list[Entry]) -> list[JointInstance]:
    """The joints, not yet in their places."""
    by_name = {entry.joint_name: entry for entry in entries}
    nowhere = slice(0, 0)
    return [
        JointInstance(
            entry.joint_name,
            index,
            entry.joint,
            nowhere,
            nowhere,
            entry.limits,
            entry.armature,
            entry.damping,
            entry.friction,
            entry.mimic and _resolved(entry, by_name),
            entry.stiffness,
            entry.rest,
        )
        for index, entry in enumerate(entries)
    ]


def _resolved(entry: Entry, by_name: dict[str, Entry]) -> Mimic:
    """Follow a chain of mimics to the joint that has a coordinate: q = m₁(m₂ q + o₂) + o₁."""
    multiplier, offset, seen = 1.0, 0.0, [entry.joint_name]
    while entry.mimic is not None:
        multiplier, offset = multiplier * entry.mimic.multiplier, multiplier * entry.mimic.offset + offset
        if entry.mimic.joint not in by_name:
            raise UnknownNameError(f"joint for {seen[0]!r} to follow", entry.mimic.joint, by_name)
        entry = by_name[entry.mimic.joint]
        if entry.joint_name in seen:
            raise ModelError("joints follow each other in a circle", got=" -> ".join([*seen, entry.joint_name]))
        seen.append(entry.joint_name)
    if entry.joint.nq != 1 or entry.joint.nv != 1:
        raise ModelError(
            f"joint {seen[0]!r} cannot follow {entry.joint_name!r}",
            got=repr(entry.joint),
            allowed="a joint with one freedom",
        )
    return Mimic(entry.joint_name, multiplier, offset)


def _check_massless_leaves(bodies: Sequence[Body], entries: list[Entry]) -> None:
    parents = {body.parent for body in bodies}
    for body, entry in zip(bodies, entries, strict=True):
        if body.index in parents:
            continue
        empty = not body.modes and all(part.mass == 0.0 and not any(part.inertia) for part in body.parts)
        if empty and not any(entry.armature) and entry.mimic is None:
            raise ModelError(
                f"body {body.name!r} can move but nothing in it or beyond it has mass: its acceleration is not defined",
                got="mass 0, inertia 0, no children",
                allowed="a mass, an inertia, an armature, or a fixed joint",
                do=f"give {body.name!r} a mass, weld it with lw.Fixed(), or lock joint {entry.joint_name!r}",
            )


def _rows(pose: np.ndarray) -> Pose:
    return tuple(map(tuple, pose.tolist()))


def _moved(geometry: Geometry, placement: np.ndarray) -> Geometry:
    return replace(geometry, placement=_rows(placement @ np.array(geometry.placement)))
