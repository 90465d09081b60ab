"""Second derivatives of the dynamics.

Of a tree, the compiled linearised function is differentiated along every direction of a state. Of a model with closures
the equations of motion are differentiated twice, with rank tests. The latter would do for the accelerations of a tree
as well, and takes 1.1 to 1.7 times as long there (UR5, Panda, G1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.model.null_space import in_double
from linkwise.targets import check_on_host
from linkwise.targets.llvm.device import PROCESSOR

if TYPE_CHECKING:
    from linkwise.functions.function import CompiledFunction
    from linkwise.model.linearization import Linearization

State = tuple[Any, Any, Any]

_HELD = ("q", "v", "vdot", "multipliers")
"""Arguments that constraint forces depend on."""


class SecondOrderInverse(NamedTuple):
    """τ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdv[i, j, k]`` is ∂²τ_i/∂q_j∂v_k: how ``dq[i, j]`` changes along the k-th velocity. ``dqdvdot`` is ∂𝓜/∂q with the
    axis of q in the middle. Second derivatives that are zero for every mechanism (∂²τ/∂v∂v̇, ∂²τ/∂v̇²) are left out.
    """

    tau: Any
    dq: Any
    dv: Any
    dvdot: Any
    dqdq: Any
    dqdv: Any
    dvdv: Any
    dqdvdot: Any


class SecondOrderForward(NamedTuple):
    """v̇ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdtau[i, j, k]`` is ∂²v̇_i/∂q_j∂τ_k: how ``dq[i, j]`` changes along the k-th force. ∂²v̇/∂v∂τ and ∂²v̇/∂τ² are zero.
    """

    vdot: Any
    dq: Any
    dv: Any
    dtau: Any
    dqdq: Any
    dqdv: Any
    dvdv: Any
    dqdtau: Any


class SecondOrderClosed(NamedTuple):
    """v̇ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv), of a model with closures.

    As in :class:`SecondOrderForward`: ``dqdv[i, j, k]`` is how ``dq[i, j]`` changes
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


def second_order_inverse(
    model: Linearization, order: object, state: State, f_ext: Any, p: Any, out: object, threads: int | None
) -> SecondOrderInverse:
    """τ with its first and second derivatives at a state (q, v, v̇)."""
    _check("linearize_inverse", order, out)
    wanted = {"q": ("dq",), "v": ("dq", "dv"), "vdot": ("dq",)}
    first, (along_q, along_v, along_vdot) = _along(wanted, model, "linearize_inverse", state, f_ext, None, p, threads)
    return SecondOrderInverse(*first, along_q.dq, along_v.dq, along_v.dv, along_vdot.dq)


def second_order_forward(
    model: Linearization, order: object, state: State, f_ext: Any, t: Any, p: Any, out: object, threads: int | None
) -> SecondOrderForward | SecondOrderClosed:
    """v̇ with its first and second derivatives at a state (q, v, τ)."""
    _check("linearize_forward", order, out)
    if model.closures:
        return _closed(model, state, f_ext, t, p, threads)
    # The inverse of 𝓜 is a part of dq here, so that its change along q costs nothing; along τ, dq would be a program more.
    wanted = {"q": ("dq", "dtau"), "v": ("dq", "dv")}
    first, (along_q, along_v) = _along(wanted, model, "linearize_forward", state, f_ext, t, p, threads)
    return SecondOrderForward(*first, along_q.dq, along_v.dq, along_v.dv, np.swapaxes(along_q.dtau, -1, -2))


def _check(name: str, order: object, out: object) -> None:
    """Raises InputError where what is asked for beside first derivatives is not there."""
    if order != 2:
        raise InputError(f"no such order of {name}", got=repr(order), allowed="1 or 2")
    if out is not None:
        raise InputError(f"{name} of second order takes no out", do="drop the out= argument")


