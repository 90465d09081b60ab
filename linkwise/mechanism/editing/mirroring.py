r"""The mechanism seen in a mirror, and its states.

The mirror is a coordinate plane of the world; S is its reflection, with one -1 on the diagonal. Every frame of the
mirror image is the reflection of a frame, seen in reflected axes, so that it is right-handed again: a pose X becomes
S X S. Then what points (positions, forces, mass centres, directions of slides) becomes S x, what turns (angular
velocities, moments, axes of hinges) -S x, and an inertia S J S.

Each joint type says what its image is (:meth:`linkwise.Joint.mirrored`). A hinge turns about -S a by the same angle, a
slide moves along S a by the same way, so that joints of one freedom, and with them couplings, keep their coordinates.
In joints of several freedoms some coordinates change their signs: of cylindrical ones the shift, of planar ones the
angle and y, of spherical and free ones what S changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelError
from linkwise.flexible.body import FlexibleBody
from linkwise.joints import Fixed, Joint, MirrorImage
from linkwise.joints.mirrored import Signs, pointing, turning
from linkwise.mechanism import closures
from linkwise.mechanism.actuation import JointTransmission, PathTransmission, Transmission
from linkwise.mechanism.bodies_and_joints import Body, JointInstance, Part, Pose
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.editing.taken_apart import MechanismT, apart, together
from linkwise.mechanism.equipment import joint_type
from linkwise.mechanism.fields import GravityCompensation
from linkwise.mechanism.mechanism import Mechanism

_PLANES = {"yz": 0, "xz": 1, "xy": 2}


def mirrored(mechanism: MechanismT, plane: str) -> MechanismT:
    """The mirror image; see :meth:`linkwise.Model.mirrored`."""
    s = _signs(plane)
    pieces = apart(mechanism)
    images = [(joint.type.mirrored(s), body, parent, joint) for body, parent, joint in pieces.bodies]
    pieces.bodies = [(_body(body, s, seen), parent, _instance(joint, seen)) for seen, body, parent, joint in images]
    pieces.frames = [(replace(frame, placement=_pose(frame.placement, s)), on) for frame, on in pieces.frames]
    pieces.base = _body(pieces.base, s, MirrorImage(Fixed()))
    pieces.closures = [(_closed(each, s), a, b) for each, a, b in pieces.closures]
    for name, relation in pieces.relations:
        if relation.joints is None or any(mechanism.joints[j].nv > 1 for j in relation.joints):
            raise ModelError(
                f"the constraint {name!r} is a function of coordinates that change in a mirror",
                do=f"take it away first: model.without({name!r})",
            )
    pieces.actuators = [replace(each, transmission=_way(each.transmission, mechanism, s)) for each in pieces.actuators]
    pieces.springs = [replace(each, transmission=_way(each.transmission, mechanism, s)) for each in pieces.springs]
    pieces.fields = [
        each if isinstance(each, GravityCompensation) else replace(each, wind=pointing(each.wind, s))
        for each in pieces.fields
    ]
    pieces.sensors = [replace(each, field=turning(each.field, s)) for each in pieces.sensors]
    kinds = {joint.name: joint.type for joint in mechanism.joints}
    pieces.configurations = {
        key: (
            {j: tuple(np.multiply(x, _q_signs(kinds[j], s)).tolist()) if j in kinds else x for j, x in q.items()},
            {j: tuple(np.multiply(x, _v_signs(kinds[j], s)).tolist()) if j in kinds else x for j, x in v.items()},
        )
        for key, (q, v) in pieces.configurations.items()
    }
    gravity = pointing(mechanism.gravity, s)
    return together(replace(mechanism, gravity=gravity), pieces)


def mirrored_state(
    mechanism: Mechanism, plane: str, q: ArrayLike, v: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """The state of the mirror image; see :meth:`linkwise.Model.mirrored_state`."""
    s = _signs(plane)
    factors_q, factors_v = np.ones(mechanism.nq), np.ones(mechanism.nv)
    for joint in mechanism.joints:
        if joint.mimic is None:
            factors_q[joint.q_slice] = _q_signs(joint.type, s)
            factors_v[joint.v_slice] = _v_signs(joint.type, s)
    image: FloatArray = np.asarray(q, float) * factors_q
    return image, None if v is None else np.asarray(v, float) * factors_v


def _signs(plane: str) -> Signs:
    if plane not in _PLANES:
        raise InputError(
            "this is not a mirror", got=repr(plane), allowed='"yz", "xz" or "xy": a plane through the origin'
        )
    x, y, z = (-1.0 if k == _PLANES[plane] else 1.0 for k in range(3))
    return (x, y, z)


def _pose(X: Pose, s: Signs) -> Pose:
    S = (*s, 1.0)
    return tuple(tuple(float(x * S[i] * S[j]) + 0.0 for j, x in enumerate(row)) for i, row in enumerate(X))


def _product(X: Pose, seen: MirrorImage) -> Pose:
    return X if seen.tail is None else tuple(tuple(row) for row in (np.array(X) @ seen.tail).tolist())


def _body(body: Body, s: Signs, seen: MirrorImage) -> Body:
    """A body as it is seen, with the frames of its joint's image."""
    return replace(
        body,
        placement=_product(_pose(body.placement, s), seen),
        parts=tuple(_part(part, s) for part in body.parts),
        visuals=tuple(_shape(shape, s) for shape in body.visuals),
        collisions=tuple(_shape(shape, s) for shape in body.collisions),
        joint_frame=_product(_pose(body.joint_frame, s), seen),
        flexible=None if body.flexible is None else _flexible(body.flexible, s),
    )


