"""What every format is read into: links and joints as plain data, each with the line it was written on.

A description is what the file says, before anything is locked, freed or merged. Readers make it, the checks look
at it, `linkwise.formats.build` turns it into a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from linkwise.model.description import Geometry, JointLimits, Mimic
from linkwise.model.placement import Array, pose

__all__ = ["Description", "JointType", "JointWritten", "LinkWritten"]

JointType = Literal["revolute", "prismatic", "fixed", "floating", "planar"]


@dataclass(frozen=True, slots=True, eq=False)
class LinkWritten:
    """One link: its inertia is 3x3 about the mass centre, in the axes of the link."""

    name: str
    line: int
    mass: float = 0.0
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    visuals: tuple[Geometry, ...] = ()
    collisions: tuple[Geometry, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class JointWritten:
    """One joint: `placement` is the joint's frame in the parent link's, `axis` a unit vector in the joint's frame."""

    name: str
    line: int
    type: JointType
    parent: str
    child: str
    placement: Array = field(default_factory=pose)
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: JointLimits | None = None
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None

    @property
    def single(self) -> bool:
        """Whether one number says where the joint is, so that it can be followed and locked anywhere."""
        return self.type in ("revolute", "prismatic")


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """A whole file; links and joints in the order of the file."""

    name: str
    file: str
    line: int
    links: tuple[LinkWritten, ...]
    joints: tuple[JointWritten, ...]
