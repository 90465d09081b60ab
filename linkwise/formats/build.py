"""The bodies of a file to calls on a builder; what the builder refuses is reported with the file and line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import ArrayLike

from linkwise.errors import ModelError, ModelFileError
from linkwise.formats.bodies import Body
from linkwise.formats.description import JointType
from linkwise.model.description import Geometry, JointLimits, Mimic

__all__ = ["Builder", "JointMaker", "build"]

ModelT_co = TypeVar("ModelT_co", covariant=True)


class Builder(Protocol[ModelT_co]):
    """What is asked of a builder: `linkwise.ModelBuilder`, or one that only writes down the calls."""

    def add_body(
        self,
        name: str,
        *,
        parent: str,
        joint: Any,
        joint_name: str | None,
        placement: Any,
        mass: Any,
        com: Any,
        inertia: Any,
        limits: JointLimits | None,
        damping: float,
        friction: float,
        mimic: Mimic | None,
        visuals: Sequence[Geometry],
        collisions: Sequence[Geometry],
        check_inertia: bool,
    ) -> Any:
        """Add a body whose parent is there already."""

    def add_frame(self, name: str, body: str, placement: Any) -> Any:
        """Add a named frame to a body."""

    def build(self) -> ModelT_co:
        """Return the model."""


JointMaker = Callable[[JointType, Sequence[float]], Any]
"""The joint object for a type and an axis."""


def build(
    builder: Builder[ModelT_co],
    joint: JointMaker,
    bodies: Sequence[Body],
    file: str,
    frames: Mapping[str, tuple[str, ArrayLike]] | None = None,
) -> ModelT_co:
    """Add every body, each after its parent, then the frames, and build."""
    _refuse_massless(bodies, file)
    for body in bodies:
        _add(builder, joint, body, file)
    for name, (frame_body, placement) in (frames or {}).items():
        builder.add_frame(name, frame_body, placement)
    try:
        return builder.build()
    except ModelError as error:
        raise _located(error, file, _line_named_in(str(error), bodies)) from error


def _add(builder: Builder[Any], joint: JointMaker, body: Body, file: str) -> None:
    link = body.link
    try:
        builder.add_body(
            link.name,
            parent=body.parent,
            joint=joint(body.type, body.axis),
            joint_name=body.joint_name,
            placement=body.placement,
            mass=link.mass,
            com=link.com,
            inertia=link.inertia,
            limits=body.limits,
            damping=body.damping,
            friction=body.friction,
            mimic=body.mimic,
            visuals=link.visuals,
            collisions=link.collisions,
            check_inertia=False,  # judged already, with file and line (`linkwise.formats.inertias`)
        )
    except ModelError as error:
        raise _located(error, file, body.line) from error


def _located(error: ModelError, file: str, line: int | None) -> ModelFileError:
    return ModelFileError(error.what, file=file, line=line, got=error.got, allowed=error.allowed, do=error.do)


def _line_named_in(text: str, bodies: Sequence[Body]) -> int | None:
    """The line of the first joint or link whose quoted name is in a message."""
    return next((body.line for body in bodies if repr(body.joint_name) in text or repr(body.link.name) in text), None)


def _refuse_massless(bodies: Sequence[Body], file: str) -> None:
    """Refuse joints that move nothing, all of them at once, so that they can be locked in one go."""
    massless = _massless(bodies)
    if massless:
        names = [body.joint_name for body in massless]
        raise ModelFileError(
            f"joint {names[0]!r} can move, but nothing that it moves has mass, so its acceleration is not defined",
            file=file,
            line=massless[0].line,
            got=f"joints that move no mass: {', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}",
            do=f"give their links an <inertial>, or hold them still: load(..., locked={names!r})",
        )


def _massless(bodies: Sequence[Body]) -> list[Body]:
    """The free joints that move no mass and no inertia at all, by themselves, further out or through followers."""
    carries = {body.link.name: body.link.mass > 0.0 or bool(body.link.inertia.any()) for body in bodies}
    for body in reversed(bodies):
        if carries[body.link.name]:
            carries[body.parent] = True
    led = {body.mimic.joint for body in bodies if body.mimic is not None and carries[body.link.name]}
    return [
        body
        for body in bodies
        if body.type != "fixed" and body.mimic is None and not carries[body.link.name] and body.joint_name not in led
    ]
