"""Joints held still: their bodies become part of those that carry them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.joints import Fixed, Joint
from linkwise.joints.directions import RelativePose, turn_z_to
from linkwise.mechanism.actuation import Actuator, JointTransmission, Spring
from linkwise.mechanism.bodies_and_joints import IDENTITY, Frame, JointInstance, Pose, product
from linkwise.mechanism.closures import Coupling, JointClosure
from linkwise.mechanism.closures.constraint import Relation
from linkwise.mechanism.closures.instances import ClosureInstance
from linkwise.mechanism.editing.taken_apart import MechanismT, apart, together
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.placement import inverse_pose

DriveT = TypeVar("DriveT", Actuator, Spring)
_CLOSED = 1e-9  # m, or a sine: how far a closure may be open that locking leaves without a motion


@dataclass(frozen=True)
class _LockedHome:
    """Place of a body now: at a pose on another (itself, if it still moves), or on a node of that one."""

    body: str
    X: Pose = IDENTITY
    node: int = 0


def locked(
    mechanism: MechanismT, joints: Iterable[str] | Mapping[str, ArrayLike | None] | str, at: ArrayLike | None = None
) -> MechanismT:
    """A copy in which these joints stand still; see :meth:`linkwise.Model.locked`."""
    values = _values(mechanism, joints, at)
    pieces = apart(mechanism)
    homes = {"world": _LockedHome("world")}
    bodies, pieces.bodies = pieces.bodies, []
    frames: list[tuple[Frame, str]] = []
    for body, parent, joint in bodies:
        on = homes[parent]
        placement, node = product(on.X, body.placement), body.node or on.node
        if joint.name in values:
            placement = product(placement, joint_pose(joint.type, values[joint.name]))
            if body.flexible is None:
                X = product(placement, inverse_pose(np.array(body.joint_frame)))
                homes[body.name] = _LockedHome(on.body, X, node)
                frames.append((Frame(body.name, -1, X, node), on.body))
                pieces.weld(body, on.body, X, node)
                continue
            none: tuple[float, ...] = ()
            joint = replace(
                joint, type=Fixed(), limits=(), armature=none, damping=none, friction=none, stiffness=none, rest=none
            )
        homes[body.name] = _LockedHome(body.name)
        pieces.bodies.append((replace(body, placement=placement, node=node), on.body, joint))
    pieces.frames = frames + [_moved_frame(frame, homes[on]) for frame, on in pieces.frames]
    left: list[tuple[ClosureInstance, str, str]] = []
    for each in pieces.closures:
        closure, a, b = _moved_closure(*each, homes)
        if a != b or closure.node_a != closure.node_b:
            left.append((closure, a, b))
        else:  # it holds, and nothing moves between its ends
            within, kind = _held(closure), closure.type
            if isinstance(kind, JointClosure):
                values[closure.name] = tuple(float(x) for x in kind.coordinates(within, closure.centre))
    pieces.closures = left
    pieces.relations = [
        (name, other) for name, relation in pieces.relations if (other := _without(name, relation, values)) is not None
    ]
    pieces.actuators = [kept for each in pieces.actuators if (kept := freed(each, values)) is not None]
    pieces.springs = [rest for each in pieces.springs if (rest := freed(each, values)) is not None]
    return together(mechanism, pieces)


def joint_pose(joint: Joint, q: Iterable[float]) -> FloatArray:
    """The child's frame in the joint's frame, at coordinates q."""
    R, p = joint.transform([float(x) for x in q]).matrix()
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R.m, list(p)
    if joint.axis is None:
        return X
    A = np.eye(4)
    A[:3, :3] = turn_z_to(np.array(joint.axis))
    turned: FloatArray = A @ X @ A.T
    return turned


def _values(
    mechanism: Mechanism, joints: Iterable[str] | Mapping[str, ArrayLike | None] | str, at: ArrayLike | None
) -> dict[str, tuple[float, ...]]:
    """The coordinates at which each joint is locked; those that follow a locked one are locked with it."""
    if isinstance(joints, str):
        joints = [joints]
    pairs = joints.items() if isinstance(joints, Mapping) else [(name, None) for name in joints]
    q = None if at is None else np.asarray(at, float)
    if q is not None and (q.shape != (mechanism.nq,) or not np.isfinite(q).all()):
        raise InputError(
            "at is not a configuration of this model", got=f"shape {q.shape}", allowed=f"({mechanism.nq},)"
        )
    known = {joint.name: joint for joint in mechanism.joints}
    values: dict[str, tuple[float, ...]] = {}
    for name, given in pairs:
        if name not in known:
            raise UnknownNameError("joint", name, known)
        values[name] = _coordinates(known[name], given, q)
    for joint in mechanism.joints:
        if joint.mimic is not None and joint.name not in values and joint.mimic.joint in values:
            (leader,) = values[joint.mimic.joint]
            values[joint.name] = (joint.mimic.multiplier * leader + joint.mimic.offset,)
    return values


def _coordinates(joint: JointInstance, given: ArrayLike | None, q: FloatArray | None) -> tuple[float, ...]:
    if given is None and q is None:
        return tuple(joint.type.neutral())
    if given is None and q is not None:
        found: list[float] = q[joint.q_slice].tolist()
        return tuple(found) if joint.mimic is None else (joint.mimic.multiplier * found[0] + joint.mimic.offset,)
    try:
        values = np.atleast_1d(np.asarray(given, float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (joint.nq,) or not np.isfinite(values).all():
        raise InputError(
            f"joint {joint.name!r} cannot be locked there", got=repr(given)[:80], allowed=f"{joint.nq} finite numbers"
        )
    return tuple(values.tolist())


def _moved_frame(frame: Frame, home: _LockedHome) -> tuple[Frame, str]:
    return replace(frame, placement=product(home.X, frame.placement), node=frame.node or home.node), home.body


def _moved_closure(
    closure: ClosureInstance, a: str, b: str, homes: Mapping[str, _LockedHome]
) -> tuple[ClosureInstance, str, str]:
    """The closure between what carries its bodies now, and the names of that."""
    on_a, on_b = homes[a], homes[b]
    moved = replace(
        closure,
        placement_a=product(on_a.X, closure.placement_a),
        placement_b=product(on_b.X, closure.placement_b),
        node_a=closure.node_a or on_a.node,
        node_b=closure.node_b or on_b.node,
    )
    return moved, on_a.body, on_b.body


def _held(closure: ClosureInstance) -> RelativePose:
    """The pose of b in a of a closure within one body, where it must hold."""
    X = RelativePose.from_matrix(
        (np.linalg.inv(np.array(closure.placement_a)) @ np.array(closure.placement_b)).tolist()
    )
    left = [] if closure.type.time_dependent else closure.type.residual(X, 0.0)
    if closure.type.time_dependent or max(map(abs, left), default=0.0) > _CLOSED:
        raise ModelError(
            f"locking these joints leaves closure {closure.name!r} nothing to move, and it is not closed",
            got=f"residual {max(map(abs, left), default=0.0):.3g}",
            do="lock them at a closed configuration: locked(joints, at=model.assemble(q))",
        )
    return X


def _without(name: str, relation: Relation, values: Mapping[str, tuple[float, ...]]) -> Relation | None:
    """The relation between the joints that are left; None where there are none."""
    if relation.joints is not None and not set(relation.joints) & set(values):
        return relation
    if not isinstance(relation, Coupling):
        raise ModelError(
            f"the constraint {name!r} is a function of joints that would be locked",
            got=type(relation).__name__,
            do=f"take it away first: model.without({name!r})",
        )
    terms = dict(zip(relation.joints, relation.coefficients, strict=True))
    offset = relation.offset - sum(c * values[joint][0] for joint, c in terms.items() if joint in values)
    left = {joint: c for joint, c in terms.items() if joint not in values}
    if not left and abs(offset) > _CLOSED:
        raise ModelError(
            f"the coupling {name!r} does not hold where its joints would be locked", got=f"off by {offset:.3g}"
        )
    return Coupling(left, offset) if left else None


def freed(drive: DriveT, values: Mapping[str, tuple[float, ...]]) -> DriveT | None:
    """An actuator or spring along the joints that are left, with the length that the others have; None without any."""
    if not isinstance(drive.transmission, JointTransmission):
        return drive
    left = [(joint, gear) for joint, gear in drive.transmission.gears if joint not in values]
    still = [(gear, values[joint]) for joint, gear in drive.transmission.gears if joint in values]
    length = sum(float(np.dot(gear, q)) for gear, q in still if len(gear) == len(q))
    if not left:
        return None
    along = JointTransmission(left)
    if isinstance(drive, Spring):
        rest, limits = ((low - length, high - length) for low, high in (drive.rest, drive.limits))
        return replace(drive, transmission=along, rest=rest, limits=limits)
    gain, bias = ((c + k * length, k, d) for c, k, d in (drive.gain, drive.bias))
    muscle = drive.muscle and drive.muscle.shortened(length)
    return replace(drive, transmission=along, gain=gain, bias=bias, muscle=muscle)
