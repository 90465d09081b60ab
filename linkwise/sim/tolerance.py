"""Errors in units of the tolerance, and the step sizes that follow from them."""

from __future__ import annotations

from linkwise.sim.limits import is_linear
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.work import Clock, Span, StepStatements, Work
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, dot, exp, log, sqrt, where
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Copy, IfAny, Statement

_SAFETY, _LEAST, _MOST = 0.9, 0.2, 10.0
_ROUNDING = 4e-16
_DIGITS = 4e-15


def weighted_square(m: EquationsOfMotion, y: Flat, y_new: Flat, span: Flat, error: Flat) -> Scalar:
    """Σ (e_i / (atol + rtol max(|y|, |y_new|)))²; chart coordinates are measured by those of their joint."""
    ratios = m.stored([e / s for e, s in zip(error, scales(m, y, y_new, span), strict=True)])
    return dot(ratios, ratios)


def scales(m: EquationsOfMotion, y: Flat, y_new: Flat, span: Flat) -> list[Scalar]:
    """Tolerances, one for each number of z; a turn or a shift in a quaternion joint counts against 1 rad or 1 m.

    What flies fast is not asked for more digits of its way in a step, and of its velocity, than they have.
    """
    rtol, atol = span[Span.RTOL], span[Span.ATOL]

    def of(a: Scalar, b: Scalar) -> Scalar:
        a, b = abs(a), abs(b)
        return atol + rtol * where(a < b, b, a)

    (q, v, x), (q_new, v_new, x_new) = m.parts(y), m.parts(y_new)
    x, x_new = x[: m.flowing], x_new[: m.flowing]
    scales: list[Scalar] = [0.0] * m.nv
    rates = [of(a, b) for a, b in zip(v, v_new, strict=True)]
    for joint in m._own_joints:
        start = joint.v_slice.start
        if is_linear(joint.type):
            pairs = zip(q[joint.q_slice], q_new[joint.q_slice], strict=True)
            scales[joint.v_slice] = [of(a, b) for a, b in pairs]
            continue
        scales[joint.v_slice] = [atol + rtol] * joint.nv
        shifts = [k for k in range(joint.nv) if joint.type.slides(k)]
        way = joint.type.carry_way(q[joint.q_slice], q_new[joint.q_slice])
        far, fast = (_DIGITS * sum(abs(x[k]) for k in shifts) for x in (way, v[joint.v_slice]))
        for k in shifts:
            scales[start + k], rates[start + k] = scales[start + k] + far, rates[start + k] + fast
    return [*scales, *rates, *(of(a, b) for a, b in zip(x, x_new, strict=True))]


def norm(m: EquationsOfMotion, values: Flat, scale: Flat) -> Scalar:
    """The root mean square of the values, each in units of its scale."""
    ratios = m.stored([a / s for a, s in zip(values, scale, strict=True)])
    return sqrt(dot(ratios, ratios) * (1.0 / len(scale)))


def smallest(t: Scalar, span: Flat) -> Scalar:
    """Below this, time would stand still."""
    rounding = _ROUNDING * abs(t)
    return where(rounding > span[Span.H_MIN], rounding, span[Span.H_MIN])


def next_sizes(err: Scalar, h: Scalar, wanted: Scalar, held: Scalar, error_order: int) -> tuple[Scalar, Scalar]:
    """The size of the next step after an accepted and after a rejected one.

    h (0.9 err^(-1/(order + 1))), within a fifth of h and ten times h (Hairer et al., II.4). Right after a rejection
    steps do not grow. One that was cut short by a goal does not shorten those that follow.
    """
    size = where(err > 1e-30, err, 1e-30)
    factor = _SAFETY * exp(log(size) * (-1.0 / (error_order + 1)))
    grow = where(factor < _MOST, factor, _MOST)
    grow = where((held > 0.0) & (grow > 1.0), 1.0, grow)
    shrink = where((err > 1.0) & (factor > _LEAST), factor, _LEAST)  # NaN fails the comparison and shrinks
    accepted = h * where(grow > _LEAST, grow, _LEAST)
    accepted = where((h < wanted) & (accepted < wanted) & (grow >= 1.0), wanted, accepted)
    return accepted, h * shrink


def first_step(work: Work, step: StepStatements) -> Statement:
    """A first step size from the sizes of y, ẏ and ÿ, for the states that were given none (Hairer et al., II.4)."""
    m = work.motion
    nz = m.nz

    def guess(y: Flat, k0: Flat, t: Flat, span: Flat) -> NamedNumbers:
        scale, room = scales(m, y, y, span), span[Span.END] - t[0]
        d0, d1 = norm(m, m.chart_origin(y), scale), norm(m, k0, scale)
        h0 = where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / where(d1 > 0.0, d1, 1.0))
        h0 = where(h0 > room, room, h0)
        start = m.chart_origin(y)
        return {"z": [a + h0 * b for a, b in zip(start, k0, strict=True)], "t_stage": t[0] + h0, "h_guess": h0}

    def choose(y: Flat, k0: Flat, k1: Flat, h_guess: Flat, clock: Flat, span: Flat) -> NamedNumbers:
        scale = scales(m, y, y, span)
        h0 = h_guess[0]
        d1 = norm(m, k0, scale)
        d2 = norm(m, [b - a for a, b in zip(k0, k1, strict=True)], scale) / h0
        largest = where(d1 > d2, d1, d2)
        small = largest <= 1e-15
        h1 = where(
            small,
            where(h0 * 1e-3 > 1e-6, h0 * 1e-3, 1e-6),
            exp(log(0.01 / where(small, 1.0, largest)) * (1.0 / (step.error_order + 1))),
        )
        chosen = where(100.0 * h0 < h1, 100.0 * h0, h1)
        # What hardly moves yet, as after the last of many bounces, asks for steps in which the clock stands still.
        least = 1e3 * smallest(clock[Clock.T], span)
        chosen = where(chosen < least, least, chosen)
        chosen = where(chosen > 0.0, chosen, 1e-6)  # NaN: try anything, and fail in the loop
        started = list(clock)
        started[Clock.H] = where(clock[Clock.H] <= 0.0, chosen, clock[Clock.H])
        return {"clock_new": started}

    sizes = {"y": m.ny, "k0": nz, "k1": nz, "h_guess": 1, "clock": Clock.SIZE, "span": Span.SIZE}
    work.buffer("k1", nz)
    guessing = work.call(program("guess", guess, {"y": m.ny, "k0": nz, "t": 1, "span": Span.SIZE}))
    choosing = work.call(program("choose", choose, sizes))
    return IfAny("first", (*guessing, *work.rates("y", "z", "t_stage", "k1"), *choosing, Copy("clock_new", "clock")))
