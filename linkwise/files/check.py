"""All that is wrong with a model file, or looks so, at once.

A reader stops at the first thing that it cannot read. Here the links and joints of a URDF file are read one by one, so
that each can have its say; then the model, if there is one, is looked at: masses and inertias that no body has or that
look like other units, limits that leave no room, meshes that are not there, shapes that overlap, loops that cannot be
closed.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from linkwise.dataclass import dataclass, replace
from linkwise.errors import LinkwiseError, ModelFileError
from linkwise.files.load import load
from linkwise.files.resources import mesh_file, read_bytes
from linkwise.files.urdf import read_joint, read_link
from linkwise.files.values import Attributes
from linkwise.files.xml import XmlElement, parse
from linkwise.mechanism.bodies_and_joints import Part
from linkwise.model.model import Model

_AT = re.compile(r"^(?P<file>.*?):(?P<line>\d+): ")
_NAMED = re.compile(r"'([^']+)'")
_FACTOR = 1000.0
_NOISE = 1e-6
_DEEP = 1e-3  # m; surfaces that overlap by less part within steps, and are not told of


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong or looks so.

    Args:
        severity: "error": the file cannot be read; "warning": it can, but perhaps not as it was meant.
        what: what is wrong, in one line.
        line: of the file, where it is known.
        do: what can be done about it.
    """

    severity: Literal["error", "warning"]
    what: str
    line: int | None = None
    do: str | None = None


def check_file(path: str | os.PathLike[str], **options: Any) -> list[Problem]:
    """Everything that is wrong with a file, or looks so; by lines.

    Args:
        path: the file.
        options: those of :func:`linkwise.load`.
    """
    found: dict[tuple[str, int | None], Problem] = {}

    def note(problem: Problem) -> None:
        found.setdefault((problem.what, problem.line), problem)

    lines: dict[str, int] = {}
    for problem in _elements(path, lines):
        note(problem)
    model = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = load(path, **({"allow_unphysical": True} | options))
        except LinkwiseError as error:
            note(_problem(error))
    for each in caught:
        text = str(each.message)
        for left in getattr(each.message, "left_out", ()):
            note(Problem("warning", f"left out: {left}"))
        if getattr(each.message, "left_out", ()):
            continue  # each of them is named
        if "there are links with an inertia" in text:
            continue  # each of them is named below
        place = _AT.match(text)
        first, *rest = (text[place.end() :] if place else text).splitlines()
        more = " ".join(line.strip().removeprefix("got:").strip() for line in rest[:1])
        note(Problem("warning", f"{first}: {more}" if more else first, int(place["line"]) if place else None))
    if model is not None:
        for problem in check_model(model):
            note(problem)
    placed = [problem if problem.line is not None else _placed(problem, lines) for problem in found.values()]
    return sorted(placed, key=lambda each: (each.line is None, each.line or 0, each.severity, each.what))


def check_model(model: Model) -> Iterator[Problem]:
    """Problems of a model that could be built."""
    parts = [part for body in model.bodies for part in body.parts]
    yield from _inertias(parts)
    yield from _units(model, parts)
    yield from _limits(model)
    yield from _meshes(model)
    yield from _overlaps(model)
    if model.closures:
        try:
            model.assemble(model.neutral())
        except LinkwiseError as error:
            yield Problem("warning", f"the loops could not be closed from the zero position: {error.what}")


def _elements(path: str | os.PathLike[str], lines: dict[str, int]) -> Iterator[Problem]:
    """The links and joints of a URDF file, read one by one; and the lines on which names stand, in any XML file."""
    try:
        root = parse(read_bytes(path, suffixes=(".urdf",)), os.fspath(path))
    except LinkwiseError:
        return  # the reader will say so
    for at in root.walk():
        if at.attributes.get("name"):
            lines.setdefault(at.attributes["name"], at.line)
    if root.tag != "robot":
        return
    values = Attributes(os.fspath(path))
    readers: dict[str, Callable[[XmlElement], object]] = {
        "link": lambda at: read_link(at, values, []),
        "joint": lambda at: read_joint(at, values),
    }
    for at in root.children:
        if at.tag in readers:
            try:
                readers[at.tag](at)
            except LinkwiseError as error:
                yield _problem(error)
        if at.tag == "joint":
            yield from _axis(at)


def _axis(joint: XmlElement) -> Iterator[Problem]:
    for at in joint.all("axis"):
        try:
            length = float(np.linalg.norm([float(x) for x in at.attributes.get("xyz", "1 0 0").split()]))
        except ValueError:
            continue
        if length and abs(length - 1.0) > 1e-3:
            name = joint.attributes.get("name", "?")
            yield Problem(
                "warning", f"the axis of joint {name!r} is not of unit length", at.line, f"its length is {length:.6g}"
            )


