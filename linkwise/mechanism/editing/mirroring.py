r"""The mechanism seen in a mirror, and its states.

The mirror is a coordinate plane of the world; S is its reflection, with one -1 on the diagonal. Every frame of the
mirror image is the reflection of a frame, seen in reflected axes, so that it is right-handed again: a pose X becomes
S X S. Then what points (positions, forces, mass centres, directions of slides) becomes S x, what turns (angular
velocities, moments, axes of hinges) -S x, and an inertia S J S.

A hinge turns about -S a by the same angle, a slide moves along S a by the same way, so that joints of one freedom, and
with them couplings, keep their coordinates. In joints of several freedoms some coordinates change their signs: of
cylindrical ones the shift, of planar ones the angle and y, of spherical and free ones what S changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import linkwise.joints as joints
from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelError
from linkwise.flexible.body import FlexibleBody
from linkwise.joints import Joint
from linkwise.mechanism import closures
from linkwise.mechanism.actuation import JointTransmission, PathTransmission
from linkwise.mechanism.bodies_and_joints import Body, JointInstance, Part, Pose
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.editing.taken_apart import MechanismT, apart, together
from linkwise.mechanism.frames import turn_z_to
from linkwise.mechanism.mechanism import Mechanism

__all__ = ["mirrored", "mirrored_state"]

_PLANES = {"yz": 0, "xz": 1, "xy": 2}
_TURNED = np.diag([1.0, -1.0, 1.0, 1.0])  # the reflection in which the coordinates of a planar joint are seen


def mirrored(mechanism: MechanismT, plane: str) -> MechanismT:
    """The mirror image; see :meth:`linkwise.Model.mirrored`."""
    s = _signs(plane)
    pieces = apart(mechanism)
    bodies = []
    for body, parent, joint in pieces.bodies:
        kind, tail = _joint(joint.type, s, joint.name)
        image = Body(
            body.name,
            body.index,
            body.parent,
            _product(_pose(body.placement, s), tail),
            tuple(_part(part, s) for part in body.parts),
            tuple(_shape(shape, s) for shape in body.visuals),
            tuple(_shape(shape, s) for shape in body.collisions),
            _product(_pose(body.joint_frame, s), tail),
            body.node,
            None if body.flexible is None else _flexible(body.flexible, s),
        )
        bodies.append((image, parent, _instance(joint, kind, s)))
    pieces.bodies = bodies
    pieces.frames = [(replace(frame, placement=_pose(frame.placement, s)), on) for frame, on in pieces.frames]
    pieces.base_parts = [_part(part, s) for part in pieces.base_parts]
    pieces.base_visuals = [_shape(shape, s) for shape in pieces.base_visuals]
    pieces.closures = [
        (
            replace(
                each,
                type=_closure(each.type, s, each.name),
                placement_a=_pose(each.placement_a, s),
                placement_b=_pose(each.placement_b, s),
            ),
            a,
            b,
        )
        for each, a, b in pieces.closures
    ]
    for name, relation in pieces.relations:
        if relation.joints is None or any(mechanism.joint(j).nv > 1 for j in relation.joints):
            raise ModelError(
                f"the constraint {name!r} is a function of coordinates that change in a mirror",
                do=f"take it away first: model.without_closure({name!r})",
            )
    pieces.actuators = [replace(each, transmission=_way(each.transmission, mechanism, s)) for each in pieces.actuators]
    pieces.springs = [replace(each, transmission=_way(each.transmission, mechanism, s)) for each in pieces.springs]
    pieces.sensors = [replace(each, field=_turning(each.field, s)) for each in pieces.sensors]
    kinds = {joint.name: joint.type for joint in mechanism.joints}
    pieces.configurations = {
        key: {j: tuple(np.multiply(q, _q_signs(kinds[j], s)).tolist()) if j in kinds else q for j, q in each.items()}
        for key, each in pieces.configurations.items()
    }
    gravity = _pointing(mechanism.gravity, s)
    return together(replace(mechanism, gravity=gravity), pieces)


def mirrored_state(mechanism: Mechanism, plane: str, q: Any, v: Any = None) -> tuple[FloatArray, FloatArray | None]:
    """The state of the mirror image; see :meth:`linkwise.Model.mirrored_state`."""
    s = _signs(plane)
    factors_q, factors_v = np.ones(mechanism.nq), np.ones(mechanism.nv)
    for joint in mechanism.joints:
        if joint.mimic is None:
            factors_q[joint.q_slice] = _q_signs(joint.type, s)
            factors_v[joint.v_slice] = _v_signs(joint.type, s)
    image: FloatArray = np.asarray(q, float) * factors_q
    return image, None if v is None else np.asarray(v, float) * factors_v


def _signs(plane: str) -> FloatArray:
    if plane not in _PLANES:
        raise InputError(
            "this is not a mirror", got=repr(plane), allowed='"yz", "xz" or "xy": a plane through the origin'
        )
    s = np.ones(3)
    s[_PLANES[plane]] = -1.0
    return s


def _pointing(x: Any, s: FloatArray) -> Any:
    return tuple(float(a * b) + 0.0 for a, b in zip(x, s, strict=True))


def _turning(x: Any, s: FloatArray) -> Any:
    return tuple(float(-a * b) + 0.0 for a, b in zip(x, s, strict=True))


def _pose(X: Pose, s: FloatArray) -> Pose:
    S = np.append(s, 1.0)
    return tuple(tuple(float(x * S[i] * S[j]) + 0.0 for j, x in enumerate(row)) for i, row in enumerate(X))


def _product(X: Pose, tail: FloatArray | None) -> Pose:
    return X if tail is None else tuple(tuple(map(float, row)) for row in np.array(X) @ tail)


def _part(part: Part, s: FloatArray) -> Part:
    x, y, z = s
    inertia = np.multiply(part.inertia, (1.0, 1.0, 1.0, x * y, x * z, y * z)) + 0.0
    xx, yy, zz, xy, xz, yz = inertia.tolist()
    return replace(
        part, placement=_pose(part.placement, s), com=_pointing(part.com, s), inertia=(xx, yy, zz, xy, xz, yz)
    )


def _shape(shape: Geometry, s: FloatArray) -> Geometry:
    """Boxes and round things are their own images; a mesh is turned over by its scale."""
    scale = _pointing(shape.scale, s) if shape.kind == "mesh" else shape.scale
    return replace(shape, placement=_pose(shape.placement, s), scale=scale)


def _joint(joint: Joint, s: FloatArray, name: str) -> tuple[Joint, FloatArray | None]:
    """The joint of the image, and what is to be appended to its two placements."""
    kind = type(joint)
    axis: Any = joint.axis
    if kind in (joints.Spherical, joints.Free, joints.Fixed):
        return joint, None
    if kind is joints.Revolute:
        return joints.Revolute(_turning(axis, s)), None
    if kind is joints.Prismatic:
        return joints.Prismatic(_pointing(axis, s)), None
    if isinstance(joint, joints.Helical) and kind is joints.Helical:
        return joints.Helical(-joint.pitch, _turning(axis, s)), None
    if kind is joints.Cylindrical:
        return joints.Cylindrical(_turning(axis, s)), None
    if isinstance(joint, joints.Universal) and kind is joints.Universal:
        return joints.Universal(_turning(joint.axis1, s), _turning(joint.axis2, s)), None
    if kind is joints.Planar:
        # With A that turns z to the normal, the motion is A P(q) A*, and its image S A T · T P(q) T · T A* S, where
        # T = diag(1, -1, 1) changes the signs of q.
        A = np.eye(4)
        A[:3, :3] = turn_z_to(np.array(axis))
        S = np.diag(np.append(s, 1.0))
        return joints.Planar((0.0, 0.0, 1.0)), S @ A @ _TURNED
    raise ModelError(
        f"joint {name!r} has no mirror image that could be found: it is a program",
        got=repr(joint),
        allowed="joints of the library's own types",
    )


def _q_signs(joint: Joint, s: FloatArray) -> FloatArray:
    if isinstance(joint, joints.Spherical):
        return np.concatenate(([1.0], -s))
    if isinstance(joint, joints.Free):
        return np.concatenate(([1.0], -s, s))
    return _v_signs(joint, s)


def _v_signs(joint: Joint, s: FloatArray) -> FloatArray:
    if isinstance(joint, joints.Spherical):
        return -s
    if isinstance(joint, joints.Free):
        return np.concatenate((-s, s))
    if isinstance(joint, joints.Cylindrical):
        return np.array([1.0, -1.0])
    if isinstance(joint, joints.Planar):
        return np.array([-1.0, 1.0, -1.0])
    return np.ones(joint.nv)


def _instance(joint: JointInstance, kind: Joint, s: FloatArray) -> JointInstance:
    """With limits and rests where the coordinates have gone."""
    signs = _v_signs(joint.type, s)
    limits = tuple(
        each if sign > 0 else replace(each, lower=-each.upper, upper=-each.lower)
        for each, sign in zip(joint.limits, signs, strict=True)
    ) if joint.limits else ()  # fmt: skip
    rest = tuple(float(x * sign) for x, sign in zip(joint.rest, signs, strict=True)) if joint.rest else ()
    return replace(joint, type=kind, limits=limits, rest=rest)


def _closure(closure: closures.Closure, s: FloatArray, name: str) -> closures.Closure:
    kind = type(closure)
    changes: dict[str, Any] = {}
    if kind not in _CLOSURES or callable(getattr(closure, "length", None)):
        raise ModelError(
            f"closure {name!r} has no mirror image that could be found: it holds a function",
            got=kind.__name__,
            do=f"take it away first: model.without_closure({name!r})",
        )
    for each in ("axis", "axis1", "axis2", "normal"):
        if getattr(closure, each, None) is not None:
            changes[each] = _pointing(getattr(closure, each), s)
    if isinstance(closure, closures.HelicalClosure):
        changes["pitch"] = -closure.pitch
    if isinstance(closure, closures.Rolling):
        return closures.Rolling(closure.radius, changes.get("axis"), changes["normal"])
    if isinstance(closure, closures.PointOnPlane):
        return closures.PointOnPlane(changes["normal"])
    image: closures.Closure = replace(closure, **changes) if changes else closure  # type: ignore[type-var]
    return image


_CLOSURES = (
    closures.WeldClosure,
    closures.RevoluteClosure,
    closures.PrismaticClosure,
    closures.HelicalClosure,
    closures.CylindricalClosure,
    closures.UniversalClosure,
    closures.PlanarClosure,
    closures.SphericalClosure,
    closures.PointOnPlane,
    closures.Distance,
    closures.Rolling,
)


def _way(way: Any, mechanism: Mechanism, s: FloatArray) -> Any:
    """A transmission in the mirror: gears as the rates, moments and forces as such."""
    if isinstance(way, JointTransmission):
        signs = [(j, np.multiply(gear, _v_signs(mechanism.joint(j).type, s)).tolist()) for j, gear in way.gears]
        return JointTransmission(signs)
    if isinstance(way, PathTransmission):
        return way  # lengths are the same in a mirror
    return replace(way, wrench=(*_turning(way.wrench[:3], s), *_pointing(way.wrench[3:], s)))


def _flexible(body: FlexibleBody, s: FloatArray) -> FlexibleBody:
    """The same modal coordinates, with reflected shapes."""
    one, two = s[:, None], s[:, None] * s
    nodes = tuple(
        replace(
            node,
            position=node.position * s,
            Gamma=node.Gamma * one,
            Lambda=node.Lambda * -one,
            Q=node.Q * one[..., None],
        )
        for node in body.nodes
    )
    i = body.integrals
    integrals = replace(
        i,
        h0=i.h0 * s,
        h1=i.h1 * one,
        S0=i.S0 * two,
        X=i.X * two[..., None],
        J0=i.J0 * two,
        J1=i.J1 * two[..., None],
        J2=i.J2 * two[..., None, None],
        A0=i.A0 * -one,
        A1=i.A1 * -one[..., None],
        a=i.a * one[..., None],
        B=i.B * two[..., None, None],
    )
    return replace(body, nodes=nodes, integrals=integrals)
