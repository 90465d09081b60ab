"""States of a closed mechanism on numbers: at the start of a run, and after events.

A closure that takes hold where it is keeps the offset that its event found in the states of an element.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from linkwise.algorithms.catalogue import Trees
from linkwise.array_types import Array
from linkwise.errors import InputError, ModelWarning, UnknownNameError, message
from linkwise.mechanism.bodies_and_joints import Named
from linkwise.mechanism.closures import CapturedClosure, ClosureInstance, RelationInstance
from linkwise.model.closures import OPEN
from linkwise.model.model import Model
from linkwise.sim.chart import Instant
from linkwise.sim.elements import Element, Vector
from linkwise.sim.events import Event
from linkwise.sim.motion import EquationsOfMotion
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar

_CLOSED = 1e-14
_NEWTON = 6  # steps at most
_ASKEW = 1e-8  # of a velocity, above which it is said that it was projected


class ClosedStates:
    """Residuals of closures at states (k, ny) of a simulation at times (k)."""

    def __init__(self, motion: EquationsOfMotion, t: Array, y: Array, p: Array, tol: float = OPEN) -> None:
        self.motion, self.model, self.tol = motion, motion.model, tol
        self.q, self.v, x = (np.array(part, float) for part in np.split(y, [motion.nq, motion.nq + motion.nv], axis=1))
        self.given: dict[str, Any] = {}
        if motion.model.parameters.names:
            rows = zip(np.asarray(t, float), self.q, self.v, x, np.asarray(p, float), strict=True)
            self.given["p"] = np.array(
                [motion.model_parameters(motion.in_force(Instant(*row)).p) for row in rows], float
            )
        if motion.is_timed:
            self.given["t"] = np.array(t, float)
        if motion.switches:
            self.given["active"] = x[:, motion.nx - motion.switches :]

    @property
    def error(self) -> Array:
        """e (k, ·); zeros for closures that are released."""
        return self.model._run("closure_error", self.q, **self.given)

    @property
    def rate(self) -> Array:
        """ė (k, m)."""
        return self.model._run("closure_rate", self.q, self.v, **self.given)

    def close(self, do: str) -> None:
        """Put q where all is closed to rounding; what is open by more is refused, with the closure's name."""
        e = self.error
        self.model._refuse("is open", np.where(np.isnan(e), 0.0, e), self.model._place_labels, self.tol, do)
        size = _largest(e)
        for _ in range(_NEWTON):
            moving = size > _CLOSED  # each state by itself: what its neighbours need does not change it by a bit
            if not moving.any():
                return
            closer = self.model._run("project_configuration", self.q, **self.given)
            self.q = np.where(moving[:, None], closer, self.q)
            later = _largest(self.error)
            size = np.where(moving & (later < size), later, 0.0)

    def obey(self) -> Array:
        """Put v where it obeys; the impulses (k, m) that this takes."""
        self.v, impulses = self.model._run("impulse", self.q, self.v, **self.given)
        return np.asarray(impulses)


def _largest(e: Array) -> Array:
    """The largest residual of each state (k); 0 for those that are not made of numbers."""
    return np.asarray(np.nan_to_num(np.abs(e), nan=0.0).max(axis=1, initial=0.0))


def start_closed(motion: EquationsOfMotion, t: float, y: Array, p: Array, tol: float, v_given: bool) -> Array:
    """States (k, ny) to start from: closed, and moving as the closures allow."""
    states = ClosedStates(motion, np.full(len(y), float(t)), y, p, tol)
    states.close("assemble it first: q0 = model.assemble(q0); or name it in released=")
    before = np.abs(states.rate)
    size = 1.0 + np.abs(states.v).max(axis=1, initial=0.0, keepdims=True)
    states.obey()
    against = np.nan_to_num(before / size, nan=0.0, posinf=0.0)
    if v_given and against.max(initial=0.0) > max(_ASKEW, 1e-2 * tol):
        state, equation = np.unravel_index(int(np.argmax(against)), against.shape)
        warnings.warn(
            ModelWarning(
                f"v0 moves against closure {motion.model._labels[equation][0]!r}, and was projected onto the closures",
                got=f"rates up to {before[state, equation]:.3g} rad/s or m/s",
                do="v0 = model.constraints.project_velocity(q0, v0) says the same",
            ),
            stacklevel=3,
        )
    made = y.copy()
    made[:, : motion.nq], made[:, motion.nq : motion.nq + motion.nv] = states.q, states.v
    return made


def drift(motion: EquationsOfMotion, t: Array, y: Array, p: Array, tol: float) -> str:
    """Warning of what closures lost on the way to states (k, ny), told of the one furthest off; empty if nothing."""
    error = np.nan_to_num(np.abs(ClosedStates(motion, t, y, p).error), nan=0.0, posinf=0.0)
    if not error.size or error.max() <= tol:
        return ""
    _, equation = np.unravel_index(int(np.argmax(error)), error.shape)
    name, which = motion.model._place_labels[equation]
    return message(
        f"closure {name!r} did not stay closed",
        got=f"a residual of {error.max():.3g} ({which}) at the end",
        do="smaller steps; see whether closures contradict each other: motions that are prescribed twice, or that the "
        "others do not allow",
    )


def check_switched(model: Model, events: Sequence[Event]) -> None:
    """Refusal of events that attach or release something that is not there."""
    known = [closure.name for closure in model.closures]
    for event in events:
        for name in (*event.attach, *event.release):
            if name not in known:
                raise UnknownNameError(f"closure (event {event.name!r})", name, known)


def closure_flags(model: Model, released: str | Sequence[str]) -> Array:
    """1 for each closure in force, 0 for those that are released by name."""
    names = (released,) if isinstance(released, str) else tuple(released)
    known = [closure.name for closure in model.closures]
    for name in names:
        if name not in known:
            raise UnknownNameError("closure", name, known)
    return np.array([0.0 if name in names else 1.0 for name in known])


class Capture(Element):
    """Place where a closure took hold: a rotation vector, a shift, and the time; they change at events alone.

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
        """The closure, and the time in which it is drawn in."""
        return type(self).__name__, self.closure, self.latch

    @property
    def state_names(self) -> tuple[str, ...]:
        """Of the offset and the time."""
        axes = [f"turn {a}" for a in "xyz"] + list("xyz")
        return (*(f"{self.closure}.offset {a}" for a in axes), f"{self.closure}.since")

    def parameters(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> NamedNumbers:
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


def offset_between(model: Model, name: str, q: Sequence[float], p: Flat) -> Array:
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
