"""A symplectic integrator: the variational midpoint rule.

The discrete Lagrangian is h L(q_m, w), with w the mean velocity of the step and q_m its middle. Where q̇ = v its
Euler–Lagrange equations are the implicit midpoint rule for q and the momentum π = 𝓜(q) v:

    𝓜(q_m) w = π + (h/2) F,   q_m = q + (h/2) w,   F = Cᵀ(q_m, w) w - g(q_m) + τ,
    q₁ = q + h w,             π₁ = π + h F,

since ∂L/∂q = Cᵀv - g for the C with 𝓜̇ - 2C skew. With quaternion joints q_m = q ∘ exp(h w/2) and q₁ = q ∘ exp(h w), and
the two momenta are the derivatives of the discrete Lagrangian with respect to the ends of the step, π = -D₁ and
π₁ = D₂: ∂L/∂q and ∂L/∂v in the middle, times how middle and length of the step change with its ends, joint by joint.

What flies goes straight on while it turns: w is written in the axes of the step's start and carried along to the middle
(:meth:`linkwise.joints.base.Joint.carried`). So turning and flying do not mix, however fast a body flies; along screws
q ∘ exp(h w) a body would turn as if its inertia were larger by m (hv)²/12, and no iteration for w would converge.

Rotors (armature J) are not in that Lagrangian: they turn with the joint and feel nothing else, J v̇ with no gyroscopic
force, which no kinetic energy ½ v*J v gives where q̇ ≠ v. They add J w to both momenta, as the midpoint rule does; the
method then is symmetric, and symplectic only where q̇ = v or the rotors of a ball joint are alike.

Closures add J_c*(q)λ to the momentum at the step's start, with the λ for which its end is closed; the momentum there is
then projected, like every velocity of a closed mechanism (:mod:`linkwise.sim.closed_steps`). This is RATTLE (Andersen
1983), symplectic on the manifold. Constraints between rates have no such form.

Across a singular configuration that does not converge, or ends on another branch, since a row of J_c that is lost on
the way has one sign at the step's start and the other at its end. Such a step is made again by an explicit method
(:mod:`linkwise.sim.closed_steps`), which is not symplectic: the energy may change a little at each such passage.

Second order, symmetric, symplectic: without losses the energy error oscillates and does not grow, and the momenta of
symmetries are kept. w is found by iteration to rounding, with 𝓜(q_m) for its matrix, which converges fast for h well
below the period of the fastest oscillation; where it does not converge the state becomes NaN, and the simulation says
so. Where bodies deform the matrix is 𝓜 + ½hD + ¼h²K, so that modes may be faster than the step: they then are kept, but
slower than they should be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.joints import Joint
from linkwise.sim.chart import Instant
from linkwise.sim.limits import is_linear
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.rosenbrock import add_elasticity, factorized
from linkwise.sim.rosenbrock import solved as solution
from linkwise.sim.work import StepStatements, Work, flag
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, either, minus, plus, where
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Copy, WhileAny

_MOST = 40  # iterations
_CLOSE = 1e-15
_FAR = 1e-4  # a last change of the mean velocity, relative, after which a step has failed


class _Midpoint:
    """Texts of a step: w to begin with, a better one, and the state at the end."""

    def __init__(self, motion: EquationsOfMotion) -> None:
        self.m, self.nv, self.nx = motion, motion.nv, motion.flowing
        self.closures = check_closures(motion)

    def frozen(self, y: Flat, t: Flat, h: Flat, p: Flat) -> Flat:
        """Parameters of the whole step, where some vary: those in its middle, as far as its start tells."""
        if not self.m.varying.elements:
            return p
        now = self.m.at(t[0], y, p)
        rates = self.m.element_rates(self.m.in_force(now))
        there = [a + 0.5 * h[0] * b for a, b in zip(now.x[: self.nx], rates, strict=True)]
        middle = self.m.carried(now.q, [0.5 * h[0] * a for a in now.v])
        return self.m.in_force(Instant(t[0] + 0.5 * h[0], middle, now.v, [*there, *self.m.kept(y)], p)).p

    def begin(self, y: Flat, t: Flat, h: Flat, p: Flat) -> NamedNumbers:
        p = self.frozen(y, t, h, p)
        q, v, x = self.m.parts(y)
        momentum = list(self.m.model.mass_product(objects(q), objects(v), p=self.m.model_parameters(p)))
        found = {"momentum": momentum, "w": [*v, *x[: self.nx]], "trials": 0.0, "last": 1e300, "seeking": 1.0}
        return {**found, "hold": [0.0] * self.closures} if self.closures else found

    def held(self, y: Flat, momentum: Flat, t: Flat, p: Flat, hold: Sequence[Flat]) -> Flat:
        """π + J_c*(q)λ."""
        if not hold:
            return momentum
        q, _, x = self.m.parts(y)
        return plus(momentum, self.m.closure_push(t[0], q, x, p, hold[0]))

    def ends(
        self, y: Flat, w: Flat, t: Flat, h: Flat, p: Flat
    ) -> tuple[Sequence[Scalar], Sequence[Scalar], Sequence[Scalar]]:
        """q_m, and the momenta at the step's start and end less π: what w must bring to zero, and what it adds."""
        q, _, _ = self.m.parts(y)
        middle = self.middle(y, w, t, h, p)
        tau, _ = self.m.all_forces(middle)
        start, end = _ends(self.m, q, middle, w[: self.nv], h[0], tau, self.m.body_forces(middle))
        return middle.q, start, end

    def middle(self, y: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> Instant:
        """The middle of a step with a mean velocity, which is carried along to there."""
        half = [0.5 * h[0] * a for a in w[: self.nv]]
        q_m, rate = self.m.carried(self.m.parts(y)[0], half), self.m.in_axes_after(w[: self.nv], half)
        return Instant(t[0] + 0.5 * h[0], q_m, rate, [*w[self.nv :], *self.m.kept(y)], p)

    def solved(self, q: Flat, momentum: Flat, p: Flat) -> list[Scalar]:
        """𝓜(q)⁻¹ π."""
        return list(self.m.model.mass_solve(objects(q), objects(momentum), p=self.m.model_parameters(p)))

    def missed(self, q: Flat, momentum: Flat, h: Flat, p: Flat) -> list[Scalar]:
        """The error of w that an error of the momentum at the step's start makes."""
        if not self.m.model._is_flexible:
            return self.solved(q, momentum, p)
        A = [list(row) for row in self.m.model.mass_matrix(objects(q), p=self.m.model_parameters(p))]
        add_elasticity(A, self.m, p, 0.25 * h[0] * h[0], 0.5 * h[0])
        return solution(factorized(A), momentum)

    def own_rates(self, y: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> list[Scalar]:
        return self.m.element_rates(self.middle(y, w, t, h, p))

    def closing(
        self, y: Flat, q_m: Flat, rate: list[Scalar], t: Flat, h: Flat, p: Flat
    ) -> tuple[list[Scalar], Sequence[Scalar]]:
        """The mean velocity whose step ends closed, and what λ changes by: a step of Newton's method, J_c of q_m."""
        q, _, x = self.m.parts(y)
        e = self.m.closure_gap(t[0] + h[0], self.m.carried(q, [h[0] * a for a in rate]), x, p)
        middle = t[0] + 0.5 * h[0]
        more = self.m.correction(middle, q_m, x, p, [-(a / h[0]) for a in e])
        change = self.solved(q_m, self.m.closure_push(middle, q_m, x, p, more), p)
        return plus(rate, change), more

    def improve(
        self,
        y: Flat,
        momentum: Flat,
        w: Flat,
        t: Flat,
        h: Flat,
        p: Flat,
        trials: Flat,
        last: Flat,
        seeking: Flat,
        *hold: Flat,
    ) -> NamedNumbers:
        """The next w, with a better mean velocity, and whether to go on."""
        p = self.frozen(y, t, h, p)
        q_m, start, _ = self.ends(y, w, t, h, p)
        missing = self.missed(q_m, minus(self.held(y, momentum, t, p, hold), start), h, p)
        better = plus(w[: self.nv], missing)
        more: Sequence[Scalar] = []
        if hold:
            better, more = self.closing(y, q_m, better, t, h, p)
        half = 0.5 * h[0]
        x, xdot = self.m.parts(y)[2][: self.nx], self.own_rates(y, w, t, h, p)
        better = list(self.m.stored([*better, *(a + half * b for a, b in zip(x, xdot, strict=True))]))
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
        found = {
            "w_new": either(seeks, better, w),
            "trials_new": trials[0] + 1.0,
            "last_new": where(seeks, change, last[0]),
            "seeking_new": flag(seeks & far & useful & (trials[0] < float(_MOST))),
        }
        if hold:
            found["hold_new"] = [where(seeks, a + b, a) for a, b in zip(hold[0], more, strict=True)]
        return found

    @staticmethod
    def is_found(w: Flat, last: Flat) -> Scalar:
        """Whether an iteration has come to its end, on numbers."""
        size: Scalar = 1.0
        total: Scalar = 0.0
        for a in w:
            size = where(abs(a) > size, abs(a), size)
            total = total + abs(a)
        return (last[0] < _FAR * size) & (total < 1e300)  # which what is no number is not

    def close(
        self, y: Flat, momentum: Flat, w: Flat, t: Flat, h: Flat, p: Flat, last: Flat, *hold: Flat
    ) -> NamedNumbers:
        p = self.frozen(y, t, h, p)
        _, start, end = self.ends(y, w, t, h, p)
        q, _, x = self.m.parts(y)
        q_new = self.m.carried(q, [h[0] * a for a in w[: self.nv]])
        # What the iteration left open goes to the end, so that no momentum is lost.
        left = minus(self.held(y, momentum, t, p, hold), start)
        after = plus(end, left)
        x_new = [a + h[0] * b for a, b in zip(x[: self.nx], self.own_rates(y, w, t, h, p), strict=True)]
        found = self.is_found(w, last)
        y_new = [*q_new, *self.solved(q_new, after, p), *x_new]
        return {"y_new": [*(where(found, a, math.nan) for a in y_new), *self.m.kept(y)]}


def variational(work: Work) -> StepStatements:
    """One step of the variational midpoint rule."""
    m, texts = work.motion, _Midpoint(work.motion)
    extra = {"hold": texts.closures} if texts.closures else {}
    sizes = {"y": m.ny, "momentum": m.nv, "w": m.nv + m.flowing, "t": 1, "h": 1, "p": m.np}
    start = work.call(program("momentum", texts.begin, {"y": m.ny, "t": 1, "h": 1, "p": m.np}))
    improve = program("improve", texts.improve, {**sizes, "trials": 1, "last": 1, "seeking": 1, **extra})
    found = [Copy(f"{name}_new", name) for name in ("w", "trials", "last", "seeking", *extra)]
    end = work.call(program("close", texts.close, {**sizes, "last": 1, **extra}))
    return StepStatements(start, (WhileAny("seeking", (*work.call(improve), *found)), *end))


def check_closures(m: EquationsOfMotion) -> int:
    """Number of equations of closures; refuses what the method cannot keep."""
    closures = m.model.closures
    for closure in closures:
        if closure.type.rate_equations:
            raise InputError(
                'the method "variational" cannot keep constraints between rates',
                got=f"closure {closure.name!r}: {', '.join(closure.type.rate_equations)}",
                do="another method: rk4, dop853, rodas4",
            )
    if closures and not m.projects:
        raise InputError(
            'the method "variational" keeps closures itself',
            got="another stabilization",
            allowed='stabilization="projection"',
        )
    return sum(len(closure.type.equations) for closure in closures)


def _ends(
    m: EquationsOfMotion, q: Flat, at: Instant, w: Flat, h: Scalar, tau: Flat, outside: Array | None
) -> tuple[list[Scalar], list[Scalar]]:
    """-D₁ and D₂ of the bodies' discrete Lagrangian, each with the rotors' momentum and half of the forces' impulse."""
    q_m, rate, p = at.q, at.v, at.p
    model, own = m.model, m.model_parameters(p)
    middle = model.mass_product(objects(q_m), objects(rate), p=own)
    bodies = [a - J * b for a, J, b in zip(middle, m.rotor_inertias(p), rate, strict=True)]
    slope = _slope(m, q_m, rate, bodies, p)
    pushed = list(tau)
    if outside is not None:
        held = model.external_force(objects(q_m), outside, p=own)
        pushed = plus(tau, held)
    start: list[Scalar] = [0.0] * m.nv
    end: list[Scalar] = [0.0] * m.nv
    for joint in m._own_joints:
        part = joint.v_slice
        by_start, by_end = _nudged(joint.type, q[joint.q_slice], q_m[joint.q_slice], [h * a for a in w[part]])
        for i in range(joint.nv):
            k = part.start + i
            spin, impulse = middle[k] - bodies[k], 0.5 * h * pushed[k]
            start[k] = spin - impulse - _work(by_start[i], slope[part], bodies[part], h)
            end[k] = spin + impulse + _work(by_end[i], slope[part], bodies[part], h)
    return start, end


Nudge = tuple[list[Scalar], list[Scalar]]
"""Changes of the middle of a joint's step, and of the step, when one of its ends moves a little."""


def _work(nudge: Nudge, slope: Flat, momentum: Flat, h: Scalar) -> Scalar:
    """Gain of the discrete Lagrangian: h ∂L/∂q · (change of the middle) + π · (change of the step)."""
    total: Scalar = 0.0
    for moved, longer, force, pi in zip(*nudge, slope, momentum, strict=True):
        total = total + (h * force) * moved + pi * longer
    return total


def _nudged(kind: Joint, first: Flat, middle: Flat, turn: Flat) -> tuple[list[Nudge], list[Nudge]]:
    """For each freedom of a joint, what nudging its start does and what nudging its end does."""
    units = [[1.0 if i == j else 0.0 for i in range(kind.nv)] for j in range(kind.nv)]
    if is_linear(kind):
        halves = [[0.5 * x for x in unit] for unit in units]
        at_start = [(half, [-x for x in unit]) for half, unit in zip(halves, units, strict=True)]
        return at_start, list(zip(halves, units, strict=True))
    last = kind.carry(first, turn)

    def between(start: Flat, end: Flat) -> list[Scalar]:
        """How far the middle between two ends is from that of the step, and h times the velocity there."""
        way = kind.carry_way(start, end)
        half = [0.5 * x for x in way]
        return [*kind.difference(middle, kind.carry(start, half)), *kind.carried(way, half)]

    def from_start(e: Flat) -> Flat:
        return between(kind.integrate(first, e), last)

    def from_end(e: Flat) -> Flat:
        return between(first, kind.integrate(last, e))

    changes = ([derivative(f, [0.0] * kind.nv, unit)[1] for unit in units] for f in (from_start, from_end))
    by_start, by_end = ([(d[: kind.nv], d[kind.nv :]) for d in side] for side in changes)
    return by_start, by_end


def _slope(m: EquationsOfMotion, q: Flat, v: Flat, momentum: Flat, p: Flat) -> list[Scalar]:
    """∂L/∂q of the bodies, in the tangent space: 𝓜̇ v - ad*(v) π - b(q, v), with b the bias force.

    Lagrange's equations read backwards: (𝓜 v)˙ = ad*(v) π + ∂L/∂q where nothing acts, and 𝓜 v̇ + b = 0.
    """
    model, own = m.model, m.model_parameters(p)
    bias = model.bias_force(objects(q), objects(v), p=own)

    def product(e: Flat) -> Flat:
        there = m.moved(q, [e[0] * a for a in v])
        return list(model.mass_product(objects(there), objects(v), p=own))

    total = minus(derivative(product, [0.0], [1.0])[1], bias)
    for i, j, k, c in m.structure_constants:
        total[k] = total[k] - c * momentum[i] * v[j]
    return total
