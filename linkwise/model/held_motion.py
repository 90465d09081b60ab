"""The motion of a model while joint forces are held, and how it changes with its start, the forces and parameters.

States go by steps of the classical Runge–Kutta method in the tangent space at the start of each (Munthe-Kaas); stages
and states of a model with closures are put on these. Changes go along in three ways:

* :meth:`HeldMotion.changed` without closures differentiates each step exactly.
* With closures it integrates δq' = δv - [v, δq], δv' = ∂v̇/∂q δq + ∂v̇/∂v δv + ∂v̇/∂p δp by the same method along two
  half steps of the motion, whose four evaluations then all lie on closed states: nothing is asked of the accelerations
  off the closures, where redundant equations contradict each other. After each step a change is taken to what the
  closures allow, as the state is.
* :meth:`HeldMotion.transition` solves the same equations by Magnus' series of order four (Blanes, Casas, Oteo and Ros
  2009): the exponential of a mean of [A, B; 0, 0] over each step, with the commutator of its ends. Where the motion is
  at rest A is constant, and the exponential alone is the answer, however long the step; elsewhere steps are short
  against the times in which A can change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.array_types import Array, MaybeArray
from linkwise.errors import InputError
from linkwise.model.linearization import Driven
from linkwise.model.null_space import NullSpace
from linkwise.spatial.runge_kutta import RK4

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.model.passive_forces import Acting


_AT_REST = 1e-12  # rad or m: a motion over the whole time that is none
_STEP = 0.05  # of a step, in units of the fastest time constant: leaves some 1e-9 of the answer as error
_MOST = 100_000  # steps

Rate = Callable[[Array, Array], Array]
"""Acceleration (nv) of q and v."""


class HeldMotion:
    """A model with run-time parameters p, and what acts besides joint forces that are held.

    ``t`` is the time of a state at rest; motions with closures that depend on time are refused, as ``what``.
    """

    def __init__(
        self, what: str, model: Model, p: MaybeArray, threads: int | None, acting: Acting | None, t: MaybeArray = None
    ) -> None:
        self.what, self.model, self.n, self.acting, self.t = what, model, model.nv, acting, t
        self.given: dict[str, Any] = {"p": p, "threads": threads}

    def refuse_clocks(self) -> None:
        """Raise InputError where closures depend on time."""
        clocks = [repr(c.name) for c in self.model.closures if c.type.time_dependent]
        if clocks:
            raise InputError(
                f"{self.what} is for closures that do not depend on time",
                got=", ".join(clocks),
                do="leave the prescribed motion out, or take differences of simulations",
            )

    # States.
    def closed(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state put on the closures, where it is nearly."""
        if not self.model.closures:
            return q, v
        for _ in range(2):
            q = self.model.constraints.project_configuration(q, **self.given)
        return q, self.model.constraints.project_velocity(q, v, **self.given)

    def step(self, q: Array, v: Array, tau: Array, dt: float) -> tuple[Array, Array]:
        """The state a short time later."""
        n, model, acting = self.n, self.model, self.acting
        nothing = np.zeros((*v.shape, 0))

        def rates(z: Array) -> Array:
            here, speed = self.closed(model.integrate(q, z[..., :n]), z[..., n:])
            turned, _ = model._tangent_rate(z[..., :n], nothing, speed, nothing)
            forces = tau if acting is None else tau + acting.force(here, speed)
            return np.concatenate([turned, model.forward_dynamics(here, speed, forces, **self.given)], axis=-1)

        z = RK4.step(rates, np.concatenate([np.zeros_like(v), v], axis=-1), dt)
        return self.closed(model.integrate(q, z[..., :n]), z[..., n:])

    # Changes.
    def closed_change(self, q: Array, v: Array, change: Array) -> Array:
        """Of changes (..., 2 nv, k + np) at a closed state, the last columns those with p, what the closures allow."""
        n, model = self.n, self.model
        if not model.closures:
            return change
        whole = model.constraints.jacobian(q, v=v, **self.given)
        places = whole[..., model._place_rows, :]
        M = model.mass_matrix(q, **self.given)
        dq, dv = change[..., :n, :], change[..., n:, :]
        dq = dq - _across(M, places, places @ dq + self._by_p("closure_error", change, q))
        turning = model._derivative("closure_rate", "q", q, v, t=None, p=self.given["p"])
        opened = whole @ dv + turning @ dq + self._by_p("closure_rate", change, q, v)
        return np.concatenate([dq, dv - _across(M, whole, opened)], axis=-2)

    def changed(self, q: Array, v: Array, tau: Array, dt: float, change: Array) -> tuple[Array, Array, Array]:
        """The state after a step, and changes (..., 2 nv, k + np) that come with it, the last columns those with p."""
        if not self.model.closures:
            q, v, by_state, by_p = self._differentiated(q, v, tau, dt)
            return q, v, _with_p(by_state @ change, by_p)
        begin = self._rates(q, v, tau, by_p=True)
        q, v = self.step(q, v, tau, dt / 2.0)
        middle = self._rates(q, v, tau, by_p=True)
        q, v = self.step(q, v, tau, dt / 2.0)
        stages = iter((begin, middle, middle, self._rates(q, v, tau, by_p=True)))

        def rate(x: Array) -> Array:
            A, _, by_p = next(stages)
            return _with_p(A @ x, by_p)

        return q, v, self.closed_change(q, v, RK4.step(rate, change, dt))

    def transition(self, q: Array, v: Array, tau: Array, dt: float) -> tuple[Array, Array]:
        """∂x(dt)/∂x (..., 2 nv, 2 nv) and ∂x(dt)/∂τ (..., 2 nv, nv) for x = [q; v] in the tangent space."""
        n, model = self.n, self.model
        vdot = model._linearized_acting(Driven(q, v, tau, t=self.t, **self.given), self.acting)[0].vdot
        # A state that is not a number must not decide on the steps of the others: a state of rest takes its place.
        known = (np.isfinite(vdot) & np.isfinite(v)).all(axis=-1, keepdims=True)
        q = np.where(known, q, model.neutral())
        v, tau, vdot = (np.where(known, x, 0.0) for x in (v, tau, vdot))
        before = self._augmented(q, v, tau)
        change = np.broadcast_to(np.eye(3 * n), before.shape)
        steps = _steps(before, v, vdot, dt) if change.size else 0
        if change.size and not steps:
            change = _exponential(dt * before)
        if steps:
            self.refuse_clocks()
        for _ in range(steps):
            h = dt / steps
            q, v = self.step(q, v, tau, h / 2)
            middle = self._augmented(q, v, tau)
            q, v = self.step(q, v, tau, h / 2)
            after = self._augmented(q, v, tau)
            mean, turning = (before + 4.0 * middle + after) / 6.0, (before @ after - after @ before) / 12.0
            change = _exponential(h * (mean - h * turning)) @ change
            before = after
        change = np.where(known[..., None], change[..., : 2 * n, :], np.nan)
        return change[..., : 2 * n], change[..., 2 * n :]

    def _rates(self, q: Array, v: Array, tau: Array, *, by_p: bool = False) -> tuple[Array, Array, Array]:
        """A (..., 2 nv, 2 nv), B (..., 2 nv, nv), and what a change of p adds to the rates (..., 2 nv, np)."""
        at = Driven(q, v, tau, t=self.t, **self.given)
        lin, of_p = self.model._linearized_acting(at, self.acting, by_p=by_p)
        A, B = self.model._rates(lin, v)
        return A, B, np.concatenate([np.zeros_like(of_p), of_p], axis=-2)

    def _augmented(self, q: Array, v: Array, tau: Array) -> Array:
        """The matrix [A, B; 0, 0]: forces that stay as they are, beside the state."""
        A, B, _ = self._rates(q, v, tau)
        n = self.n
        whole = np.zeros((*A.shape[:-2], 3 * n, 3 * n))
        whole[..., : 2 * n, : 2 * n], whole[..., : 2 * n, 2 * n :] = A, B
        return whole

    def _differentiated(self, q: Array, v: Array, tau: Array, dt: float) -> tuple[Array, Array, Array, Array]:
        """The state after a step without closures, and its change with q and v (..., 2 nv, 2 nv) and p.

        θ is where the step has got to in the tangent space at its start, θ' = v + ½[θ, v] + [θ, [θ, v]]/12 + …
        """
        n, model = self.n, self.model
        size = 2 * n + len(model.parameters.nominal)
        eye = np.eye(size)
        d_q = np.broadcast_to(eye[:n], (*v.shape[:-1], n, size))

        # z = [θ; v] in the first column, its change in the others.
        def parts(z: Array) -> tuple[Array, Array, Array, Array]:
            return z[..., :n, 0], z[..., :n, 1:], z[..., n:, 0], z[..., n:, 1:]

        def joined(theta: Array, d_theta: Array, speed: Array, d_speed: Array) -> Array:
            values = np.concatenate([theta, speed], axis=-1)[..., None]
            return np.concatenate([values, np.concatenate([d_theta, d_speed], axis=-2)], axis=-1)

        def rates(z: Array) -> Array:
            theta, d_theta, speed, d_speed = parts(z)
            here, d_here = model._moved(q, d_q, theta, d_theta)
            lin, by_p = model._linearized_acting(Driven(here, speed, tau, **self.given), self.acting, by_p=True)
            d_vdot = _with_p(lin.dq @ d_here + lin.dv @ d_speed, by_p)
            return joined(*model._tangent_rate(theta, d_theta, speed, d_speed), lin.vdot, d_vdot)

        start = joined(np.zeros_like(v), np.zeros_like(d_q), v, np.broadcast_to(eye[n : 2 * n], d_q.shape))
        theta, d_theta, speed, d_speed = parts(RK4.step(rates, start, dt))
        there, d_there = model._moved(q, d_q, theta, d_theta)
        whole = np.concatenate([d_there, d_speed], axis=-2)
        return there, speed, whole[..., : 2 * n], whole[..., 2 * n :]

    def _by_p(self, name: str, change: Array, *state: Array) -> Array:
        """Derivative by p itself, beside the columns that have none."""
        if not len(self.model.parameters.nominal):
            return np.zeros((1, 1))
        by_p = self.model._derivative(name, "p", *state, t=None, p=self.given["p"])
        before = np.zeros((*by_p.shape[:-1], change.shape[-1] - by_p.shape[-1]))
        return np.concatenate([before, by_p], axis=-1)


