"""Changed copies of a mechanism: another gravity, other masses, equipment, closures, configurations with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.checks import finite_numbers
from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.joints import Joint
from linkwise.mechanism.actuation import SENSOR_KINDS, Actuator, Sensor, Spring
from linkwise.mechanism.bodies_and_joints import Body, Named, Part
from linkwise.mechanism.closures.constraint import Closure, Relation
from linkwise.mechanism.closures.instances import (
    ClosureInstance,
    RelationInstance,
    closure_between,
    relation_between,
    relation_of,
)
from linkwise.mechanism.contacts import ContactRules, Ground, check_outline, checked_scene
from linkwise.mechanism.equipment import closing_joint, fitted_drives, fitted_fields, fitted_sensors
from linkwise.mechanism.fields import Field
from linkwise.mechanism.materials import Material
from linkwise.spatial.scalar import Flat, Scalar

if TYPE_CHECKING:
    from linkwise.flexible.structure import NodeKey
    from linkwise.mechanism.mechanism import Mechanism


class Configurations(Mapping[str, NDArray[np.float64]]):
    """Name → q (nq), read-only; some with a velocity, as the keyframes of a file may have."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[tuple[str, Sequence[float], Sequence[float]]] = ()) -> None:
        self._values = {name: (tuple(map(float, q)), tuple(map(float, v))) for name, q, v in values}

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._numbers(name, 0)

    def velocity(self, name: str) -> NDArray[np.float64] | None:
        """v (nv) that was given with a configuration, read-only; None if none was, or it is at rest."""
        return self._numbers(name, 1) if any(self._numbers(name, 1)) else None

    def _numbers(self, name: str, which: int) -> NDArray[np.float64]:
        if name not in self._values:
            raise UnknownNameError("configuration", name, self._values)
        found = np.array(self._values[name][which], float)
        found.flags.writeable = False
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configurations) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Configurations, (tuple((name, q, v) for name, (q, v) in self._values.items()),)

    def __repr__(self) -> str:
        return f"<configurations: {', '.join(self._values) or 'none'}>"

    def _ipython_key_completions_(self) -> list[str]:
        """Names that complete inside ``model.configurations["``."""
        return list(self._values)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all configurations, in order."""
        return tuple(self._values)

    def with_configuration(self, name: str, q: Sequence[float], v: Sequence[float] = ()) -> Configurations:
        """A copy with one more, or with another q and v under a name that is there."""
        values = self._values | {str(name): (tuple(q), tuple(v))}
        return Configurations((name, q, v) for name, (q, v) in values.items())


def velocity_of(mechanism: Mechanism, name: str, values: ArrayLike | Mapping[str, ArrayLike]) -> tuple[float, ...]:
    """v (nv) from numbers for the whole, or from a mapping of joints to theirs; the others at rest."""
    what = f"the velocity of configuration {name!r}"
    if not isinstance(values, Mapping):
        return finite_numbers(values, what, mechanism.nv)
    v = [0.0] * mechanism.nv
    own = {joint.name: joint for joint in mechanism._independent}
    for key, value in values.items():
        if key not in own:
            raise UnknownNameError(f"joint with coordinates of its own for {what}", key, own)
        v[own[key].v_slice] = finite_numbers(value, f"joint {key!r} in {what}", own[key].nv)
    return tuple(v)


def configuration_of(mechanism: Mechanism, name: str, values: ArrayLike | Mapping[str, ArrayLike]) -> tuple[float, ...]:
    """q (nq) from numbers for the whole, or from a mapping of joints to theirs; the others at their zero position."""
    if not isinstance(values, Mapping):
        return finite_numbers(values, f"the configuration {name!r}", mechanism.nq)
    q = [0.0] * mechanism.nq
    own = {joint.name: joint for joint in mechanism._independent}
    for joint in own.values():
        q[joint.q_slice] = joint.type.neutral()
    for key, value in values.items():
        if key not in own:
            raise UnknownNameError(f"joint with coordinates of its own for configuration {name!r}", key, own)
        q[own[key].q_slice] = finite_numbers(value, f"joint {key!r} in configuration {name!r}", own[key].nq)
    return tuple(q)


class ChangedCopies:
    """The ``with_…`` methods of a mechanism."""

    def with_gravity(self, gravity: Sequence[float]) -> Self:
        """A copy with another gravity vector, in m/s²."""
        from linkwise.mechanism.body_checks import checked_vector

        return replace(self, gravity=checked_vector(gravity, "gravity"))

    def with_body(
        self,
        name: str,
        *,
        mass: float | None = None,
        com: Sequence[float] | None = None,
        inertia: ArrayLike | None = None,
    ) -> Self:
        """A copy in which one body (or a body welded to another) has another mass, mass centre or inertia (3×3)."""
        from linkwise.mechanism.body_checks import checked_inertia, checked_mass, checked_vector

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

    def with_contacts(
        self,
        *grounds: Ground,
        only: Sequence[str] | None = None,
        material: Material | Mapping[str, Material] | None = None,
        between: Sequence[tuple[str, str]] | None = None,
        exclude: Sequence[tuple[str, str]] = (),
        rules: ContactRules | None = None,
        softness: Literal["rigid", "file"] = "rigid",
    ) -> Self:
        """A copy whose bodies touch grounds and each other, with their shapes for contact; meshes as their hulls.

        What an earlier call said is replaced.

        >>> import linkwise as lw
        >>> b = lw.ModelBuilder("ball")
        >>> ball = lw.Geometry("sphere", (0.1,), None, (1, 1, 1), lw.transform(), "ball")
        >>> inertia = [[0.004, 0, 0], [0, 0.004, 0], [0, 0, 0.004]]
        >>> b.add_body("ball", joint=lw.Free(), mass=1.0, inertia=inertia, collisions=[ball])
        >>> model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))

        Args:
            grounds: what is fixed in the world, beside what the file has there.
            only: names of the bodies, links or shapes that touch; all that have shapes for contact if not given. A link
                may be part of a body (a foot on a fixed joint), and a shape has a name where its file gives it one.
            material: of all surfaces, or of some by such names. Where nothing is said, the friction that the file gives
                its shapes counts, and else what :class:`Material` has.
            between: pairs of such names that may touch each other. If not given: all that are not neighbours, whose
                masks allow it and that no file excludes; but none where ``only`` is given.
            exclude: pairs that never touch, of such names, a ground's or that of a shape in the world.
            rules: how steps with contact are solved.
            softness: ``"rigid"``, or ``"file"``: surfaces give way as the file says, by ``solref`` and ``solimp`` of
                MJCF or ``kp`` and ``kd`` of SDF.
        """
        bodies, fixed = self._mechanism.bodies, [shape.name for shape in self._mechanism._base_collisions]
        names = [*bodies.names, *(x for body in bodies for shape in body.collisions for x in shape.names_on(body.name))]
        names = list(dict.fromkeys(names))
        scene = checked_scene(names, grounds, only, material, between, exclude, rules, softness, fixed)
        for body in bodies:
            for shape in body.collisions:
                if scene.touches(body.name, shape):
                    check_outline(shape)
        for shape in (*self._mechanism._base_collisions, *(ground.shape for ground in grounds)):
            check_outline(shape)
        return replace(self, _contact_scene=scene)._with_hulls()

    def _with_hulls(self) -> Self:
        """A copy whose meshes can touch; itself where nobody reads files."""
        return self

    def with_configuration(
        self,
        name: str,
        q: ArrayLike | Mapping[str, ArrayLike],
        v: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> Self:
        """A copy with a configuration of this name: q (nq), or a mapping of joints to their coordinates.

        ``v`` (nv, or likewise) is the velocity of a motion that begins there: see :attr:`Model.start`.
        """
        chosen = configuration_of(self._mechanism, str(name), q)
        moving = () if v is None else velocity_of(self._mechanism, str(name), v)
        return replace(self, configurations=self.configurations.with_configuration(name, chosen, moving))

    def with_equipment(
        self,
        *,
        actuators: Iterable[Actuator] | None = None,
        sensors: Iterable[Sensor] | None = None,
        springs: Iterable[Spring] | None = None,
        fields: Iterable[Field] | None = None,
    ) -> Self:
        """A copy with other equipment; what is not given stays.

        Args:
            actuators: these and no others; sensors of actuators that are gone, are gone with them.
            sensors: these and no others.
            springs: those across joints, these and no others, sensors likewise; springs of single joints stay.
            fields: gravity compensation and fluids, these and no others.
        """
        chosen = self.actuators if actuators is None else fitted_drives(self._mechanism, actuators, "actuator")
        across = self.springs if springs is None else fitted_drives(self._mechanism, springs, "spring")
        if sensors is None:
            left = {"actuator": {each.name for each in chosen}, "spring": {each.name for each in across}}
            sensors = [s for s in self.sensors if s.target in left.get(SENSOR_KINDS[s.kind][0], (s.target,))]
        measuring = fitted_sensors(self._mechanism, sensors, chosen, across)
        around = self.fields if fields is None else fitted_fields(self._mechanism, fields)
        return replace(self, actuators=chosen, sensors=measuring, springs=across, fields=around)

    def with_closure(
        self,
        name: str,
        body_a: str,
        placement_a: ArrayLike | None = None,
        body_b: str = "world",
        placement_b: ArrayLike | None = None,
        *,
        joint: Joint | Closure,
        node_a: NodeKey | None = None,
        node_b: NodeKey | None = None,
        **numbers: Any,
    ) -> Self:
        """A copy with one closure more; see :meth:`linkwise.ModelBuilder.add_closure`."""
        sides = (body_a, placement_a, body_b, placement_b)
        return self._with(closure_between(self._mechanism, str(name), *sides, joint, node_a, node_b, **numbers))

    def with_coupling(
        self,
        name: str,
        coupling: Relation | Callable[..., Scalar | Flat],
        equations: int | Sequence[str] = 1,
        joints: Sequence[str] | None = None,
    ) -> Self:
        """A copy with one relation between joints more; see :meth:`linkwise.ModelBuilder.add_coupling`."""
        relation = relation_of(str(name), coupling, equations, joints)
        return self._with(relation_between(self._mechanism, str(name), relation))

    def _without_closure(self, name: str) -> Self:
        """A copy without the closure or coupling of this name."""
        from linkwise.mechanism.parameters import check_names

        gone = self.closures[name]
        drives: list[Actuator | Spring] = [*self.actuators, *self.springs]
        held = [each.name for each in drives if gone.name in getattr(each.transmission, "joints", ())]
        held += [each.name for each in self.sensors if each.target == gone.name]
        if held and closing_joint(self._mechanism, gone.name) is not None:
            raise ModelError(
                f"closure {name!r} cannot be taken away: others act along it or read it",
                got=", ".join(map(repr, held)),
                do="take them away first: with_equipment(actuators=..., springs=..., sensors=...)",
            )
        left = replace(self, closures=tuple(c for c in self.closures if c is not gone))
        check_names(left._mechanism, self._parameter_names)  # lest one of them be a number of the closure that is gone
        return left

    def _with(self, closure: ClosureInstance | RelationInstance) -> Self:
        if any(known.name == closure.name for known in self.closures):
            raise ModelError(
                f"the closure name {closure.name!r} is taken",
                allowed="a name unlike any other closure or coupling",
                do="choose another name",
            )
        return replace(self, closures=(*self.closures, closure))

    @property
    def _mechanism(self) -> Mechanism:
        """Itself: these methods are a part of a mechanism and do not stand alone."""
        return self  # type: ignore[return-value]

    # What the mechanism itself gives.
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]
        bodies: Named[Body]
        base_parts: tuple[Part, ...]
        actuators: tuple[Actuator, ...]
        sensors: tuple[Sensor, ...]
        springs: tuple[Spring, ...]
        fields: tuple[Field, ...]
        closures: Named[ClosureInstance | RelationInstance]
        configurations: Configurations
        _parameter_names: tuple[str, ...]
