"""Some of the states of a batch of motions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.sim.trajectory import Trajectory


def chosen_states(trajectory: Trajectory, index: Any) -> Trajectory:
    """The motions at an index of the batch axes, with what belongs to them; a single one is cut where it ends."""
    batch = trajectory.batch_shape
    q = trajectory.q[index]
    if q.ndim < 2 or q.shape[-2] != len(trajectory):
        raise InputError("not an index of the batch", got=repr(index), allowed=f"axes {batch}")
    keep = slice(None)
    if q.ndim == 2:
        ends = np.flatnonzero(np.isfinite(trajectory.home.to_host(q)).all(axis=1))
        keep = slice(0, int(ends[-1]) + 1 if len(ends) else 0)
    values = {
        name: value[index][..., keep] if name == "energy" else value[index][..., keep, :]
        for name, value in trajectory.values().items()
    }

    def pick(value: Any) -> Any:
        return value[index] if isinstance(value, np.ndarray) else value

    chosen = np.arange(math.prod(batch)).reshape(batch)[index]
    places = {place: _unraveled(k, batch) for place, k in np.ndenumerate(chosen)}  # here and in the whole batch
    present = set(places.values())
    status = pick(trajectory.status)
    made = trajectory.with_samples(trajectory.t[keep], values.pop("q"), values.pop("v"), values.pop("x"), values)
    made.p = None if trajectory.p is None else trajectory.p[index]
    made.jumps = None if trajectory.jumps is None else trajectory.jumps.of(chosen)
    made.events = [event for event in trajectory.events if event.state in present]
    made.status = str(status) if np.ndim(status) == 0 else status
    made.steps, made.rejected = pick(trajectory.steps), pick(trajectory.rejected)
    made.reasons = {place: trajectory.reasons[old] for place, old in places.items() if old in trajectory.reasons}
    return made


def _unraveled(number: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(int(number), shape))
