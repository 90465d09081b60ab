"""The public functions of models with closures, as texts over any scalar; see :mod:`linkwise.algorithms.catalogue`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.algorithms import closed_system
from linkwise.algorithms.catalogue import CATALOGUE, Columns, Text, Trees, instant
from linkwise.algorithms.closure_freedoms import closure_coordinates, closure_efforts, closure_velocities
from linkwise.algorithms.equations import equations
from linkwise.mechanism.closures.instances import freedoms_of_closures
from linkwise.spatial.scalar import Flat


def _still(t: Trees, v: Flat | None) -> Flat:
    return [0.0] * t.fast.nv if v is None else v


def _said(function: Callable[..., object], arrays: int) -> Callable[..., object]:
    """The text of a function of so many arrays, of all constraints, and of the time."""

    def text(t: Trees, *given: Any) -> object:
        time, *active = given[arrays:]
        return function(t.fast, *given[:arrays], t.constraints(t.fast, *active), instant(time))

    return text


def _left_free(function: Callable[..., object]) -> Callable[..., object]:
    """The text of a function of the freedoms that closures leave."""

    def text(t: Trees, *arrays: Flat) -> object:
        return function(t.fast, *arrays, t.constraints(t.fast), freedoms_of_closures(t.mechanism.closures))

    return text


def _jacobian(t: Trees, q: Flat, time: Flat | None, v: Flat | None) -> object:
    rows = closed_system.constraint_jacobian(t.fast, q, _still(t, v), t.constraints(t.fast), instant(time))
    return rows or np.empty((0, t.fast.nv), object)


def _efforts(t: Trees, q: Flat, time: Flat | None, v: Flat | None, multipliers: Flat) -> object:
    constraints = t.constraints(t.fast)
    return closed_system.constraint_efforts(t.fast, q, _still(t, v), constraints, instant(time), multipliers)


def _forces(
    t: Trees, q: Flat, v: Flat, tau: Flat, f_ext: Flat | None, time: Flat | None, active: Flat | None
) -> object:
    forces = t.link_forces(f_ext, t.fast)
    by = t.closed(q, v, time, active=active, closed=True)
    found = closed_system.constraint_forces(by, t.fast, q, v, tau, forces)
    return found if found.wrenches else found._replace(wrenches=np.empty((0, 6), object))


def _impulse(t: Trees, q: Flat, v: Flat, time: Flat | None, active: Flat | None) -> closed_system.Impulse:
    return closed_system.impulse(t.closed(q, v, time, active=active), t.fast, v)


def _closing_step(t: Trees, q: Flat, time: Flat | None, active: Flat | None) -> object:
    places = [closed_system.places_only(constraint) for constraint in t.constraints(t.fast, active)]
    return closed_system.closing_step(t.closed(q, _still(t, None), time, places), t.fast, q)


def _tangent_part(t: Trees, q: Flat, x: Flat, time: Flat | None, active: Flat | None) -> object:
    by, still = (t.closed(q, v, time, active=active) for v in (x, _still(t, None)))
    return closed_system.tangent_part(by, still, t.fast, x)


def _constraint_push(t: Trees, q: Flat, multipliers: Flat, time: Flat | None, active: Flat | None) -> object:
    constraints = t.constraints(t.fast, active)
    return closed_system.constraint_efforts(t.fast, q, _still(t, None), constraints, instant(time), multipliers)


def _wrenches(t: Trees, q: Flat, v: Flat, multipliers: Flat, time: Flat | None) -> object:
    closures, _ = equations(t.fast, q, v, t.constraints(t.fast), instant(time))
    return closed_system.wrenches(closures, multipliers)


CLOSED: dict[str, Text] = {
    "closure_error": Text(("q",), _said(closed_system.closure_error, 1), ("t", "active")),
    "closure_rate": Text(("q", "v"), _said(closed_system.closure_rate, 2), ("t", "active"), method="constraints.rate"),
    "constraint_bias": Text(("q", "v"), _said(closed_system.constraint_bias, 2), ("t",), method="constraints.bias"),
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
    "closure_coordinates": Text(("q",), _left_free(closure_coordinates), method="constraints.coordinates"),
    "closure_velocities": Text(("q", "v"), _left_free(closure_velocities), method="constraints.velocities"),
    "closure_efforts": Text(("q", "along_closures"), _left_free(closure_efforts), method="constraints.efforts"),
    # Parts of others, not public.
    "tangent_part": Text(("q", "x"), _tangent_part, ("t", "active")),
    "constraint_push": Text(("q", "multipliers"), _constraint_push, ("t", "active")),
    "correction": Text(
        ("q", "multipliers"),
        lambda t, q, x, time, active: t.closed(q, _still(t, None), time, active=active).held(x)[1],
        ("t", "active"),
    ),
    "held": Text(("q", "v", "vdot", "multipliers"), _said(closed_system.held, 4), ("t",), result=closed_system.Held),
    "closure_wrenches": Text(("q", "v", "multipliers"), _wrenches, ("t",)),
}
"""Functions of models that have closures."""

EVERY = {**CATALOGUE, **CLOSED}
"""All functions."""
