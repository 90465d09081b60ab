"""Goals of inverse kinematics: frames to be at places, axes to point somewhere, the mass centre to be above.

A goal is one text over any scalar. Its errors come in blocks, each a length (m) or an angle (rad), with Jacobians by
the velocities of the mechanism. The error of a rotation is its rotation vector θu, whose derivative by an angular
velocity ω is taken as ω itself: the gradient of θ²/2 is then exact everywhere, the whole derivative where θ is zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms import energy, jacobian, kinematics
from linkwise.algorithms.catalogue import Trees
from linkwise.array_types import Array
from linkwise.checks import set_finite
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.mechanism.mechanism import Mechanism
from linkwise.spatial import quaternions
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Matrix, Scalar, atan2, cross, quotient, sqrt, where
from linkwise.spatial.vectors import Vec

Kind = Literal["length", "angle"]


@dataclass(frozen=True)
class GoalRows:
    """Some equations of one goal: their errors and the rows of their Jacobian (nv columns)."""

    kind: Kind
    e: list[Scalar]
    J: Matrix


class Goal(ABC):
    """One thing to be reached."""

    weight: float

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Key of the text: all that decides it; what is aimed at is not part of it."""

    @abstractmethod
    def check(self, mechanism: Mechanism) -> None:
        """Raise where this goal makes no sense for a mechanism."""

    @abstractmethod
    def aims(self) -> Array:
        """Aims, as numbers (..., k)."""

    @abstractmethod
    def blocks(self, trees: Trees, q: Flat, x: Flat) -> list[GoalRows]:
        """The errors at q, where x (k) is aimed at."""


@dataclass(frozen=True, eq=False)
class Reach(Goal):
    """A body, frame or node is to be at a place.

    Give a ``pose``, or a ``position`` or ``rotation`` or both. Any of them may have leading batch axes.

    Args:
        body: name of a body or frame.
        pose: (..., 4, 4) in the world.
        position: (..., 3) of its origin, or of ``point``, in the world, m.
        rotation: (..., 3, 3) from its axes to the world's.
        point: (3) in its frame, where the position is taken; its origin if left out.
        node: of a flexible body, by name or number.
        weight: how much its errors count beside others', where not all goals can be met.

    Example:
        >>> import linkwise as lw
        >>> lw.Reach("hand", position=(0.4, 0.0, 0.5)).body
        'hand'
    """

    body: str
    pose: ArrayLike | None = None
    position: ArrayLike | None = field(default=None, kw_only=True)
    rotation: ArrayLike | None = field(default=None, kw_only=True)
    point: Sequence[float] | None = field(default=None, kw_only=True)
    node: str | int | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        given = [n for n in ("position", "rotation") if getattr(self, n) is not None]
        if (self.pose is None) == (not given):
            raise InputError(
                f"the goal for {self.body!r} needs one aim",
                got=", ".join((*(["pose"] if self.pose is not None else []), *given)) or "none",
                allowed="a pose, or a position, or a rotation, or the latter two",
            )
        shapes = {"pose": (4, 4), "position": (3,), "rotation": (3, 3)}
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, numbers(name, getattr(self, name), shape))
        for name, R in (("pose", self.pose), ("rotation", self.rotation)):
            if R is not None:
                _check_rotation(f"the {name} for {self.body!r}", np.asarray(R)[..., :3, :3])
        set_finite(self, "point", "a goal", 3)
        set_finite(self, "weight", "a goal", above=0.0)

    @property
    def _has(self) -> tuple[bool, bool]:
        return (self.pose is not None or self.position is not None, self.pose is not None or self.rotation is not None)

    @property
    def key(self) -> Hashable:
        """Frame, point, and whether position and rotation are asked for."""
        return "reach", self.body, self.node, self.point, self._has, self.weight

    def check(self, mechanism: Mechanism) -> None:
        """Raise where there is no such frame."""
        _check_place(mechanism, self.body, self.node)

    def aims(self) -> Array:
        """Position (3), then rotation (9, row by row), as far as asked for."""
        p = self.position if self.pose is None else np.asarray(self.pose)[..., :3, 3]
        R = self.rotation if self.pose is None else np.asarray(self.pose)[..., :3, :3]
        parts = [np.asarray(p)] if p is not None else []
        if R is not None:
            R = np.asarray(R)
            parts.append(R.reshape(*R.shape[:-2], 9))
        return side_by_side(parts)

    def blocks(self, trees: Trees, q: Flat, x: Flat) -> list[GoalRows]:
        """Position first."""
        tree = trees.fast
        place = trees.place(tree, **_at(self.body, self.node))
        at = place.within(kinematics.placed(tree, q), q)
        point = None if self.point is None else Vec.of(self.point)
        J = jacobian.jacobian(tree, q, place, point)
        found = []
        with_position, with_rotation = self._has
        if with_position:
            p = at.p if point is None else at.p + at.R @ point
            found.append(GoalRows("length", list(p - Vec.of(x[:3])), J[3:]))
        if with_rotation:
            R = x[-9:]
            wanted = Mat3([R[0:3], R[3:6], R[6:9]])
            # R R*ᵀ, world axes: what leads from the wanted rotation to this one.
            turn = Mat3([list(wanted @ Vec.of(row)) for row in at.R.m])
            e = quaternions.logarithm(quaternions.normalized(quaternions.from_matrix(turn)))
            found.append(GoalRows("angle", list(e), J[:3]))
        return found