def _placed(problem: Problem, lines: dict[str, int]) -> Problem:
    """At the line of what it names first, if that is known."""
    name = _NAMED.search(problem.what)
    return replace(problem, line=lines.get(name[1])) if name else problem


def _problem(error: LinkwiseError) -> Problem:
    line = error.line if isinstance(error, ModelFileError) else None
    what = _AT.sub("", error.what)
    return Problem("error", f"{what}: {error.got}" if error.got is not None else what, line, _text(error.do))


def _text(do: object) -> str | None:
    return None if do is None else str(do)


def _inertias(parts: list[Part]) -> Iterator[Problem]:
    for part in parts:
        xx, yy, zz, xy, xz, yz = part.inertia
        moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        shown = ", ".join(f"{each:.4g}" for each in moments)
        noise = _NOISE * abs(moments[2]) + 1e-10 * part.mass
        if moments[0] < -noise:
            yield Problem("error", f"the inertia of {part.name!r} is negative about some axis: {shown} kg m²")
        elif moments[2] > moments[0] + moments[1] + noise:
            yield Problem(
                "warning",
                f"no body has the inertia of {part.name!r}: one moment exceeds the others' sum: {shown} kg m²",
            )


def _units(model: Model, parts: list[Part]) -> Iterator[Problem]:
    """Masses unlike all others, and moments that do not go with their masses."""
    masses = np.array([part.mass for part in parts if part.mass > 0.0])
    if not len(masses):
        return
    usual = float(np.median(masses))
    size = max(
        (float(np.linalg.norm(np.array(body.placement)[:3, 3])) for body in model.bodies if body.parent >= 0),
        default=0.0,
    )
    for part in parts:
        if part.mass <= 0.0:
            continue
        if part.mass > _FACTOR * usual and len(masses) > 2:
            yield Problem(
                "warning", f"the mass of {part.name!r} is far above all others: {part.mass:.4g} kg", do="grams?"
            )
        radius = float(np.sqrt(max(part.inertia[:3]) / part.mass)) if max(part.inertia[:3]) > 0.0 else 0.0
        if size and radius > 30.0 * size:
            yield Problem(
                "warning",
                f"the inertia of {part.name!r} is too large for its mass: that of a hoop of radius {radius:.3g} m",
                do="are the units kg m², and the mass kg?",
            )
        elif size and 0.0 < radius < size / 3000.0:
            yield Problem(
                "warning",
                f"the inertia of {part.name!r} is too small for its mass: that of a hoop of radius {radius:.2g} m",
                do="are the units kg m², and the mass kg?",
            )


def _limits(model: Model) -> Iterator[Problem]:
    for joint in model.joints:
        for limit in joint.limits:
            if limit.lower == limit.upper:
                yield Problem(
                    "warning",
                    f"the limits of joint {joint.name!r} leave no room: {limit.lower:g} to {limit.upper:g}",
                    do="a joint that does not move is fixed",
                )
            elif np.isfinite([limit.lower, limit.upper]).all() and not limit.lower <= 0.0 <= limit.upper:
                yield Problem(
                    "warning", f"the zero position of joint {joint.name!r} is outside its limits: "
                    f"{limit.lower:g} to {limit.upper:g}",
                )  # fmt: skip
            if limit.effort == 0.0 or limit.velocity == 0.0:
                yield Problem("warning", f"joint {joint.name!r} may neither push nor move: effort or velocity limit 0")


def _overlaps(model: Model) -> Iterator[Problem]:
    """Shapes that may touch and are in each other at the start."""
    try:
        touching = model if model.contacts.scene or not model._base_collisions else model.with_contacts()
        if touching.contacts.scene is None:
            return
        gaps = touching.distances(touching.start)
    except LinkwiseError as error:
        yield Problem("warning", f"contacts cannot be computed: {error.what}", do=_text(error.do))
        return
    for k in np.flatnonzero(gaps < -_DEEP):
        yield Problem(
            "warning",
            f"{touching.contacts.pairs[k]!r}: surfaces overlap at the start by {-gaps[k]:.3g} m",
            do="move the bodies apart, or exclude the pair",
        )


def _meshes(model: Model) -> Iterator[Problem]:
    seen = set()
    shapes = [shape for body in model.bodies for shape in (*body.visuals, *body.collisions)]
    for shape in (*shapes, *model.base_visuals, *model._base_collisions):
        if shape.mesh is None or shape.mesh in seen:
            continue
        seen.add(shape.mesh)
        try:
            mesh_file(shape)
        except LinkwiseError as error:
            reason = "leads out of the folders that were given" if "leads out" in error.what else "is missing"
            yield Problem("warning", f"a mesh of {shape.name!r} {reason}: {shape.mesh}", do=_text(error.do))
