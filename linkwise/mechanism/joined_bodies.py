"""Bodies as they were added, joined to a tree: what is fixed becomes part of what carries it, the rest is numbered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import ModelError, UnknownNameError
from linkwise.joints.directions import turn_z_to
from linkwise.mechanism.bodies_and_joints import IDENTITY, Body, Frame, JointInstance, Part, Pose, product, rows
from linkwise.mechanism.description import Geometry, Mimic
from linkwise.mechanism.entry import Columns, Entry, made, of_each
from linkwise.mechanism.placement import inverse_pose

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody

_NOWHERE = slice(0, 0)  # until the bodies are numbered


def joined(
    entries: Iterable[Entry], places: Mapping[str, tuple[str, Pose, int]], allow_massless: bool
) -> dict[str, Any]:
    """The fields of a :class:`Mechanism` that describe its tree.

    Args:
        entries: the bodies, each after its parent.
        places: named frames: the body that each is on, the pose there, and the node of a body that deforms.
        allow_massless: whether a body at the end of a branch may have no mass.
    """
    home: dict[str, _NamedHome] = {"world": _NamedHome(-1, None)}
    moving: list[Entry] = []
    seats: list[tuple[int, Pose, int]] = []  # of the moving ones: on which body, where, on which node
    welds: list[tuple[int, FloatArray, int, Entry]] = []  # of the others on these, likewise
    frames: list[Frame] = []
    base_parts: list[Part] = []
    base_visuals: list[Geometry] = []
    base_collisions: list[Geometry] = []
    for entry in entries:
        on = home[entry.parent]
        placement, node = on.placed(entry.placement), entry.node or on.node
        if entry.joint.nv or entry.flexible is not None:
            home[entry.name] = _NamedHome(len(moving), None)
            seats.append((on.body, placement, node))
            moving.append(entry)
            continue
        X = np.array(placement)
        if entry.joint_frame != IDENTITY:
            X = X @ inverse_pose(np.array(entry.joint_frame))
        home[entry.name] = _NamedHome(on.body, X, node)
        frames.append(Frame(entry.name, on.body, rows(X), node))
        if on.body >= 0:
            welds.append((on.body, X, node, entry))
        else:
            base_parts.append(moved_part(entry.part, X, node))
            base_visuals += [moved_shape(shape, X) for shape in entry.visuals]
            base_collisions += [moved_shape(shape, X) for shape in entry.collisions]
    for name, (body, place, own_node) in places.items():
        on = home[body]
        frames.append(Frame(name, on.body, on.placed(place), own_node or on.node))
    bodies = _bodies(moving, seats)
    for carrier, X, node, entry in welds:
        bodies[carrier] = welded(bodies[carrier], X, node, (entry.part,), entry.visuals, entry.collisions)
    placed, joints = numbered(bodies, _joints(moving))
    if not allow_massless:
        _check_massless_leaves(placed, moving)
    return {
        "bodies": placed,
        "joints": joints,
        "frames": tuple(frames),
        "base_parts": tuple(base_parts),
        "base_visuals": tuple(base_visuals),
        "_base_collisions": tuple(base_collisions),
    }


@dataclass(slots=True)
class _NamedHome:
    """Place of a named body: a pose on a moving body (-1: the world), or on a node of one that deforms."""

    body: int
    pose: FloatArray | None
    """None: the body's own frame."""
    node: int = 0

    def placed(self, placement: Pose) -> Pose:
        """A pose on the named body as one on the body that carries it."""
        return placement if self.pose is None else rows(self.pose @ np.array(placement))


def _bodies(entries: Sequence[Entry], seats: Sequence[tuple[int, Pose, int]]) -> list[Body]:
    """The moving bodies, without what is welded to them."""
    parents, placements, nodes = zip(*seats, strict=True) if seats else ((), (), ())
    own: Columns = {
        "index": range(len(entries)),
        "parent": parents,
        "placement": placements,
        "node": nodes,
        "parts": [(entry.part,) for entry in entries],
    }
    own |= of_each(entries, "name", "visuals", "collisions", "joint_frame", "flexible")
    return made(Body, own, q_slice=_NOWHERE, v_slice=_NOWHERE)