def _part(part: Part, s: Signs) -> Part:
    x, y, z = s
    inertia = np.multiply(part.inertia, (1.0, 1.0, 1.0, x * y, x * z, y * z)) + 0.0
    xx, yy, zz, xy, xz, yz = inertia.tolist()
    return replace(
        part, placement=_pose(part.placement, s), com=pointing(part.com, s), inertia=(xx, yy, zz, xy, xz, yz)
    )


def _shape(shape: Geometry, s: Signs) -> Geometry:
    """Boxes and round things are their own images; a mesh is turned over by its scale, others by their points."""
    X = _pose(shape.placement, s)
    if shape.kind == "mesh":
        return replace(shape, placement=X, scale=pointing(shape.scale, s))
    if s[2] < 0.0 and shape.kind in ("plane", "heightfield", "terrain"):  # whose z stays up: half a turn about x
        X = tuple(tuple(row) for row in (np.array(X) @ np.diag((1.0, -1.0, -1.0, 1.0)) + 0.0).tolist())
        s = (1.0, -1.0, 1.0)
    heights = shape.heights[::-1] if s[1] < 0.0 else shape.heights
    return replace(
        shape,
        placement=X,
        vertices=tuple(pointing(vertex, s) for vertex in shape.vertices),
        faces=tuple((a, c, b) for a, b, c in shape.faces),
        heights=tuple(row[::-1] for row in heights) if s[0] < 0.0 else heights,
    )


def _q_signs(joint: Joint, s: Signs) -> FloatArray:
    return np.array(joint.mirrored(s).q_signs or (1.0,) * joint.nq)


def _v_signs(joint: Joint, s: Signs) -> FloatArray:
    return np.array(joint.mirrored(s).v_signs or (1.0,) * joint.nv)


def _instance(joint: JointInstance, seen: MirrorImage) -> JointInstance:
    """With limits and rests where the coordinates have gone."""
    return replace(joint, type=seen.joint, **_ranges(joint, seen))


def _ranges(joint: JointInstance | closures.ClosureInstance, seen: MirrorImage) -> dict[str, Any]:
    """Limits and rests of a joint or a closure where the coordinates have gone."""
    signs = seen.v_signs or (1.0,) * seen.joint.nv
    limits = tuple(
        each if sign > 0 else replace(each, lower=-each.upper, upper=-each.lower)
        for each, sign in zip(joint.limits, signs, strict=True)
    ) if joint.limits else ()  # fmt: skip
    rest = tuple(float(x * sign) for x, sign in zip(joint.rest, signs, strict=True)) if joint.rest else ()
    return {"limits": limits, "rest": rest}


def _closed(instance: closures.ClosureInstance, s: Signs) -> closures.ClosureInstance:
    closure: Any = instance.type
    seen = MirrorImage(Fixed())
    if isinstance(closure, closures.JointClosure):
        seen = closure.joint.mirrored(s)
        image: closures.Closure = closures.JointClosure(seen.joint)
    elif type(closure) not in _CLOSURES or callable(getattr(closure, "length", None)):
        raise ModelError(
            f"closure {instance.name!r} has no mirror image that could be found: it holds a function",
            got=closure.kind,
            do=f"take it away first: model.without({instance.name!r})",
        )
    else:
        given = {name: getattr(closure, name) for name in _CLOSURES[type(closure)]}
        directions = {name: given[name] and pointing(given[name], s) for name in ("axis", "normal") if name in given}
        image = type(closure)(**given | directions)
    a, b = (_product(_pose(X, s), seen) for X in (instance.placement_a, instance.placement_b))
    return replace(instance, type=image, placement_a=a, placement_b=b, **_ranges(instance, seen))


_CLOSURES: dict[type, tuple[str, ...]] = {
    closures.PointOnPlane: ("normal",),
    closures.Distance: ("length",),
    closures.Rolling: ("radius", "axis", "normal"),
}


def _way(way: Transmission, mechanism: Mechanism, s: Signs) -> Transmission:
    """A transmission in the mirror: gears as the rates, moments and forces as such."""
    if isinstance(way, JointTransmission):
        signs = [(j, np.multiply(gear, _v_signs(joint_type(mechanism, j), s)).tolist()) for j, gear in way.gears]
        return JointTransmission(signs)
    if isinstance(way, PathTransmission):
        return way  # lengths are the same in a mirror
    return replace(way, wrench=(*turning(way.wrench[:3], s), *pointing(way.wrench[3:], s)))


def _flexible(body: FlexibleBody, s: Signs) -> FlexibleBody:
    """The same modal coordinates, with reflected shapes."""
    signs = np.array(s)
    one, two = signs[:, None], signs[:, None] * signs
    nodes = tuple(
        replace(
            node,
            position=node.position * signs,
            Gamma=node.Gamma * one,
            Lambda=node.Lambda * -one,
            Q=node.Q * one[..., None],
        )
        for node in body.nodes
    )
    i = body.integrals
    integrals = replace(
        i,
        h0=i.h0 * signs,
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
