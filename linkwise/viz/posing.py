"""Freedoms as numbers that a slider can move, and configurations that obey closures and reach for goals.

One damped least-squares problem for both (Levenberg): the residuals of all closures, and how far points and axes of
bodies are from their goals, with the compiled kinematics of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.joints import Handle
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.model.model import Model
from linkwise.viz.solids import as_wxyz, from_wxyz


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


CLOSED = 1e-7
"""Residual of closures that counts as closed, m or a pure number."""
_STEPS = 40
_AT = 1e-9
"""Distance to a limit that counts as none, rad or m."""
_LONGEST = 0.3
"""Longest step, rad or m."""


@dataclass(frozen=True)
class PointGoal:
    """Place where a point of a body should be, and the rotation that the body should have.

    Args:
        body: its name.
        point: in the body's frame (3).
        position: of the point in the world (3).
        rotation: of the body (3×3); None if that does not matter.
    """

    body: str
    point: Array
    position: Array
    rotation: Array | None = None


def moved(model: Model, q: Array, wanted: Array, held: int) -> Array | None:
    """A closed configuration near q with freedom `held` (a place in v) as in `wanted`; None where there is none.

    Far ways are gone in small steps, so that the mechanism stays in the branch it is in.
    """
    if not model.closures:
        return wanted
    way = model.difference(q, wanted)
    pieces = max(1, int(np.ceil(np.abs(way).max(initial=0.0) / 0.1)))
    now = q
    for _ in range(pieces):
        now = settled(model, model.integrate(now, way / pieces), held=(held,))
        if not is_closed(model, now):
            return None
    return now


def is_closed(model: Model, q: Array) -> bool:
    """Whether all closures are, as far as the eye can tell."""
    return not model.closures or bool(np.abs(model.closure_error(q)).max(initial=0.0) < CLOSED)


def settled(model: Model, q: Array, goals: Sequence[PointGoal] = (), held: Sequence[int] = ()) -> Array:
    """Configuration as near to the goals as closures and joint limits allow; freedoms in `held` (places in v) stay."""
    free = np.ones(model.nv, bool)
    free[list(held)] = False
    places = np.array(
        [
            place
            for c in model.closures
            for place in [True] * len(c.type.equations) + [False] * len(c.type.rate_equations)
        ],
        bool,
    )

    def residuals(at: Array) -> tuple[Array, Array]:
        e, J = [np.zeros(0)], [np.zeros((0, model.nv))]
        for goal in goals:
            error, rows = _error(model, at, goal)
            e.append(error)
            J.append(rows)
        if model.closures:
            e.append(10.0 * model.closure_error(at))
            J.append(10.0 * model.constraints.jacobian(at)[places])
        return np.concatenate(e), np.concatenate(J)[:, free]

    damping = 1e-6
    e, J = residuals(q)
    for _ in range(_STEPS):
        if not len(e) or np.abs(e).max() < 1e-10:
            break
        scale = damping * max(float(np.sum(J * J)) / max(J.shape[1], 1), 1e-12)
        candidate = _stepped(model, q, J, e, scale, free)
        if candidate is None:
            break
        e_new, J_new = residuals(candidate)
        if e_new @ e_new < e @ e:
            gain = 1.0 - float(e_new @ e_new) / float(e @ e)
            q, e, J, damping = candidate, e_new, J_new, max(damping * 0.2, 1e-9)
            if gain < 1e-6:
                break
        else:
            damping *= 10.0
            if damping > 1e6:
                break
    return q


def _error(model: Model, q: Array, goal: PointGoal) -> tuple[Array, Array]:
    X = model.pose(q, goal.body)
    J = model.jacobian(q, goal.body, goal.point)
    position = X[:3, :3] @ goal.point + X[:3, 3] - goal.position
    if goal.rotation is None:
        return position, J[3:]
    turn = Rotation.from_matrix(X[:3, :3] @ goal.rotation.T).as_rotvec()
    return np.concatenate([position, 0.3 * turn]), np.concatenate([J[3:], 0.3 * J[:3]])


def _stepped(model: Model, q: Array, J: Array, e: Array, scale: float, free: Array) -> Array | None:
    """One step of Newton's method up to the limits, with the freedoms held that are there; None where it ends."""
    moving = np.ones(J.shape[1], bool)
    columns = np.flatnonzero(free)
    for _ in range(8):
        step = np.zeros(model.nv)
        if moving.any():
            step[columns[moving]] = _damped(J[:, moving], e, scale)
        largest = float(np.abs(step).max(initial=0.0))
        if not np.isfinite(largest) or largest < 1e-12:
            return None
        candidate = model.integrate(q, step * min(1.0, _LONGEST / largest))
        stuck = _stuck(model, q, candidate)[columns] & moving
        if not stuck.any():
            return np.clip(candidate, model.limits.lower, model.limits.upper)
        moving &= ~stuck
    return None


def _damped(J: Array, e: Array, scale: float) -> Array:
    """-(J*J + scale)⁻¹J*e, which is -J*(JJ* + scale)⁻¹e: the smaller of the two systems is solved."""
    rows, columns = J.shape
    step: Array
    if rows < columns:
        step = J.T @ np.linalg.solve(J @ J.T + scale * np.eye(rows), e)
    else:
        step = np.linalg.solve(J.T @ J + scale * np.eye(columns), J.T @ e)
    return -step


def _stuck(model: Model, q: Array, candidate: Array) -> Array:
    """Mask (nv) of freedoms at a limit that would go beyond; only joints with a number for each freedom have any."""
    found = np.zeros(model.nv, bool)
    for joint in model._independent:
        if joint.nq == joint.nv:
            part = joint.q_slice
            now, then = q[part], candidate[part]
            found[joint.v_slice] = ((now >= model.limits.upper[part] - _AT) & (then > now)) | (
                (now <= model.limits.lower[part] + _AT) & (then < now)
            )
    return found


def resting(model: Model, q: ArrayLike | None = None) -> Array:
    """A configuration to begin with: the given one, or the model's own; closed."""
    if q is None:
        return model.start.copy()
    array = numbers("q", q, model.nq)
    return model.assemble(array) if model.closures and not is_closed(model, array) else array


def numbers(name: str, values: ArrayLike, count: int) -> Array:
    """Finite numbers, as many as there must be, or an ``InputError`` that says which are not."""
    try:
        array = np.array(values, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not numbers", got=repr(values)[:80], allowed=f"{count} finite numbers") from error
    if array.shape != (count,):
        raise InputError(f"{name} has another shape", got=str(array.shape), allowed=f"({count},)")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise InputError(
            f"{name} is not finite", got=f"{name}[{bad[0]}] = {array[bad[0]]}", allowed=f"{count} finite numbers"
        )
    return array