def _joints(entries: Sequence[Entry]) -> Columns:
    """The joints, not yet in their places."""
    by_name = {entry.joint_name: entry for entry in entries}
    own: Columns = {
        "name": list(by_name),
        "type": [entry.joint for entry in entries],
        "mimic": [entry.mimic and _resolved(entry, by_name) for entry in entries],
    }
    return own | of_each(entries, "limits", "armature", "damping", "friction", "stiffness", "rest")


def _resolved(entry: Entry, by_name: dict[str, Entry]) -> Mimic:
    """Follow a chain of mimics to the joint that has a coordinate: q = m₁(m₂ q + o₂) + o₁."""
    multiplier, offset, seen = 1.0, 0.0, [entry.joint_name]
    while entry.mimic is not None:
        multiplier, offset = multiplier * entry.mimic.multiplier, multiplier * entry.mimic.offset + offset
        if entry.mimic.joint not in by_name:
            raise UnknownNameError(f"joint for {seen[0]!r} to follow", entry.mimic.joint, by_name)
        entry = by_name[entry.mimic.joint]
        if entry.joint_name in seen:
            raise ModelError("joints follow each other in a circle", got=" -> ".join([*seen, entry.joint_name]))
        seen.append(entry.joint_name)
    if entry.joint.nq != 1 or entry.joint.nv != 1:
        raise ModelError(
            f"joint {seen[0]!r} cannot follow {entry.joint_name!r}",
            got=repr(entry.joint),
            allowed="a joint with one freedom",
        )
    return Mimic(entry.joint_name, multiplier, offset)


def _check_massless_leaves(bodies: Sequence[Body], entries: list[Entry]) -> None:
    parents = {body.parent for body in bodies}
    for body, entry in zip(bodies, entries, strict=True):
        if body.index in parents:
            continue
        empty = not body.modes and all(part.mass == 0.0 and not any(part.inertia) for part in body.parts)
        if empty and not any(entry.armature) and entry.mimic is None:
            raise ModelError(
                f"body {body.name!r} can move but nothing in it or beyond it has mass: its acceleration is not defined",
                got="mass 0, inertia 0, no children",
                allowed="a mass, an inertia, an armature, or a fixed joint",
                do=f"give {body.name!r} a mass, weld it with lw.Fixed(), or lock joint {entry.joint_name!r}",
            )


def moved_part(part: Part, X: Pose | FloatArray, node: int = 0) -> Part:
    """A part in the frame of the body that carries its own, which is at X there."""
    return replace(part, placement=product(X, part.placement), node=node)


def moved_shape(shape: Geometry, X: Pose | FloatArray) -> Geometry:
    """A shape likewise."""
    return replace(shape, placement=product(X, shape.placement))


def welded(
    body: Body,
    X: Pose | FloatArray,
    node: int,
    parts: Iterable[Part],
    visuals: Iterable[Geometry] = (),
    collisions: Iterable[Geometry] = (),
) -> Body:
    """A body with parts and shapes fixed to it, their frame at X on the body, or on a node of one that deforms.

    Shapes know no nodes: they stay where they are while nothing is deformed.
    """
    at_rest = X
    if body.flexible is not None:
        root = np.eye(4)
        root[:3, 3] = body.flexible.nodes[node].position
        at_rest = product(root, X)
    return replace(
        body,
        parts=(*body.parts, *(moved_part(part, X, node) for part in parts)),
        visuals=(*body.visuals, *(moved_shape(shape, at_rest) for shape in visuals)),
        collisions=(*body.collisions, *(moved_shape(shape, at_rest) for shape in collisions)),
    )


