"""Which numbers of q and v belong to which joint and which modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linkwise.model.mechanism import Body, JointInstance

__all__ = ["numbered"]


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
        m = body.modes
        placed.append(
            replace(body, index=len(placed), q_slice=slice(nq, nq + m), v_slice=slice(nv, nv + m))
            if m
            else replace(body, index=len(placed), q_slice=slice(0, 0), v_slice=slice(0, 0))
        )
        nq, nv = nq + m, nv + m
        if joint.mimic is None:
            slices[joint.name] = (slice(nq, nq + joint.nq), slice(nv, nv + joint.nv))
            nq, nv = nq + joint.nq, nv + joint.nv
    found = []
    for index, joint in enumerate(joints):
        q_slice, v_slice = slices[joint.name if joint.mimic is None else joint.mimic.joint]
        found.append(replace(joint, index=index, q_slice=q_slice, v_slice=v_slice))
    return tuple(placed), tuple(found)
