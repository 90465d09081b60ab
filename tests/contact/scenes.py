"""Bodies and grounds with exact answers."""

from __future__ import annotations

from typing import Any

import numpy as np

import linkwise as lw

G = 9.81


def shape(kind: Any, size: tuple[float, ...], placement: Any = None) -> lw.Geometry:
    """A shape for contact."""
    rows = np.eye(4) if placement is None else np.asarray(placement, float)
    return lw.Geometry(kind, size, None, (1.0, 1.0, 1.0), tuple(map(tuple, rows.tolist())), "")


def tilted(angle: float, axis: int = 1) -> np.ndarray:
    """A pose turned about x (0), y (1) or z (2)."""
    c, s = np.cos(angle), np.sin(angle)
    pose = np.eye(4)
    i, j = ((1, 2), (2, 0), (0, 1))[axis]
    pose[i, i], pose[i, j], pose[j, i], pose[j, j] = c, -s, s, c
    return pose


def one_body(kind: Any, size: tuple[float, ...], mass: float, inertia: list[float], joint: Any = None) -> lw.Model:
    """A free body of one shape."""
    b = lw.ModelBuilder("thing")
    given = {"mass": mass, "inertia": np.diag(inertia), "collisions": [shape(kind, size)]}
    b.add_body("thing", joint=lw.Free() if joint is None else joint, **given)
    return b.build()


def ball(radius: float = 0.1, mass: float = 1.0) -> lw.Model:
    """A solid sphere."""
    return one_body("sphere", (radius,), mass, [0.4 * mass * radius**2] * 3)


def block(x: float = 0.2, y: float = 0.2, z: float = 0.1, mass: float = 1.0) -> lw.Model:
    """A solid box."""
    inertia = [mass * (a * a + b * b) / 12.0 for a, b in ((y, z), (z, x), (x, y))]
    return one_body("box", (x, y, z), mass, inertia)


def placed(height: float, pose: np.ndarray | None = None) -> np.ndarray:
    """The q of a free body at a height above a ground of this pose, turned with it."""
    pose = np.eye(4) if pose is None else pose
    angle = 0.5 * np.arctan2(pose[0, 2], pose[2, 2])
    at = pose[:3, 3] + pose[:3, 2] * height
    return np.array([np.cos(angle), 0.0, np.sin(angle), 0.0, *at])


def contact(run: lw.Trajectory, what: str) -> np.ndarray:
    """``"impulses"``, ``"gaps"`` or ``"residuals"`` of a simulation's contacts, at all samples."""
    return np.asarray(run._values[f"contact_{what}"])
