"""The size of an adaptive method's steps: how far one is tried, whether it is accepted, how far the next one is.

Texts over any scalar, traced into the loop of :mod:`linkwise.sim.adaptive_loop`. The new size follows from the error
in units of the tolerance, h (0.9 err^(-1/(order + 1))), within a fifth of h and ten times h (Hairer et al., II.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.sim.motion import Flat
from linkwise.sim.work import DONE, EVENT, FAILED, RUNNING, flag
from linkwise.spatial.scalar import Scalar, exp, log, where

# Rows of the loop's own state.
CONTROL = ("t", "h", "status", "next", "accepted", "rejected", "left", "held")

Text = Callable[..., dict[str, Any]]

_SAFETY, _LEAST, _MOST = 0.9, 0.2, 10.0
_ROUNDING = 4e-16


def goes_on(status: Scalar, left: Scalar) -> Any:
    """Whether a state has steps to try."""
    return (status <= RUNNING) & (left > 0.0)


def trimming(clip: bool) -> Text:
    """(t, control, span, next_time, stop) to the step that is tried, ``h`` and ``t_new``.

    No longer than allowed, and not beyond the end, a stop or, with ``clip``, the next output time.
    """

    def trim(t: Flat, control: Flat, span: Flat, next_time: Flat, *stop: Flat) -> dict[str, Any]:
        wanted = control[1]
        limited = where(wanted > span[3], span[3], wanted)
        goal = where(next_time[0] < span[0], next_time[0], span[0]) if clip else span[0]
        if stop:
            goal = where(stop[0][0] < goal, stop[0][0], goal)
        # A step that ends just before the goal would leave a crumb: stretch it, or halve what is left.
        room = goal - t[0]
        lands = limited * (1.0 + 1e-12) >= room
        later = t[0] + limited
        # The step is as long as the clock says, also where the clock is coarse.
        return {"h": where(lands, room, later - t[0]), "t_new": where(lands, goal, later)}

    return trim


def deciding(error_order: int) -> Text:
    """(control, t, t_new, h, err, span, hit) to whether the step is accepted, and the loop's state after it.

    A good step in which an event happened is neither accepted nor rejected: it is to be looked into.
    """

    def decide(control: Flat, t: Flat, t_new: Flat, h: Flat, err: Flat, span: Flat, *hit: Flat) -> dict[str, Any]:
        _, wanted, status, place, accepted, rejected, left, held = control
        running = goes_on(status, left)
        good = err[0] <= 1.0
        accept, reject = running & good, running & ~good
        hits = accept & (hit[0][0] > 0.0) if hit else False
        accept = accept & (hit[0][0] <= 0.0) if hit else accept
        longer, shorter = _next_sizes(err[0], h[0], wanted, held, error_order)
        next_h = where(accept, longer, where(reject, shorter, wanted))
        next_h = where(hits, h[0], next_h)
        ends = accept & (t_new[0] >= span[0])
        fails = (reject | (accept & ~ends)) & ~(next_h >= smallest(t[0], span))  # NaN fails the comparison too
        status = where(ends, DONE, status)
        status = where(hits, EVENT, status)
        status = where(fails, FAILED, status)
        next_t = where(accept, t_new[0], t[0])
        left = where(running, left - 1.0, left)
        control_new = [
            next_t,
            next_h,
            status,
            place,
            where(accept, accepted + 1.0, accepted),
            where(reject, rejected + 1.0, rejected),
            left,
            where(accept, 0.0, where(reject, 1.0, held)),
        ]
        return {"control_new": control_new, "accept": flag(accept)}

    return decide


def _next_sizes(err: Scalar, h: Scalar, wanted: Scalar, held: Scalar, error_order: int) -> tuple[Scalar, Scalar]:
    """The size of the next step after an accepted and after a rejected one.

    Right after a rejection steps do not grow. One that was cut short by a goal does not shorten those that follow.
    """
    size = where(err > 1e-30, err, 1e-30)
    factor = _SAFETY * exp(log(size) * (-1.0 / (error_order + 1)))
    grow = where(factor < _MOST, factor, _MOST)
    grow = where((held > 0.0) & (grow > 1.0), 1.0, grow)
    shrink = where((err > 1.0) & (factor > _LEAST), factor, _LEAST)  # NaN fails the comparison and shrinks
    accepted = h * where(grow > _LEAST, grow, _LEAST)
    accepted = where((h < wanted) & (accepted < wanted) & (grow >= 1.0), wanted, accepted)
    return accepted, h * shrink


def smallest(t: Scalar, span: Flat) -> Scalar:
    """Below this, time would stand still."""
    rounding = _ROUNDING * abs(t)
    return where(rounding > span[4], rounding, span[4])
