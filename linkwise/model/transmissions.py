"""What a transmission does, over any scalar: its length, its speed, and where its force goes.

``p`` are the model's own run-time parameters, None for the nominal ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.functions.scalar_arrays import scalar_array
from linkwise.mechanism.actuation import FrameTransmission, JointTransmission, PathTransmission, Transmission
from linkwise.mechanism.equipment import closing_joint
from linkwise.spatial.scalar import Scalar, sqrt, where

if TYPE_CHECKING:
    from linkwise.mechanism.mechanism import Mechanism
    from linkwise.model.model import Model

Vector = Any  # an object array or a sequence of scalars

_COINCIDENT = 1e-15  # m: nearer than this, there is no direction from one point to the other


def length(model: Model, transmission: Transmission, q: Vector, p: Vector | None = None) -> Scalar:
    """Σ g·q; of a ball joint, g · log q; of a tendon through space, the length of its way."""
    total: Scalar = 0.0
    if isinstance(transmission, PathTransmission):
        points = {frame: _pose(model, frame, q, p)[:3, 3] for frame in transmission.frames}
        for frames, factor in transmission.paths:
            for a, b in pairwise(frames):
                total = total + _norm_and_unit(points[b] - points[a])[0] * factor
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        closing = closing_joint(model, name)
        if closing is not None:
            x = list(model._run("closure_coordinates", scalar_array(q), p=p)[closing.q_slice])
            if closing.joint.nq != closing.joint.nv:
                x = list(closing.joint.difference(closing.joint.neutral(), x))
            total = sum((g * each for g, each in zip(gear, x, strict=True) if g), total)
            continue
        joint = model.joints[name]
        own = list(q[joint.q_slice])
        m, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        if joint.nq != joint.nv:
            own = list(joint.type.difference(joint.type.neutral(), own))
        for g, x in zip(gear, own, strict=True):
            if g:
                total = total + (x * m + offset if joint.mimic else x) * g
    return total


def speed(model: Model, transmission: Transmission, q: Vector, v: Vector, p: Vector | None = None) -> Scalar:
    """l̇."""
    total: Scalar = 0.0
    if isinstance(transmission, JointTransmission):
        for name, gear in transmission.gears:
            closing = closing_joint(model, name)
            if closing is not None:
                u = model._run("closure_velocities", scalar_array(q), scalar_array(v), p=p)[closing.v_slice]
                total = sum((g * each for g, each in zip(gear, u, strict=True) if g), total)
                continue
            joint = model.joints[name]
            m = joint.mimic.multiplier if joint.mimic else 1.0
            for g, x in zip(gear, v[joint.v_slice], strict=True):
                total = total + x * (g * m) if g else total
        return total
    if isinstance(transmission, PathTransmission):
        for frame, along in _gradient(model, transmission, q, p).items():
            for g, x in zip(along, _twist(model, frame, q, v, p)[3:], strict=True):
                total = total + x * g
        return total
    R, twist = _pose(model, transmission.frame, q, p)[:3, :3], _twist(model, transmission.frame, q, v, p)
    for g, x in zip(transmission.wrench, [*(R.T @ twist[:3]), *(R.T @ twist[3:])], strict=True):
        total = total + x * g if g else total
    return total


def joint_forces(model: Model, transmission: Transmission, force: Scalar, tau: list[Scalar]) -> None:
    """Add what the joints of the tree feel to nv numbers."""
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        if closing_joint(model, name) is not None:
            continue
        joint = model.joints[name]
        m = joint.mimic.multiplier if joint.mimic else 1.0
        for i, g in enumerate(gear, joint.v_slice.start):
            if g:
                tau[i] = tau[i] + force * (g * m)


def names_closures(mechanism: Mechanism, transmission: Transmission) -> bool:
    """Whether a transmission acts along the freedoms of closures."""
    names = transmission.joints if isinstance(transmission, JointTransmission) else ()
    return any(closing_joint(mechanism, name) is not None for name in names)


def closure_forces(model: Model, transmission: Transmission, force: Scalar, found: dict[str, list[Scalar]]) -> None:
    """Add what the freedoms of closures feel, by the closures' names."""
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        if closing_joint(model, name) is not None:
            before = found.get(name, [0.0] * len(gear))
            found[name] = [a + force * g for a, g in zip(before, gear, strict=True)]


