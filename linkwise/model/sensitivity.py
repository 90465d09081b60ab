"""How a whole trajectory depends on where it starts, on the forces and on run-time parameters (Jain 1993 §1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.model.held_motion import HeldMotion
from linkwise.model.state_space import StateSpaces, checked_dt
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.sim.motion import JointRules


class Sensitivity(NamedTuple):
    """A trajectory and its derivatives at each of the times t (steps + 1): x = [q; v] in the tangent space.

    ``q`` (steps + 1, ..., nq), ``v`` (steps + 1, ..., nv), ``dx0`` = ∂x(t)/∂x(0) (steps + 1, ..., 2 nv, 2 nv),
    ``dp`` = ∂x(t)/∂p (steps + 1, ..., 2 nv, np).
    """

    t: Any
    q: Any
    v: Any
    dx0: Any
    dp: Any


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
        control: Any = None,
        rules: JointRules | None = None,
    ) -> Sensitivity:
        """How a whole trajectory depends on where it starts, on the forces and on run-time parameters (Jain 1993 §1).

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
        stacked = np.stack(changes)
        t = dt * np.arange(len(qs))
        return Sensitivity(t, np.stack(qs), np.stack(vs), stacked[..., : 2 * n], stacked[..., 2 * n :])
