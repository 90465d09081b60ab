"""Forces from outside: forces on bodies and disturbances at joints, constant, over time, or by a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.model.model import Model
from linkwise.sim.checks import check_choice
from linkwise.sim.elements import (
    Element,
    Vector,
    Wrenches,
    checked_numbers,
    checked_target,
    law,
    own_parameters,
    tables_in,
    vector,
)
from linkwise.sim.tables import Table
from linkwise.spatial.scalar import Scalar

Load = Any  # numbers, a Table, or a function (t, q, v, p)


def _checked(load: Load, size: int, what: str) -> Load:
    """A function, or a table; constants that differ between members of a batch are a table of one time."""
    if callable(load):  # a table too
        return checked_target(load, size, what)
    try:
        array = np.asarray(load, float)
    except (TypeError, ValueError):
        raise InputError(f"{what} is not made of numbers", got=repr(load)[:80]) from None
    if array.ndim > 1 and array.shape[-1] == size:
        return Table([0.0], array[..., None, :], "held")
    return checked_numbers(load, size, what, one_for_all=True)


class BodyForce(Element):
    """A force and a moment on a body, from outside; of a flexible body, on a node, or on its root, which no mode moves.

    Args:
        model: the mechanism.
        body: name of the body or frame.
        wrench: [moment, force] (6) in N m and N; (..., 6) for the members of a batch, a :class:`Table`, or a function
            ``(t, q, v, p)``.
        frame: whose axes: ``"body"`` (those of the node, if one is given) or ``"world"``.
        point: where the force acts, in the frame of the body or node, m; the moment is then taken about it.
        node: of a flexible body, the node that it acts at, by name or number; the root if not given.

    >>> from linkwise import samples
    >>> arm = samples.planar_arm(2)
    >>> wind = BodyForce(arm, arm.bodies[-1].name, [0, 0, 0, 5.0, 0, 0], frame="world")
    """

    is_actuator = False

    def __init__(
        self,
        model: Model,
        body: str,
        wrench: Load,
        *,
        frame: str = "body",
        point: Sequence[float] = (0.0, 0.0, 0.0),
        node: str | int | None = None,
    ) -> None:
        check_choice("frame", frame, ("body", "world"))
        model.frame(body, node)  # says what is wrong with a name
        self.model, self.body, self.frame, self.node = model, body, frame, node
        self.load = _checked(wrench, 6, "the wrench")
        self.tables = tables_in(self.load)
        self.point = checked_numbers(point, 3, "the point").tolist()

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """At the origin of the body or node, in its axes."""
        given = list(x) if self.tables else law(self.load, t, q, v, p) if callable(self.load) else self.load
        six = vector(given, 6, "the wrench")
        moment, force = six[:3], six[3:]
        if self.frame == "world":
            R = self.model.pose(objects(list(q)), self.body, node=self.node, p=own_parameters(self.model, p))[:3, :3]
            moment, force = list(R.T @ objects(moment)), list(R.T @ objects(force))
        a, f = self.point, force
        arm = [a[1] * f[2] - a[2] * f[1], a[2] * f[0] - a[0] * f[2], a[0] * f[1] - a[1] * f[0]]
        place = self.body if self.node is None else (self.body, self.node)
        return {place: [*(m + c for m, c in zip(moment, arm, strict=True)), *force]}


class ExternalForces(Element):
    """Forces on all bodies at once, as ``f_ext`` of the model's functions has them.

    Args:
        model: the mechanism.
        f_ext: (n_bodies, 6) in body frames, with leading axes for the members of a batch; a :class:`Table` of
            6 n_bodies numbers; or a function ``(t, q, v, p)``.
    """

    is_actuator = False

    def __init__(self, model: Model, f_ext: Load) -> None:
        self.names, n = [body.name for body in model.bodies], 6 * len(model.bodies)
        if not isinstance(f_ext, Table) and not callable(f_ext):
            try:
                array = np.asarray(f_ext, float)
            except (TypeError, ValueError):
                array = np.empty(0)
            if array.shape[-2:] != (len(model.bodies), 6):
                raise InputError(
                    "f_ext has the wrong shape", got=str(np.shape(f_ext)), allowed=f"(..., {len(model.bodies)}, 6)"
                )
            f_ext = array.reshape(*array.shape[:-2], n)
        self.load = _checked(f_ext, n, "f_ext")
        self.tables = tables_in(self.load)

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """As given; bodies on which nothing acts are left out."""
        given = list(x) if self.tables else law(self.load, t, q, v, p) if callable(self.load) else self.load
        flat = vector(given, 6 * len(self.names), "f_ext")
        rows = {name: flat[6 * k : 6 * k + 6] for k, name in enumerate(self.names)}
        return {name: row for name, row in rows.items() if not all(isinstance(a, float) and a == 0.0 for a in row)}


def as_loads(model: Model, f_ext: object) -> tuple[Element, ...]:
    """The argument f_ext of a simulation as elements; those are taken as they are."""
    if f_ext is None:
        return ()
    if isinstance(f_ext, tuple) and all(isinstance(load, Element) for load in f_ext):
        return f_ext
    if isinstance(f_ext, Mapping):
        return tuple(BodyForce(model, body, wrench) for body, wrench in f_ext.items())
    return (ExternalForces(model, f_ext),)
