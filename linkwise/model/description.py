"""What a model keeps beside its mechanics: the limits of a joint, which joint follows which, what a body looks like.

Plain frozen data. The algorithms never look at shapes; simulation, drawing and collision checking do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Geometry", "JointLimits", "Mimic"]


@dataclass(frozen=True, slots=True)
class JointLimits:
    """The range of a joint's coordinate, and the most it may move and push; infinite where nothing is said."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True, slots=True)
class Mimic:
    """This joint has no coordinate of its own: ``q = multiplier * q[joint] + offset``."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Geometry:
    """One shape fixed to a link, for the eye or for collisions.

    A mesh is named, not read: its path stays as the file has it (``package://...``), to be resolved by whoever draws.

    Args:
        kind: what the shape is.
        size: box ``(x, y, z)`` edge lengths, sphere ``(radius,)``, cylinder and capsule ``(radius, length)`` along z
            (the capsule's caps not counted), mesh ``()``.
        mesh: the mesh's path as written, None for the other kinds.
        scale: factors along the mesh's axes.
        placement: the 4x4 pose of the shape in the link's frame, as rows.
        name: the name of the link that carries it.
    """

    kind: Literal["mesh", "box", "sphere", "cylinder", "capsule"]
    size: tuple[float, ...]
    mesh: str | None
    scale: tuple[float, float, float]
    placement: tuple[tuple[float, ...], ...]
    name: str
