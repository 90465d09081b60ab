"""Constituents of a mechanism: parts, bodies, joints in their places, frames. Frozen, and found by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, SupportsIndex, TypeVar, overload

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field
from linkwise.errors import UnknownNameError
from linkwise.joints import Joint
from linkwise.mechanism.description import Geometry, JointLimits, Mimic

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody
    from linkwise.flexible.structure import NodeKey

Pose = tuple[tuple[float, ...], ...]  # 4×4 as rows: hashable, comparable, and safe to share
IDENTITY: Pose = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Part:
    """A rigid piece of a body: its own inertia, placed in the body's frame. Bodies welded together are parts of one."""

    name: str
    placement: Pose
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float]
    """About the mass centre, in the part's axes: xx, yy, zz, xy, xz, yz."""
    node: int = 0
    """Of a flexible body, the place in its ``nodes`` that ``placement`` starts from."""

    def __repr__(self) -> str:
        return f"<Part {self.name!r}: {self.mass:.6g} kg, mass centre {_shown(self.com)}>"


@dataclass(frozen=True, slots=True)
class Body:
    """A moving body: where its inboard joint sits in the parent, and the parts that make it up."""

    name: str
    index: int
    parent: int
    """Index of the parent body; -1 for the world."""
    placement: Pose
    """The inboard joint's frame in the parent body's frame."""
    parts: tuple[Part, ...]
    visuals: tuple[Geometry, ...] = ()
    collisions: tuple[Geometry, ...] = ()
    """Shapes for contact, as given; each has the name of the link that it belongs to."""
    joint_frame: Pose = IDENTITY
    """The inboard joint's frame in this body's own frame: the two placements coincide at the joint's zero position."""
    node: int = 0
    """Of a flexible parent, the place in its ``nodes`` that ``placement`` starts from."""
    flexible: FlexibleBody | None = None
    """Flexible body; its root is this body's frame."""
    q_slice: slice = field(default_factory=lambda: slice(0, 0), hash=False)
    """The modal coordinates η of a flexible body in q, right before those of its joint; empty for a rigid one."""
    v_slice: slice = field(default_factory=lambda: slice(0, 0), hash=False)
    """Their rates η̇ in v."""

    def __repr__(self) -> str:
        on = "the world" if self.parent < 0 else f"body {self.parent}"
        bends = f", {self.modes} modes" if self.modes else ""
        return f"<Body {self.name!r}: number {self.index}, on {on}, {self.mass:.6g} kg{bends}>"

    @property
    def modes(self) -> int:
        """The number of modal coordinates."""
        return 0 if self.flexible is None else self.flexible.modes

    @property
    def mass(self) -> float:
        """Mass in kg, welded parts included."""
        return sum(part.mass for part in self.parts) + (0.0 if self.flexible is None else self.flexible.mass)

    @property
    def com(self) -> FloatArray:
        """Mass centre (3) in the body's frame, m, welded parts included; undeformed. NaN for a body without mass."""
        pieces = self._pieces()
        total = sum(m for m, _, _ in pieces)
        if not total > 0.0:
            return np.full(3, np.nan)
        centre: FloatArray = np.sum([m * c for m, c, _ in pieces], axis=0) / total
        return centre

    @property
    def inertia(self) -> FloatArray:
        """3×3 about the mass centre, in the body's axes, kg m², welded parts included; undeformed."""
        pieces, centre = self._pieces(), np.nan_to_num(self.com)
        whole = np.zeros((3, 3))
        for m, c, J in pieces:
            d = c - centre
            whole += J + m * (d @ d * np.eye(3) - np.outer(d, d))
        return whole

    def _pieces(self) -> list[tuple[float, FloatArray, FloatArray]]:
        """Mass, mass centre and inertia about it of everything the body is made of, in its frame."""
        found = []
        if self.flexible is not None:
            found.append((self.flexible.mass, self.flexible.com, self.flexible.inertia))
        for part in self.parts:
            T = np.array(part.placement, float)
            if self.flexible is not None:
                T[:3, 3] += self.flexible.nodes[part.node].position
            xx, yy, zz, xy, xz, yz = part.inertia
            J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)
            found.append((part.mass, T[:3, :3] @ np.array(part.com) + T[:3, 3], T[:3, :3] @ J @ T[:3, :3].T))
        return found


