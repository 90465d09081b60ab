"""URDF to a description, and the SRDF beside it. The format: http://wiki.ros.org/urdf/XML, as urdfdom reads it.

Read: links with inertia, visuals with their colours, and collisions; joints with their placement, axis, limits,
damping, friction and mimic. Everything else (gazebo, transmission, sensor, calibration, safety_controller, ...) says
nothing about the mechanics and is passed over in silence.

Where files and the format's text part, this reader
- takes a ``revolute`` or ``prismatic`` joint whose limit has neither lower nor upper as unlimited (the text would give
  it the range from 0 to 0, and the files that do this are wheels), and a missing effort or velocity as infinite;
- takes an inertia below the rounding of the mass times a square metre as zero;
- names a robot without a name after its file;
- ignores the range of a ``continuous`` joint, and the mimic of a ``fixed`` one (grippers frozen by hand have it).
"""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np

from linkwise.errors import InputError, ModelFileError, ModelWarning, UnknownNameError
from linkwise.files.file_description import Description, JointWritten, LinkWritten
from linkwise.files.resources import read_bytes
from linkwise.files.values import RGBA, Attributes, bound, named_colours, shown, urdf_colour
from linkwise.files.xml import XmlElement, parse
from linkwise.joints import joint_types
from linkwise.mechanism.bodies_and_joints import rows
from linkwise.mechanism.description import Geometry, JointLimits, Mimic
from linkwise.mechanism.placement import ANGLE_SNAP

_ZERO_GYRATION = 1e-16  # m²: exporters write 5e-20 where they mean 0, with any sign
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def read_urdf(
    root: XmlElement, file: str, name: str, snap: float = ANGLE_SNAP
) -> tuple[Description, list[ModelWarning]]:
    """The description in a ``<robot>`` element, and what to warn about.

    Args:
        root: the root element.
        file: the file's name in the messages.
        name: the robot's name where the file gives none.
        snap: see `linkwise.mechanism.placement.cos_sin`.
    """
    values = Attributes(file, snap)
    _refuse_xacro(root, values)
    if root.tag != "robot":
        values.fail("this is not a URDF file: its root element is not <robot>", root, got=f"<{root.tag[:40]}>")
    warnings: list[ModelWarning] = []
    colours = named_colours(root)
    links = tuple(read_link(element, values, warnings, colours) for element in root.all("link"))
    joints = tuple(read_joint(element, values) for element in root.all("joint"))
    name = root.attributes.get("name", "").strip() or name
    return Description(name, file, root.line, links, joints), warnings


def _refuse_xacro(root: XmlElement, values: Attributes) -> None:
    for element in root.walk():
        macro = element.tag.startswith("xacro:")
        if macro or any("${" in text or "$(" in text for text in element.attributes.values()):
            values.fail(
                "this is a xacro file: a program that writes a URDF file, not the file itself",
                element,
                got=f"<{element.tag[:40]}>" if macro else "an expression ${...} or $(...)",
                do="name it .xacro and use load(..., arguments={}), or expand it first: xacro a.xacro > a.urdf",
            )


def read_link(
    element: XmlElement, values: Attributes, warnings: list[ModelWarning], colours: dict[str, RGBA] | None = None
) -> LinkWritten:
    """One ``<link>``; what to warn about is appended. ``colours``: the file's materials by name."""
    name = values.text(element, "name", of="a link")
    of = f"link {shown(name)}"
    visuals = _shapes(element, "visual", name, values, warnings, colours or {})
    collisions = _shapes(element, "collision", name, values, warnings, {})
    inertial = values.child(element, "inertial")
    if inertial is None:
        return LinkWritten(name, element.line, visuals=visuals, collisions=collisions)

    mass_at = values.required_child(inertial, "mass", of=of)
    mass = values.number(mass_at, "value", of=of)
    if mass < 0.0:
        values.fail(f"{of} has a negative mass", mass_at, got=mass, allowed="0 or more, in kg")
    inertia_at = values.required_child(inertial, "inertia", of=of)
    ixx, iyy, izz, ixy, ixz, iyz = (values.number(inertia_at, moment, of=of) for moment in _MOMENTS)
    X = values.origin(inertial, of=of)
    R = X[:3, :3]
    inertia = R @ [[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]] @ R.T
    inertia = (inertia + inertia.T) / 2 + 0.0
    if abs(inertia).max() < _ZERO_GYRATION * mass:
        inertia = np.zeros((3, 3))
    com = (float(X[0, 3]), float(X[1, 3]), float(X[2, 3]))
    return LinkWritten(name, element.line, mass, com, inertia, visuals, collisions)


def read_joint(element: XmlElement, values: Attributes) -> JointWritten:
    """One ``<joint>``."""
    name = values.text(element, "name", of="a joint")
    of = f"joint {shown(name)}"
    written = values.text(element, "type", of=of)
    types = joint_types("urdf")
    if written not in types:
        unknown = UnknownNameError("joint type", written, types)
        values.fail(f"{of} has an unknown type", element, got=shown(written), allowed=", ".join(types), do=unknown.do)
    kind = types[written].word
    dynamics = values.child(element, "dynamics") or XmlElement("dynamics", {}, element.line)
    return JointWritten(
        name,
        element.line,
        kind,
        parent=values.text(values.required_child(element, "parent", of=of), "link", of=of),
        child=values.text(values.required_child(element, "child", of=of), "link", of=of),
        placement=values.origin(element, of=of),
        axis=_axis(element, kind, values, of),
        limits=_limits(element, written, values, of),
        damping=values.number(dynamics, "damping", 0.0, of=of),
        friction=values.number(dynamics, "friction", 0.0, of=of),
        mimic=None if kind == "fixed" else _mimic(element, values, of),
    )


