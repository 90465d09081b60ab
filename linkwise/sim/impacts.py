"""Impacts as events: found to the last digit, for methods that integrate between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.contact.scene import kept_points
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.events import Event


@dataclass(frozen=True)
class ImpactEvent(Event):
    """Two surfaces that meet; rigid contacts of a simulation with such events are left to them."""


def impacts(model: Model) -> tuple[ImpactEvent, ...]:
    """Events at which surfaces of a model meet, and part by the laws of their materials (:meth:`Model.impact`).

    For bodies that fly between impacts: what lies, rolls or slides would meet its ground without end, and the run ends
    as ``"zeno"`` where bounces have died away. ``method="moreau"`` goes on from there.

    >>> import linkwise as lw
    >>> b = lw.ModelBuilder("ball")
    >>> ball = lw.Geometry("sphere", (0.1,), None, (1, 1, 1), lw.transform(), "ball")
    >>> b.add_body("ball", joint=lw.Free(), mass=1.0, inertia=[[0.004, 0, 0], [0, 0.004, 0], [0, 0, 0.004]],
    ...            collisions=[ball])
    >>> model = b.build().with_contacts(lw.Ground(), material=lw.Material(restitution=0.8, threshold=0.0))
    >>> motion = lw.simulate(model, [1, 0, 0, 0, 0, 0, 1.1], duration=1.0, events=lw.impacts(model))
    >>> [f"{event.name} at {event.t:.6f} s" for event in motion.events]
    ['ball on ground at 0.451524 s']

    Args:
        model: with contacts.

    Returns:
        One event for each contact point.
    """
    if kept_points(model) is not None:
        raise InputError(
            f"{model.name!r} has too many points for impacts as events",
            got=f"{len(model.contacts.pairs)} pairs of shapes, of which the nearest points are kept",
            do='only=[…] the bodies that touch, or method="moreau"',
        )

    def reach(k: int) -> Callable[..., Any]:
        def gap(t: Any, q: Any, v: Any, p: Any) -> Any:
            points: Any = model._run("contact_points", q)
            return points.gap[k]

        return gap

    def leave(t: float, q: Any, v: Any) -> tuple[Any, Any]:
        return q, np.asarray(model.contacts.impact(q, v, t=t if timed else None).v)

    timed = any(closure.type.time_dependent for closure in model.closures)
    return tuple(
        ImpactEvent(reach(k), direction=-1, action=leave, name=name) for k, name in enumerate(model.contacts.names)
    )
