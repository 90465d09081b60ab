"""Step doubling: whether equal steps are too long for the motion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import message
from linkwise.sim.work import RUNNING, Clock, Span

if TYPE_CHECKING:
    from linkwise.sim.run import Run
    from linkwise.sim.step_size import EqualSteps

_STEPS_PER_LOOK = 300  # a look costs three steps, so all of them a hundredth of the run
_MOST_LOOKS = 128
_INTERVAL = 32  # samples; intervals in which a velocity changes most are looked through
_LOOKED_THROUGH = 2**13  # velocities among the samples, at most
_ROUGH = 5e-3  # of the largest velocity: the error of a single step that is told


def roughness(run: Run, sizes: EqualSteps) -> str:
    """Where steps are too long, for people; by step doubling, at some of the samples.

    At those behind which the velocity changes most, and evenly among all. Where a motion is too fast for the step, it
    mostly is so for moments, which looks at regular intervals miss; so half of the looks are where it is steepest,
    which the samples show at little cost. Nothing else is compiled.
    """
    m, saved = run.plan.motion, run.records.reached
    samples = saved.shape[1] - 1
    count = 1 if m.curves else run.states.count  # others may have tables of their own
    looks = min(sizes.most * count // _STEPS_PER_LOOK, _MOST_LOOKS)
    if m.contacts is not None:  # where surfaces meet or stick, velocities jump, however short the step
        return ""
    if looks < 16 or not m.nv or not run.plan.is_compiled or samples < 2:
        return ""
    interval = max(1, min(_INTERVAL, samples // 8))
    every = -(-count * samples * m.nv // (interval * _LOOKED_THROUGH))  # states
    speeds = slice(m.nq, m.nq + m.nv)
    coarse = np.asarray(run.home.to_host(saved[:count:every, :-1:interval, speeds]), float)
    size = np.abs(coarse).max(axis=1)
    size = np.maximum(size, 1e-3 * size.max(axis=1, keepdims=True)) + 1e-12
    change = _steepness(coarse, size[:, None])
    half = min(looks // 2, change.size)
    state, place = np.unravel_index(np.argpartition(change, -half, axis=None)[-half:], change.shape)
    inside = place[:, None] * interval + np.arange(interval + 1)
    fine = run.home.taken(saved, (run.home.to_device(state[:, None] * every), run.home.to_device(inside)))
    place = place * interval + np.argmax(_steepness(fine[..., speeds], size[state][:, None]), axis=1)
    among = np.linspace(0, len(coarse) * samples - 1, looks - half).astype(int)
    state, place = np.append(state, among // samples), np.append(place, among % samples)
    y = np.asarray(run.home.taken(saved, (run.home.to_device(state * every), run.home.to_device(place))))
    t = run.t0 + place * (sizes.every * sizes.h)
    ends = [_trial(run, sizes.h, state * every, t, y, parts) for parts in (1, 2)]
    off = (np.abs(ends[0] - ends[1])[:, speeds] / size[state]).max(axis=1)
    off = np.nan_to_num(off, nan=0.0)  # ended before, or an event or a sample in Python came between
    worst = int(np.argmax(off))
    if off[worst] <= _ROUGH:
        return ""
    return message(
        f"steps of {sizes.h:g} s are too long for this motion: what follows may be far from the truth",
        got=f"near t = {t[worst]:.9g} s a step and two of half its length end {off[worst]:.2g} of the largest "
        f"velocity apart; {int((off > _ROUGH).sum())} of {len(off)} steps that were looked at are such",
        do='a smaller dt and see whether the motion stays; or an adaptive method, "dop853" or "rodas4"',
    )


def _trial(run: Run, h: float, states: Array, t: Array, y: Array, parts: int) -> Array:
    """The ends (n, ny) of single steps h from y (n, ny) at times t (n), made in so many parts; NaN if one stopped."""
    n, dtype, home = len(t), run.states.dtype, run.home
    clock = np.zeros((n, Clock.SIZE), dtype)
    clock[:, Clock.T], clock[:, Clock.H], clock[:, Clock.STATUS], clock[:, Clock.LEFT] = t, h / parts, RUNNING, parts
    clock[:, Clock.COUNTDOWN] = parts + 1.0  # nothing is recorded
    span = np.zeros((n, Span.SIZE), dtype)
    span[:, Span.END], span[:, Span.SLACK], span[:, Span.T0] = t + h, run.slack, t
    rows: dict[str, Any] = {"span": span, "y": np.array(y, dtype), "p": run.curves.widened(run.states.p[states])}
    rows |= {name: np.zeros((n, len(run.rows[name][0])), dtype) for name in ("memory", "g") if name in run.rows}
    rows = {name: home.to_device(array) for name, array in rows.items()} | {"clock": clock}
    saved = home.empty((n, 1, run.plan.motion.ny), dtype)
    tables = {name: home.to_device(a) for name, a in run.curves.of(int(states[0])).items()}
    run.plan.kernel(run.states.count, dtype, home).run(rows, tables, {"saved": saved}, n)
    stopped = (clock[:, Clock.STATUS] != RUNNING) | (clock[:, Clock.ACCEPTED] < parts)
    return np.where(stopped[:, None], math.nan, home.to_host(rows["y"]).astype(float))


def _steepness(v: Array, size: Array) -> Array:
    """The largest change of any velocity from one sample to the next (..., T - 1), of v (..., T, nv) by their sizes."""
    found = np.zeros((*v.shape[:-2], v.shape[-2] - 1))
    for k in range(v.shape[-1]):  # a maximum over few numbers side by side takes ten times as long
        np.fmax(found, np.abs(np.diff(v[..., k], axis=-1)) / size[..., k], out=found)
    return found
