"""A first step size for a state that was given none."""

from __future__ import annotations

from typing import Any

from linkwise.sim.motion import Flat
from linkwise.sim.step_size import smallest
from linkwise.sim.tolerance import SPAN, norm, scales
from linkwise.sim.work import Step, Work, program
from linkwise.spatial.scalar import exp, log, where
from linkwise.trace.program import Copy, IfAny, Statement


def first_step(work: Work, step: Step, nc: int) -> list[Statement]:
    """A first step size from the sizes of y, ẏ and ÿ, for the states that were given none (Hairer et al., II.4).

    ``nc`` numbers are in the loop's own state, the step size second.
    """
    m = work.motion
    nz = m.nz
    rates = work.rates

    def guess(y: Flat, k0: Flat, t: Flat, span: Flat) -> dict[str, Any]:
        scale = scales(m, y, y, span)
        d0, d1 = norm(m, m.chart_origin(y), scale), norm(m, k0, scale)
        h0 = where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / where(d1 > 0.0, d1, 1.0))
        h0 = where(h0 > span[0] - t[0], span[0] - t[0], h0)
        start = m.chart_origin(y)
        return {"z": [a + h0 * b for a, b in zip(start, k0, strict=True)], "t_stage": t[0] + h0, "h_guess": h0}

    def settle(y: Flat, k0: Flat, k1: Flat, h_guess: Flat, control: Flat, span: Flat) -> dict[str, Any]:
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
        least = 1e3 * smallest(control[0], span)
        chosen = where(chosen < least, least, chosen)
        chosen = where(chosen > 0.0, chosen, 1e-6)  # NaN: try anything, and fail in the loop
        return {"control_new": [control[0], where(control[1] <= 0.0, chosen, control[1]), *control[2:]]}

    guessing = work.call(program("guess", guess, {"y": m.ny, "k0": nz, "t": 1, "span": len(SPAN)}))
    settling = program(
        "settle",
        settle,
        {"y": m.ny, "k0": nz, "k1": nz, "h_guess": 1, "control": nc, "span": len(SPAN)},
    )
    work.buffer("k1", nz)
    return [
        IfAny(
            "first",
            (*guessing, *rates("y", "z", "t_stage", "k1"), *work.call(settling), Copy("control_new", "control")),
        )
    ]