def _axis(element: XmlElement, kind: str, values: Attributes, of: str) -> tuple[float, float, float]:
    at = values.child(element, "axis")
    if at is None or kind in ("fixed", "free"):  # exporters write zero axes there, and nothing depends on them
        return (1.0, 0.0, 0.0)
    return values.direction(values.vector(at, "xyz", of=of), at, of=of, do='write <axis xyz="0 0 1"/>')


def _limits(element: XmlElement, written: str, values: Attributes, of: str) -> JointLimits | None:
    at = values.child(element, "limit")
    if at is None or written == "fixed":
        return None
    velocity = bound(abs(values.number(at, "velocity", math.inf, of=of, infinite=True)))
    effort = bound(abs(values.number(at, "effort", math.inf, of=of, infinite=True)))
    bounded = written in ("revolute", "prismatic") and ("lower" in at.attributes or "upper" in at.attributes)
    if not bounded:
        return JointLimits(velocity=velocity, effort=effort)
    lower = bound(values.number(at, "lower", 0.0, of=of, infinite=True))
    upper = bound(values.number(at, "upper", 0.0, of=of, infinite=True))
    try:
        return JointLimits(lower, upper, velocity, effort)
    except InputError as error:
        values.fail(f"{of}: {error.what}", at, **error.parts)


def _mimic(element: XmlElement, values: Attributes, of: str) -> Mimic | None:
    at = values.child(element, "mimic")
    if at is None:
        return None
    return Mimic(
        values.text(at, "joint", of=of),
        values.number(at, "multiplier", 1.0, of=of),
        values.number(at, "offset", 0.0, of=of),
    )


def _shapes(
    link: XmlElement, tag: str, name: str, values: Attributes, warnings: list[ModelWarning], colours: dict[str, RGBA]
) -> tuple[Geometry, ...]:
    found, outline = (
        ((element, _shape(element, name, values, warnings)) for element in link.all(tag)),
        tag == "collision",
    )
    return tuple(
        replace(shape, rgba=urdf_colour(element, colours), label=element.attributes.get("name", "") if outline else "")
        for element, shape in found
        if shape is not None
    )


def _shape(element: XmlElement, name: str, values: Attributes, warnings: list[ModelWarning]) -> Geometry | None:
    of = f"<{element.tag}> of link {shown(name)}"
    placement = rows(values.origin(element, of=of))
    geometry = values.required_child(element, "geometry", of=of)
    one = (1.0, 1.0, 1.0)
    for at in geometry.children:
        if at.tag == "mesh":
            x, y, z = values.vector(at, "scale", one, of=of)
            return Geometry("mesh", (), values.text(at, "filename", of=of), (x, y, z), placement, name)
        if at.tag == "box":
            size = values.sizes(at, *values.vector(at, "size", of=of), of=of)
            return Geometry("box", size, None, one, placement, name)
        if at.tag == "sphere":
            size = values.sizes(at, values.number(at, "radius", of=of), of=of)
            return Geometry("sphere", size, None, one, placement, name)
        if at.tag == "cylinder" or at.tag == "capsule":
            size = values.sizes(at, values.number(at, "radius", of=of), values.number(at, "length", of=of), of=of)
            return Geometry("cylinder" if at.tag == "cylinder" else "capsule", size, None, one, placement, name)
    warnings.append(
        ModelWarning(
            f"{values.file}:{element.line}: the {of} has a shape that is not known, and was left out",
            got=", ".join(f"<{child.tag[:40]}>" for child in geometry.children[:5]) or "no shape",
            allowed="mesh, box, sphere, cylinder, capsule",
        )
    )
    return None


def read_excludes(path: str | os.PathLike[str]) -> tuple[tuple[str, str], ...]:
    """The pairs of links of an SRDF file that do not touch: ``disable_collisions``.

    They are what ``excludes=`` of :func:`linkwise.contact.geometry.selection.meetings` takes; names that the model does
    not have are its to say.

    Args:
        path: the file.
    """
    file = os.fspath(path)
    root = parse(read_bytes(path, suffixes=(".srdf", ".xml")), file)
    if root.tag != "robot":
        raise ModelFileError("this is not an SRDF file", file=file, line=root.line, got=f"<{root.tag[:40]}>")
    found = []
    for element in root.all("disable_collisions"):
        try:
            found.append((element.attributes["link1"], element.attributes["link2"]))
        except KeyError as missing:
            raise ModelFileError(
                f"<disable_collisions> has no {missing.args[0]}",
                file=file,
                line=element.line,
                allowed='<disable_collisions link1="…" link2="…"/>',
            ) from None
    return tuple(found)
