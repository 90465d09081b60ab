"""Linearised dynamics of a model: derivatives of first and second order, as matrices and along small changes.

Those of a tree are compiled; see :mod:`linkwise.algorithms.linearized_inverse`. With closures, the equations
𝓜v̇ + c = τ + J_c*λ and J_cv̇ + bias = 0 are differentiated as they stand, and what is left to solve has the same matrix
again: on numbers, with rank tests, which code without decisions cannot make.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.array_types import Array
from linkwise.model.base import ByName
from linkwise.model.closures import Closures
from linkwise.model.null_space import NullSpace, in_double
from linkwise.model.second_order import second_order_forward, second_order_inverse
from linkwise.targets.llvm.device import device_of


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
            q: configuration (..., nq).
            v: velocity (..., nv).
            vdot: acceleration (..., nv).
            f_ext: external forces (..., n_bodies, 6) in body frames.
            order: 2 for second derivatives as well, in a
                :class:`~linkwise.model.second_order.SecondOrderInverse`.
            p: run-time parameters (..., np).
            out: four arrays to fill (order 1 only).
            threads: threads to split a batch over.
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
        :class:`~linkwise.model.second_order.SecondOrderForward`. ``tau`` are all joint forces: springs, dampers and
        friction of the model are in :meth:`state_space`, not here.

        Of a model with closures, the derivatives of the constrained accelerations, right at any rank of J_c along
        changes that keep the closures closed (``dq @ N`` with N of :meth:`freedoms`). What a redundant equation would
        say of changes that open it is left out. Of second order, a
        :class:`~linkwise.model.second_order.SecondOrderClosed`, which has ``dvdtau`` as well: along
        a motion x(s) = (q, v, τ)(s) that keeps the closures closed, d²v̇/ds² is D²[x', x'] + D x''. A configuration
        where the rank itself changes has no derivatives, and these are then of no use.
        """
        if order != 1:
            return second_order_forward(self, order, (q, v, tau), f_ext, t, p, out, threads)
        if not self.closures:
            return self._run("linearize_forward", q, v, tau, f_ext=f_ext, t=t, p=p, out=out, threads=threads)
        closed, _ = self._linearized(q, v, tau, f_ext, t, p, threads)
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
            lin, _ = self._linearized(q, v, tau, f_ext, t, p, threads)
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

    def _linearized(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: Any,
        t: Any,
        p: Any,
        threads: int | None,
        *,
        by_p: bool = False,
    ) -> tuple[LinearizedForward, Array]:
        """The derivatives of v̇ by the state, and ∂v̇/∂p (..., nv, np), without columns where it is not asked for."""
        n = self.nv
        if not self.closures:
            lin: Any = self._run("linearize_forward", q, v, tau, f_ext=f_ext, t=t, p=p, threads=threads)
            if by_p and self._parameter_count:
                return lin, -lin.dtau @ self._by_parameters(q, v, lin.vdot, p)
            return lin, lin.dtau[..., :0]
        device = device_of([a for a in (q, v, tau, f_ext, t, p) if a is not None])
        with device.entered():
            dtype, (q, v, tau, f_ext, t, p) = in_double(device, q, v, tau, f_ext, t, p)
            changes = self._closed_changes(q, v, tau, f_ext, t, p, threads, by_p=by_p, xp=device.xp)
            vdot, x = (a.astype(dtype, copy=False) for a in (changes.vdot, changes.vdot_changes))
            parts = (vdot, x[..., :n], x[..., n : 2 * n], x[..., 2 * n : 3 * n], x[..., 3 * n :])
            *of_state, of_p = map(device.as_callers_library, parts)
            return LinearizedForward(*of_state), of_p

    def _closed_changes(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: Any,
        t: Any,
        p: Any,
        threads: int | None,
        *,
        by_p: bool = False,
        xp: Any = np,
    ) -> ClosedChanges:
        """Implicit differentiation of 𝓜v̇ + c = τ + J_c*λ and J_c v̇ + bias = 0, with λ of least norm."""
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

    def _derivative(self, name: str, by: str, *arrays: Any, t: Any, p: Any) -> Any:
        """∂/∂(an input) of a function of the catalogue."""
        function = self.function(name) if t is None else self.function(name, "t")
        given = [*arrays, *([] if t is None else [t])]
        if self._parameter_count:
            given.append(self.parameters.nominal if p is None else p)
        return function.jacobian(by).general(*given)

    def _by_parameters(self, q: Any, v: Any, vdot: Array, p: Any) -> Array:
        """∂τ/∂p (..., nv, np)."""
        jacobian = self.function("inverse_dynamics").jacobian("p")
        result: Array = jacobian.general(q, v, vdot, self.parameters.nominal if p is None else p)
        return result

    @property
    def _parameter_count(self) -> int:
        return len(self.parameters.nominal)