@dataclass(frozen=True, eq=False)
class Aim(Goal):
    """An axis of a body, frame or node is to point at a place, or along a direction; it may turn about that axis.

    Args:
        body: name of a body or frame.
        axis: (3) in its frame.
        at: (..., 3), a point in the world to look at.
        along: (..., 3), a direction in the world; instead of ``at``.
        node: of a flexible body, by name or number.
        weight: how much its errors count beside others', where not all goals can be met.

    Example:
        >>> import linkwise as lw
        >>> lw.Aim("camera", axis=(0, 0, 1), at=(1.0, 0.0, 0.2)).axis
        (0.0, 0.0, 1.0)
    """

    body: str
    axis: Sequence[float]
    at: ArrayLike | None = field(default=None, kw_only=True)
    along: ArrayLike | None = field(default=None, kw_only=True)
    node: str | int | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if (self.at is None) == (self.along is None):
            raise InputError(f"the axis of {self.body!r} needs one aim", allowed="at=, a point, or along=, a direction")
        name = "along" if self.at is None else "at"
        object.__setattr__(self, name, numbers(name, getattr(self, name), (3,)))
        if self.along is not None and not (np.linalg.norm(np.asarray(self.along), axis=-1) > 0.0).all():
            raise InputError(f"along for {self.body!r} has no direction", got="length 0")
        set_finite(self, "axis", "a goal", 3)
        length = float(np.linalg.norm(self.axis))
        if not length > 0.0:
            raise InputError(f"the axis of {self.body!r} has no direction", got=repr(self.axis))
        object.__setattr__(self, "axis", tuple(x / length for x in self.axis))
        set_finite(self, "weight", "a goal", above=0.0)

    @property
    def key(self) -> Hashable:
        """Frame, axis, and whether a point is looked at."""
        return "aim", self.body, self.node, self.axis, self.at is not None, self.weight

    def check(self, mechanism: Mechanism) -> None:
        """Raise where there is no such frame."""
        _check_place(mechanism, self.body, self.node)

    def aims(self) -> Array:
        """The point or the direction (3)."""
        return np.asarray(self.along if self.at is None else self.at)

    def blocks(self, trees: Trees, q: Flat, x: Flat) -> list[GoalRows]:
        """The turn about a × d that is left between the axis a and the direction d."""
        tree = trees.fast
        place = trees.place(tree, **_at(self.body, self.node))
        frame = place.within(kinematics.placed(tree, q), q)
        J = jacobian.jacobian(tree, q, place)
        a = frame.R @ Vec.of(list(self.axis))
        way = Vec.of(x) if self.at is None else Vec.of(x) - frame.p
        inverse = quotient(1.0, sqrt(way.dot(way)))
        d = way * inverse
        across = d.cross(a)
        sine = sqrt(across.dot(across))
        small = sine < 1e-9
        # Straight against d, any turn across will do.
        other = Vec(where(abs(a.x) < 0.5, 1.0, 0.0), where(abs(a.x) < 0.5, 0.0, 1.0), 0.0)
        aside = other.cross(a)
        aside = aside * quotient(1.0, sqrt(aside.dot(aside)))
        backwards = small & (a.dot(d) < 0.0)
        angle = atan2(sine, a.dot(d))
        scale = where(small, 1.0, angle / where(small, 1.0, sine))
        e = [where(backwards, angle * u, s * scale) for u, s in zip(aside, across, strict=True)]
        rows: Matrix = [[], [], []]
        for column in zip(*J, strict=True):
            turn, move = Vec.of(column[:3]), Vec.of(column[3:])
            rate = turn - a * a.dot(turn)
            if self.at is not None:  # the direction to the point turns as the frame moves
                rate = rate + d.cross(move) * inverse
            for row, value in zip(rows, rate, strict=True):
                row.append(value)
        return [GoalRows("angle", e, rows)]


