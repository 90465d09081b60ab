"""Results of the functions of models that have contacts."""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.spatial.scalar import Scalar


class ContactStep(NamedTuple):
    """The end of a step.

    Args:
        q: configuration.
        v: velocity.
        impulses: N s (N m s), of every row.
        gaps: of every point, m.
        residuals: what the laws are missed by: Signorini's in m/s, the cone in N s, dissipation in J.
        overflow: contact points for which there was no room.
    """

    q: list[Scalar]
    v: list[Scalar]
    impulses: list[Scalar]
    gaps: list[Scalar]
    residuals: list[Scalar]
    overflow: Scalar


class Impact(NamedTuple):
    """Result of an impact.

    Args:
        v: velocity after it.
        impulses: N s (N m s), of every row of every point.
    """

    v: list[Scalar]
    impulses: list[Scalar]


class StepAccount(NamedTuple):
    """The end of a step and its account of energy; see :class:`linkwise.contact.step.AccountedStep`."""

    q: Any
    v: Any
    impulses: Any
    gaps: Any
    residuals: Any
    overflow: Any
    work: Any
    mean: Any
    change: Any
    shift: Any


class ContactForces(NamedTuple):
    """Forces of compliant contacts in a state.

    Args:
        forces: N (N m), along every row of every point.
        overflow: contact points for which there was no room.
    """

    forces: Any
    overflow: Any


class ContactPush(NamedTuple):
    """Joint impulses, N m s or N s, by what they come from.

    Args:
        contact: of contact points (nv).
        limits: of the ends of joints' ranges (nv).
        friction: of dry friction of joints (nv).
    """

    contact: Any
    limits: Any
    friction: Any


class ContactPoints(NamedTuple):
    """Where bodies touch or come nearest, for every contact point.

    Args:
        gap: m (n), negative where surfaces overlap.
        point: in the world, m (n, 3), midway between the surfaces.
        normal: unit vector from the second surface to the first (n, 3).
        tangents: two unit vectors across it (n, 2, 3), along which friction is written.
        number: of the point (n): 8 times the place of its pair in ``model.contacts.pairs``, and its own place among
            those of the pair, from 1 on; 0 for a point of a crowd that is not used.
    """

    gap: Any
    point: Any
    normal: Any
    tangents: Any
    number: Any
