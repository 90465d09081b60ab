"""Joint forces of a state by a control and the rules of a simulation: to be linearised and balanced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.model.passive_forces import Acting, ActingForces
from linkwise.sim.chart import Instant
from linkwise.sim.elements import as_elements
from linkwise.sim.joint_rules import JointRules
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.states import initial_states
from linkwise.spatial.scalar import Flat, Scalar


def acting(model: Model, control: object, rules: JointRules | None, t: ArrayLike | None, p: ArrayLike | None) -> Acting:
    """Everything that acts besides τ, from the text that simulations integrate; joint limits are left out."""
    elements = as_elements(control)
    for element in elements:
        if element.nh:
            raise InputError(
                f"{type(element).__name__} has no derivatives by the state",
                got="a control that is sampled",
                allowed="controls that follow from t, q, v, p and states that flow",
                do="give the law itself, or the value at this time",
            )
    count = len(model.parameters.nominal) if p is None else np.shape(p)[-1]
    # No limits: at one of them a mechanism has no linear model.
    motion = EquationsOfMotion(model, elements, replace(rules or JointRules(), limits="ignore"), count)

    def text(q: Flat, v: Flat, x: Flat, t: Scalar, p: Flat) -> ActingForces:
        at = motion.in_force(Instant(t, q, v, x, p))
        causes = motion.forces_by_cause(at).values()
        return ActingForces([sum(own) for own in zip(*causes, strict=True)], motion.element_rates(at))

    def parameters(q: Flat, v: Flat, x: Flat, t: Scalar, p: Flat) -> Flat:
        return list(motion.model_parameters(motion.in_force(Instant(t, q, v, x, p)).p))

    varied = (motion.model, parameters) if motion.varying.elements else None
    x = np.array(initial_states(elements), float)
    made = Acting(model, text, x, motion.np, by_clock=bool(motion.curves), varied=varied)
    tables = [table for element in elements for table in element.tables]
    if not tables:
        return made.given(t, p)
    # What a table says at this time is read behind the parameters, as in a run.
    times = np.asarray(0.0 if t is None else t, float)
    given = np.asarray(model.parameters.nominal if p is None else p, float)
    batch = np.broadcast_shapes(times.shape, given.shape[:-1])
    rows = [np.broadcast_to(table.row(times), (*batch, table.width)) for table in tables]
    return made.given(t, np.concatenate([np.broadcast_to(given, (*batch, count)), *rows], axis=-1))
