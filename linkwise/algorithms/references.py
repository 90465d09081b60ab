"""The three ways to write the motion of a place as six numbers.

- ``"mixed"``: world axes, at the place's origin: ω and the velocity of the origin as an onlooker sees them.
- ``"local"``: the place's own axes, at its origin: as one who moves along feels them.
- ``"world"``: world axes, at the world's origin: of the point of the body that is just there.

Everything is found in the first way and changed here into the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from linkwise.spatial.vectors import Force, Vec

if TYPE_CHECKING:
    from linkwise.algorithms.kinematics import Placed

Reference = Literal["mixed", "local", "world"]
REFERENCES: tuple[Reference, ...] = ("mixed", "local", "world")


def seen(reference: Reference, frame: Placed, ang: Vec, lin: Vec) -> tuple[Vec, Vec]:
    """A velocity [ω; v] of a frame, or a column of its Jacobian, from the mixed way."""
    if reference == "local":
        return frame.R.transpose_times(ang), frame.R.transpose_times(lin)
    return (ang, lin) if reference == "mixed" else (ang, lin + frame.p.cross(ang))


def force_seen(reference: Reference, frame: Placed, f: Force) -> Force:
    """A force [N; F] in the mixed way, from one that is dual to velocities written in another."""
    if reference == "local":
        return Force(frame.R @ f.ang, frame.R @ f.lin)
    return f if reference == "mixed" else Force(f.ang - frame.p.cross(f.lin), f.lin)


def acceleration_seen(reference: Reference, frame: Placed, V: tuple[Vec, Vec], A: tuple[Vec, Vec]) -> tuple[Vec, Vec]:
    """The rates of the six numbers of a velocity, from V = [ω; v] and A = [ω'; a] in the mixed way."""
    (omega, v), (omega_dot, a) = V, A
    if reference == "mixed":
        return A
    if reference == "local":  # the axes turn too
        return seen("local", frame, omega_dot, a - omega.cross(v))
    return omega_dot, a + v.cross(omega) + frame.p.cross(omega_dot)
