"""Linearised dynamics of a model: derivatives of first and second order, as matrices and along small changes.

The methods of :class:`linkwise.Model` that are about small changes; see :mod:`linkwise.algorithms.linearized_inverse`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.model.closed_second_order import second_order_closed
from linkwise.model.second_order import SecondOrderForward, SecondOrderInverse, check_second_order, second_order

if TYPE_CHECKING:
    from linkwise.functions.function import CompiledFunction

Array = NDArray[Any]


class Linearization:
    """The linearised dynamics of a model, as methods."""

    nq: int
    nv: int

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
        first, rates = second_order(self, "linearize_inverse", order, (q, v, vdot), f_ext, None, p, out, threads)
        along_q, along_v, along_vdot = rates
        return SecondOrderInverse._make((*first, along_q.dq, along_v.dq, along_v.dv, along_vdot.dq))

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
        :class:`~linkwise.model.closed_second_order.SecondOrderClosed`, which has ``dvdtau`` as well: along
        a motion x(s) = (q, v, τ)(s) that keeps the closures closed, d²v̇/ds² is D²[x', x'] + D x''. A configuration
        where the rank itself changes has no derivatives, and these are then of no use.
        """
        if self.closures:
            if order != 1:
                check_second_order("linearize_forward", order, out)
                return second_order_closed(self, (q, v, tau), f_ext, t, p, threads)  # type: ignore[arg-type]
            closed = self._linearized_closed(q, v, tau, f_ext, t, p, threads)
            if out is None:
                return closed
            for target, value in zip(out, closed, strict=True):
                target[...] = value
            return type(closed)._make(out)
        if order == 1:
            return self._run("linearize_forward", q, v, tau, f_ext=f_ext, t=t, p=p, out=out, threads=threads)
        first, rates = second_order(self, "linearize_forward", order, (q, v, tau), f_ext, t, p, out, threads)
        along_q, along_v, along_tau = rates
        return SecondOrderForward._make((*first, along_q.dq, along_v.dq, along_v.dv, along_tau.dq))

    def perturb_inverse(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        dq: ArrayLike,
        dv: ArrayLike,
        dvdot: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """δτ (..., nv) for small changes dq (tangent), dv and dvdot (..., nv each), in O(n), without a matrix."""
        changes = (dq, dv, dvdot)
        result: Array = self._run("perturb_inverse", q, v, vdot, *changes, f_ext=f_ext, p=p, out=out, threads=threads)
        return result

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
            lin = self._linearized_closed(q, v, tau, f_ext, t, p, threads)
            pairs = ((lin.dq, dq), (lin.dv, dv), (lin.dtau, dtau))
            along = sum(np.einsum("...ij,...j->...i", matrix, np.asarray(x)) for matrix, x in pairs)
            if out is None:
                return np.asarray(along)
            out[...] = along
            return out
        changes = (dq, dv, dtau)
        given = {"f_ext": f_ext, "t": t, "p": p}
        result: Array = self._run("perturb_forward", q, v, tau, *changes, **given, out=out, threads=threads)
        return result

    def _by_parameters(self, q: Array, v: Array, vdot: Array, p: Any) -> Array:
        """∂τ/∂p (..., nv, np)."""
        jacobian = self.function("inverse_dynamics").jacobian("p")
        result: Array = jacobian.general(q, v, vdot, self.nominal_parameters if p is None else p)
        return result

    @property
    def _parameter_count(self) -> int:
        return len(self.nominal_parameters)

    # What the rest of the model gives.
    if TYPE_CHECKING:
        closures: Any
        nominal_parameters: Any
        _linearized_closed: Any
        _run: Any

        def function(self, name: str, *optional: str, **static: Any) -> CompiledFunction:
            """The compiled function behind a method."""
