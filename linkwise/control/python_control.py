"""Models as systems of the package python-control: linear ones about a state, and the nonlinear ones themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.control.rates import input_names, state_names, state_rates
from linkwise.errors import require_extra
from linkwise.model.model import Model, checked_model


def as_state_space(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    dt: float | None = None,
    actuated: Sequence[str] | None = None,
) -> Any:
    """A ``control.StateSpace`` of a model about a state, all states being outputs, with the names of joints.

    Its matrices are those of :meth:`linkwise.Model.state_space`, with all that acts in ``simulate`` by itself.

    Args:
        model: the mechanism.
        q: configuration (nq).
        v: velocity (nv); at rest if not given.
        tau: joint forces (nv); those that hold the model at rest in q if not given.
        dt: time step in s, the forces being held over it; continuous time if not given.
        actuated: names of the joints that are inputs; all but floating bases if not given.

    Example:
        >>> system = lw.control.as_state_space(model, q)  # doctest: +SKIP
        >>> K, S, poles = control.lqr(system, np.eye(4), np.eye(2))  # doctest: +SKIP
    """
    control: Any = require_extra("control", "control")
    motors = checked_model(model).statics.actuation_matrix(actuated)
    v = np.zeros(model.nv) if v is None else v
    tau = model.statics.force(q) if tau is None else tau
    A, B = model.state_space(q, v, tau, dt=dt)
    names = [f"{letter}:{name}" for letter in "qv" for name in model.freedom_names]
    if len(A) != len(names):  # of a model with closures, the independent freedoms
        names = [f"x{k}" for k in range(len(A))]
    inputs = _named(input_names(model, motors))
    about = {"inputs": inputs, "states": names, "outputs": names, "name": model.name}
    return control.ss(A, B @ motors, np.eye(len(A)), np.zeros((len(A), len(inputs))), 0 if dt is None else dt, **about)


def as_nlsys(model: Model, *, actuated: Sequence[str] | None = None) -> Any:
    """A ``control.NonlinearIOSystem`` of a model: states x = [q; v], all of them outputs, forces of motors as inputs.

    Its equations are compiled; springs, dampers and friction of the model act.

    Args:
        model: the mechanism, without closures.
        actuated: names of the joints that are inputs; all but floating bases if not given.
    """
    control: Any = require_extra("control", "control")
    motors = checked_model(model).statics.actuation_matrix(actuated)
    function, _ = state_rates(model, motors)
    fixed = [np.asarray(model.parameters.nominal, float)] if len(model.parameters.nominal) else []

    def rates(t: float, x: Array, u: ArrayLike, params: object) -> Array:
        given = [x, *([np.atleast_1d(u)] if motors.shape[1] else []), *fixed]
        found: Array = function(*(np.asarray(array, float) for array in given)).dx
        return found

    names = _named(state_names(model))
    about = {"inputs": _named(input_names(model, motors)), "states": names, "outputs": names, "name": model.name}
    return control.nlsys(rates, None, **about)


def _named(names: Sequence[str]) -> list[str]:
    """Names as python-control allows them, and as trajectories have them: ``q:joint``."""
    return [name.replace(".", ":", 1).replace(".", "_") for name in names]