def _with_p(change: Array, by_p: Array) -> Array:
    """Changes whose last columns, those with p, get what p adds."""
    change[..., change.shape[-1] - by_p.shape[-1] :] += by_p
    return change


def _across(M: Array, J: Array, gamma: Array) -> Array:
    """The least change, in kinetic energy, that J takes to γ."""
    gamma = np.broadcast_to(gamma, (*gamma.shape[:-2], J.shape[-2], gamma.shape[-1]))
    return NullSpace(M, J).solve(np.zeros((*M.shape[:-1], gamma.shape[-1])), gamma)[0]


def _steps(rates: Array, v: Array, vdot: Array, dt: float) -> int:
    """Number of steps that the fastest of some states needs; none at rest."""
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


def one_step(
    model: Model,
    rate: Callable[[Array, Array], Array],
    q: Array,
    v: Array,
    dt: float,
    *,
    fourth_order: bool,
    **more: Any,
) -> tuple[Array, Array]:
    """State after a step, with closures closed again.

    Args:
        model: the mechanism.
        rate: of the velocity.
        q, v: the state at the beginning, (nq) and (nv).
        dt: length of the step, s.
        fourth_order: the classical Runge–Kutta step along the tangent space of the beginning, of its order where that
            is flat (angles and slides); else an Euler step, speeds first, then positions with the new speeds.
        more: by name, what functions of the model take besides, such as ``p``.
    """
    if fourth_order:
        a1 = rate(q, v)
        v2 = v + 0.5 * dt * a1
        a2 = rate(model.integrate(q, 0.5 * dt * v), v2)
        v3 = v + 0.5 * dt * a2
        a3 = rate(model.integrate(q, 0.5 * dt * v2), v3)
        v4 = v + dt * a3
        a4 = rate(model.integrate(q, dt * v3), v4)
        q = model.integrate(q, (dt / 6.0) * (v + 2.0 * v2 + 2.0 * v3 + v4))
        v = v + (dt / 6.0) * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    else:
        v = v + dt * rate(q, v)
        q = model.integrate(q, dt * v)
    if model.closures:
        q = model.constraints.project_configuration(q, **more)
        v = model.constraints.project_velocity(q, v, **more)
    return q, v
