"""Mechanism: bodies, joints, frames, gravity. Frozen; every change gives a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.actuation import Actuator, Sensor, Spring
from linkwise.mechanism.bodies_and_joints import (
    IDENTITY,
    Body,
    Frame,
    JointInstance,
    Named,
    Part,
    number_of_node,
)
from linkwise.mechanism.changed_copies import ChangedCopies
from linkwise.mechanism.closures.instances import (
    ClosureFreedoms,
    ClosureInstance,
    Reference,
    RelationInstance,
    freedoms_of_closures,
)
from linkwise.mechanism.configurations import Configurations
from linkwise.mechanism.contacts import ContactScene
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.fields import Field
from linkwise.mechanism.per_freedom import PerFreedom
from linkwise.memoized import cached_property

if TYPE_CHECKING:
    from linkwise.flexible.structure import NodeKey


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
    """How accelerations under closures are found, by name."""
    _closure_reference: Reference | None = None
    """Where a solver that needs to know it beforehand chooses its freedoms."""
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
