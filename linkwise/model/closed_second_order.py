"""Second derivatives of the accelerations of closed mechanisms.

With R₁ = 𝓜v̇ + c - J_c*λ - τ and R₂ = J_cv̇ + bias, both zero, the change (v̇_a, λ_a) along a direction a of (q, v, τ)
obeys

    𝓜v̇_a - J_c*λ_a = -∂_aR₁,    J_cv̇_a = -∂_aR₂                                   (v̇ and λ held in ∂_a).

This holds at every state, so it is differentiated once more, along b, where v̇ and λ now change by v̇_b and λ_b:

    𝓜v̇_ab - J_c*λ_ab = -D_b(∂_aR₁) - (D_b𝓜)v̇_a + (D_bJ_c)*λ_a,    J_cv̇_ab = -D_b(∂_aR₂) - (D_bJ_c)v̇_a.

The matrix is that of the first derivatives. The tree's part of the right-hand sides comes from the second derivatives
of its inverse dynamics; that of the constraints is the second derivative of what they hold, along (q, v, v̇, λ)_a and
then (q, v, v̇, λ)_b, one program for all pairs of directions, which are a batch.

Where J_c lacks rank, λ and λ_a are the ones of least norm. Others would differ by a ν with J_c*ν = 0; along a change
that keeps the closures closed, and with them the rank, (D_bJ_c)*ν = -J_c*(D_bν), which no v̇_ab feels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.model.closed_linearization import in_double

if TYPE_CHECKING:
    from linkwise.model.model import Model

Array = NDArray[Any]

_HELD = ("q", "v", "vdot", "multipliers")
"""What the constraints hold depends on."""


class SecondOrderClosed(NamedTuple):
    """v̇ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv), of a model with closures.

    As in :class:`linkwise.model.second_order.SecondOrderForward`: ``dqdv[i, j, k]`` is how ``dq[i, j]`` changes
    along the k-th velocity. ``dvdtau`` is zero unless some closure is not linear in rates; ∂²v̇/∂τ² is zero.
    """

    vdot: Any
    dq: Any
    dv: Any
    dtau: Any
    dqdq: Any
    dqdv: Any
    dvdv: Any
    dqdtau: Any
    dvdtau: Any


def second_order_closed(
    model: Model, state: tuple[Any, Any, Any], f_ext: Any, t: Any, p: Any, threads: int | None
) -> SecondOrderClosed:
    """v̇ with its first and second derivatives at a state (q, v, τ)."""
    n = model.nv
    dtype, (q, v, tau, f_ext, t, p) = in_double(*state, f_ext, t, p)
    changes = model._closed_changes(q, v, tau, f_ext, t, p, threads)
    tree = model.linearize_inverse(q, v, changes.vdot, f_ext, order=2, p=p, threads=threads)
    x, multipliers = changes.vdot_changes, changes.multiplier_changes

    # Unit changes of q, then of v, then of τ, each with what it does to v̇ and λ: (..., 3 nv, size).
    unit = np.eye(3 * n)
    along_q, along_v = unit[:, :n], unit[:, n : 2 * n]
    along_vdot, along_multipliers = np.swapaxes(x, -1, -2), np.swapaxes(multipliers, -1, -2)
    directions = (along_q, along_v, along_vdot, along_multipliers)
    function = model.function("held") if t is None else model.function("held", "t")
    bent = function.jvp(*_HELD).jvp(*_HELD)
    given = [np.asarray(a)[..., None, None, :] for a in (q, v, changes.vdot, changes.multipliers)]
    if t is not None:
        given.append(np.asarray(t)[..., None, None])
    if model.parameter_names:
        given.append(np.asarray(model.nominal_parameters if p is None else p)[..., None, None, :])

    def along(second: Array, by: str, direction: Array) -> Array:
        """Σ second[..., i, j, k] direction[..., b, k] as (..., b, j, i); ``by`` names the axes of ``second``."""
        return np.asarray(np.einsum(f"...{by},...bk->...bji", second, direction))

    def columns(own: slice, others: slice, of_tree: Array) -> Array:
        """How the derivatives of v̇ along the directions ``own`` change along the ``others``: (..., i, a, b)."""
        first = [np.asarray(d)[..., None, own, :] for d in directions]
        then = [np.asarray(d)[..., others, None, :] for d in directions]
        held = bent.general(*given, *first, *then, threads=threads)
        turned = along(tree.dqdvdot, "ikj", along_q[others])  # D_b𝓜, symmetric
        f = held.efforts - of_tree - first[2] @ turned
        # Sizes are written out: an empty batch leaves none to be found.
        batch, pairs = f.shape[:-3], f.shape[-3:-1]
        side_by_side = [
            np.swapaxes(a.reshape(*batch, math.prod(pairs), a.shape[-1]), -1, -2) for a in (f, -held.accelerations)
        ]
        solved, _ = changes.system.solve(*side_by_side)
        return np.swapaxes(solved.reshape(*batch, n, *pairs), -1, -2)

    in_q, in_v, in_tau = (slice(k * n, (k + 1) * n) for k in range(3))
    after_q = along(tree.dqdq, "ijk", along_q) + along(tree.dqdv, "ijk", along_v)
    by_q = columns(in_q, slice(0, 3 * n), after_q + along(tree.dqdvdot, "ijk", along_vdot))
    by_v = columns(in_v, slice(n, 3 * n), along(tree.dvdv, "ijk", along_v[n:]))
    first = (changes.vdot, x[..., in_q], x[..., in_v], x[..., in_tau])
    second = (by_q[..., in_q], by_q[..., in_v], by_v[..., :n], by_q[..., in_tau], by_v[..., n:])
    return SecondOrderClosed(*(a.astype(dtype, copy=False) for a in (*first, *second)))
