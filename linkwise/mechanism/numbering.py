"""Which numbers of q and v belong to which joint and which modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from linkwise.mechanism.pieces import Body, JointInstance

__all__ = ["numbered"]

T = TypeVar("T")

_NONE = slice(0, 0)


def numbered(
    bodies: Sequence[Body], joints: Sequence[JointInstance]
) -> tuple[tuple[Body, ...], tuple[JointInstance, ...]]:
    """Give each joint its place in q and v, the modes of its body right before; a mimic takes that of its leader.

    Args:
        bodies: from the base to the tips; their numbers and slices are set here.
        joints: the inboard joint of each. One that follows names the joint that leads, which follows none.
    """
    slices: dict[str, tuple[slice, slice]] = {}
    placed: list[Body] = []
    nq = nv = 0
    for body, joint in zip(bodies, joints, strict=True):
        m = 0 if body.flexible is None else body.modes
        if m:
            body = _changed(body, index=len(placed), q_slice=slice(nq, nq + m), v_slice=slice(nv, nv + m))
        elif body.index != len(placed) or body.q_slice != _NONE or body.v_slice != _NONE:
            body = _changed(body, index=len(placed), q_slice=_NONE, v_slice=_NONE)
        placed.append(body)
        nq, nv = nq + m, nv + m
        if joint.mimic is None:
            end_q, end_v = nq + joint.type.nq, nv + joint.type.nv
            slices[joint.name] = (slice(nq, end_q), slice(nv, end_v))
            nq, nv = end_q, end_v
    found = []
    for index, joint in enumerate(joints):
        q_slice, v_slice = slices[joint.name if joint.mimic is None else joint.mimic.joint]
        found.append(_changed(joint, index=index, q_slice=q_slice, v_slice=v_slice))
    return tuple(placed), tuple(found)


def _changed(element: T, **fields: Any) -> T:
    """A copy with other values in some fields, without the constructor: there may be very many of them."""
    copy = object.__new__(type(element))
    vars(copy).update(vars(element), **fields)
    return copy
