"""The equations of motion as other tools take them: ẋ from numbers x = [q; v], inputs and parameters.

For the package python-control they are systems: linear ones about a state, and the nonlinear ones themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, require_extra
from linkwise.functions.function import CompiledFunction
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.model.model import Model, checked_model
from linkwise.model.passive_forces import PassiveForces, refuse_rigid_contacts
from linkwise.sim.trajectory_files import coordinate_names
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar

Outputs = Callable[..., Mapping[str, Scalar]]


def state_rates(model: Model, motors: Array, outputs: Outputs | None = None) -> tuple[CompiledFunction, list[str]]:
    """Function of x (nq + nv), u (m) and p (np), those that are not empty, and the names of further outputs.

    It gives dx (nq + nv) and, where there are further outputs, y. What acts in ``simulate`` by itself acts here.

    Args:
        model: the mechanism, without closures.
        motors: joint forces by inputs (nv, m).
        outputs: ``outputs(model, q, v, tau)`` returns numbers by name.
    """
    if outputs is not None and not callable(outputs):
        raise InputError("outputs are a function", got=repr(outputs)[:80], allowed="outputs(model, q, v, tau)")
    if model.closures:
        raise InputError(
            "other tools' integrators would let closures drift open",
            got=", ".join(closure.name for closure in model.closures),
            allowed="mechanisms without closures",
            do="simulate here; lw.control.as_state_space is in the independent freedoms",
        )
    refuse_rigid_contacts(model, "a system of equations", "simulate here, with method='moreau'")
    nq, m, parameters = model.nq, motors.shape[1], len(model.parameters.nominal)
    passive, names = PassiveForces(model).there_are, list[str]()

    def text(x: Flat, *rest: Flat) -> NamedNumbers:
        q, v = scalar_array(list(x[:nq]), (nq,)), scalar_array(list(x[nq:]), (model.nv,))
        given = {"p": scalar_array(list(rest[-1]), (parameters,))} if parameters else {}
        tau = scalar_array(list(motors.astype(object) @ np.asarray(rest[0] if m else [], object)), (model.nv,))
        whole = tau + model.passive_force(q, v, **given) if passive else tau
        vdot = model.forward_dynamics(q, v, whole, **given)
        found: dict[str, Scalar | Flat] = {"dx": [*model._chart.rate(list(q), list(v)), *vdot]}
        if outputs is not None:
            named: object = outputs(model, q, v, tau)
            if not isinstance(named, Mapping) or not all(isinstance(name, str) for name in named):
                raise InputError(
                    "outputs are not numbers by name", got=repr(named)[:80], allowed='e.g. {"height": X[2, 3]}'
                )
            names[:] = named
            found["y"] = list(named.values())
        return found

    sizes = (("x", nq + model.nv), ("u", m), ("p", parameters))
    function = CompiledFunction("rates", text, [(name, (size,)) for name, size in sizes if size])
    _ = function.program  # traced: the names are known from here on
    return function, names


def state_names(model: Model) -> list[str]:
    """Names of the numbers of x: ``q.<coordinate>``, then ``v.<freedom>``."""
    return [f"q.{name}" for name in coordinate_names(model)] + [f"v.{name}" for name in model.freedom_names]


def input_names(model: Model, motors: Array) -> list[str]:
    """Names of inputs, ``tau.<freedom>``, by the freedoms that they move first."""
    return [f"tau.{model.freedom_names[int(np.flatnonzero(column)[0])]}" for column in motors.T]


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
