"""The bodies of a file to calls on a builder; what the builder refuses is reported with the file and line.

Then actuators, sensors, springs across joints, fields and named configurations, on the bodies that are built. A joint
that is locked has no coordinate: it stands in the length of a transmission with its value, and what was on it alone is
gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from linkwise.errors import LinkwiseError, ModelFileError, ModelWarning
from linkwise.files.bodies import CarriedLink
from linkwise.files.file_description import (
    ClosureWritten,
    CouplingWritten,
    Description,
    JointWritten,
    PolynomialWritten,
)
from linkwise.files.resources import SearchPath
from linkwise.files.topology import WORLD
from linkwise.joints import Joint, joint_types
from linkwise.mechanism.actuation import SENSOR_KINDS
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.closures import Coupling, PolynomialCoupling
from linkwise.mechanism.description import Source
from linkwise.mechanism.editing.locking import freed


def _joint(written: JointWritten) -> Joint:
    """The joint object for what a file says of a joint."""
    kind = joint_types()[written.type]
    said = {"axis": written.axis, "axis1": written.axis, "axis2": written.axis2, "pitch": written.pitch}
    return kind.from_constants(**{name: said[name] for name in kind.constant_names()})


def build(
    builder: Builder,
    bodies: Sequence[CarriedLink],
    description: Description,
    frames: Mapping[str, tuple[str, ArrayLike]] | None = None,
    places: SearchPath | None = None,
) -> dict[str, Any]:
    """The fields of the mechanism: every body, each after its parent, then the frames and what closes loops.

    With `places`, the shapes remember which file names them.
    """
    file = description.file
    sources: dict[str, Source | None] = {}
    for body in bodies:
        named_by = body.link.file or file
        if named_by not in sources:
            sources[named_by] = None if places is None else places.source(_path(named_by))
        with _located(body.joint.file or file, body.joint.line):
            _add(builder, body, sources[named_by])
    for frame in description.frames:
        with _located(frame.file or file, frame.line):
            builder.add_frame(frame.name, frame.link, frame.placement)
    for name, (frame_body, placement) in (frames or {}).items():
        builder.add_frame(name, frame_body, placement)
    for closure in _open(description.closures, bodies):
        with _located(closure.joint.file or file, closure.joint.line):
            _close(builder, closure.joint)
    for coupling in description.couplings:
        with _located(coupling.file or file, coupling.line):
            _couple(builder, coupling, bodies)
    equip(builder, bodies, description)
    for shape in description.world_collisions:
        builder.add_world_collision(replace(shape, source=None if places is None else places.source(_path(file))))
    there = {WORLD, *(body.link.name for body in bodies)}
    for link, other in description.contact_excludes:
        if {link, other} <= there:
            builder.exclude_contact(link, other)
    try:
        return builder.mechanism(allow_massless=True)  # the reader has warned, with file and line
    except LinkwiseError as error:
        place, line = _named_in(str(error), bodies, description)
        raise _at(error, place or file, line) from error


def _path(file: str) -> str | None:
    return None if file == "<string>" else file


def _add(builder: Builder, body: CarriedLink, source: Source | None) -> None:
    link, joint = body.link, body.joint
    builder.add_body(
        link.name,
        parent=joint.parent,
        joint=_joint(joint),
        joint_name=joint.name,
        placement=joint.placement,
        mass=link.mass,
        com=link.com,
        inertia=link.inertia,
        limits=joint.limits,
        damping=joint.damping,
        friction=joint.friction,
        mimic=joint.mimic,
        visuals=tuple(replace(shape, source=source) for shape in link.visuals),
        collisions=tuple(replace(shape, source=source) for shape in link.collisions),
        check_inertia=False,  # judged already, with file and line (`linkwise.files.bodies`)
        joint_frame=joint.joint_frame,
        stiffness=joint.stiffness,
        rest=joint.rest,
        armature=joint.armature,
    )


def _open(closures: Sequence[ClosureWritten], bodies: Sequence[CarriedLink]) -> Iterator[ClosureWritten]:
    """The closures that say something: not those that hold by themselves, since both ends are rigidly connected."""
    carrier = {WORLD: WORLD}
    for body in bodies:
        moves = body.joint.type != "fixed"
        carrier[body.link.name] = body.link.name if moves else carrier[body.joint.parent]
    for closure in closures:
        a, b = closure.joint.parent, closure.joint.child
        if not closure.implied or carrier[a] != carrier[b]:
            yield closure


def _close(builder: Builder, joint: JointWritten) -> None:
    builder.add_closure(
        joint.name,
        joint.parent,
        joint.placement,
        joint.child,
        joint.joint_frame,
        joint=_joint(joint),
        limits=joint.limits,
        damping=joint.damping,
        friction=joint.friction,
        stiffness=joint.stiffness,
        rest=joint.rest,
    )


def _couple(builder: Builder, coupling: CouplingWritten, bodies: Sequence[CarriedLink]) -> None:
    """Locked joints stand in the sum with their values; a sum of nothing else says nothing."""
    locked = {body.joint.name: body.locked for body in bodies if body.locked is not None}
    terms = {name: c for name, c in coupling.terms.items() if name not in locked}
    offset = coupling.offset - sum(c * locked[name] for name, c in coupling.terms.items() if name in locked)
    if terms:
        builder.add_coupling(coupling.name, Coupling(terms, offset))


@contextmanager
def _located(file: str, line: int) -> Iterator[None]:
    try:
        yield
    except ModelFileError:
        raise
    except LinkwiseError as error:
        raise _at(error, file, line) from error


def _at(error: LinkwiseError, file: str, line: int | None) -> ModelFileError:
    return ModelFileError(error.what, file=file, line=line, **error.parts)


def _named_in(text: str, bodies: Sequence[CarriedLink], description: Description) -> tuple[str | None, int | None]:
    """File and line of the first joint, link or closure whose quoted name is in a message."""
    named: list[Any] = [*description.couplings, *description.polynomials]
    named += [*description.actuators, *description.sensors, *description.springs, *description.fields]
    named += [closure.joint for closure in description.closures]
    for written in named:
        if repr(written.name) in text:
            return written.file, written.line
    for body in bodies:
        if repr(body.joint.name) in text or repr(body.link.name) in text:
            return body.joint.file, body.joint.line
    return None, None


def check_massless(bodies: Sequence[CarriedLink], file: str) -> list[ModelWarning]:
    """One warning for all joints that move nothing: kinematics and inverse dynamics need no mass."""
    massless = _massless(bodies)
    if not massless:
        return []
    names = [body.joint.name for body in massless]
    first = massless[0].joint
    return [
        ModelWarning(
            f"{first.file or file}:{first.line}: joint {names[0]!r} can move, but nothing that it moves has mass: "
            "kinematics and inverse dynamics can be had, accelerations cannot",
            got=f"joints that move no mass: {', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}",
            do=f"for forward dynamics give their links an <inertial>, or hold them still: load(..., locked={names!r})",
        )
    ]


def _massless(bodies: Sequence[CarriedLink]) -> list[CarriedLink]:
    """The free joints that move no mass and no inertia at all, by themselves, further out or through followers."""
    carries = {body.link.name: body.link.mass > 0.0 or bool(body.link.inertia.any()) for body in bodies}
    for body in reversed(bodies):
        if carries[body.link.name]:
            carries[body.joint.parent] = True
    led = {body.joint.mimic.joint for body in bodies if body.joint.mimic is not None and carries[body.link.name]}
    return [
        body
        for body in bodies
        if body.joint.type != "fixed"
        and body.joint.mimic is None
        and not carries[body.link.name]
        and body.joint.name not in led
    ]


def equip(builder: Builder, bodies: Sequence[CarriedLink], description: Description) -> None:
    """Add what the description has besides bodies, frames, closures and couplings."""
    locked = {body.joint.name: body.locked for body in bodies if body.locked is not None}
    held: dict[str, tuple[float, ...]] = {name: (value,) for name, value in locked.items()}
    for polynomial in description.polynomials:
        _couple_polynomial(builder, polynomial, locked)
    driven, sprung = set(), set()
    for written in description.actuators:
        actuator = freed(written.what, held)
        if actuator is not None:
            builder.add_actuator(actuator)
            driven.add(actuator.name)
    for each in description.springs:
        spring = freed(each.what, held)
        if spring is not None:
            builder.add_spring(spring)
            sprung.add(spring.name)
    for fixed in description.fields:
        builder.add_field(fixed.what)
    for item in description.sensors:
        of, target = SENSOR_KINDS[item.what.kind][0], item.what.target
        gone = {"joint": target in locked, "actuator": target not in driven, "spring": target not in sprung}
        if gone.get(of, False):
            continue
        builder.add_sensor(item.what)
    for name, *state in description.configurations:
        q, v = ({joint: x for joint, x in values.items() if joint not in locked} for values in state)
        builder.add_configuration(name, q, v)


def _couple_polynomial(builder: Builder, written: PolynomialWritten, locked: Mapping[str, float]) -> None:
    left = {joint: c for joint, c in written.left.items() if joint not in locked}
    right = {joint: c for joint, c in written.right.items() if joint not in locked}
    l_0 = sum(c * locked[joint] for joint, c in written.left.items() if joint in locked)
    start = written.start - sum(c * locked[joint] for joint, c in written.right.items() if joint in locked)
    a_0, *more = written.polynomial
    if left and right:
        builder.add_coupling(written.name, PolynomialCoupling(left, right, (a_0 - l_0, *more), start))
    elif left:
        value = sum(a * (-start) ** k for k, a in enumerate(written.polynomial))
        builder.add_coupling(written.name, Coupling(left, value - l_0))
