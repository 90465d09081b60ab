"""The public functions of models with closures, as texts over any scalar; see :mod:`linkwise.algorithms.catalogue`."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.algorithms import closed_system, closure_freedoms
from linkwise.algorithms.catalogue import CATALOGUE, Columns, Text, Trees, instant
from linkwise.algorithms.equations import equations
from linkwise.mechanism.closures.instances import ClosureFreedoms, freedoms_of_closures
from linkwise.spatial.scalar import Flat


def _still(t: Trees, v: Flat | None) -> Flat:
    return [0.0] * t.fast.nv if v is None else v


def _error(t: Trees, q: Flat, time: Flat | None, active: Flat | None) -> Any:
    return closed_system.closure_error(t.fast, q, t.constraints(t.fast, active), instant(time))


def _rate(t: Trees, q: Flat, v: Flat, time: Flat | None, active: Flat | None) -> Any:
    return closed_system.closure_rate(t.fast, q, v, t.constraints(t.fast, active), instant(time))


def _bias(t: Trees, q: Flat, v: Flat, time: Flat | None) -> Any:
    return closed_system.constraint_bias(t.fast, q, v, t.constraints(t.fast), instant(time))


def _jacobian(t: Trees, q: Flat, time: Flat | None, v: Flat | None) -> Any:
    rows = closed_system.constraint_jacobian(t.fast, q, _still(t, v), t.constraints(t.fast), instant(time))
    return rows or np.empty((0, t.fast.nv), object)


def _efforts(t: Trees, q: Flat, time: Flat | None, v: Flat | None, multipliers: Flat) -> Any:
    constraints = t.constraints(t.fast)
    return closed_system.constraint_efforts(t.fast, q, _still(t, v), constraints, instant(time), multipliers)


def _forces(t: Trees, q: Flat, v: Flat, tau: Flat, f_ext: Flat | None, time: Flat | None, active: Flat | None) -> Any:
    forces = t.link_forces(f_ext, t.fast)
    by = t.closed(q, v, time, active=active, closed=True)
    found = closed_system.constraint_forces(by, t.fast, q, v, tau, forces)
    return found if found.wrenches else found._replace(wrenches=np.empty((0, 6), object))


def _impulse(t: Trees, q: Flat, v: Flat, time: Flat | None, active: Flat | None) -> Any:
    return closed_system.impulse(t.closed(q, v, time, active=active), t.fast, v)


def _closing_step(t: Trees, q: Flat, time: Flat | None, active: Flat | None) -> Any:
    places = [closed_system.places_only(constraint) for constraint in t.constraints(t.fast, active)]
    return closed_system.closing_step(t.closed(q, _still(t, None), time, places), t.fast, q)


def _tangent_part(t: Trees, q: Flat, x: Flat, time: Flat | None, active: Flat | None) -> Any:
    by, still = (t.closed(q, v, time, active=active) for v in (x, _still(t, None)))
    return closed_system.tangent_part(by, still, t.fast, x)


def _constraint_push(t: Trees, q: Flat, multipliers: Flat, time: Flat | None, active: Flat | None) -> Any:
    constraints = t.constraints(t.fast, active)
    return closed_system.constraint_efforts(t.fast, q, _still(t, None), constraints, instant(time), multipliers)


def _correction(t: Trees, q: Flat, multipliers: Flat, time: Flat | None, active: Flat | None) -> Any:
    return t.closed(q, _still(t, None), time, active=active).held(multipliers)[1]


def _held(t: Trees, q: Flat, v: Flat, vdot: Flat, multipliers: Flat, time: Flat | None) -> Any:
    return closed_system.held(t.fast, q, v, vdot, multipliers, t.constraints(t.fast), instant(time))


def _wrenches(t: Trees, q: Flat, v: Flat, multipliers: Flat, time: Flat | None) -> Any:
    closures, _ = equations(t.fast, q, v, t.constraints(t.fast), instant(time))
    return closed_system.wrenches(closures, multipliers)


def _freedoms(t: Trees) -> list[ClosureFreedoms]:
    return freedoms_of_closures(t.mechanism.closures)


def _coordinates(t: Trees, q: Flat) -> Any:
    return closure_freedoms.closure_coordinates(t.fast, q, t.constraints(t.fast), _freedoms(t))


def _velocities(t: Trees, q: Flat, v: Flat) -> Any:
    return closure_freedoms.closure_velocities(t.fast, q, v, t.constraints(t.fast), _freedoms(t))


def _along(t: Trees, q: Flat, forces: Flat) -> Any:
    return closure_freedoms.closure_efforts(t.fast, q, forces, t.constraints(t.fast), _freedoms(t))


CLOSED: dict[str, Text] = {
    "closure_error": Text(("q",), _error, ("t", "active")),
    "closure_rate": Text(("q", "v"), _rate, ("t", "active"), method="constraints.rate"),
    "constraint_bias": Text(("q", "v"), _bias, ("t",), method="constraints.bias"),
    "constraint_jacobian": Text(
        ("q",), _jacobian, ("t", "v"), Columns(("multipliers",), _efforts, rows=True), method="constraints.jacobian"
    ),
    "constraint_forces": Text(
        ("q", "v", "tau"), _forces, ("f_ext", "t", "active"), result=closed_system.ConstraintForces
    ),
    "project_velocity": Text(
        ("q", "v"),
        lambda t, q, v, time, active: _impulse(t, q, v, time, active).v,
        ("t", "active"),
        method="constraints.project_velocity",
    ),
    "project_configuration": Text(("q",), _closing_step, ("t", "active"), method="constraints.project_configuration"),
    "impulse": Text(("q", "v"), _impulse, ("t", "active"), result=closed_system.Impulse, method="constraints.impulse"),
    # Of the freedoms of all closures that have some, one after the other.
    "closure_coordinates": Text(("q",), _coordinates, method="constraints.coordinates"),
    "closure_velocities": Text(("q", "v"), _velocities, method="constraints.velocities"),
    "closure_efforts": Text(("q", "along_closures"), _along, method="constraints.efforts"),
    # Parts of others, not public.
    "tangent_part": Text(("q", "x"), _tangent_part, ("t", "active")),
    "constraint_push": Text(("q", "multipliers"), _constraint_push, ("t", "active")),
    "correction": Text(("q", "multipliers"), _correction, ("t", "active")),
    "held": Text(("q", "v", "vdot", "multipliers"), _held, ("t",), result=closed_system.Held),
    "closure_wrenches": Text(("q", "v", "multipliers"), _wrenches, ("t",)),
}
"""Functions of models that have closures."""

EVERY = {**CATALOGUE, **CLOSED}
"""All functions."""
