"""The state space of a model: its motion linearised about a state, of continuous time or over a time step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.errors import InputError
from linkwise.model.held_motion import held_motion
from linkwise.model.passive_forces import Acting
from linkwise.model.tangent_space import TangentSpace
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.sim.motion import JointRules

Array = NDArray[Any]


class StateSpace(NamedTuple):
    """δẋ = A δx + B δτ, or δx⁺ = A δx + B δτ for a time step; x = [q; v] in the tangent space, 2 nv numbers.

    Where controls have states of their own, these follow.
    """

    A: Any
    B: Any


class StateSpaces(TangentSpace):
    """The linearised motion of a model, as methods."""

    def state_space(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        dt: float | None = None,
        actuated: Sequence[str] | None = None,
        t: ArrayLike | None = None,
        p: ArrayLike | None = None,
        threads: int | None = None,
        control: Any = None,
        rules: JointRules | None = None,
    ) -> StateSpace:
        """The model linearised about a state: A (..., 2 nv, 2 nv) and B (..., 2 nv, nv) for x = [q; v] and the input τ.

        Of the motion that ``simulate`` integrates: springs, dampers and dry friction of the model act beside τ
        (:meth:`passive_force`), and so does ``control``. Friction is smooth, -f tanh(v / friction_speed): near rest it
        is a damper of f / friction_speed. Joint limits do not act. :meth:`linearize_forward` is of τ alone.

        Changes of q are in the tangent space (as in :meth:`integrate`). Without ``dt``, of continuous time. With
        ``dt``, of the motion over that time with constant τ (a zero-order hold): the derivative of where the exact
        motion leads. At rest that is the matrix exponential, however long the step.

        Of a model with closures, x = [ξ; w] has the independent freedoms only: δq = N ξ and w = v[independent], with N
        and ``independent`` of :meth:`freedoms` (for ξ, of the equations between places alone). One state that obeys the
        closures; with ``dt``, at rest.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            tau: joint forces (..., nv).
            dt: time step in s; None for continuous time.
            actuated: names of the joints that have motors: B has their columns alone. All if not given.
            t: time, for closures that depend on it.
            p: run-time parameters (..., np).
            threads: threads to split a batch over.
            control: what acts besides, as for ``simulate``: a function, :class:`~linkwise.Actuators`, other elements or
                a list of these, in their initial states. The states of their own follow in x (without ``dt``), and p
                has the model's parameters first.
            rules: which of the model's passive forces act, as for ``simulate``.
        """
        if actuated is not None:
            whole = self.state_space(q, v, tau, dt=dt, t=t, p=p, threads=threads, control=control, rules=rules)
            return StateSpace(whole.A, whole.B @ self.actuation_matrix(actuated))
        acting, p = self._acting(control, rules, t, p), self._own(control, p)
        if dt is not None and acting is not None:
            acting.refuse_memory("state_space over a time step")
        if self.closures:
            step = None if dt is None else checked_dt(dt)
            return StateSpace(*self._closed_state_space(q, v, tau, t, p, step, acting))
        check_on_host("state_space is computed", q, v, tau, p)
        q, v, tau = (np.asarray(x, float) for x in (q, v, tau))
        if dt is not None:
            return self._held(q, v, tau, checked_dt(dt), p, threads, acting)
        lin = self._linearized_acting(q, v, tau, acting, p, threads)
        A, B = self._rates(lin, v)
        if acting is None or not acting.nx:
            return StateSpace(A, B)
        by_q, by_v, by_x = (acting.by(name, q, v) for name in ("q", "v", "x"))
        by_x_alone = np.concatenate([np.zeros_like(by_x[0]), lin.dtau @ by_x[0]], axis=-2)
        lower = np.concatenate([by_q[1], by_v[1], by_x[1]], axis=-1)
        upper = np.concatenate([A, by_x_alone], axis=-1)
        none = np.zeros((*B.shape[:-2], acting.nx, self.nv))
        return StateSpace(np.concatenate([upper, lower], axis=-2), np.concatenate([B, none], axis=-2))

    def _linearized_acting(
        self, q: Array, v: Array, tau: Array, acting: Acting | None, p: Any, threads: int | None
    ) -> LinearizedForward:
        """The derivatives of v̇ with all that acts besides τ."""
        if acting is not None:
            tau = tau + acting.force(q, v, threads)
        lin: LinearizedForward = self.linearize_forward(q, v, tau, p=p, threads=threads)
        return lin if acting is None else acting.added(lin, q, v)

    def _rates(self, lin: LinearizedForward, v: Array) -> tuple[Array, Array]:
        """A (..., 2 nv, 2 nv) and B (..., 2 nv, nv) of continuous time, for x = [q; v]."""
        n = self.nv
        A = np.zeros((*lin.vdot.shape[:-1], 2 * n, 2 * n))
        A[..., :n, :n], A[..., :n, n:] = -self._ad(v), np.eye(n)
        A[..., n:, :n], A[..., n:, n:] = lin.dq, lin.dv
        return A, np.concatenate([np.zeros_like(lin.dtau), lin.dtau], axis=-2)

    def _held(
        self, q: Array, v: Array, tau: Array, dt: float, p: Any, threads: int | None, acting: Acting | None
    ) -> StateSpace:
        """The state space of the motion over a time in which τ is held."""
        vdot = self._linearized_acting(q, v, tau, acting, p, threads).vdot
        # A state that is not a number must not decide on the steps of the others: a state of rest takes its place.
        known = (np.isfinite(vdot) & np.isfinite(v)).all(axis=-1, keepdims=True)
        q = np.where(known, q, self.neutral())
        v, tau, vdot = (np.where(known, x, 0.0) for x in (v, tau, vdot))

        def rates(q: Array, v: Array) -> tuple[Array, Array]:
            return self._rates(self._linearized_acting(q, v, tau, acting, p, threads), v)

        def step(q: Array, v: Array, h: float) -> tuple[Array, Array]:
            there, speed, _ = self._step(q, v, tau, h, p, threads, acting)
            return there, speed

        change = np.where(known[..., None], held_motion(rates, step, q, v, vdot, dt), np.nan)
        return StateSpace(change[..., : 2 * self.nv], change[..., 2 * self.nv :])

    # What the rest of the model gives.
    if TYPE_CHECKING:
        closures: Any
        actuation_matrix: Any
        linearize_forward: Any
        neutral: Any
        _acting: Any
        _closed_state_space: Any
        _own: Any
        _step: Any


def checked_dt(dt: object) -> float:
    """A time step in s; raises InputError unless it is finite and positive."""
    if not isinstance(dt, (int, float, np.number)) or not np.isfinite(dt) or dt <= 0.0:
        raise InputError("the time step is not a positive number", got=repr(dt), allowed="seconds, e.g. 0.01")
    return float(dt)
