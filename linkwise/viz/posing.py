"""Configurations that obey closures and reach for goals: what follows a slider, and what follows the mouse.

One damped least-squares problem for both (Levenberg): the residuals of all closures, and how far points and axes of
bodies are from their goals, with the compiled kinematics of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from linkwise.array_types import Array
from linkwise.model.model import Model

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


def settled(
    model: Model, q: Array, goals: Sequence[PointGoal] = (), held: Sequence[int] = (), weight: float = 1.0
) -> Array:
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
            e.append(weight * error)
            J.append(weight * rows)
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