@dataclass(frozen=True, eq=False)
class Balance(Goal):
    """The mass centre is to be at a place.

    Args:
        at: (..., 3) in the world, or (..., 2): its x and y alone.
        weight: how much its errors count beside others', where not all goals can be met.

    Example:
        >>> import linkwise as lw
        >>> lw.Balance((0.0, 0.0)).weight
        1.0
    """

    at: ArrayLike
    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        size = np.shape(self.at)[-1:] or (0,)
        object.__setattr__(self, "at", numbers("at", self.at, (2,) if size == (2,) else (3,)))
        set_finite(self, "weight", "a goal", above=0.0)

    @property
    def key(self) -> Hashable:
        """Number of coordinates that are asked for."""
        return "balance", self.aims().shape[-1], self.weight

    def check(self, mechanism: Mechanism) -> None:
        """Raise where nothing has mass."""
        if not mechanism.mass > 0.0:
            raise InputError("the mass centre cannot be aimed at", got="a model without mass")

    def aims(self) -> Array:
        """The place."""
        return np.asarray(self.at)

    def blocks(self, trees: Trees, q: Flat, x: Flat) -> list[GoalRows]:
        """J from the linear rows of the centroidal momentum matrix."""
        com = energy.center_of_mass(trees.fast, q)
        A = energy.centroidal_momentum_matrix(trees.aligned, q)
        mass = energy.centroidal_inertia(trees.fast, q)[5][5]
        share = quotient(1.0, mass)
        rows = [[a * share for a in row] for row in A[3:]]
        return [GoalRows("length", [c - w for c, w in zip(com, x, strict=False)], rows[: len(x)])]


def numbers(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """An array of finite numbers whose last axes have this shape."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not made of numbers", got=repr(value), allowed=f"shape (..., {shape})") from None
    if array.shape[array.ndim - len(shape) :] != shape or array.ndim < len(shape):
        core = ", ".join(map(str, shape))
        raise InputError(f"{name} has the wrong shape", got=str(array.shape), allowed=f"(..., {core})")
    return array


def side_by_side(parts: Sequence[Array]) -> Array:
    """Arrays (..., k) with their last axes one behind the other; batch axes broadcast."""
    if len(parts) == 1:
        return parts[0]
    if all(part.ndim == 1 for part in parts):
        return np.concatenate(parts)
    try:
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    except ValueError:
        raise InputError(
            "the batches of the goals do not fit together",
            got=", ".join(str(part.shape[:-1]) for part in parts),
            allowed="equal leading axes, or 1 or none where one value serves all",
        ) from None
    return np.concatenate([np.broadcast_to(part, (*batch, part.shape[-1])) for part in parts], axis=-1)


def _at(body: str, node: str | int | None) -> dict[str, Any]:
    return {"body": body} if node is None else {"body": body, "node": node}


def _check_place(mechanism: Mechanism, body: object, node: str | int | None) -> None:
    if not isinstance(body, str):
        raise InputError("a goal's body must be a name", got=repr(body), allowed="the name of a body or frame")
    mechanism.frame(body, node)


def _check_rotation(what: str, R: Array) -> None:
    """Raise unless rows are of length one, at right angles and right-handed. What is not finite converges nowhere."""
    if R.ndim == 2:  # one: without the cost of many small array operations
        x, y, z = R.tolist()
        third = cross(x, y)
        off = max(
            abs(_dot(x, x) - 1.0),
            abs(_dot(y, y) - 1.0),
            abs(_dot(x, y)),
            *(abs(a - b) for a, b in zip(third, z, strict=True)),
        )
    else:
        X, Y, Z = R[..., 0, :], R[..., 1, :], R[..., 2, :]
        products = ((X * X).sum(-1) - 1.0, (Y * Y).sum(-1) - 1.0, (X * Y).sum(-1))
        offs = np.abs(np.concatenate([np.stack(products, -1), np.cross(X, Y) - Z], axis=-1))
        off = float(np.fmax.reduce(offs, axis=None, initial=0.0))
    if off > 1e-6 and off < math.inf:
        raise InputError(f"{what} is not a rotation", got=f"off by {off:.1e}", allowed="R Rᵀ = 1, det R = 1")


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