def numbered(bodies: Sequence[Body], joints: Columns) -> tuple[tuple[Body, ...], tuple[JointInstance, ...]]:
    """Give each joint its place in q and v, the modes of its body right before; a mimic takes that of its leader.

    Args:
        bodies: from the base to the tips; their numbers and slices are set here.
        joints: the fields of the inboard joint of each, but for these. One that follows names the joint that leads,
            which follows none.
    """
    own: Sequence[Any] = list(zip(joints["name"], joints["type"], joints["mimic"], strict=True))
    deform = any(body.flexible is not None for body in bodies)
    slices: dict[str, tuple[slice, slice]] = {}
    placed: list[Body] = []
    nq = nv = 0
    for k, (body, (name, kind, mimic)) in enumerate(zip(bodies, own, strict=True)):
        m = body.modes if deform else 0
        modal = (slice(nq, nq + m), slice(nv, nv + m)) if m else (_NOWHERE, _NOWHERE)
        if body.index != k or body.q_slice is not modal[0] or body.v_slice is not modal[1]:
            body = _changed(body, index=k, q_slice=modal[0], v_slice=modal[1])
        placed.append(body)
        nq, nv = nq + m, nv + m
        if mimic is None:
            end_q, end_v = nq + kind.nq, nv + kind.nv
            slices[name] = (slice(nq, end_q), slice(nv, end_v))
            nq, nv = end_q, end_v
    found = [slices[name if mimic is None else mimic.joint] for name, _, mimic in own]
    columns: Columns = {"index": range(len(own)), "q_slice": [q for q, _ in found], "v_slice": [v for _, v in found]}
    instances = made(JointInstance, {**joints, **columns})
    for body, joint in zip(placed, instances, strict=True) if deform else ():
        _check_floating(body, joint, placed)
    return tuple(placed), tuple(instances)


def _changed(body: Body, **fields: object) -> Body:
    """A copy with other values in some fields, without the constructor: there may be very many of them."""
    copy = object.__new__(Body)
    for name in Body.__dataclass_fields__:
        object.__setattr__(copy, name, fields[name] if name in fields else getattr(body, name))
    return copy


def _check_floating(body: Body, joint: JointInstance, placed: Sequence[Body]) -> None:
    """Refuse what holds the frame of a flexible body where the frame is that of no piece of it."""
    parent = placed[body.parent] if body.parent >= 0 else None
    if parent is not None and parent.flexible is not None and parent.flexible.held and not body.node:
        raise no_piece(f"body {body.name!r}", parent)
    if body.flexible is None or not body.flexible.held:
        return
    if any(not part.node and (part.mass or np.any(part.inertia)) for part in body.parts):
        raise no_piece("a mass", body)
    moved = _not_left_free(body.flexible, joint, np.array(body.joint_frame))
    if moved:
        raise ModelError(
            f"joint {joint.name!r} does not leave free what the modes of {body.name!r} move at its root",
            got=f"{joint.type!r}, and modes that move the root in {moved}",
            allowed="modes that move the root as the joint lets it move: a pin about z, a root that turns about z",
            do="another joint, or hold these components in the body's frame: held=[…]",
        )


def no_piece(what: str, body: Body) -> ModelError:
    """Error for what sits on a frame that floats."""
    assert body.flexible is not None
    return ModelError(
        f"{what} sits on the frame of {body.name!r}, which floats and is no piece of that body",
        got="no node",
        allowed=", ".join(repr(node.key) for node in body.flexible.nodes[1:13]),
        do="name a node: at=…",
    )


def _not_left_free(flexible: FlexibleBody, joint: JointInstance, joint_frame: FloatArray) -> str:
    """The motions by which modes move the root although the joint holds it, as text.

    A joint lets its body turn or shift, from wherever it is, if that is among its axes at all q.
    """
    root = flexible.nodes[flexible.held]
    R, lever = joint_frame[:3, :3], joint_frame[:3, 3] - root.position
    if joint.type.axis is not None:
        R = R @ turn_z_to(joint.type.axis)
    turns = np.hstack([root.Lambda.T @ R, np.cross(root.Lambda.T, lever) @ R])
    across = np.hstack([root.Gamma, root.Q.reshape(3, -1)]).T @ R
    shifts = np.hstack([np.zeros_like(across), across])
    size = np.sqrt(np.trace(flexible.integrals.J0) / flexible.mass)
    largest = max(max(np.abs(node.Gamma).max(), size * np.abs(node.Lambda).max()) for node in flexible.nodes)
    rng = np.random.default_rng(0)
    found: set[str] = set()
    for _ in range(4):
        unbound = [-np.inf] * joint.type.nv, [np.inf] * joint.type.nv
        S = np.array([[*s] for s in joint.type.subspace(joint.type.random(rng, *unbound))], dtype=float).reshape(-1, 6)
        for kind, motions in (("rotation", turns), ("displacement", shifts)):
            left = motions - motions @ np.linalg.pinv(S) @ S
            if np.abs(left * ([size] * 3 + [1.0] * 3)).max(initial=0.0) > 1e-9 * largest:
                found.add(kind)
    return " and ".join(sorted(found))
