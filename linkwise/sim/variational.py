"""A symplectic integrator: the variational midpoint rule.

The discrete Lagrangian is h L(q_m, w), with w the mean velocity of the step and q_m its middle. Where q̇ = v its
Euler–Lagrange equations are the implicit midpoint rule for q and the momentum π = 𝓜(q) v:

    𝓜(q_m) w = π + (h/2) F,   q_m = q + (h/2) w,   F = Cᵀ(q_m, w) w - g(q_m) + τ,
    q₁ = q + h w,             π₁ = π + h F,

since ∂L/∂q = Cᵀv - g for the C with 𝓜̇ - 2C skew. With quaternion joints q_m = q ∘ exp(h w/2) and q₁ = q ∘ exp(h w), and
the two momenta are the derivatives of the discrete Lagrangian with respect to the ends of the step, π = -D₁ and
π₁ = D₂, taken by dual numbers; that costs as many energies as there are freedoms.

Rotors (armature J) are not in that Lagrangian: they turn with the joint and feel nothing else, J v̇ with no gyroscopic
force, which no kinetic energy ½ v*J v gives where q̇ ≠ v. They add J w to both momenta, as the midpoint rule does; the
method then is symmetric, and symplectic only where q̇ = v or the rotors of a ball joint are alike.

Second order, symmetric, symplectic: without losses the energy error oscillates and does not grow, and the momenta of
symmetries are kept. w is found by iteration to rounding, which converges fast for h well below the period of the
fastest oscillation; where it does not converge the state becomes NaN, and the simulation says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from linkwise.codegen.routine import Copy, Statement, WhileAny
from linkwise.sim.limits import is_linear
from linkwise.sim.motion import Flat, Motion, objects
from linkwise.sim.work import Step, Work, flag, program
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Scalar, where

_MOST = 40  # iterations
_CLOSE = 1e-15
_FAR = 1e-4  # a last change of the mean velocity, relative, after which a step has failed


def variational(work: Work) -> Step:
    """One step of the variational midpoint rule."""
    m = work.motion
    turning = any(not is_linear(joint.type) for joint in m._own_joints)
    nv, nx = m.nv, m.nx

    def begin(y: Flat, p: Flat) -> dict[str, Any]:
        q, v, x = m.parts(y)
        return {"momentum": _momentum(m, q, v, p), "w": [*v, *x], "trials": 0.0, "last": 1e300, "seeking": 1.0}

    def ends(y: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> tuple[list[Scalar], Sequence[Scalar], Sequence[Scalar]]:
        """q_m, and the momenta at the step's start and end less π: what w must bring to zero, and what it adds."""
        q, _, _ = m.parts(y)
        rate, x_m = list(w[:nv]), list(w[nv:])
        q_m = m.moved(q, [0.5 * h[0] * a for a in rate])
        time = t[0] + 0.5 * h[0]
        active, passive = m.joint_forces(time, q_m, rate, x_m, p)
        losses = m.joint_losses(q_m, rate)
        tau = [a + b + c for a, b, c in zip(active, passive, losses, strict=True)]
        outside = m.body_forces(time, q_m, rate, x_m, p)
        inner = _turning_ends if turning else _linear_ends
        start, end = inner(m, q, q_m, rate, h[0], tau, outside, p)
        return q_m, start, end

    def own_rates(y: Flat, q_m: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> list[Scalar]:
        return m.element_rates(t[0] + 0.5 * h[0], q_m, list(w[:nv]), list(w[nv:]), p)

    def improve(
        y: Flat, momentum: Flat, w: Flat, t: Flat, h: Flat, p: Flat, trials: Flat, last: Flat, seeking: Flat
    ) -> dict[str, Any]:
        q_m, start, _ = ends(y, w, t, h, p)
        half = 0.5 * h[0]
        missing = _velocity(m, q_m, [a - b for a, b in zip(momentum, start, strict=True)], p)
        x, xdot = m.parts(y)[2], own_rates(y, q_m, w, t, h, p)
        better = [a + b for a, b in zip(w[:nv], missing, strict=True)]
        better += [a + half * b for a, b in zip(x, xdot, strict=True)]
        change: Scalar = 0.0
        size: Scalar = 1.0
        for a, b in zip(better, w, strict=True):
            step = abs(a - b)
            change = where(step > change, step, change)
            size = where(abs(a) > size, abs(a), size)
        far = change > _CLOSE * size
        # At rounding the changes stop shrinking; before that they must.
        useful = (change < last[0]) | (change > 1e-10 * size)
        # A state that has found its w keeps it, however long its neighbours in the other lanes go on.
        seeks = seeking[0] > 0.0
        return {
            "w_new": [where(seeks, a, b) for a, b in zip(better, w, strict=True)],
            "trials_new": trials[0] + 1.0,
            "last_new": where(seeks, change, last[0]),
            "seeking_new": flag(seeks & far & useful & (trials[0] < float(_MOST))),
        }

    def close(y: Flat, momentum: Flat, w: Flat, t: Flat, h: Flat, p: Flat, last: Flat) -> dict[str, Any]:
        q_m, start, end = ends(y, w, t, h, p)
        q, _, x = m.parts(y)
        q_new = m.moved(q, [h[0] * a for a in w[:nv]])
        # What the iteration left open goes to the end, so that no momentum is lost.
        after = [c + (a - b) for a, b, c in zip(momentum, start, end, strict=True)]
        x_new = [a + h[0] * b for a, b in zip(x, own_rates(y, q_m, w, t, h, p), strict=True)]
        size: Scalar = 1.0
        for a in w:
            size = where(abs(a) > size, abs(a), size)
        found = last[0] < _FAR * size
        y_new = [*q_new, *_velocity(m, q_new, after, p), *x_new]
        return {"y_new": [where(found, a, math.nan) for a in y_new]}

    sizes = {"y": m.ny, "momentum": nv, "w": nv + nx, "t": 1, "h": 1, "p": m.np}
    improving = work.call(program("improve", improve, {**sizes, "trials": 1, "last": 1, "seeking": 1}))
    loop: tuple[Statement, ...] = (
        *improving,
        Copy("w_new", "w"),
        Copy("trials_new", "trials"),
        Copy("last_new", "last"),
        Copy("seeking_new", "seeking"),
    )
    return Step(
        work.call(program("momentum", begin, {"y": m.ny, "p": m.np})),
        (WhileAny("seeking", loop), *work.call(program("close", close, {**sizes, "last": 1}))),
    )


def _linear_ends(
    m: Motion, q: Flat, q_m: Flat, rate: Flat, h: Scalar, tau: Flat, outside: Any, p: Flat
) -> tuple[list[Scalar], list[Scalar]]:
    """𝓜 w ∓ (h/2) F, for joints with q̇ = v."""
    own = m.model_parameters(p)
    C = m.model.coriolis_matrix(objects(q_m), objects(rate), p=own)
    still = m.model.bias_force(objects(q_m), objects([0.0] * m.nv), outside, p=own)
    middle = _momentum(m, q_m, rate, p)
    start, end = [], []
    for i in range(m.nv):
        force = tau[i] - still[i]
        for j in range(m.nv):
            force = force + C[j, i] * rate[j]
        start.append(middle[i] - 0.5 * h * force)
        end.append(middle[i] + 0.5 * h * force)
    return start, end


def _turning_ends(
    m: Motion, q: Flat, q_m: Flat, rate: Flat, h: Scalar, tau: Flat, outside: Any, p: Flat
) -> tuple[list[Scalar], list[Scalar]]:
    """-D₁ and D₂ of the bodies' discrete Lagrangian, each with the rotors' momentum and half of the forces' impulse."""
    u = [h * a for a in rate]
    rotors = m.rotor_inertias(p)
    pushed = list(tau)
    if outside is not None:  # forces on bodies as joint forces: what they take off the bias force
        still = objects([0.0] * m.nv)
        own = m.model_parameters(p)
        held = m.model.bias_force(objects(q_m), still, p=own) - m.model.bias_force(objects(q_m), still, outside, p=own)
        pushed = [a + b for a, b in zip(pushed, held, strict=True)]

    def lagrangian(joint: Any, first: Flat, turn: Flat) -> Scalar:
        """The bodies' discrete Lagrangian when this joint starts at ``first`` and moves by ``turn``."""
        middle, velocity = list(q_m), list(rate)
        middle[joint.q_slice] = joint.type.integrate(first, [0.5 * a for a in turn])
        velocity[joint.v_slice] = [a / h for a in turn]
        own = m.model_parameters(p)
        kinetic = m.model.kinetic_energy(objects(middle), objects(velocity), p=own)
        for J, a in zip(rotors, velocity, strict=True):
            kinetic = kinetic - 0.5 * J * a * a
        return h * (kinetic - m.model.potential_energy(objects(middle), p=own))

    start: list[Scalar] = [0.0] * m.nv
    end: list[Scalar] = [0.0] * m.nv
    for joint in m._own_joints:
        kind, first, turn = joint.type, q[joint.q_slice], u[joint.v_slice]
        last = kind.integrate(first, turn)
        for i in range(joint.nv):

            def nudge(e: Scalar, i: int = i, size: int = joint.nv) -> list[Scalar]:
                return [e if k == i else 0.0 for k in range(size)]

            def at_start(
                e: Flat, joint: Any = joint, first: Flat = first, last: Flat = last, nudge: Any = nudge
            ) -> Flat:
                moved = joint.type.integrate(first, nudge(e[0]))
                return [lagrangian(joint, moved, joint.type.difference(moved, last))]

            def at_end(e: Flat, joint: Any = joint, first: Flat = first, last: Flat = last, nudge: Any = nudge) -> Flat:
                moved = joint.type.integrate(last, nudge(e[0]))
                return [lagrangian(joint, first, joint.type.difference(first, moved))]

            k = joint.v_slice.start + i
            impulse, spin = 0.5 * h * pushed[k], rotors[k] * rate[k]
            start[k] = -derivative(at_start, [0.0], [1.0])[1][0] + spin - impulse
            end[k] = derivative(at_end, [0.0], [1.0])[1][0] + spin + impulse
    return start, end


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
