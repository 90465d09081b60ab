"""Derivatives of the accelerations of closed mechanisms, and their state space in the independent freedoms.

The equations 𝓜v̇ + c = τ + J_c*λ and J_cv̇ + bias = 0 are differentiated as they stand; what is left to solve has the
same matrix again. On numbers, with rank tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.errors import InputError
from linkwise.model.null_space import RANK, NullSpace
from linkwise.model.rank import basis_of
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.functions.function import CompiledFunction
    from linkwise.model.passive_forces import Acting

Array = NDArray[Any]


class ClosedChanges(NamedTuple):
    """Accelerations and multipliers of a state, and how they change with its q, v and τ (and p), column by column."""

    vdot: Array
    """v̇ (..., nv)."""
    multipliers: Array
    """λ (..., m)."""
    system: NullSpace
    """What the columns were solved with."""
    vdot_changes: Array
    """(..., nv, 3 nv + np)."""
    multiplier_changes: Array
    """(..., m, 3 nv + np)."""


def in_double(*arrays: Any) -> tuple[type[np.floating[Any]], list[Any]]:
    """The precision of results, single where all that is given is, and the arrays in double precision.

    The rank of J_c is not to be seen in single precision.
    """
    check_on_host("derivatives of a closed model are computed", *arrays)
    single = all(getattr(a, "dtype", None) == np.float32 for a in arrays if a is not None)
    given = [a.astype(float) if single and a is not None else a for a in arrays]
    return np.float32 if single else np.float64, given


class ClosedLinearization:
    """Small changes of a closed mechanism, as methods."""

    nv: int

    def _linearized_closed(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: Any, t: Any, p: Any, threads: int | None
    ) -> LinearizedForward:
        """The derivatives of v̇ alone."""
        return self._linearized_with_parameters(q, v, tau, f_ext, t, p, threads, only_state=True)[0]

    def _linearized_with_parameters(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: Any = None,
        t: Any = None,
        p: Any = None,
        threads: int | None = None,
        *,
        only_state: bool = False,
    ) -> tuple[LinearizedForward, Array]:
        """And ∂v̇/∂p (..., nv, np), without columns where it is not asked for."""
        n = self.nv
        dtype, (q, v, tau, f_ext, t, p) = in_double(q, v, tau, f_ext, t, p)
        changes = self._closed_changes(q, v, tau, f_ext, t, p, threads, with_parameters=not only_state)
        vdot, x = (a.astype(dtype, copy=False) for a in (changes.vdot, changes.vdot_changes))
        return LinearizedForward(vdot, x[..., :n], x[..., n : 2 * n], x[..., 2 * n : 3 * n]), x[..., 3 * n :]

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
        with_parameters: bool = False,
    ) -> ClosedChanges:
        """Implicit differentiation of 𝓜v̇ + c = τ + J_c*λ and J_c v̇ + bias = 0, with λ of least norm."""
        multipliers = self.constraint_forces(q, v, tau, f_ext, t, p=p, threads=threads).multipliers
        vdot = self._run("forward_dynamics", q, v, tau, f_ext=f_ext, t=t, p=p, threads=threads)
        lin = self._run("linearize_inverse", q, v, vdot, f_ext=f_ext, p=p, threads=threads)
        J_c = self.constraint_jacobian(q, t, v=v, p=p, threads=threads)
        arguments = (q, v, vdot, multipliers)
        by_q = self._derivative("held", "q", *arguments, t=t, p=p)
        by_v = self._derivative("held", "v", *arguments, t=t, p=p)
        columns = [by_q.efforts - lin.dq, by_v.efforts - lin.dv, np.broadcast_to(np.eye(self.nv), lin.dq.shape)]
        missing = [-by_q.accelerations, -by_v.accelerations, np.zeros_like(by_q.accelerations)]
        if len(self.nominal_parameters) and with_parameters:
            by_p = self._derivative("held", "p", *arguments, t=t, p=p)
            columns.append(by_p.efforts - self._by_parameters(q, v, vdot, p))
            missing.append(-by_p.accelerations)
        f, gamma = np.concatenate(columns, axis=-1), np.concatenate(missing, axis=-1)
        system = NullSpace(lin.dvdot, np.broadcast_to(J_c, (*gamma.shape[:-1], self.nv)))
        return ClosedChanges(vdot, multipliers, system, *system.solve(f, gamma))

    def _closed_state_space(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, t: Any, p: Any, dt: float | None, acting: Acting | None
    ) -> tuple[Array, Array]:
        """A and B in the independent freedoms: δq = N_q ξ and δv = N w + Gξ, where G keeps the rates obeyed."""
        check_on_host("the state space of a closed model is computed", q, v, tau, t, p)
        x, v, tau = self._one(q), np.asarray(v, float), np.asarray(tau, float)
        tau = tau if acting is None else tau + acting.force(x, v)
        self.check_closures(x, v, t, p=p)
        J_c = self.constraint_jacobian(x, t, v=v, p=p)
        N_q, of_q = basis_of(J_c[self._place_rows])
        N, of_v = basis_of(J_c)
        lin = self._linearized_closed(x, v, tau, None, t, p, None)
        lin = lin if acting is None else acting.added(lin, x, v)
        turning = self._derivative("closure_rate", "q", x, v, t=t, p=p) @ N_q
        # G: its rows at the independent freedoms are zero, and J_c G = -∂ė/∂q N_q.
        chosen = np.zeros((len(of_v), self.nv))
        chosen[range(len(of_v)), list(of_v)] = 1.0
        whole = np.concatenate([J_c, chosen])
        G = np.linalg.lstsq(whole, np.concatenate([-turning, np.zeros((len(of_v), N_q.shape[1]))]), rcond=RANK)[0]
        upper = np.concatenate([G - self._ad(v) @ N_q, N], axis=1)[list(of_q)]
        lower = np.concatenate([lin.dq @ N_q + lin.dv @ G, lin.dv @ N], axis=1)[list(of_v)]
        B = np.concatenate([np.zeros((len(of_q), self.nv)), lin.dtau[list(of_v)]])
        A = np.concatenate([upper, lower])
        if acting is not None and acting.nx:
            by_q, by_v, by_x = (acting.by(name, x, v) for name in ("q", "v", "x"))
            last = np.concatenate([by_q[1] @ N_q + by_v[1] @ G, by_v[1] @ N, by_x[1]], axis=1)
            right = np.concatenate([np.zeros((len(of_q), acting.nx)), (lin.dtau @ by_x[0])[list(of_v)]])
            A = np.concatenate([np.concatenate([A, right], axis=1), last])
            B = np.concatenate([B, np.zeros((acting.nx, self.nv))])
        if dt is None:
            return A, B
        if (np.abs(v).max(initial=0.0) + np.abs(lin.vdot).max(initial=0.0) * dt) * dt > 1e-12:
            raise InputError(
                "state_space of a closed model over a time step is there for states at rest only",
                got=f"speeds up to {np.abs(v).max():.3g}, accelerations up to {np.abs(lin.vdot).max():.3g}",
                do="leave dt out, or find a state at rest with model.static_equilibrium(q)",
            )
        from scipy.linalg import expm

        k, n = A.shape[0], B.shape[1]
        whole = expm(dt * np.block([[A, B], [np.zeros((n, k + n))]]))
        return whole[:k, :k], whole[:k, k:]

    def _derivative(self, name: str, by: str, *arrays: Any, t: Any, p: Any) -> Any:
        """∂/∂(an input) of a function of the catalogue."""
        function = self.function(name) if t is None else self.function(name, "t")
        given = [*arrays, *([] if t is None else [t])]
        if self.parameter_names:
            given.append(self.nominal_parameters if p is None else p)
        return function.jacobian(by).general(*given)

    # What the rest of the model gives.
    if TYPE_CHECKING:
        closures: Any
        parameter_names: Any
        nominal_parameters: Any
        _one: Any
        _place_rows: Any
        _run: Any
        _ad: Any
        _by_parameters: Any
        check_closures: Any
        constraint_forces: Any
        constraint_jacobian: Any

        def function(self, name: str, *optional: str, **static: Any) -> CompiledFunction:
            """The compiled function behind a method."""
