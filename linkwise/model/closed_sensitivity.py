"""How the motion of a closed mechanism depends on its start, on forces and on run-time parameters.

The motion itself: steps of the classical Runge–Kutta method of half the time step, states and stages put on the
closures. Along it the linear equations

    δq' = δv - [v, δq],    δv' = ∂v̇/∂q δq + ∂v̇/∂v δv + ∂v̇/∂τ δτ + ∂v̇/∂p δp

are integrated by the same method, whose four evaluations then all lie on closed states: nothing is asked of the
accelerations off the closures, where redundant equations contradict each other. After each step a change is taken to
what the closures allow, as the state is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError
from linkwise.model.null_space import NullSpace
from linkwise.spatial.runge_kutta import RK4

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.model.passive_forces import Acting

Array = NDArray[Any]


class ClosedMotion:
    """A model with closures, run-time parameters p, joint forces that are held for a step, and what acts besides."""

    def __init__(self, model: Model, p: Any, threads: int | None, acting: Acting | None = None) -> None:
        if any(c.type.time_dependent for c in model.closures):
            raise InputError(
                "sensitivity is for closures that do not depend on time",
                got=", ".join(repr(c.name) for c in model.closures if c.type.time_dependent),
                do="leave the prescribed motion out, or take differences of simulations",
            )
        self.model, self.n, self.acting = model, model.nv, acting
        self.given = {"p": p, "threads": threads}
        self.p = model.nominal_parameters if p is None else p

    def closed(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state put on the closures, where it is nearly."""
        for _ in range(2):
            q = self.model.project_configuration(q, **self.given)
        return q, self.model.project_velocity(q, v, **self.given)

    def closed_change(self, q: Array, v: Array, change: Array) -> Array:
        """Of changes (..., 2 nv, k + np) at a closed state, the last columns those with p, what the closures allow."""
        n, model = self.n, self.model
        whole = model.constraint_jacobian(q, v=v, **self.given)
        places = whole[..., model._place_rows, :]
        M = model.mass_matrix(q, **self.given)
        dq, dv = change[..., :n, :], change[..., n:, :]
        dq = dq - self._across(M, places, places @ dq + self._by_p("closure_error", change, q))
        turning = model._derivative("closure_rate", "q", q, v, t=None, p=self.given["p"])
        opened = whole @ dv + turning @ dq + self._by_p("closure_rate", change, q, v)
        return np.concatenate([dq, dv - self._across(M, whole, opened)], axis=-2)

    def step(self, q: Array, v: Array, tau: Array, dt: float, change: Array) -> tuple[Array, Array, Array]:
        """The state after a step in which τ is held, and changes that come with it."""
        begin = self._rates(q, v, tau)
        q, v = self._moved(q, v, tau, dt / 2.0)
        middle = self._rates(q, v, tau)
        q, v = self._moved(q, v, tau, dt / 2.0)
        end = self._rates(q, v, tau)

        def rate(systems: tuple[Array, Array], x: Array) -> Array:
            A, by_p = systems
            found = A @ x
            found[..., x.shape[-1] - by_p.shape[-1] :] += by_p
            return found

        first = rate(begin, change)
        second = rate(middle, change + first * (dt / 2.0))
        third = rate(middle, change + second * (dt / 2.0))
        fourth = rate(end, change + third * dt)
        change = change + (first + 2.0 * (second + third) + fourth) * (dt / 6.0)
        return q, v, self.closed_change(q, v, change)

    def _rates(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """A (..., 2 nv, 2 nv), and what a change of p adds to the rates (..., 2 nv, np)."""
        model, acting = self.model, self.acting
        lin, by_p = model._linearized_with_parameters(q, v, self._forces(q, v, tau), **self.given)
        if acting is not None:
            lin = acting.added(lin, q, v)
            by_p = by_p + lin.dtau @ acting.by_parameters(q, v) if by_p.shape[-1] else by_p
        A, _ = model._rates(lin, v)
        return A, np.concatenate([np.zeros_like(by_p), by_p], axis=-2)

    def _forces(self, q: Array, v: Array, tau: Array) -> Array:
        return tau if self.acting is None else tau + self.acting.force(q, v)

    def _moved(self, q: Array, v: Array, tau: Array, dt: float) -> tuple[Array, Array]:
        """One step of the motion, in the tangent space at its start."""
        n, model = self.n, self.model
        nothing = np.zeros((*v.shape, 0))

        def rates(z: Array) -> Array:
            here, speed = self.closed(model.integrate(q, z[..., :n]), z[..., n:])
            turned, _ = model._tangent_rate(z[..., :n], nothing, speed, nothing)
            vdot = model.forward_dynamics(here, speed, self._forces(here, speed, tau), **self.given)
            return np.concatenate([turned, vdot], axis=-1)

        z = RK4.step(rates, np.concatenate([np.zeros_like(v), v], axis=-1), dt)
        return self.closed(model.integrate(q, z[..., :n]), z[..., n:])

    def _by_p(self, name: str, change: Array, *state: Array) -> Array:
        """What a change of p itself changes, beside the columns that have none."""
        if not len(self.model.nominal_parameters):
            return np.zeros((1, 1))
        by_p = self.model._derivative(name, "p", *state, t=None, p=self.given["p"])
        before = np.zeros((*by_p.shape[:-1], change.shape[-1] - by_p.shape[-1]))
        return np.concatenate([before, by_p], axis=-1)

    @staticmethod
    def _across(M: Array, J: Array, gamma: Array) -> Array:
        """The least change, in kinetic energy, that J takes to γ."""
        gamma = np.broadcast_to(gamma, (*gamma.shape[:-2], J.shape[-2], gamma.shape[-1]))
        return NullSpace(M, J).solve(np.zeros((*M.shape[:-1], gamma.shape[-1])), gamma)[0]
