"""Closures that take hold where they are: the offset that an event found, kept as states of an element."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from linkwise.algorithms.catalogue import Trees
from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.mechanism.bodies_and_joints import Named
from linkwise.mechanism.closures import CapturedClosure, ClosureInstance, RelationInstance
from linkwise.model.model import Model
from linkwise.sim.elements import Element, Scalar, Vector
from linkwise.sim.events import Event


class Capture(Element):
    """Where a closure took hold: a rotation vector, a shift, and the time; they change at events alone.

    Args:
        closure: its name.
        latch: s in which what was open is drawn to nothing; 0 for never.
    """

    nh = 7
    is_actuator = False
    changes_closures = True

    def __init__(self, closure: str, latch: float) -> None:
        self.closure, self.latch = closure, float(latch)

    @property
    def signature(self) -> Hashable:
        """Which closure it is, and how fast it is drawn in."""
        return type(self).__name__, self.closure, self.latch

    @property
    def state_names(self) -> tuple[str, ...]:
        """Of the offset and the time."""
        axes = [f"turn {a}" for a in "xyz"] + list("xyz")
        return (*(f"{self.closure}.offset {a}" for a in axes), f"{self.closure}.since")

    def parameters(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Any]:
        """The numbers of its closure."""
        return {f"{self.closure}.offset": x[:6], f"{self.closure}.since": x[6:7]}

    def fitted(self, model: Model) -> Model:
        """The model with a closure that can take hold anywhere."""
        made = [_anywhere(each, self.latch) if each.name == self.closure else each for each in model.closures]
        return replace(model, closures=Named(made))


def captures_of(events: Sequence[Event]) -> tuple[Capture, ...]:
    """An element for each closure that some event lets take hold where it is."""
    latches: dict[str, float] = {}
    for event in events:
        for name in event.attach if event.where == "here" else ():
            if latches.setdefault(name, event.latch) != event.latch:
                raise InputError(
                    f"two events draw the closure {name!r} in differently",
                    got=f"latch={latches[name]} and latch={event.latch}",
                    allowed="one latch for each closure",
                )
    return tuple(Capture(name, latch) for name, latch in latches.items())


def offset_between(model: Model, name: str, q: Sequence[float], p: Any) -> Array:
    """Frame b of a closure seen from frame a (6): a rotation vector, rad, and a shift, m."""
    a, b = (np.array(pose, float) for pose in Trees(model, p).ends(name, q))
    X = np.linalg.solve(a, b)
    return np.concatenate([Rotation.from_matrix(X[:3, :3]).as_rotvec(), X[:3, 3]])


def _anywhere(closure: ClosureInstance | RelationInstance, latch: float) -> ClosureInstance:
    """The closure in a frame that an event finds."""
    if not isinstance(closure, ClosureInstance) or closure.type.rate_equations:
        raise InputError(
            f"{closure.name!r} cannot take hold where it is",
            got=f"a {closure.type.kind}",
            allowed="closures between the places of two frames: lw.Fixed(), lw.Spherical(), …",
        )
    if closure.is_active or closure.limits:
        raise InputError(
            f"{closure.name!r} cannot take hold where it is",
            got="springs, friction or limits of the freedoms that it leaves",
            do="put these on a joint of the tree",
        )
    return replace(closure, type=CapturedClosure(closure.type, latch))
