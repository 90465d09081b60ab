"""The state space of a model: its motion linearised about a state, over a time step, or along a trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.array_types import Array, MaybeArray
from linkwise.errors import InputError
from linkwise.model.closed_dynamics import ClosedDynamics
from linkwise.model.configuration_space import TangentSpace
from linkwise.model.held_motion import HeldMotion
from linkwise.model.linearization import Driven
from linkwise.model.null_space import RANK, basis_of
from linkwise.model.passive_forces import Acting, refuse_touching
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.sim.joint_rules import JointRules


class StateSpace(NamedTuple):
    """δẋ = A δx + B δτ, or δx⁺ = A δx + B δτ for a time step; x = [q; v] in the tangent space, 2 nv numbers.

    Where controls have states of their own, these follow.
    """

    A: Array
    B: Array


class StateSpaces(TangentSpace, ClosedDynamics):
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
        control: object = None,
        rules: JointRules | None = None,
    ) -> StateSpace:
        """The model linearised about a state: A (..., 2 nv, 2 nv) and B (..., 2 nv, nv) for x = [q; v] and the input τ.

        Of the motion that ``simulate`` integrates: springs, dampers and dry friction of the model act beside τ
        (:meth:`passive_force`), and so does ``control``. Friction is smooth, -f tanh(v / friction_speed): near rest it
        is a damper of f / friction_speed. Joint limits do not act; states where rigid surfaces touch are refused.
        :meth:`linearize_forward` is of τ alone.

        Changes of q are in the tangent space (as in :meth:`integrate`). Without ``dt``, of continuous time. With
        ``dt``, of the motion over that time with constant τ (a zero-order hold): the derivative of where the exact
        motion leads. At rest that is the matrix exponential, however long the step.

        Of a model with closures, x = [ξ; w] has the independent freedoms only: δq = N ξ and w = v[independent], with N
        and ``independent`` of :meth:`freedoms` (for ξ, of the equations between places alone). One state that obeys the
        closures; with ``dt`` and in motion, closures that do not depend on time.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            tau: joint forces (..., nv).
            dt: time step in s; None for continuous time.
            actuated: names of the joints that have motors: B has their columns alone. All if not given.
            t: time, for closures that depend on it.
            p: run-time parameters (..., np).
            threads: threads to split a batch over.
            control: what acts besides, as for ``simulate``: a function, :class:`~linkwise.Drives`, other elements or
                a list of these, in their initial states. The states of their own follow in x (without ``dt``), and p
                has the model's parameters first.
            rules: which of the model's passive forces act, as for ``simulate``.
        """
        if actuated is not None:
            whole = self.state_space(q, v, tau, dt=dt, t=t, p=p, threads=threads, control=control, rules=rules)
            return StateSpace(whole.A, whole.B @ self.statics.actuation_matrix(actuated))
        acting, p = self._acting(control, rules, t, p), self._own(control, p)
        if dt is not None and acting is not None:
            acting.refuse_memory("state_space over a time step")
        check_on_host("state_space is computed", q, v, tau, t, p)
        if self.closures:
            self.constraints.check(self._one(q), v, t=t, p=p)
        q, v, tau = (np.asarray(x, float) for x in (q, v, tau))
        refuse_touching(self._whole, "state_space", q, p)
        if dt is not None:
            motion = HeldMotion("state_space over a time step", self._whole, p, threads, acting, t)
            A, B = motion.transition(q, v, tau, checked_dt(dt))
        else:
            at = Driven(q, v, tau, t=t, p=p, threads=threads)
            lin, _ = self._linearized_acting(at, acting)
            A, B = self._rates(lin, v)
            if acting is not None and acting.nx:
                A, B = _with_states(A, B, lin, acting, q, v)
                if acting.varied is not None:
                    A[..., self.nv : 2 * self.nv, 2 * self.nv :] += self._by_varied_states(at, acting)
        return StateSpace(*(self._in_independent(A, B, q, v, t, p) if self.closures else (A, B)))

    def _linearized_acting(
        self, at: Driven, acting: Acting | None, *, by_p: bool = False
    ) -> tuple[LinearizedForward, Array]:
        """The derivatives of v̇ with all that acts besides τ, and ∂v̇/∂p, without columns where it is not asked for."""
        if acting is None:
            return self._linearized(at, by_p=by_p)
        q, v = at.q, at.v
        at = at._replace(tau=at.tau + acting.force(q, v, at.threads))
        if acting.varied is not None:
            return self._linearized_varied(at, acting, by_p=by_p)
        lin, of_p = self._linearized(at, by_p=by_p)
        if of_p.shape[-1]:
            of_p = of_p + lin.dtau @ acting.by_parameters(q, v)
        return acting.added(lin, q, v), of_p

    def _by_varied_states(self, at: Driven, acting: Acting) -> Array:
        """Changes of v̇ (..., nv, nx) with the states of what acts, by the constants of the model that follow them."""
        assert acting.varied is not None
        q, v = at.q, at.v
        at = at._replace(tau=at.tau + acting.force(q, v, at.threads), p=acting.parameters(q, v))
        found: Array = acting.varied[0]._linearized(at, by_p=True)[1] @ acting.parameters_by("x", q, v)
        return found

    def _linearized_varied(self, at: Driven, acting: Acting, *, by_p: bool) -> tuple[LinearizedForward, Array]:
        """The same where what acts changes constants of the model with the state."""
        assert acting.varied is not None
        q, v = at.q, at.v
        lin, of_all = acting.varied[0]._linearized(at._replace(p=acting.parameters(q, v)), by_p=True)
        dq, dv = (by + of_all @ acting.parameters_by(name, q, v) for name, by in (("q", lin.dq), ("v", lin.dv)))
        found = acting.added(LinearizedForward(lin.vdot, dq, dv, lin.dtau), q, v)
        own = len(self.parameters.nominal)
        if not by_p or not own:
            return found, of_all[..., :0]
        of_p = of_all @ acting.parameters_by("p", q, v)[..., :own]
        return found, of_p + lin.dtau @ acting.by_parameters(q, v)

    def _rates(self, lin: LinearizedForward, v: Array) -> tuple[Array, Array]:
        """A (..., 2 nv, 2 nv) and B (..., 2 nv, nv) of continuous time, for x = [q; v]."""
        n = self.nv
        A = np.zeros((*lin.vdot.shape[:-1], 2 * n, 2 * n))
        A[..., :n, :n], A[..., :n, n:] = -self._ad(v), np.eye(n)
        A[..., n:, :n], A[..., n:, n:] = lin.dq, lin.dv
        return A, np.concatenate([np.zeros_like(lin.dtau), lin.dtau], axis=-2)

    def _in_independent(
        self, A: Array, B: Array, q: Array, v: Array, t: MaybeArray, p: MaybeArray
    ) -> tuple[Array, Array]:
        """The same in the independent freedoms: δq = N_q ξ and δv = N w + Gξ, where G keeps the rates obeyed."""
        n = self.nv
        J_c = self.constraints.jacobian(q, t=t, v=v, p=p)
        N_q, of_q = basis_of(J_c[self._place_rows])
        N, of_v = basis_of(J_c)
        turning = self._derivative("closure_rate", "q", q, v, t=t, p=p) @ N_q
        # G: its rows at the independent freedoms are zero, and J_c G = -∂ė/∂q N_q.
        chosen = np.zeros((len(of_v), n))
        chosen[range(len(of_v)), list(of_v)] = 1.0
        whole = np.concatenate([J_c, chosen])
        G = np.linalg.lstsq(whole, np.concatenate([-turning, np.zeros((len(of_v), N_q.shape[1]))]), rcond=RANK)[0]
        more = len(A) - 2 * n
        from_own = np.block(
            [
                [N_q, np.zeros_like(N), np.zeros((n, more))],
                [G, N, np.zeros((n, more))],
                [np.zeros((more, N_q.shape[1] + N.shape[1])), np.eye(more)],
            ]
        )
        kept = [*of_q, *(n + i for i in of_v), *range(2 * n, 2 * n + more)]
        return A[kept] @ from_own, B[kept]


def _with_states(A: Array, B: Array, lin: LinearizedForward, acting: Acting, q: Array, v: Array) -> tuple[Array, Array]:
    """The rates of x = [q; v] and of the states of what acts."""
    by_q, by_v, by_x = (acting.by(name, q, v) for name in ("q", "v", "x"))
    upper = np.concatenate([A, np.concatenate([np.zeros_like(by_x[0]), lin.dtau @ by_x[0]], axis=-2)], axis=-1)
    lower = np.concatenate([by_q[1], by_v[1], by_x[1]], axis=-1)
    none = np.zeros((*B.shape[:-2], acting.nx, B.shape[-1]))
    return np.concatenate([upper, lower], axis=-2), np.concatenate([B, none], axis=-2)


def checked_dt(dt: object) -> float:
    """A time step in s; raises InputError unless it is finite and positive."""
    if not isinstance(dt, (int, float, np.number)) or not np.isfinite(dt) or dt <= 0.0:
        raise InputError("the time step is not a positive number", got=repr(dt), allowed="seconds, e.g. 0.01")
    return float(dt)


class Sensitivity(NamedTuple):
    """A trajectory and its derivatives at each of the times t (steps + 1): x = [q; v] in the tangent space.

    ``q`` (steps + 1, ..., nq), ``v`` (steps + 1, ..., nv), ``dx0`` = ∂x(t)/∂x(0) (steps + 1, ..., 2 nv, 2 nv),
    ``dp`` = ∂x(t)/∂p (steps + 1, ..., 2 nv, np).
    """

    t: Array
    q: Array
    v: Array
    dx0: Array
    dp: Array


class Sensitivities(StateSpaces):
    """Derivatives of trajectories, as methods."""

    def sensitivity(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        tau: ArrayLike,
        dt: float,
        *,
        p: ArrayLike | None = None,
        threads: int | None = None,
        control: object = None,
        rules: JointRules | None = None,
    ) -> Sensitivity:
        """Derivatives of a whole trajectory by its start, the forces and run-time parameters (Jain 1993 §1).

        The linearised model is integrated along the trajectory: each step of the classical Runge–Kutta method is
        differentiated exactly, so the result is the derivative of the trajectory that is returned.

        The forces are those of ``simulate``: springs, dampers and (smoothed) dry friction of the model act beside τ,
        and so does ``control``; joint limits do not.

        Of a model with closures (which must not depend on time), the derivative of the motion to the same order. The
        start obeys the closures; a change of it, or of p, is taken to the nearest one that does, in the norm of kinetic
        energy, so that all changes that are returned keep the closures closed.

        Args:
            q0: configuration at the start (..., nq).
            v0: velocity at the start (..., nv).
            tau: joint forces (steps, ..., nv), each held for one step.
            dt: time step in s.
            p: run-time parameters (..., np).
            threads: threads to split a batch over.
            control: what acts besides, as for ``simulate``, from q, v and p alone; p has the model's parameters first.
            rules: which of the model's passive forces act, as for ``simulate``.
        """
        dt = checked_dt(dt)
        check_on_host("sensitivity runs", q0, v0, tau, p)
        acting, p = self._acting(control, rules, None, p), self._own(control, p)
        if acting is not None:
            acting.refuse_memory("sensitivity")
        forces = np.asarray(tau, float)
        if forces.ndim < 2 or forces.shape[-1] != self.nv:
            raise InputError(
                "tau of sensitivity has the wrong shape", got=str(forces.shape), allowed=f"(steps, ..., {self.nv})"
            )
        n, n_p = self.nv, self._parameter_count
        batch = np.broadcast_shapes(np.shape(q0)[:-1], np.shape(v0)[:-1], forces.shape[1:-1])
        q = np.broadcast_to(np.asarray(q0, float), (*batch, self.nq))
        v = np.broadcast_to(np.asarray(v0, float), (*batch, n))
        whole = np.zeros((*batch, 2 * n, 2 * n + n_p))
        whole[..., : 2 * n] = np.eye(2 * n)
        motion = HeldMotion("sensitivity", self._whole, p, threads, acting)
        motion.refuse_clocks()
        self.constraints.check(q, v, p=p)
        q, v = motion.closed(q, v)
        whole = motion.closed_change(q, v, whole)
        qs, vs, changes = [q], [v], [whole]
        for force in forces:
            q, v, whole = motion.changed(q, v, np.broadcast_to(force, v.shape), dt, whole)
            qs.append(q)
            vs.append(v)
            changes.append(whole)
        refuse_touching(self._whole, "sensitivity", np.stack(qs), p)
        stacked = np.stack(changes)
        t = dt * np.arange(len(qs))
        return Sensitivity(t, np.stack(qs), np.stack(vs), stacked[..., : 2 * n], stacked[..., 2 * n :])