@dataclass(frozen=True, slots=True)
class JointInstance:
    """The inboard joint of one body: its type, its place in q and v, and what else is known of it.

    ``armature`` (rotor inertia seen at the joint, kg m² or kg) enters every dynamics function. ``damping``,
    ``friction``, springs (``stiffness``, relaxed at ``rest``) and ``limits`` do not: the equations of motion are those
    of the ideal joint. Simulation uses them all, and but for limits so does what linearises, balances or explains a
    motion; ``random_configuration`` uses the position limits.
    """

    name: str
    index: int
    type: Joint
    q_slice: slice
    """This joint's part of q; that of the joint it follows, for a mimic."""
    v_slice: slice
    limits: tuple[JointLimits, ...]
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    mimic: Mimic | None = None
    stiffness: tuple[float, ...] = ()
    """N m/rad or N/m, one for each freedom."""
    rest: tuple[float, ...] = ()
    """The coordinates at which the springs are relaxed, one for each freedom."""

    def __repr__(self) -> str:
        places = f"q[{self.q_slice.start}:{self.q_slice.stop}], v[{self.v_slice.start}:{self.v_slice.stop}]"
        ends = [
            f"{each.lower:.4g} … {each.upper:.4g}"
            for each in self.limits
            if each.lower > -math.inf or each.upper < math.inf
        ]
        follows = [f"follows {self.mimic.joint!r}"] if self.mimic else []
        return f"<Joint {self.name!r}: {', '.join([repr(self.type), places, *ends, *follows])}>"

    @property
    def nq(self) -> int:
        """Numbers in this joint's part of q."""
        return self.type.nq

    @property
    def nv(self) -> int:
        """Numbers in this joint's part of v."""
        return self.type.nv


@dataclass(frozen=True)
class Frame:
    """A named place on a body (or on the world, ``body`` = -1)."""

    name: str
    body: int
    placement: Pose
    node: int = 0
    """Of a flexible body, the place in its ``nodes`` that ``placement`` starts from."""

    def __repr__(self) -> str:
        on = "the world" if self.body < 0 else f"body {self.body}"
        return f"<Frame {self.name!r}: on {on}, at {_shown([row[3] for row in self.placement[:3]])}>"


def _shown(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"


def number_of_node(flexible: FlexibleBody, key: NodeKey) -> int:
    """The place of a node in ``flexible.nodes``, from its name or number."""
    node = flexible.node(key)
    return next(i for i, known in enumerate(flexible.nodes) if known is node)


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


NamedT = TypeVar("NamedT", bound=_HasName, covariant=True)


class Named(tuple[NamedT, ...]):
    """A tuple whose elements are also found by name."""

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> NamedT: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[NamedT, ...]: ...
    def __getitem__(self, key: str | SupportsIndex | slice) -> NamedT | tuple[NamedT, ...]:
        """The element of this name, or at this place."""
        if isinstance(key, str):
            for element in self:
                if element.name == key:
                    return element
            raise UnknownNameError(self._kind, key, self.names)
        return super().__getitem__(key)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all elements, in order."""
        return tuple(element.name for element in self)

    def _ipython_key_completions_(self) -> list[str]:
        """Names that complete inside ``model.bodies["``."""
        return list(self.names)

    @property
    def _kind(self) -> str:
        """The word for an element in messages."""
        kinds = {type(element).__name__.removesuffix("Instance").lower() for element in self}
        if len(kinds) != 1:
            return "closure" if kinds else "element"
        (kind,) = kinds
        return {"relation": "closure", "closurefreedoms": "closure"}.get(kind, kind)


def rows(X: Pose | FloatArray) -> Pose:
    """A 4×4 pose as tuples of Python's own numbers."""
    return tuple(map(tuple, np.asarray(X, float).tolist()))


def is_identity(X: Pose | FloatArray) -> bool:
    """Whether a pose is the identity to the last bit."""
    return X is IDENTITY or np.array_equal(np.asarray(X), np.eye(4))


def product(X: Pose | FloatArray, Y: Pose | FloatArray) -> Pose:
    """X Y as rows; what an identity would leave stays to the last bit."""
    if is_identity(X):
        return rows(Y)
    return rows(X) if is_identity(Y) else rows(np.array(X) @ np.array(Y))
