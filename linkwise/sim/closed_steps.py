"""Steps that end on the manifold of a closed mechanism: places first, then velocities.

The accelerations obey the closures; places and velocities follow from them by integration, and errors of that would
gather. So every step ends with two steps of Newton's method for places and one projection of the velocity,

    q ← q ⊕ (-𝓜⁻¹J_c*Λ⁺e),    v ← v - 𝓜⁻¹J_c*Λ⁺ė,

which change the state by no more than the step's own error: the order of a method stays what it is (Hairer and Wanner,
Solving ODEs II, VII.2). States that are looked at inside a step are put on the manifold the same way.

Two things make redundant constraints and singular configurations no special case. Rates are evaluated at the projection
of each stage (:meth:`~linkwise.sim.motion.EquationsOfMotion.rates`): off the manifold, redundant constraints contradict
each other, and what they then ask for is not the motion. And errors are measured after their projection
(:meth:`~linkwise.sim.motion.EquationsOfMotion.lasting_error`): near a singular configuration those across the closures
are large, and an adaptive method that minds them never arrives.

Where branches of a mechanism cross, a step of fixed length can end on another one than the motion: the equations of an
implicit step hold there too, and a stage of an explicit one that falls on the crossing has accelerations that rounding
decides. Only the velocity shows it, which jumps. So it is compared with v + h v̇, in the norm of kinetic energy, and
where that is unclear with the mean of v̇ at both ends of the step. A step that has jumped, or has found no end, is made
again in two parts: a short leap with the v̇ of its end, which is good also where the step begins on the crossing, and
an explicit step from there. If no length of the leap gives a velocity that follows, the step has no end, and the
simulation says so.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace

from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.sim.explicit import runge_kutta
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.tableaux import TABLEAUX
from linkwise.sim.work import StepStatements, Work, flag
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, dot, either, sqrt, where
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Call, Copy, IfAny, Statement, WhileAny

_NEWTON = 2  # steps for places: from the error of a step, say 1e-4, to rounding
_OF_SPEED, _OF_CHANGE = 0.002, 0.1  # of v and of h v̇: what v₊ may be off from v + h v̇ before a step is suspect
_OF_MEAN = 0.1  # of h times the mean of v̇ at both ends: what it may be off from that, and have jumped beyond
_STIFF = 2.0  # times as much it may be off where nothing is better: a stiff step does not change by h v̇
_FOLLOWS = 5.0  # times as much the step in two parts may be off
_LEAPS = (0.02, 0.05, 0.11)  # parts of a step; other middles of what is left, so that not all fall on one place


def on_manifold(work: Work, step: StepStatements) -> StepStatements:
    """The same step, projected at its end and wherever it is looked into, and on its branch at its end."""
    m = work.motion
    sizes = {"t_end": 1, "y": m.ny, "p": m.np}
    closer = program("closer", lambda t, y, p: {"y_closer": m.closer(t[0], y, p)}, sizes)
    obeying = program("obeying", lambda t, y, p: {"y_closer": m.obeying(t[0], y, p)}, sizes)
    at_end = program("at_end", lambda t, h: {"t_end": t[0] + h[0]}, {"t": 1, "h": 1})
    inside = program("inside", lambda t, h, theta: {"t_end": t[0] + h[0] * theta[0]}, {"t": 1, "h": 1, "theta": 1})
    in_places = any(closure.type.equations for closure in m.model.closures)

    def projection(name: str) -> list[Statement]:
        """Of the state in a buffer, at the time t_end."""
        texts = [*([closer] * _NEWTON if in_places else []), obeying]
        names = [name, *(f"y_closer{i}" for i in range(1, len(texts) + 1))]
        calls: list[Statement] = []
        for text, before, after in zip(texts, names, names[1:], strict=False):
            calls += work.call(text, {"y": before, "y_closer": after})
        return [*calls, Copy(names[-1], name)]

    origin = program("origin", lambda y_new: {"z": m.chart_origin(y_new)}, {"y_new": m.ny})
    advance = (*step.advance, *work.call(at_end), *projection("y_new"))
    if not step.judge and m.contacts is None:  # others see jumps as errors, and where surfaces meet, velocities do jump
        known = any(isinstance(each, Call) and "k0" in each.outputs for each in step.begin)
        start = () if known else work.rates_at("y", "t", "k0")
        advance = (*start, *advance, *_followed(work, step, (*work.call(at_end), *projection("y_new"))))
    return replace(
        step,
        advance=advance,
        # The derivative at the end of the step is that of the projected state, not of the last stage.
        carry=(*work.call(origin), *work.rates("y_new", "z", "t_new", "k_next")) if step.judge else (),
        look=(*step.look, *work.call(inside), *projection("y_at")) if step.look else (),
    )


class _Follower:
    """Texts that tell whether a step has jumped, and make it again."""

    def __init__(self, motion: EquationsOfMotion) -> None:
        self.m, self.nv = motion, motion.nv

    def norm(self, q: Flat, x: Flat, p: Flat) -> Scalar:
        """In the norm of kinetic energy; NaN stays NaN."""
        moved = self.m.model.mass_product(objects(q), objects(x), p=self.m.model_parameters(p))
        square = dot(x, moved)
        return sqrt(where(square <= 0.0, 0.0, square))

    def off(self, y: Flat, y_new: Flat, h: Scalar, p: Flat, part: float, *rates: Flat) -> Scalar:
        """Distance of v₊ from v + h times the mean of v̇ at some places, as a part of what is allowed."""
        q, v, _ = self.m.parts(y)
        after = self.m.parts(y_new)[1]
        mean = [sum(k[i] for k in rates) * (h / len(rates)) for i in range(self.nv)]
        beyond = self.norm(q, [a - b - c for a, b, c in zip(after, v, mean, strict=True)], p)
        change: Scalar = 0.0
        for k in rates:
            change = change + self.norm(q, k, p) * (h / len(rates))
        return beyond / (_OF_SPEED * self.norm(q, v, p) + part * change + 1e-12)

    def look(self, y: Flat, y_new: Flat, k0: Flat, h: Flat, p: Flat) -> NamedNumbers:
        """Whether the step is to be judged."""
        return {
            "suspect": flag(~(self.off(y, y_new, h[0], p, _OF_CHANGE, self.m.own_acceleration(y, k0)) <= 1.0)),
            "y_first": list(y_new),
        }

    def judge(
        self, y: Flat, y_first: Flat, k0: Flat, k_end: Flat, t: Flat, h: Flat, p: Flat, suspect: Flat
    ) -> NamedNumbers:
        """Whether the step has jumped, and where the steps that are made in its place begin."""
        ends = self.m.own_acceleration(y, k0), self.m.own_acceleration(y_first, k_end)
        far = self.off(y, y_first, h[0], p, _OF_MEAN, *ends)
        jumped = (suspect[0] > 0.0) & ~(far <= 1.0)
        holds = ~jumped | (far <= _STIFF)
        chosen = [where(holds, a, math.nan) for a in y_first]
        start = {"y_from": list(y), "t_from": t[0], "h_whole": h[0]}
        return {**start, "jumped": flag(jumped), "attempt": 0.0, "y_chosen": chosen, "again": 0.0}

    def leap(self, y_from: Flat, t_from: Flat, h_whole: Flat, attempt: Flat) -> NamedNumbers:
        """The first part, with v as it is."""
        q, v, x = self.m.parts(y_from)
        part: Scalar = _LEAPS[-1]
        for number, given in reversed(list(enumerate(_LEAPS[:-1]))):
            part = where(attempt[0] <= number, given, part)
        short = part * h_whole[0]
        return {"y_new": [*self.m.moved(q, [short * a for a in v]), *v, *x], "t": t_from[0], "h": short}

    def gain(self, y_from: Flat, y_new: Flat, k_leap: Flat, t: Flat, h: Flat, h_whole: Flat) -> NamedNumbers:
        """Its velocity, and the length of the second part."""
        q, _, x = self.m.parts(y_new)
        _, v, _ = self.m.parts(y_from)
        flowing = [a + h[0] * b for a, b in zip(x[: self.m.flowing], k_leap[2 * self.nv :], strict=True)]
        faster = [a + h[0] * b for a, b in zip(v, self.m.own_acceleration(y_new, k_leap), strict=True)]
        y = [*q, *faster, *flowing, *self.m.kept(y_new)]
        return {"y": y, "t_next": t[0] + h[0], "h_next": h_whole[0] - h[0]}

    def choose(
        self, y_from: Flat, y_new: Flat, k_leap: Flat, h_whole: Flat, p: Flat, y_chosen: Flat, jumped: Flat,
        attempt: Flat, again: Flat, t_from: Flat,
    ) -> NamedNumbers:  # fmt: skip
        """The second part, if it follows; else the next attempt."""
        k = self.m.own_acceleration(y_from, k_leap)
        follows = (jumped[0] > 0.0) & (self.off(y_from, y_new, h_whole[0], p, _OF_CHANGE, k) <= _FOLLOWS)
        found = {
            "y_better": either(follows, y_new, y_chosen),
            "again_new": where(follows, 1.0, again[0]),
            "attempt_new": attempt[0] + 1.0,
            "jumped_new": flag((jumped[0] > 0.0) & ~follows & (attempt[0] < len(_LEAPS) - 1.0)),
        }
        return {**found, "y": list(y_from), "t": t_from[0], "h": h_whole[0]}


def _followed(work: Work, step: StepStatements, projected: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Behind a step of fixed length: made again where it has jumped or has found no end; NaN if nothing follows."""
    m, texts = work.motion, _Follower(work.motion)
    sizes = {"y": m.ny, "k0": m.nz, "k_end": m.nz, "k_leap": m.nz, "p": m.np}
    sizes |= dict.fromkeys(("y_new", "y_first", "y_from", "y_chosen"), m.ny)

    def call(text: Callable[..., NamedNumbers]) -> tuple[Statement, ...]:
        inputs = {name: sizes.get(name, 1) for name in inspect.signature(text).parameters}
        return work.call(program(text.__name__, text, inputs))

    again: list[Statement] = [
        *call(texts.leap),
        *projected,
        *work.rates_at("y_new", "t_end", "k_leap"),
        *call(texts.gain),
        Copy("t_next", "t"),
        Copy("h_next", "h"),
        *work.rates_at("y", "t", "k0"),
        *runge_kutta(work, TABLEAUX["rk4"]).advance,
        *projected,
        *call(texts.choose),
        *(Copy(a, b) for a, b in (("y_better", "y_chosen"), ("again_new", "again"), ("attempt_new", "attempt"))),
        Copy("jumped_new", "jumped"),
    ]
    inside: list[Statement] = [
        *work.rates_at("y_new", "t_end", "k_end"),
        *call(texts.judge),
        WhileAny("jumped", tuple(again)),
        Copy("y_chosen", "y_new"),
    ]
    if step.memory:  # is of the step that was not made

        def forget(memory_new: Flat, again: Flat) -> NamedNumbers:
            return {"memory_kept": [where(again[0] > 0.0, 0.0, memory_new[0]), *memory_new[1:]]}

        sizes["memory_new"] = step.memory
        inside += [*call(forget), Copy("memory_kept", "memory_new")]
    return (*call(texts.look), IfAny("suspect", tuple(inside)))
