"""The equations of motion as other tools take them: ẋ from numbers x = [q; v], inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.model.passive_forces import PassiveForces, refuse_rigid_contacts
from linkwise.sim.trajectory_files import coordinate_names
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar

if TYPE_CHECKING:
    from linkwise.model.model import Model

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
