"""A symplectic integrator: the variational midpoint rule.

The discrete Lagrangian is h L(q + h w/2, w), with w the mean velocity of the step. Its Euler–Lagrange equations are the
implicit midpoint rule for q and the momentum π = 𝓜(q) v:

    𝓜(q_m) w = π + (h/2) F,   q_m = q + (h/2) w,   F = Cᵀ(q_m, w) w - g(q_m) + τ,
    q₁ = q + h w,             π₁ = π + h F,

since ∂L/∂q = Cᵀv - g for the C with 𝓜̇ - 2C skew. Second order, symmetric, symplectic: without losses the energy error
oscillates and does not grow, and the momenta of symmetries are kept. w is found by iteration to rounding, which
converges fast for h well below the period of the fastest oscillation.
"""

from __future__ import annotations

from typing import Any

from linkwise.codegen.routine import Copy, Statement, WhileAny
from linkwise.errors import InputError
from linkwise.sim.motion import Flat, Motion, is_linear, objects
from linkwise.sim.stepping import Step, Work, flag, program
from linkwise.spatial.scalar import Scalar, where

_MOST = 40  # iterations
_CLOSE = 1e-15


def variational(work: Work) -> Step:
    """One step of the variational midpoint rule, for joints with q̇ = v."""
    m = work.motion
    turning = [joint.name for joint in m._own_joints if not is_linear(joint.type)]
    if turning:
        raise InputError(
            "the variational method takes joints with q̇ = v only",
            got=f"{', '.join(turning)} in {m.model.name!r}",
            allowed="revolute, prismatic, helical, cylindrical, universal joints",
            do='use method="rk4" or "dop853"',
        )
    nv, nx = m.nv, m.nx

    def begin(y: Flat, p: Flat) -> dict[str, Any]:
        q, v, x = m.parts(y)
        return {"momentum": _momentum(m, q, v, p), "w": [*v, *x], "trials": 0.0, "last": 1e300, "seeking": 1.0}

    def middle(y: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """q_m, F and ẋ."""
        q, _, _ = m.parts(y)
        half = 0.5 * h[0]
        q_m = [a + half * b for a, b in zip(q, w[:nv], strict=True)]
        rate, x_m = list(w[:nv]), list(w[nv:])
        time = t[0] + half
        active, passive = m.joint_forces(time, q_m, rate, x_m, p)
        losses = m.joint_losses(q_m, rate)
        own = m.model_parameters(p)
        C = m.model.coriolis_matrix(objects(q_m), objects(rate), p=own)
        outside = m.body_forces(time, q_m, rate, x_m, p)
        still = m.model.bias_force(objects(q_m), objects([0.0] * nv), outside, p=own)
        force = []
        for i in range(nv):
            total = active[i] + passive[i] + losses[i] - still[i]
            for j in range(nv):
                total = total + C[j, i] * rate[j]
            force.append(total)
        return q_m, force, m.element_rates(time, q_m, rate, x_m, p)

    def improve(
        y: Flat, momentum: Flat, w: Flat, t: Flat, h: Flat, p: Flat, trials: Flat, last: Flat
    ) -> dict[str, Any]:
        q_m, force, xdot = middle(y, w, t, h, p)
        half = 0.5 * h[0]
        rate = _velocity(m, q_m, [a + half * f for a, f in zip(momentum, force, strict=True)], p)
        x = m.parts(y)[2]
        better = [*rate, *(a + half * b for a, b in zip(x, xdot, strict=True))]
        change: Scalar = 0.0
        size: Scalar = 1.0
        for a, b in zip(better, w, strict=True):
            step = abs(a - b)
            change = where(step > change, step, change)
            size = where(abs(a) > size, abs(a), size)
        far = change > _CLOSE * size
        # At rounding the changes stop shrinking; before that they must.
        useful = (change < last[0]) | (change > 1e-10 * size)
        return {
            "w_new": better,
            "trials_new": trials[0] + 1.0,
            "last_new": change,
            "seeking": flag(far & useful & (trials[0] < float(_MOST))),
        }

    def close(y: Flat, momentum: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> dict[str, Any]:
        _, force, xdot = middle(y, w, t, h, p)
        q, _, x = m.parts(y)
        q_new = [a + h[0] * b for a, b in zip(q, w[:nv], strict=True)]
        after = [a + h[0] * f for a, f in zip(momentum, force, strict=True)]
        x_new = [a + h[0] * b for a, b in zip(x, xdot, strict=True)]
        return {"y_new": [*q_new, *_velocity(m, q_new, after, p), *x_new]}

    sizes = {"y": m.ny, "momentum": nv, "w": nv + nx, "t": 1, "h": 1, "p": m.np}
    improving = work.call(program("improve", improve, {**sizes, "trials": 1, "last": 1}))
    loop: tuple[Statement, ...] = (
        improving,
        Copy("w_new", "w"),
        Copy("trials_new", "trials"),
        Copy("last_new", "last"),
    )
    return Step(
        (work.call(program("momentum", begin, {"y": m.ny, "p": m.np})),),
        (WhileAny("seeking", loop), work.call(program("close", close, sizes))),
    )


def _momentum(m: Motion, q: Flat, v: Flat, p: Flat) -> list[Scalar]:
    """𝓜(q) v, by inverse dynamics without velocity."""
    own = m.model_parameters(p)
    pushed = m.model.inverse_dynamics(objects(q), objects([0.0] * m.nv), objects(v), p=own)
    return [a - b for a, b in zip(pushed, m.model.gravity_force(objects(q), p=own), strict=True)]


def _velocity(m: Motion, q: Flat, momentum: Flat, p: Flat) -> list[Scalar]:
    """𝓜(q)⁻¹ π, by forward dynamics without velocity."""
    own = m.model_parameters(p)
    weight = m.model.gravity_force(objects(q), p=own)
    tau = [a + b for a, b in zip(momentum, weight, strict=True)]
    return list(m.model.forward_dynamics(objects(q), objects([0.0] * m.nv), objects(tau), p=own))
