"""The freedoms of a model, one by one, as numbers that a slider can move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from linkwise.array_types import Array
from linkwise.joints import Handle
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.model.model import Model
from linkwise.viz.turns import as_wxyz, from_wxyz


@dataclass(frozen=True)
class Freedom:
    """One number of a configuration.

    Args:
        label: the joint's name, with what it is where the joint has several.
        low: least value.
        high: greatest value.
        place: of it in v.
        get: its value in q.
        set: q with another value.
    """

    label: str
    low: float
    high: float
    place: int
    get: Callable[[Array], float]
    set: Callable[[Array, float], Array]

    @property
    def step(self) -> float:
        """Step of a slider."""
        return max((self.high - self.low) / 1000.0, 1e-9)


def freedoms_of(model: Model, size: float) -> list[Freedom]:
    """Freedoms in the order of v, one for each number; ±π rad, or ± the model's size, where nothing limits one."""
    return [freedom for joint in model._independent for freedom in _of_joint(model, joint, size)]


def _of_joint(model: Model, joint: JointInstance, size: float) -> list[Freedom]:
    q0, v0 = joint.q_slice.start, joint.v_slice.start
    body = model.bodies[joint.index]
    if joint.name == f"{body.name}.eta" and joint.q_slice == body.q_slice:
        scale = _modal_scale(model, joint)
        return [
            _plain(f"{body.name} mode {k + 1}", q0 + k, v0 + k, -float(scale[k]), float(scale[k]))
            for k in range(joint.nv)
        ]
    return [_moved_by(model, joint, k, handle, size) for k, handle in enumerate(joint.type.handles())]


def _moved_by(model: Model, joint: JointInstance, k: int, handle: Handle, size: float) -> Freedom:
    """The freedom k of a joint, as its type says that it is moved."""
    label, place, v_place = f"{joint.name}{handle.label}", joint.q_slice.start + handle.place, joint.v_slice.start + k
    if handle.kind == "turn":
        return _turning(label, place, v_place, handle.part)
    if handle.kind == "way":
        return _in_chart(model, label, v_place)
    low, high = (float(bounds[place]) for bounds in (model.limits.lower, model.limits.upper))
    usual = size if handle.reach is None else handle.reach
    low = low if np.isfinite(low) else min(-usual, high - usual) if np.isfinite(high) else -usual
    high = high if np.isfinite(high) else max(usual, low + usual)
    return _plain(label, place, v_place, low, high if high > low else low + 1e-6)


def _plain(label: str, place: int, v_place: int, low: float, high: float) -> Freedom:
    def put(q: Array, value: float) -> Array:
        changed = np.array(q, float)
        changed[place] = value
        return changed

    return Freedom(label, low, high, v_place, lambda q: float(q[place]), put)


def _turning(label: str, start: int, v_place: int, axis: int) -> Freedom:
    """One number of the rotation vector of a quaternion."""

    def vector(q: Array) -> Array:
        return np.asarray(from_wxyz(q[start : start + 4]).as_rotvec())

    def put(q: Array, value: float) -> Array:
        turn, changed = vector(q), np.array(q, float)
        turn[axis] = value
        changed[start : start + 4] = as_wxyz(Rotation.from_rotvec(turn))
        return changed

    return Freedom(label, -np.pi, np.pi, v_place, lambda q: float(vector(q)[axis]), put)


def _in_chart(model: Model, label: str, place: int) -> Freedom:
    """A number of the way from the neutral configuration, for joint types that we know nothing of."""

    def put(q: Array, value: float) -> Array:
        way = model.difference(model.neutral(), q)
        way[place] = value
        return model.integrate(model.neutral(), way)

    return Freedom(label, -np.pi, np.pi, place, lambda q: float(model.difference(model.neutral(), q)[place]), put)


def _modal_scale(model: Model, joint: JointInstance) -> Array:
    """Largest value of each mode: no node moves by more than a tenth of the body's size."""
    flexible = model.bodies[joint.index].flexible
    assert flexible is not None
    reach = max((float(np.linalg.norm(node.position)) for node in flexible.nodes), default=1.0)
    moved = np.max([np.abs(node.Gamma).max(axis=0) for node in flexible.nodes], axis=0)
    return np.where(moved > 0.0, 0.1 * reach / np.where(moved > 0.0, moved, 1.0), 1.0)