def pushed_by_closures(
    model: Model, q: Vector, forces: Mapping[str, Sequence[Scalar]], p: Vector | None = None
) -> list[Scalar] | None:
    """The joint forces (nv) of forces along the freedoms of closures, by the closures' names; None for none."""
    if not forces:
        return None
    along: list[Scalar] = [0.0] * sum(each.joint.nv for each in model._closure_freedoms)
    for name, own in forces.items():
        along[model._closure_freedoms[name].v_slice] = own
    return list(model._run("closure_efforts", scalar_array(q), scalar_array(along), p=p))


def wrenches(model: Model, transmission: Transmission, q: Vector, p: Vector | None = None) -> dict[str, list[Scalar]]:
    """For f = 1, what each body feels: [moment, force] (6) at its origin, in its frame."""
    found: dict[str, list[Scalar]] = {}
    if isinstance(transmission, FrameTransmission):
        moment, push = np.reshape(transmission.wrench, (2, 3))
        _add_wrench(model, transmission.frame, moment, push, found)
    elif isinstance(transmission, PathTransmission):
        for frame, along in _gradient(model, transmission, q, p).items():
            if model.frame(frame).body >= 0:
                R = _pose(model, frame, q, p)[:3, :3]
                _add_wrench(model, frame, np.zeros(3), R.T @ along, found)
    return found


def add_pulled(found: dict[str, Any], felt: dict[str, list[Scalar]], force: Scalar) -> None:
    """Add the forces on bodies of a transmission that is pulled."""
    for body, unit in felt.items():
        own = [force * each for each in unit]
        found[body] = [a + b for a, b in zip(found[body], own, strict=True)] if body in found else own


def _add_wrench(model: Model, name: str, moment: Any, push: Any, found: dict[str, list[Scalar]]) -> None:
    """A moment and a force at a frame, in its axes, to its body."""
    frame = model.frame(name)
    if frame.body < 0:
        return
    X = np.array(frame.placement)
    f = X[:3, :3] @ push
    own = [*(X[:3, :3] @ moment + np.cross(X[:3, 3], f)), *f]
    body = model.bodies[frame.body].name
    found[body] = [a + b for a, b in zip(found[body], own, strict=True)] if body in found else own


def _gradient(model: Model, transmission: PathTransmission, q: Vector, p: Vector | None) -> dict[str, Any]:
    """∂l by the place of each frame (3), world axes."""
    points = {frame: _pose(model, frame, q, p)[:3, 3] for frame in transmission.frames}
    found: dict[str, Any] = {frame: np.zeros(3, object) + 0.0 for frame in points}
    for frames, factor in transmission.paths:
        for a, b in pairwise(frames):
            if model.frame(a).body == model.frame(b).body:
                continue  # its length stays what it is
            unit = _norm_and_unit(points[b] - points[a])[1] * factor
            found[b] = found[b] + unit
            found[a] = found[a] - unit
    return found


def _norm_and_unit(way: Any) -> tuple[Scalar, Any]:
    """The length and direction of a vector; 0 and the x axis, as in MuJoCo, where it has none."""
    square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2]
    apart = square > _COINCIDENT**2
    length = sqrt(where(apart, square, 1.0))
    unit = [where(apart, x / length, axis) for x, axis in zip(way, (1.0, 0.0, 0.0), strict=True)]
    return where(apart, length, 0.0), np.array(unit, object)


def _pose(model: Model, frame: str, q: Vector, p: Vector | None) -> Any:
    return model.pose(scalar_array(q), frame, p=p)


def _twist(model: Model, frame: str, q: Vector, v: Vector, p: Vector | None) -> Any:
    return model.velocity(scalar_array(q), scalar_array(v), frame, p=p)
