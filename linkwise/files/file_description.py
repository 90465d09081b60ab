"""Description that every format is read into: links and joints as plain data, each with the line it was written on.

A description is what the file says, before anything is locked, freed or merged. Readers make it, the checks look
at it, `linkwise.files.build` turns it into a model.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field, replace
from linkwise.joints import joint_types
from linkwise.mechanism.actuation import Actuator, Sensor, Spring
from linkwise.mechanism.description import Geometry, JointLimits, Mimic
from linkwise.mechanism.fields import Field
from linkwise.mechanism.placement import pose

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class LinkWritten:
    """One link: its inertia is 3x3 about the mass centre, in the axes of the link."""

    name: str
    line: int
    mass: float = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: FloatArray = field(default_factory=lambda: np.zeros((3, 3)))
    visuals: tuple[Geometry, ...] = ()
    collisions: tuple[Geometry, ...] = ()
    file: str | None = None
    """The file that the line is of, where it is not the description's own."""


@dataclass(frozen=True, slots=True, eq=False)
class JointWritten:
    """One joint between two links.

    Args:
        placement: the joint's frame in the parent link's.
        joint_frame: the joint's frame in the child link's.
        axis: a unit vector in the joint's frame; `axis2` the second of a universal joint, at its zero position.
        pitch: of a helical joint, m per rad.
        limits: of the joint, or of each of its freedoms; damping, friction, stiffness, rest and armature likewise.
        type: the word of the joint's type (:attr:`linkwise.Joint.word`).
        holds_root: whether the file has no such joint, and it only holds a root link to the world.
    """

    name: str
    line: int
    type: str
    parent: str
    child: str
    placement: FloatArray = field(default_factory=pose)
    axis: Vector = (1.0, 0.0, 0.0)
    limits: JointLimits | tuple[JointLimits, ...] | None = None
    damping: float | tuple[float, ...] = 0.0
    friction: float | tuple[float, ...] = 0.0
    mimic: Mimic | None = None
    joint_frame: FloatArray = field(default_factory=pose)
    axis2: Vector = (0.0, 1.0, 0.0)
    pitch: float = 0.0
    stiffness: float | tuple[float, ...] = 0.0
    rest: float | tuple[float, ...] = 0.0
    holds_root: bool = False
    file: str | None = None
    armature: float | tuple[float, ...] = 0.0

    @property
    def single(self) -> bool:
        """Whether one number says where the joint is, so that it can be followed and locked anywhere."""
        return getattr(joint_types()[self.type], "nq", 0) == 1

    def reversed(self) -> JointWritten:
        """The same joint with parent and child changed over; its coordinates stay what they are.

        The motion the other way is the inverse: a turn about the opposite axis. The turns of a universal joint come in
        the opposite order, and so do its coordinates.
        """
        turned: dict[str, Any] = {"axis": _opposite(self.axis)}
        if self.type == "universal":
            turned = {"axis": _opposite(self.axis2), "axis2": _opposite(self.axis)}
            for each in ("limits", "damping", "friction", "stiffness", "rest", "armature"):
                value = getattr(self, each)
                turned[each] = value[::-1] if isinstance(value, tuple) else value
        return replace(
            self,
            parent=self.child,
            child=self.parent,
            placement=self.joint_frame,
            joint_frame=self.placement,
            **turned,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FrameWritten:
    """A named place on a link, or on the world."""

    name: str
    line: int
    link: str
    placement: FloatArray
    file: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ClosureWritten:
    """Closure of a loop as written: frame a is the joint's frame, frame b the child's.

    Args:
        joint: says what stays free; its parent and child are names of links or frames, its placements the frames there.
        implied: whether the poses of the links close it, so that it says nothing where both ends are rigidly connected.
    """

    joint: JointWritten
    implied: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CouplingWritten:
    """Σ c q = offset over joints of one freedom each."""

    name: str
    line: int
    terms: dict[str, float]
    offset: float = 0.0
    file: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PolynomialWritten:
    """Σ c q = a₀ + a₁ x + a₂ x² + … with x = Σ d q - start, over joints of one freedom each."""

    name: str
    line: int
    left: dict[str, float]
    right: dict[str, float]
    polynomial: tuple[float, ...]
    start: float = 0.0
    file: str | None = None


Equipment = TypeVar("Equipment", bound=Actuator | Sensor | Spring | Field)


@dataclass(frozen=True, slots=True, eq=False)
class Written(Generic[Equipment]):
    """An actuator, a sensor, a spring or a field, and where it stands in the file."""

    what: Equipment
    line: int
    file: str | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.what.name


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """A whole file; links and joints in the order of the file."""

    name: str
    file: str
    line: int
    links: tuple[LinkWritten, ...]
    joints: tuple[JointWritten, ...]
    frames: tuple[FrameWritten, ...] = ()
    closures: tuple[ClosureWritten, ...] = ()
    couplings: tuple[CouplingWritten, ...] = ()
    gravity: Vector | None = None
    polynomials: tuple[PolynomialWritten, ...] = ()
    actuators: tuple[Written[Actuator], ...] = ()
    sensors: tuple[Written[Sensor], ...] = ()
    springs: tuple[Written[Spring], ...] = ()
    fields: tuple[Written[Field], ...] = ()
    configurations: tuple[tuple[str, dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]], ...] = ()
    """Names, for each joint its coordinates, and for each joint that moves its velocity."""
    world_collisions: tuple[Geometry, ...] = ()
    """Shapes for contact that are fixed to the world."""
    contact_excludes: tuple[tuple[str, str], ...] = ()
    """Links whose shapes do not touch."""


def _opposite(axis: Vector) -> Vector:
    x, y, z = axis
    return (0.0 - x, 0.0 - y, 0.0 - z)
