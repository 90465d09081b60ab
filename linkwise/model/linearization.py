"""Linearised dynamics of a model: derivatives of first and second order, as matrices and along small changes.

Those of a tree are compiled; see :mod:`linkwise.algorithms.linearized_inverse`. With closures, the equations
𝓜v̇ + c = τ + J_c*λ and J_cv̇ + bias = 0 are differentiated as they stand, and what is left to solve has the same matrix
again: on numbers, with rank tests, which code without decisions cannot make.

Of second order: of a tree, the compiled linearised function is differentiated along every direction of a state. Of a
model with closures the equations of motion are differentiated twice, with rank tests. The latter would do for the
accelerations of a tree as well, and takes 1.1 to 1.7 times as long there (UR5, Panda, G1).
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.array_types import Array, MaybeArray
from linkwise.errors import InputError
from linkwise.model.closures import Closures
from linkwise.model.compiled_methods import ByName
from linkwise.model.null_space import NullSpace, in_double
from linkwise.spatial.scalar import Flat
from linkwise.targets import check_on_host
from linkwise.targets.llvm.device import PROCESSOR, device_of

if TYPE_CHECKING:
    from linkwise.functions.function import CompiledFunction


class Driven(NamedTuple):
    """A state under joint forces, with all else that decides accelerations."""

    q: Any
    v: Any
    tau: Any
    f_ext: Any = None
    t: Any = None
    p: Any = None
    threads: int | None = None


class ClosedChanges(NamedTuple):
    """Accelerations and multipliers of a state, and how they change with its q, v and τ (and p), column by column."""

    vdot: Array
    """v̇ (..., nv)."""
    multipliers: Array
    """λ (..., m)."""
    system: NullSpace
    """Inverse of the mass matrix that the columns were solved with."""
    vdot_changes: Array
    """(..., nv, 3 nv + np)."""
    multiplier_changes: Array
    """(..., m, 3 nv + np)."""


class Linearization(Closures):
    """The linearised dynamics of a model, as methods."""

    def linearize_inverse(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        order: Literal[1, 2] = 1,
        p: ArrayLike | None = None,
        out: tuple[Array, ...] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The derivatives of :meth:`inverse_dynamics`: a named tuple ``tau, dq, dv, dvdot``, the last the mass matrix.

        ``dq[..., i, j]`` is the change of τ_i when joint axis j moves by a small amount: a derivative in the tangent
        space, nv × nv, as in ``integrate(q, dv)``. External forces keep their components in body frames.

        Args:
            order: 2 for second derivatives as well, in a
                :class:`~linkwise.model.linearization.SecondOrderInverse`.
            out: four arrays to fill (order 1 only).
        """
        if order == 1:
            return self._run("linearize_inverse", q, v, vdot, f_ext=f_ext, p=p, out=out, threads=threads)
        return second_order_inverse(self, order, (q, v, vdot), f_ext, p, out, threads)

    def linearize_forward(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        order: Literal[1, 2] = 1,
        t: ArrayLike | None = None,
        p: ArrayLike | None = None,
        out: tuple[Array, ...] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The derivatives of :meth:`forward_dynamics`: ``vdot, dq, dv, dtau``, the last the inverse of the mass matrix.

        Arguments as in :meth:`linearize_inverse`; of second order, a
        :class:`~linkwise.model.linearization.SecondOrderForward`. ``tau`` are all joint forces: springs, dampers and
        friction of the model are in :meth:`state_space`, not here.

        Of a model with closures, the derivatives of the constrained accelerations, right at any rank of J_c along
        changes that keep the closures closed (``dq @ N`` with N of :meth:`freedoms`). What a redundant equation would
        say of changes that open it is left out. Of second order, a
        :class:`~linkwise.model.linearization.SecondOrderClosed`, which has ``dvdtau`` as well: along
        a motion x(s) = (q, v, τ)(s) that keeps the closures closed, d²v̇/ds² is D²[x', x'] + D x''. A configuration
        where the rank itself changes has no derivatives, and these are then of no use.
        """
        if order != 1:
            return second_order_forward(self, order, (q, v, tau), f_ext, t, p, out, threads)
        if not self.closures:
            return self._run("linearize_forward", q, v, tau, f_ext=f_ext, t=t, p=p, out=out, threads=threads)
        closed, _ = self._linearized(Driven(q, v, tau, f_ext, t, p, threads))
        if out is None:
            return closed
        for target, value in zip(out, closed, strict=True):
            target[...] = value
        return type(closed)._make(out)

    def perturb_inverse(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        dq: ArrayLike,
        dv: ArrayLike,
        dvdot: ArrayLike,
        f_ext: ArrayLike | None = None,
        **others: Unpack[ByName],
    ) -> Array:
        """δτ (..., nv) for small changes dq (tangent), dv and dvdot (..., nv each), in O(n), without a matrix."""
        return self._run("perturb_inverse", q, v, vdot, dq, dv, dvdot, f_ext=f_ext, others=others)

    def perturb_forward(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        dq: ArrayLike,
        dv: ArrayLike,
        dtau: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        t: ArrayLike | None = None,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """δv̇ (..., nv) for small changes dq (tangent), dv and dtau (..., nv each), in O(n), without a mass matrix.

        Of a model with closures, by the matrices of :meth:`linearize_forward`; ``t`` (...) is the time, for closures
        that depend on it.
        """
        if self.closures:
            lin, _ = self._linearized(Driven(q, v, tau, f_ext, t, p, threads))
            device = device_of((q, v, tau, dq, dv, dtau))
            with device.entered():
                pairs = [[device.xp.asarray(x) for x in pair] for pair in zip(lin[1:], (dq, dv, dtau), strict=True)]
                along = sum(device.xp.einsum("...ij,...j->...i", matrix, x) for matrix, x in pairs)
                result: Array = device.as_callers_library(along)
                if out is None:
                    return result
                out[...] = result
                return out
        given = (q, v, tau, dq, dv, dtau)
        return self._run("perturb_forward", *given, f_ext=f_ext, t=t, p=p, out=out, threads=threads)

    def _linearized(self, at: Driven, *, by_p: bool = False) -> tuple[LinearizedForward, Array]:
        """The derivatives of v̇ by the state, and ∂v̇/∂p (..., nv, np), without columns where it is not asked for."""
        n, (q, v, tau, f_ext, t, p, threads) = self.nv, at
        if not self.closures:
            lin: Any = self._run("linearize_forward", q, v, tau, f_ext=f_ext, t=t, p=p, threads=threads)
            if by_p and self._parameter_count:
                return lin, -lin.dtau @ self._by_parameters(q, v, lin.vdot, p)
            return lin, lin.dtau[..., :0]
        device = device_of([a for a in (q, v, tau, f_ext, t, p) if a is not None])
        with device.entered():
            dtype, given = in_double(device, q, v, tau, f_ext, t, p)
            changes = self._closed_changes(Driven._make((*given, threads)), by_p=by_p, xp=device.xp)
            vdot, x = (a.astype(dtype, copy=False) for a in (changes.vdot, changes.vdot_changes))
            parts = (vdot, x[..., :n], x[..., n : 2 * n], x[..., 2 * n : 3 * n], x[..., 3 * n :])
            *of_state, of_p = map(device.as_callers_library, parts)
            return LinearizedForward(*of_state), of_p

    def _closed_changes(self, at: Driven, *, by_p: bool = False, xp: ModuleType = np) -> ClosedChanges:
        """Implicit differentiation of 𝓜v̇ + c = τ + J_c*λ and J_c v̇ + bias = 0, with λ of least norm."""
        q, v, tau, f_ext, t, p, threads = at
        multipliers = self.constraint_forces(q, v, tau, f_ext, t=t, p=p, threads=threads).multipliers
        vdot = self._run("forward_dynamics", q, v, tau, f_ext=f_ext, t=t, p=p, threads=threads)
        lin: Any = self._run("linearize_inverse", q, v, vdot, f_ext=f_ext, p=p, threads=threads)
        J_c = self.constraints.jacobian(q, t=t, v=v, p=p, threads=threads)
        names = ("q", "v", "p") if by_p and self._parameter_count else ("q", "v")
        held = [self._derivative("held", name, q, v, vdot, multipliers, t=t, p=p) for name in names]
        of_tree = [lin.dq, lin.dv, *(self._by_parameters(q, v, vdot, p) for _ in names[2:])]
        columns = [by.efforts - own for by, own in zip(held, of_tree, strict=True)]
        missing = [-by.accelerations for by in held]
        columns.insert(2, xp.broadcast_to(xp.eye(self.nv), lin.dq.shape))
        missing.insert(2, xp.zeros_like(missing[0]))
        f, gamma = xp.concatenate(columns, axis=-1), xp.concatenate(missing, axis=-1)
        system = NullSpace(lin.dvdot, xp.broadcast_to(J_c, (*gamma.shape[:-1], self.nv)), xp)
        return ClosedChanges(vdot, multipliers, system, *system.solve(f, gamma))

    def _derivative(self, name: str, by: str, *arrays: ArrayLike, t: MaybeArray, p: MaybeArray) -> Any:
        """∂/∂(an input) of a function of the catalogue."""
        function = self.function(name) if t is None else self.function(name, "t")
        given = [*arrays, *([] if t is None else [t])]
        if self._parameter_count:
            given.append(self.parameters.nominal if p is None else p)
        return function.jacobian(by).general(*given)

    def _by_parameters(self, q: ArrayLike, v: ArrayLike, vdot: Array, p: MaybeArray) -> Array:
        """∂τ/∂p (..., nv, np)."""
        jacobian = self.function("inverse_dynamics").jacobian("p")
        result: Array = jacobian.general(q, v, vdot, self.parameters.nominal if p is None else p)
        return result

    @property
    def _parameter_count(self) -> int:
        return len(self.parameters.nominal)


State = tuple[ArrayLike, ArrayLike, ArrayLike]

_HELD = ("q", "v", "vdot", "multipliers")
"""Arguments that constraint forces depend on."""


class SecondOrderInverse(NamedTuple):
    """τ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdv[i, j, k]`` is ∂²τ_i/∂q_j∂v_k: how ``dq[i, j]`` changes along the k-th velocity. ``dqdvdot`` is ∂𝓜/∂q with the
    axis of q in the middle. Second derivatives that are zero for every mechanism (∂²τ/∂v∂v̇, ∂²τ/∂v̇²) are left out.
    """

    tau: Array
    dq: Array
    dv: Array
    dvdot: Array
    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqdvdot: Array


class SecondOrderForward(NamedTuple):
    """v̇ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdtau[i, j, k]`` is ∂²v̇_i/∂q_j∂τ_k: how ``dq[i, j]`` changes along the k-th force. ∂²v̇/∂v∂τ and ∂²v̇/∂τ² are zero.
    """

    vdot: Array
    dq: Array
    dv: Array
    dtau: Array
    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqdtau: Array


class SecondOrderClosed(NamedTuple):
    """v̇ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv), of a model with closures.

    As in :class:`SecondOrderForward`: ``dqdv[i, j, k]`` is how ``dq[i, j]`` changes
    along the k-th velocity. ``dvdtau`` is zero unless some closure is not linear in rates; ∂²v̇/∂τ² is zero.
    """

    vdot: Array
    dq: Array
    dv: Array
    dtau: Array
    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqdtau: Array
    dvdtau: Array


def second_order_inverse(
    model: Linearization, order: int, state: State, f_ext: MaybeArray, p: MaybeArray, out: object, threads: int | None
) -> SecondOrderInverse:
    """τ with its first and second derivatives at a state (q, v, v̇)."""
    _check("linearize_inverse", order, out)
    wanted = {"q": ("dq",), "v": ("dq", "dv"), "vdot": ("dq",)}
    first, (along_q, along_v, along_vdot) = _along(wanted, model, "linearize_inverse", state, f_ext, None, p, threads)
    return SecondOrderInverse._make((*first, along_q.dq, along_v.dq, along_v.dv, along_vdot.dq))


def second_order_forward(
    model: Linearization,
    order: object,
    state: State,
    f_ext: MaybeArray,
    t: MaybeArray,
    p: MaybeArray,
    out: object,
    threads: int | None,
) -> SecondOrderForward | SecondOrderClosed:
    """v̇ with its first and second derivatives at a state (q, v, τ)."""
    _check("linearize_forward", order, out)
    if model.closures:
        return _closed(model, state, f_ext, t, p, threads)
    # The inverse of 𝓜 is a part of dq here, so that its change along q costs nothing.
    wanted = {"q": ("dq", "dtau"), "v": ("dq", "dv")}
    first, (along_q, along_v) = _along(wanted, model, "linearize_forward", state, f_ext, t, p, threads)
    by_tau = np.swapaxes(along_q.dtau, -1, -2)
    return SecondOrderForward._make((*first, along_q.dq, along_v.dq, along_v.dv, by_tau))


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
    f_ext: MaybeArray,
    t: MaybeArray,
    p: MaybeArray,
    threads: int | None,
) -> tuple[Any, list[Any]]:
    """The first-order result, and the changes of the wanted parts along every direction of some arguments."""
    check_on_host("derivatives of second order are computed", *state, f_ext, t, p)
    first = model._run(name, *state, f_ext=f_ext, t=t, p=p, threads=threads)
    optional = {key: (x, axes) for key, x, axes in (("f_ext", f_ext, 2), ("t", t, 0)) if x is not None}
    function = model.function(name, *optional)
    arrays = [*((x, 1) for x in state), *optional.values(), *_parameters(model, p)]
    # Every direction is a state of a batch.
    lanes = [np.expand_dims(np.asarray(x), np.ndim(x) - axes) for x, axes in arrays]
    rates = []
    for direction, parts in wanted.items():
        result = _part(function.jvp(direction), parts).general(*lanes, np.eye(model.nv), threads=threads)
        rates.append(type(result)._make(np.moveaxis(x, -3, -1) for x in result))
    return first, rates


def _parameters(model: Linearization, p: MaybeArray) -> list[tuple[ArrayLike, int]]:
    """The run-time parameters, where there are any, and their axes."""
    return [(model.parameters.nominal if p is None else p, 1)] if model._parameter_count else []


def _part(function: CompiledFunction, wanted: Sequence[str]) -> CompiledFunction:
    """A function with some of the outputs of another."""
    from linkwise.functions.function import CompiledFunction

    kind = namedtuple("Part", wanted)  # type: ignore[misc]  # its names are known when it runs
    known = function.__dict__.setdefault("_parts", {})
    if tuple(wanted) not in known:

        def text(*flat: Flat) -> Any:
            whole = function.text(*flat)
            return kind._make(getattr(whole, name) for name in wanted)

        name = f"{function.name}_{'_'.join(wanted)}"
        known[tuple(wanted)] = CompiledFunction(name, text, function.inputs, "", function.charts)
    part: CompiledFunction = known[tuple(wanted)]
    return part


def _closed(
    model: Linearization, state: State, f_ext: MaybeArray, t: MaybeArray, p: MaybeArray, threads: int | None
) -> SecondOrderClosed:
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
    changes = model._closed_changes(Driven(q, v, tau, f_ext, t, p, threads))
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
        """Changes along the ``others`` of the derivatives of v̇ along the directions ``own``: (..., i, a, b)."""
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