def _along(
    wanted: Mapping[str, tuple[str, ...]],
    model: Linearization,
    name: str,
    state: State,
    f_ext: Any,
    t: Any,
    p: Any,
    threads: int | None,
) -> tuple[Any, list[Any]]:
    """The first-order result, and the changes of the wanted parts along every direction of some arguments."""
    check_on_host("derivatives of second order are computed", *state, f_ext, t, p)
    first = model._run(name, *state, f_ext=f_ext, t=t, p=p, threads=threads)
    optional = {key: given for key, given in {"f_ext": (f_ext, 2), "t": (t, 0)}.items() if given[0] is not None}
    function = model.function(name, *optional)
    arrays = [*((x, 1) for x in state), *optional.values(), *_parameters(model, p)]
    # Every direction is a state of a batch.
    lanes = [np.expand_dims(np.asarray(x), np.ndim(x) - axes) for x, axes in arrays]
    rates = []
    for direction, parts in wanted.items():
        result = _part(function.jvp(direction), parts).general(*lanes, np.eye(model.nv), threads=threads)
        rates.append(type(result)._make(np.moveaxis(x, -3, -1) for x in result))
    return first, rates


def _parameters(model: Linearization, p: Any) -> list[tuple[Any, int]]:
    """The run-time parameters, where there are any, and their axes."""
    return [(model.parameters.nominal if p is None else p, 1)] if model._parameter_count else []


def _part(function: CompiledFunction, wanted: Sequence[str]) -> CompiledFunction:
    """A function with some of the outputs of another."""
    from collections import namedtuple

    from linkwise.functions.function import CompiledFunction

    kind = namedtuple("Part", wanted)  # type: ignore[misc]
    known = function.__dict__.setdefault("_parts", {})
    if tuple(wanted) not in known:

        def text(*flat: Sequence[Any]) -> Any:
            whole = function.text(*flat)
            return kind._make(getattr(whole, name) for name in wanted)

        name = f"{function.name}_{'_'.join(wanted)}"
        known[tuple(wanted)] = CompiledFunction(name, text, function.inputs, "", function.charts)
    part: CompiledFunction = known[tuple(wanted)]
    return part


def _closed(model: Linearization, state: State, f_ext: Any, t: Any, p: Any, threads: int | None) -> SecondOrderClosed:
    """The derivatives of a model with closures.

    With R₁ = 𝓜v̇ + c - J_c*λ - τ and R₂ = J_cv̇ + bias, both zero, the change (v̇_a, λ_a) along a direction a of (q, v, τ)
    obeys

        𝓜v̇_a - J_c*λ_a = -∂_aR₁,    J_cv̇_a = -∂_aR₂                                   (v̇ and λ held in ∂_a).

    This holds at every state, so it is differentiated once more, along b, where v̇ and λ now change by v̇_b and λ_b:

        𝓜v̇_ab - J_c*λ_ab = -D_b(∂_aR₁) - (D_b𝓜)v̇_a + (D_bJ_c)*λ_a,    J_cv̇_ab = -D_b(∂_aR₂) - (D_bJ_c)v̇_a.

    The matrix is that of the first derivatives. The tree's part of the right-hand sides comes from the second
    derivatives of its inverse dynamics; that of the constraints is the second derivative of what they hold, along
    (q, v, v̇, λ)_a and then (q, v, v̇, λ)_b, one program for all pairs of directions, which are a batch.

    Where J_c lacks rank, λ and λ_a are the ones of least norm. Others would differ by a ν with J_c*ν = 0; along a
    change that keeps the closures closed, and with them the rank, (D_bJ_c)*ν = -J_c*(D_bν), which no v̇_ab feels.
    """
    n = model.nv
    check_on_host("derivatives of second order are computed", *state, f_ext, t, p)
    dtype, (q, v, tau, f_ext, t, p) = in_double(PROCESSOR, *state, f_ext, t, p)
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
    given += [] if t is None else [np.asarray(t)[..., None, None]]
    given += [np.asarray(x)[..., None, None, :] for x, _ in _parameters(model, p)]

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
