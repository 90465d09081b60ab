"""The motion of what cannot move: a model all of whose links are fixed."""

from __future__ import annotations

import numpy as np

from linkwise.array_types import Array
from linkwise.model.model import Model
from linkwise.sim.motion import Works
from linkwise.sim.states import States
from linkwise.sim.trajectory import Trajectory


def standing_still(
    model: Model, states: States, times: Array | None, t0: float, duration: float, method: str
) -> Trajectory:
    """Samples without numbers, at the output times or at both ends."""
    t = np.array([t0, t0 + duration]) if times is None else times
    shape = (*states.shape, len(t))
    nothing = np.empty((*shape, 0))
    p = states.p.reshape(*states.shape, -1)
    own = p[..., None, : len(model.parameters.nominal)] if len(model.parameters.nominal) else None
    energy = np.broadcast_to(model.potential_energy(np.empty((*states.shape, 1, 0)), p=own), shape)
    zero = np.zeros(states.shape, int)
    return Trajectory(
        t,
        nothing,
        nothing,
        p=p,
        model=model,
        derived={
            "vdot": nothing,
            "tau": nothing,
            "force:control": nothing,
            "energy": np.array(energy),
            "work": np.zeros((*shape, Works.nx)),
        },
        status=np.full(states.shape, "done") if states.shape else "done",
        steps=zero if states.shape else 0,
        rejected=zero if states.shape else 0,
        note="nothing in this model can move: all its links are fixed to the world",
        method=method,
    )
