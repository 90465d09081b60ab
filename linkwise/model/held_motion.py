"""How the state after some time changes with the state before and with the forces held meanwhile.

δẋ = A(t) δx + B(t) δτ along the motion, solved by Magnus' series of order four (Blanes, Casas, Oteo and Ros 2009): the
exponential of a mean of [A, B; 0, 0] over each step, with the commutator of its ends. Where the motion is at rest A is
constant, and the exponential alone is the answer, however long the step; elsewhere steps are short against the times in
which A can change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError

Array = NDArray[Any]

_AT_REST = 1e-12  # rad or m: a motion over the whole time that is none
_STEP = 0.05  # of a step, in units of the fastest time constant: leaves some 1e-9 of the answer as error
_MOST = 100_000  # steps


def held_motion(
    rates: Callable[[Array, Array], tuple[Array, Array]],
    step: Callable[[Array, Array, float], tuple[Array, Array]],
    q: Array,
    v: Array,
    vdot: Array,
    dt: float,
) -> Array:
    """∂x(dt)/∂(x, τ) (..., 2 nv, 3 nv) for x = [q; v] in the tangent space, with τ constant.

    Args:
        rates: A (..., 2 nv, 2 nv) and B (..., 2 nv, nv) at a state.
        step: the state a short time later.
        q: configuration at the start (..., nq).
        v: velocity at the start (..., nv).
        vdot: acceleration at the start (..., nv).
        dt: time, s.
    """
    n = v.shape[-1]
    change = np.broadcast_to(np.eye(3 * n), (*v.shape[:-1], 3 * n, 3 * n))
    if not change.size:
        return change[..., : 2 * n, :]
    before = _augmented(*rates(q, v))
    steps = _steps(before, v, vdot, dt)
    if not steps:
        return _exponential(dt * before)[..., : 2 * n, :]
    h = dt / steps
    for _ in range(steps):
        q, v = step(q, v, h / 2)
        middle = _augmented(*rates(q, v))
        q, v = step(q, v, h / 2)
        after = _augmented(*rates(q, v))
        mean, turning = (before + 4.0 * middle + after) / 6.0, (before @ after - after @ before) / 12.0
        change = _exponential(h * (mean - h * turning)) @ change
        before = after
    return change[..., : 2 * n, :]


def _augmented(A: Array, B: Array) -> Array:
    """The matrix [A, B; 0, 0]: forces that stay as they are, beside the state."""
    n = B.shape[-1]
    whole = np.zeros((*A.shape[:-2], 3 * n, 3 * n))
    whole[..., : 2 * n, : 2 * n], whole[..., : 2 * n, 2 * n :] = A, B
    return whole


def _steps(rates: Array, v: Array, vdot: Array, dt: float) -> int:
    """How many steps the fastest of some states needs; none at rest."""
    n = v.shape[-1]
    if np.abs(v).max(initial=0.0) * dt + np.abs(vdot).max(initial=0.0) * dt * dt / 2.0 <= _AT_REST:
        return 0
    by_q, by_v = rates[..., n : 2 * n, :n], rates[..., n : 2 * n, n : 2 * n]
    fastest = float(np.sqrt(np.abs(by_q).sum(-1).max()) + np.abs(by_v).sum(-1).max() + np.abs(v).max())
    steps = dt * fastest / _STEP
    if steps > _MOST:
        raise InputError(
            "the time step is too long to follow the motion",
            got=f"dt = {dt:g} s, with time constants of {1.0 / fastest:.2g} s",
            allowed=f"dt < {_MOST * _STEP / fastest:.2g} s, or a state at rest",
            do="take a shorter dt, or v = 0 and tau = model.bias_force(q, v)",
        )
    return max(1, int(np.ceil(steps)))


def _exponential(matrices: Array) -> Array:
    from scipy.linalg import expm

    found: Array = expm(matrices)
    return found
