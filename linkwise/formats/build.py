"""The bodies of a file to calls on a builder; what the builder refuses is reported with the file and line."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import ArrayLike

from linkwise.errors import ModelError, ModelFileError, ModelWarning
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
    with warnings.catch_warnings():
        # The links' inertias have been judged already, with file and line (`linkwise.formats.inertias`).
        warnings.simplefilter("ignore", ModelWarning)
        for body in bodies:
            _add(builder, joint, body, file)
    for name, (frame_body, placement) in (frames or {}).items():
        builder.add_frame(name, frame_body, placement)
    try:
        return builder.build()
    except ModelError as error:
        line = _line_named_in(str(error), bodies)
        massless = _massless_joints(bodies)
        do = f"give them mass, or hold them: load(..., locked={massless!r})" if massless else error.do
        raise _located(error, file, line, do) from error


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
        )
    except ModelError as error:
        raise _located(error, file, body.line, error.do) from error


def _located(error: ModelError, file: str, line: int | None, do: object) -> ModelFileError:
    return ModelFileError(error.what, file=file, line=line, got=error.got, allowed=error.allowed, do=do)


def _line_named_in(text: str, bodies: Sequence[Body]) -> int | None:
    """The line of the first joint or link whose quoted name is in a message."""
    return next((body.line for body in bodies if repr(body.joint_name) in text or repr(body.link.name) in text), None)


def _massless_joints(bodies: Sequence[Body]) -> list[str]:
    """The free joints that move no mass and no inertia at all, by themselves, further out or through followers."""
    moving: set[str] = set()
    carries = {body.link.name: body.link.mass > 0.0 or bool(body.link.inertia.any()) for body in bodies}
    for body in reversed(bodies):
        if carries[body.link.name]:
            carries[body.parent] = True
    for body in bodies:  # what a joint's followers carry, it moves too
        if body.mimic is not None and carries[body.link.name]:
            moving.add(body.mimic.joint)
    return [
        body.joint_name
        for body in bodies
        if body.type != "fixed" and body.mimic is None and not carries[body.link.name] and body.joint_name not in moving
    ]
