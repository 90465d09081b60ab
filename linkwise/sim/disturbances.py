"""Forces on bodies and disturbances at joints, constant, over time, or by a function; and compliant connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_choice
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.mechanism.body_checks import checked_pose
from linkwise.model.model import Model, checked_model
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
        checked_model(model).frame(body, node)  # says what is wrong with a name
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


End = tuple[str, Array, str | int | None]
"""A body, a placement (4, 4) on it, and the node that this starts from."""


class Bushing(Element):
    """Springs and dampers along and about the axes of a frame a, which pull a frame b towards it.

    With R and d the rotation and the position of b seen from a, the springs stretch by d and by θ = 2 tan(φ/2) n, φ
    being the angle and n the axis of R: for small turns the rotation vector, and smooth up to a half turn. The energy
    is ½d*K d + ½θ*K_r θ, and what acts on b acts on a in the opposite sense, so that momenta are kept.

    Args:
        model: the mechanism.
        body_a: name of a body or frame, or "world".
        body_b: likewise; the two must move against each other.
        stiffness: along x, y, z of a, N/m; one number for all.
        turning_stiffness: about x, y, z of a, N m/rad.
        damping: along x, y, z, N s/m.
        turning_damping: about x, y, z, N m s/rad.
        placement_a: 4×4 pose of frame a on its body; the body's own frame if not given.
        placement_b: likewise of frame b.
        node_a: of a flexible body a, the node that ``placement_a`` starts from, by name or number; else its root.
        node_b: likewise of body b.
    """

    is_actuator = False
    cause = "springs"

    def __init__(
        self,
        model: Model,
        body_a: str,
        body_b: str,
        stiffness: float | Sequence[float] = 0.0,
        turning_stiffness: float | Sequence[float] = 0.0,
        damping: float | Sequence[float] = 0.0,
        turning_damping: float | Sequence[float] = 0.0,
        *,
        placement_a: ArrayLike | None = None,
        placement_b: ArrayLike | None = None,
        node_a: str | int | None = None,
        node_b: str | int | None = None,
    ) -> None:
        self.model = checked_model(model)
        places = [(body_a, placement_a, node_a), (body_b, placement_b, node_b)]
        frames = [model.frame(body, node) for body, _, node in places]
        if len({(frame.body, frame.node) for frame in frames}) == 1:
            raise InputError(
                "a bushing is between two places of one rigid body",
                got=f"{body_a!r} and {body_b!r}",
                allowed="bodies that can move against each other",
            )
        self.ends = [
            (body, np.array(checked_pose(np.eye(4) if X is None else X, f"the placement of {body!r}")), node)
            for body, X, node in places
        ]
        given = (
            ("stiffness", stiffness),
            ("turning_stiffness", turning_stiffness),
            ("damping", damping),
            ("turning_damping", turning_damping),
        )
        numbers = [checked_numbers(values, 3, f"the {what} of a bushing", one_for_all=True) for what, values in given]
        for (what, _), each in zip(given, numbers, strict=True):
            if (each < 0.0).any():
                raise InputError(f"the {what} of a bushing is negative", got=str(each), allowed="numbers >= 0")
        self.k, self.k_turning, self.c, self.c_turning = numbers

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """The joint forces that the pull on both frames amounts to."""
        own = own_parameters(self.model, p)
        (X_a, J_a), (X_b, J_b) = (self._moving(end, q, own) for end in self.ends)
        R_a, d, theta = self._stretch(X_a, X_b)
        V_a, V_b = J_a @ v, J_b @ v
        arm = X_b[:3, 3] - X_a[:3, 3]
        omega = R_a.T @ (V_b[:3] - V_a[:3])
        d_dot = R_a.T @ (V_b[3:] - V_a[3:] - np.cross(V_a[:3], arm))
        half = 0.5 * theta
        theta_dot = omega - np.cross(half, omega) + half * (half @ omega)
        pull = R_a @ (-(self.k * d) - self.c * d_dot)
        along = -(self.k_turning * theta) - self.c_turning * theta_dot
        couple = R_a @ (along + np.cross(half, along) + half * (half @ along))
        total: Vector = J_b.T @ np.concatenate([couple, pull])
        return total - J_a.T @ np.concatenate([couple + np.cross(arm, pull), pull])

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """½d*K d + ½θ*K_r θ."""
        own = own_parameters(self.model, p)
        _, d, theta = self._stretch(*(self._pose(end, q, own) for end in self.ends))
        return 0.5 * (d @ (self.k * d) + theta @ (self.k_turning * theta))

    def _pose(self, end: End, q: Vector, p: Array | None) -> Array:
        body, placement, node = end
        if body == "world":
            return placement.astype(object)
        return self.model.pose(q, body, node=node, p=p) @ placement

    def _moving(self, end: End, q: Vector, p: Array | None) -> tuple[Array, Array]:
        """The pose of a frame, and its Jacobian at its origin in world axes."""
        body, placement, node = end
        X = self._pose(end, q, p)
        if body == "world":
            return X, np.zeros((6, self.model.nv), object) + 0.0
        point = placement[:3, 3].astype(object)
        return X, self.model.jacobian(q, body, point, node=node, p=p)

    @staticmethod
    def _stretch(X_a: Array, X_b: Array) -> tuple[Array, Array, Array]:
        """R_a, d and θ."""
        R_a = X_a[:3, :3]
        R, d = R_a.T @ X_b[:3, :3], R_a.T @ (X_b[:3, 3] - X_a[:3, 3])
        skew = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        return R_a, d, skew * (2.0 / (1.0 + (R[0, 0] + R[1, 1] + R[2, 2])))
