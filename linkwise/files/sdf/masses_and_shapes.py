"""Masses and shapes of links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelWarning
from linkwise.files.file_description import LinkWritten
from linkwise.files.sdf.places import NamedFrame, NameScope, read_pose, relative_pose
from linkwise.files.values import Attributes, sdf_colour, shown
from linkwise.files.xml import XmlElement
from linkwise.joints.directions import turn_z_to
from linkwise.mechanism.bodies_and_joints import product
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.materials import Material
from linkwise.mechanism.placement import pose

_MOMENTS = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "ixy": 0.0, "ixz": 0.0, "iyz": 0.0}
"""Values of the format where the file gives none."""
_NOT_DRAWN = frozenset(("plane", "heightmap", "image", "polyline", "ellipsoid", "cone", "empty"))


def read_link(place: NamedFrame, file: str | None, warnings: list[ModelWarning]) -> LinkWritten:
    """A link; `file` where it is not that of the description."""
    values, element = place.scope.values, place.at
    of = f"link {shown(place.name)}"
    mass, com, inertia = _inertial(element, values, of)
    if not values.child_flag(element, "gravity", True, of=of) and not place.scope.static:
        warnings.append(
            ModelWarning(
                f"{values.file}:{element.line}: {of} asks not to be pulled by gravity, but will be",
                do="load it with gravity=(0, 0, 0) if that is meant for all links",
            )
        )
    return LinkWritten(
        place.name,
        element.line,
        mass,
        com,
        inertia,
        _shapes(element, "visual", place, warnings),
        _shapes(element, "collision", place, warnings),
        file,
    )


def _inertial(element: XmlElement, values: Attributes, of: str) -> tuple[float, tuple[float, float, float], FloatArray]:
    inertial = values.child(element, "inertial")
    if inertial is None:
        return 1.0, (0.0, 0.0, 0.0), np.eye(3)
    if values.flag(inertial.attributes.get("auto", "false"), inertial, "the attribute 'auto'", of=of):
        values.fail(
            f"{of}: inertias that follow from the collision shapes (auto) are not supported",
            inertial,
            do="write <mass> and <inertia>: gz sdf --inertial-stats file.sdf prints them",
        )
    mass = values.child_number(inertial, "mass", 1.0, of=of)
    if mass < 0.0:
        values.fail(f"{of} has a negative mass", inertial, got=mass, allowed="0 or more, in kg")
    written = read_pose(inertial, values, of=f"the inertial of {of}")
    if written.relative_to:
        values.fail(
            f"{of}: the pose of an inertial is in the link's frame",
            inertial,
            got=f"relative to {written.relative_to!r}",
        )
    at = values.child(inertial, "inertia") or XmlElement("inertia", {}, inertial.line)
    ixx, iyy, izz, ixy, ixz, iyz = (values.child_number(at, tag, usual, of=of) for tag, usual in _MOMENTS.items())
    R, p = written.X[:3, :3], written.X[:3, 3]
    inertia = R @ [[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]] @ R.T
    return mass, (float(p[0]), float(p[1]), float(p[2])), (inertia + inertia.T) / 2 + 0.0


def _shapes(link: XmlElement, tag: str, place: NamedFrame, warnings: list[ModelWarning]) -> tuple[Geometry, ...]:
    found = ((element, _shape(element, place, warnings)) for element in link.all(tag))
    shapes = []
    for element, shape in found:
        if shape is not None:
            bits = _bits(element, place, tag)
            surface = _surface(element, place, tag) if tag == "collision" else {}
            shapes.append(replace(shape, rgba=sdf_colour(element), contype=bits, conaffinity=bits, **surface))
    return tuple(shapes)


def _bits(element: XmlElement, place: NamedFrame, tag: str) -> int:
    """The bits of a <collide_bitmask>: two shapes meet where they have one in common."""
    values, at = place.scope.values, element
    for name in ("surface", "contact", "collide_bitmask"):
        below = values.child(at, name)
        if below is None:
            return 1
        at = below
    of = f"<{tag}> of link {shown(place.name)}"
    text = values.content(at, of=of).strip()
    try:
        bits = int(text, 0)
    except ValueError:
        values.fail(f"{of} has a bit mask that is no whole number", at, got=shown(text), allowed="65535, 0x01, …")
    return bits


def _surface(element: XmlElement, place: NamedFrame, tag: str) -> dict[str, Any]:
    """The name of a <collision>, and the material and the compliance of its <surface>, as far as it says something."""
    values, of = place.scope.values, f"<{tag}> of link {shown(place.name)}"

    def number(path: str) -> float | None:
        at = element
        for name in ("surface", *path.split("/")):
            below = values.child(at, name)
            if below is None:
                return None
            at = below
        return values.content_vector(at, of=of, length=1)[0]

    mu = number("friction/ode/mu")
    bounce = number("bounce/restitution_coefficient")
    found: dict[str, Any] = {"label": element.attributes.get("name", "")}
    if mu is not None or bounce is not None:
        across = number("friction/ode/mu2")
        first = Material().coefficients[0] if mu is None else mu
        friction = first if across is None or across == mu else (first, across)
        threshold = number("bounce/threshold")
        threshold = Material().threshold if threshold is None else min(threshold, 1e6)
        try:
            found["material"] = Material(friction, restitution=bounce or 0.0, threshold=threshold)
        except InputError as error:
            values.fail(f"{of}: {error.what}", element, **error.parts)
    kp, kd = number("contact/ode/kp"), number("contact/ode/kd")
    if kp is not None and kp > 0.0:
        found["compliance"] = (kp, (kd or 0.0) / kp)
    return found


def _shape(element: XmlElement, link: NamedFrame, warnings: list[ModelWarning]) -> Geometry | None:
    values = link.scope.values
    of = f"<{element.tag}> of link {shown(link.name)}"
    geometry = values.child(element, "geometry")
    if geometry is None:
        return None
    placement = _placement(element, link, of)
    one = (1.0, 1.0, 1.0)
    for at in geometry.children:
        if at.tag == "mesh":
            scale = values.child(at, "scale")
            x, y, z = one if scale is None else values.content_vector(scale, of=of)
            uri = values.content(values.required_child(at, "uri", of=of), of=of)
            return Geometry("mesh", (), uri, (x, y, z), placement, link.name)
        if at.tag == "box":
            size = values.content_vector(values.required_child(at, "size", of=of), of=of)
            return Geometry("box", values.sizes(at, *size, of=of), None, one, placement, link.name)
        if at.tag == "sphere":
            size = values.sizes(at, values.child_number(at, "radius", of=of), of=of)
            return Geometry("sphere", size, None, one, placement, link.name)
        if at.tag == "cylinder" or at.tag == "capsule":
            size = values.child_number(at, "radius", of=of), values.child_number(at, "length", of=of)
            size = values.sizes(at, *size, of=of)
            return Geometry("cylinder" if at.tag == "cylinder" else "capsule", size, None, one, placement, link.name)
        if at.tag == "ellipsoid" and element.tag == "collision":
            size = values.content_vector(values.required_child(at, "radii", of=of), of=of)
            return Geometry("ellipsoid", values.sizes(at, *size, of=of), None, one, placement, link.name)
        if at.tag == "plane" and element.tag == "collision":
            written = values.child(at, "normal")
            normal = (0.0, 0.0, 1.0) if written is None else values.content_vector(written, of=of)
            turn = turn_z_to(values.direction(normal, at, of=of, do="write <normal>0 0 1</normal>"))
            return Geometry("plane", (), None, one, product(placement, pose(R=turn)), link.name)
        if at.tag not in _NOT_DRAWN:
            warnings.append(
                ModelWarning(
                    f"{values.file}:{at.line}: the {of} has a shape that is not known, and was left out",
                    got=f"<{at.tag[:40]}>",
                    allowed="mesh, box, sphere, cylinder, capsule",
                )
            )
    return None


def _placement(element: XmlElement, link: NamedFrame, of: str) -> tuple[tuple[float, ...], ...]:
    scope: NameScope = link.scope
    written = read_pose(element, scope.values, of=of)
    X = written.X
    if written.relative_to:
        X = relative_pose(scope.find(written.relative_to, element, f"the frame of the pose of {of}"), link) @ X
    return tuple(tuple(row) for row in X.tolist())
