"""The generalized-α method (Chung and Hulbert 1993), on Lie groups (Arnold and Brüls 2007): for stiff structures.

With w = [v̇, ẋ] and the auxiliary rates a, a step of h ends where

    q₊ = q ∘ exp(h v + h²((½-β) a + β a₊)),    s₊ = s + h((1-γ) a + γ a₊)   of s = [v, x],
    (1-α_m) a₊ + α_m a = (1-α_f) w₊ + α_f w,

and w₊ are the rates there: for trees 𝓜v̇ + b = τ, by inverse dynamics; with closures the accelerations that obey them.
Of second order, implicit: motions much faster than the step neither limit it nor survive in it. The spectral radius ρ
at infinity is the factor that remains of them after a step: 1 keeps them all, 0 removes them at once; slow motions are
hardly damped. The other numbers follow from ρ,

    α_m = (2ρ-1)/(ρ+1),   α_f = ρ/(ρ+1),   β = ¼(1-α_m+α_f)²,   γ = ½-α_m+α_f.

While w grows evenly, a is (α_m-α_f)(w₊-w) ahead of it. So a begins: where nothing is known of the past, and where the
length of the steps changes, a = w + (α_m-α_f)(w₊-w) with the w₊ that is sought, and the step is Newmark's with γ = ½.

w₊ is found by Newton's method. Its matrix, 𝓜 + hγ'D + h²β'K, takes D and K from what is stiff (bodies that deform,
springs, dampers, controls, all that elements exert) and leaves out how inertial forces and weights change, which costs
ten times as much to know and converges hardly faster. Steps that do not converge with it, and models with closures or
of many bodies, take the exact derivative, column by column along unit vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.array_types import Array
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.sim.chart import Instant
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.rosenbrock import PackedFactors, add_elasticity
from linkwise.sim.tableaux import GeneralizedAlpha
from linkwise.sim.work import StepStatements, Work, flag
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Flat, Matrix, NamedNumbers, Scalar, either, is_zero, minus, plus, where
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Copy, IfAny, Seek, Statement, WhileAny, columns
from linkwise.trace.tiles import TiledSystem

_MOST = 20  # iterations with one matrix
_CLOSE = 1e-12  # of the velocities: what may be left when an iteration ends
_ROUGH = 1e-6  # a last change of the velocities, relative, after which a step has failed

_Statements = Sequence[Statement]


class _StepTexts:
    """Texts of a step, over any scalar."""

    def __init__(self, m: EquationsOfMotion, method: GeneralizedAlpha) -> None:
        self.m, self.method = m, method
        self.n = m.nv + m.flowing
        self.by_forces = not m.model.closures

    def goes_on(self, memory: Flat, h: Scalar) -> Scalar:
        """Whether a is that of the last step, and does not begin."""
        return abs(memory[0] - h) <= 1e-6 * h

    def lead(self, memory: Flat, h: Scalar) -> Scalar:
        """Change of a for each w₊: zero, but where it begins."""
        return where(self.goes_on(memory, h), 0.0, self.method.alpha_m - self.method.alpha_f)

    def slopes(self, memory: Flat, h: Scalar) -> tuple[Scalar, Scalar]:
        """β' and γ': what u/h² and s₊/h change by for each w₊."""
        c, lead = self.method, self.lead(memory, h)
        of_a = (1.0 - c.alpha_f - c.alpha_m * lead) / (1.0 - c.alpha_m)
        return (0.5 - c.beta) * lead + c.beta * of_a, (1.0 - c.gamma) * lead + c.gamma * of_a

    def ends(self, y: Flat, memory: Flat, w: Flat, h: Scalar) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """u, s₊ and a₊ for a choice of w₊."""
        nv, n, c = self.m.nv, self.n, self.method
        last, before = memory[1 : 1 + n], memory[1 + n :]
        goes_on, lead = self.goes_on(memory, h), self.lead(memory, h)
        more = minus(w, before)
        a = [where(goes_on, o, b) + lead * x for o, b, x in zip(last, before, more, strict=True)]
        change = [b + (1.0 - c.alpha_f) * x - o for b, x, o in zip(before, more, a, strict=True)]
        a_new = [o + x * (1.0 / (1.0 - c.alpha_m)) for o, x in zip(a, change, strict=True)]
        start = self.m.chart_origin(y)[nv:]
        mean = [(0.5 - c.beta) * o + c.beta * x for o, x in zip(a[:nv], a_new[:nv], strict=True)]
        u = [h * (v + h * x) for v, x in zip(start[:nv], mean, strict=True)]
        s = [b + h * ((1.0 - c.gamma) * o + c.gamma * x) for b, o, x in zip(start, a, a_new, strict=True)]
        return u, s, a_new

    def forces(self, at: Instant) -> tuple[list[Scalar], Array | None, list[Scalar]]:
        """On the joints, on the bodies, and ẋ."""
        at = self.m.in_force(at)
        return self.m.all_forces(at)[0], self.m.body_forces(at), self.m.element_rates(at)

    def missing(self, y: Flat, memory: Flat, w: Flat, t: Scalar, h: Scalar, p: Flat) -> list[Scalar]:
        """Residual that w₊ must bring to zero: forces, of trees; rates, of models with closures."""
        m, nv = self.m, self.m.nv
        u, s, _ = self.ends(y, memory, w, h)
        if not self.by_forces:
            return minus(w, m.rates(y, [*u, *s], t, p)[nv:])
        at = m.in_force(m.at(t, m.from_chart(y, [*u, *s]), p))
        tau, outside, xdot = self.forces(at)
        turned = zip(m.in_axes_after(w[:nv], u), m.axes_rate(at.v), strict=True)
        accelerations = objects([a + b for a, b in turned])
        needed = m.model.inverse_dynamics(
            objects(at.q), objects(at.v), accelerations, f_ext=outside, p=m.model_parameters(at.p)
        )
        lacking = m.in_axes_after(minus(needed, tau), [-a for a in u])
        return [*lacking, *(a - b for a, b in zip(w[nv:], xdot, strict=True))]

    def stiff_part(self, y: Flat, memory: Flat, w: Flat, t: Scalar, h: Scalar, p: Flat) -> Matrix:
        """𝓜 + hγ'D + h²β'K of what is stiff."""
        m, nv, n = self.m, self.m.nv, self.n
        u, s, _ = self.ends(y, memory, w, h)
        at = m.at(t, m.from_chart(y, [*u, *s]), p)
        q, end = at.q, [*at.v, *s[nv:]]
        own = m.model_parameters(m.in_force(at).p)
        of_places, of_rates = self.slopes(memory, h)
        by_place, by_rate = (h * h) * of_places, h * of_rates
        mass = m.model.mass_matrix(objects(q), p=own)
        S: Matrix = [[mass[i, j] if i < nv and j < nv else float(i == j) for j in range(n)] for i in range(n)]

        def acting(e: Flat) -> list[Scalar]:
            moved = m.moved(q, [by_place * x for x in e[:nv]])
            changed = [a + by_rate * x for a, x in zip(end, e, strict=True)]
            tau, outside, xdot = self.forces(Instant(t, moved, changed[:nv], [*changed[nv:], *m.kept(y)], p))
            if outside is not None:
                pushed = m.model.external_force(objects(moved), outside, p=own)
                tau = plus(tau, pushed)
            return [*tau, *xdot]

        for j in range(n):
            change = derivative(acting, [0.0] * n, [float(i == j) for i in range(n)])[1]
            for i, x in enumerate(change):
                if not is_zero(x):
                    S[i][j] = S[i][j] - x
        add_elasticity(S, m, p, by_place, by_rate)
        return S

    def restart(self, memory: Flat, k0: Flat) -> NamedNumbers:
        """The memory of the last step, or one that begins."""
        known = memory[0] > 0.0
        return {"memory_known": either(known, memory, [0.0, *k0[self.m.nv :], *k0[self.m.nv :]])}

    def seek(self, w: Flat, found: Scalar) -> NamedNumbers:
        """The start of an iteration, for the states that have not found their w."""
        counts = {"trials_new": 0.0, "last_new": 1e300, "found_new": found, "seeking_new": 1.0 - found}
        return {"w_new": list(w), **counts}

    def predict(self, memory: Flat, t: Flat, h: Flat) -> NamedNumbers:
        """The first w₊: that of the last step."""
        return {**self.seek(memory[1 + self.n :], 0.0), "t_stage": t[0] + h[0]}

    def update(
        self, y: Flat, w: Flat, x: Flat, h: Flat, trials: Flat, last: Flat, found: Flat, seeking: Flat
    ) -> NamedNumbers:
        """The next w₊, and whether to go on."""
        change: Scalar = 0.0
        scale: Scalar = 1.0
        for a, b in zip(x, self.m.chart_origin(y)[self.m.nv :], strict=True):
            change = change + abs(a)  # not the largest, for a maximum passes over what is not a number
            scale = where(abs(b) > scale, abs(b), scale)
        change = change * (h[0] * self.method.gamma)
        # Each change is θ times the last; what is left after this one is θ/(1-θ) times it, or as much as it at first.
        theta = where(trials[0] > 0.0, change / last[0], 0.5)
        near = change * theta <= (_CLOSE * scale) * (1.0 - theta)
        # At rounding, changes stop shrinking; before that they must shrink.
        stuck = (trials[0] > 1.0) & ~(theta < 0.9)
        seeks = seeking[0] > 0.0
        return {
            "w_new": [where(seeks, a - b, a) for a, b in zip(w, x, strict=True)],
            "trials_new": trials[0] + 1.0,
            "last_new": where(seeks, change, last[0]),
            "found_new": where(seeks, flag(near | (stuck & (change <= _ROUGH * scale))), found[0]),
            "seeking_new": flag(seeks & ~near & ~stuck & (trials[0] < float(_MOST))),
        }

    def again(self, memory: Flat, w: Flat, found: Flat) -> NamedNumbers:
        """The first w₊ once more, for the states that have not found theirs."""
        return self.seek([where(found[0] > 0.0, a, b) for a, b in zip(w, memory[1 + self.n :], strict=True)], found[0])

    def close(self, y: Flat, memory: Flat, w: Flat, h: Flat, found: Flat) -> NamedNumbers:
        """The state at the end, and the memory of this step."""
        u, s, a_new = self.ends(y, memory, w, h[0])
        known = found[0] > 0.0
        y_new = self.m.from_chart(y, [*u, *(where(known, x, math.nan) for x in s)])
        turned = ([*self.m.in_axes_after(each[: self.m.nv], u), *each[self.m.nv :]] for each in (a_new, w))
        return {"y_new": y_new, "memory_new": [h[0], *(x for each in turned for x in each)]}


def generalized_alpha(work: Work, method: GeneralizedAlpha) -> StepStatements:
    """One step of the generalized-α method; ``memory`` is [h, a, w] of the last one, or begins with 0."""
    m = work.motion
    texts = _StepTexts(m, method)
    n, size = texts.n, 1 + 2 * texts.n
    sizes = {"y": m.ny, "memory": size, "w": n, "t_stage": 1, "h": 1, "p": m.np}
    counted = dict.fromkeys(("trials", "last", "found", "seeking"), 1)
    kept = tuple(Copy(f"{name}_new", name) for name in ("w", *counted))

    def missing(y: Flat, memory: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> NamedNumbers:
        return {"right": texts.missing(y, memory, w, t[0], h[0], p)}

    lacking = work.call(program("missing", missing, sizes))
    update = program("update", texts.update, {"y": m.ny, "w": n, "x": n, "h": 1, **counted})
    updating: _Statements = (*work.call(update), *kept)
    exact_factor, exact_solve = _exact(work, texts, sizes)
    if m.model.closures or m.model._rolls:
        factor, solve = exact_factor, exact_solve
    else:
        factor, solve = _stiff(work, texts, sizes)
    fresh = program("fresh", lambda memory: {"fresh": flag(memory[0] <= 0.0)}, {"memory": size})
    restarting = work.call(program("restart", texts.restart, {"memory": size, "k0": m.nz}))
    found_anew: tuple[Statement, ...] = (*work.rates_at("y", "t", "k0"), *restarting, Copy("memory_known", "memory"))
    passed: _Statements = tuple(Seek(curve.name, "t_stage", "p", curve.offset) for curve in m.curves if m.passes(curve))
    return StepStatements(
        (*work.call(fresh), IfAny("fresh", found_anew)),
        (
            *work.call(program("predict", texts.predict, {"memory": size, "t": 1, "h": 1})),
            *kept,
            *passed,
            *factor,
            WhileAny("seeking", (*lacking, *solve, *updating)),
            *work.call(program("again", texts.again, {"memory": size, "w": n, "found": 1})),
            *kept,
            WhileAny("seeking", (*exact_factor, *lacking, *exact_solve, *updating)),
            *work.call(program("close", texts.close, {"y": m.ny, "memory": size, "w": n, "h": 1, "found": 1})),
        ),
        memory=size,
    )


def _stiff(work: Work, texts: _StepTexts, sizes: dict[str, int]) -> tuple[_Statements, _Statements]:
    """Statements that factor the matrix of what is stiff, every operation on its own, and that solve with it."""
    factors = PackedFactors(texts.n)

    def text(y: Flat, memory: Flat, w: Flat, t: Flat, h: Flat, p: Flat) -> NamedNumbers:
        return {"factors": factors.packed(texts.stiff_part(y, memory, w, t[0], h[0], p))}

    factoring = program("stiff_part", text, sizes)
    solution = {"factors": factoring.outputs[0].size, "right": texts.n}
    solving = program("solve", lambda packed, right: {"x": factors.solved(packed, right)}, solution)
    return work.call(factoring), work.call(solving)


def _exact(work: Work, texts: _StepTexts, sizes: dict[str, int]) -> tuple[_Statements, _Statements]:
    """The same with the exact derivative, column by column, factored by tiles."""
    n = texts.n
    system = TiledSystem(np.ones((n, n), bool), n)

    def change(y: Flat, memory: Flat, w: Flat, t: Flat, h: Flat, p: Flat, unit: Flat) -> NamedNumbers:
        found = derivative(lambda at: texts.missing(y, memory, at, t[0], h[0], p), list(w), list(unit))[1]
        return {"column": [-x for x in found]}  # which the system takes from its shift, zero

    column = work.call(program("change", change, {**sizes, "unit": n}))
    work.buffer("matrix", n * n)
    still = program("still", lambda h: {"shift": 0.0}, {"h": 1})
    names = {"factors": "exact_factors"}
    factor: tuple[Statement, ...] = (
        columns("unit", n, "column", n, "matrix", column),
        *work.call(still),
        *work.call(system.factor, names),
    )
    return factor, work.call(system.solve, names)
