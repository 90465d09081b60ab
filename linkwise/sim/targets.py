"""Targets that controllers follow: numbers, functions of time, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.elements import Element, Scalar, Vector, checked_numbers
from linkwise.sim.motion import objects
from linkwise.sim.tables import Table

Target = Any  # a vector, a function (t, p) -> vector, or a table


def checked_target(value: Target, size: int, what: str) -> Target:
    """A function as it is; tables and numbers checked, the latter one for all or one for each."""
    if isinstance(value, Table):
        if value.size != size:
            raise InputError(f"{what} has the wrong length", got=f"a table of {value.size} numbers", allowed=str(size))
        return value
    return value if callable(value) else checked_numbers(value, size, what, one_for_all=True)


def tables_in(*targets: Target) -> tuple[Table, ...]:
    """Those of the targets that are tables."""
    return tuple(target for target in targets if isinstance(target, Table))


def at(element: Element, target: Target, t: Scalar, x: Vector, p: Vector) -> Any:
    """A target of an element at a time; a table's value is in the element's x."""
    if isinstance(target, Table):
        place = element.nx + element.nh
        for table in element.tables:
            if table is target:
                return list(x[place : place + table.size])
            place += table.size
    return target(t, p) if callable(target) else target


def vector(value: Any, size: int, what: str) -> list[Scalar]:
    """So many scalars; one stands for all."""
    values = list(
        np.broadcast_to(np.asarray(value, dtype=object), (size,))
        if np.ndim(value) == 0
        else np.asarray(value, dtype=object).reshape(-1)
    )
    if len(values) != size:
        raise InputError(f"{what} has the wrong length", got=str(len(values)), allowed=str(size))
    return [float(x) if isinstance(x, (int, float, np.floating, np.integer)) else x for x in values]


def difference(model: Model, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
    """q1 less q0 as a velocity, joint by joint."""
    return list(model.difference(objects(list(q0)), objects(list(q1))))


def errors(element: Any, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """How far a state is from an element's targets ``q`` and ``v``: q_d ⊖ q and v_d - v, nv numbers each."""
    model = element.model
    e = difference(model, q, vector(at(element, element.q, t, x, p), model.nq, "the target q"))
    wanted = vector(at(element, element.v, t, x, p), model.nv, "the target v")
    return e, [d - a for d, a in zip(wanted, v, strict=True)]


def model_force(model: Model, function: str, p: Vector, *arguments: Any) -> list[Scalar]:
    """A function of the model, with its own part of p."""
    given = (objects(list(a)) for a in arguments)
    return list(getattr(model, function)(*given, p=own_parameters(model, p)))


def own_parameters(model: Model, p: Vector) -> Any:
    """The part of p that is the model's, or None."""
    size = len(model.parameters.nominal)
    return objects(list(p[:size])) if size else None
