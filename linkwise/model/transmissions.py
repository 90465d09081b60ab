"""What a transmission does, over any scalar: its length, its speed, and where its force goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.functions.scalar_arrays import scalar_array
from linkwise.mechanism.actuation import FrameTransmission, JointTransmission, PathTransmission, Transmission
from linkwise.mechanism.wrapping import Wrap
from linkwise.spatial.scalar import Scalar, sqrt, where

if TYPE_CHECKING:
    from linkwise.model.model import Model

Vector = Any  # an object array or a sequence of scalars

_COINCIDENT = 1e-15  # m: nearer than this, there is no direction from one point to the other


class Stretch(NamedTuple):
    """The length of a tendon through space, and how it grows with the motion of what carries it.

    For each carrier, by name, [moment, force] (6) at its origin and in world axes that a unit of force along the tendon
    exerts: l̇ is the sum of their powers.
    """

    length: Scalar
    pulls: dict[str, Any]


class MovingFrames:
    """Where frames are in one state and how they move, each found once.

    Args:
        model: the mechanism.
        q: configuration (nq).
        v: velocity (nv); none where nothing is asked about speeds.
        p: the model's own run-time parameters, None for the nominal ones.
    """

    def __init__(self, model: Model, q: Vector, v: Vector | None = None, p: Vector | None = None) -> None:
        self.model, self.q, self.v, self.p = model, q, v, p
        self._poses: dict[str, Any] = {}
        self._twists: dict[str, Any] = {}
        self._stretched: dict[PathTransmission, Stretch] = {}

    def carrier(self, name: str) -> str:
        """What a frame moves with: its body, "world", or itself where it sits on a node of a flexible body."""
        frame = self.model.frame(name)
        return name if frame.node else "world" if frame.body < 0 else str(self.model.bodies[frame.body].name)

    def pose(self, name: str) -> Any:
        """4×4 of a body or frame in the world."""
        if name not in self._poses:
            on = self.carrier(name)
            if on == "world":
                self._poses[name] = np.array(self.model.frame(name).placement).astype(object)
            elif on == name:
                self._poses[name] = self.model.pose(scalar_array(self.q), name, p=self.p)
            else:
                self._poses[name] = self.pose(on) @ np.array(self.model.frame(name).placement)
        return self._poses[name]

    def twist(self, name: str) -> Any:
        """[ω, v] (6) of a body or frame at its origin, world axes."""
        if name not in self._twists:
            on = self.carrier(name)
            if on == "world":
                found = np.zeros(6, object) + 0.0
            elif on == name:
                found = self.model.velocity(scalar_array(self.q), scalar_array(self.v), name, p=self.p)
            else:
                whole = self.twist(on)
                arm = self.pose(name)[:3, 3] - self.pose(on)[:3, 3]
                found = np.concatenate([whole[:3], whole[3:] + np.cross(whole[:3], arm)])
            self._twists[name] = found
        return self._twists[name]

    def stretch(self, way: PathTransmission) -> Stretch:
        """The length of a tendon through space, and what it pulls."""
        if way not in self._stretched:
            self._stretched[way] = self._stretch(way)
        return self._stretched[way]

    def _stretch(self, way: PathTransmission) -> Stretch:
        total: Scalar = 0.0
        pulls: dict[str, Any] = {}

        def pull(name: str, point: Any, along: Any, factor: Any) -> None:
            on = self.carrier(name)
            if on != "world":
                force = along * factor
                wrench = np.concatenate([np.cross(point - self.pose(on)[:3, 3], force), force])
                pulls[on] = pulls[on] + wrench if on in pulls else wrench

        for stops, factor in way.paths:
            around: Wrap | None = None
            start = stops[0]
            for stop in stops[1:]:
                if isinstance(stop, Wrap):
                    around = stop
                    continue
                assert isinstance(start, str)
                a, b = self.pose(start)[:3, 3], self.pose(stop)[:3, 3]
                straight, unit = _norm_and_unit(b - a)
                from_a = to_b = unit
                if around is None:
                    total = total + straight * factor
                else:
                    centre, R = self.pose(around.frame)[:3, 3], self.pose(around.frame)[:3, :3]
                    touch = around.touch(list(R.T @ (a - centre)), list(R.T @ (b - centre)), self._side(around))
                    first, last = (centre + R @ np.array(point, object) for point in (touch.first, touch.last))
                    (before, to_first), (after, from_last) = _norm_and_unit(first - a), _norm_and_unit(b - last)
                    total = total + where(touch.touches, before + touch.arc + after, straight) * factor
                    from_a = np.array([where(touch.touches, x, y) for x, y in zip(to_first, unit, strict=True)], object)
                    to_b = np.array([where(touch.touches, x, y) for x, y in zip(from_last, unit, strict=True)], object)
                    held = where(touch.touches, factor, 0.0)
                    pull(around.frame, first, to_first, held)
                    pull(around.frame, last, from_last, -held)
                if around is not None or self.carrier(start) != self.carrier(stop):  # else its length stays
                    pull(start, a, from_a, -factor)
                    pull(stop, b, to_b, factor)
                start, around = stop, None
        return Stretch(total, pulls)

    def _side(self, around: Wrap) -> list[Scalar] | None:
        """The point on the side where a tendon must pass, in the axes of the shape: numbers where it moves with it."""
        if around.side is None:
            return None
        if self.carrier(around.side) == self.carrier(around.frame):
            shape, side = (np.array(self.model.frame(name).placement) for name in (around.frame, around.side))
            found: list[Scalar] = (shape[:3, :3].T @ (side[:3, 3] - shape[:3, 3])).tolist()
            return found
        X = self.pose(around.frame)
        return list(X[:3, :3].T @ (self.pose(around.side)[:3, 3] - X[:3, 3]))


def length(places: MovingFrames, transmission: Transmission) -> Scalar:
    """Σ g·q; of a ball joint, g · log q; of a tendon through space, the length of its way."""
    if isinstance(transmission, PathTransmission):
        return places.stretch(transmission).length
    total: Scalar = 0.0
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        joint = places.model.joints[name]
        own = list(places.q[joint.q_slice])
        m, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        if joint.nq != joint.nv:
            own = list(joint.type.difference(joint.type.neutral(), own))
        for g, x in zip(gear, own, strict=True):
            if g:
                total = total + (x * m + offset if joint.mimic else x) * g
    return total


def speed(places: MovingFrames, transmission: Transmission) -> Scalar:
    """l̇."""
    total: Scalar = 0.0
    if isinstance(transmission, JointTransmission):
        v: Any = places.v
        for name, gear in transmission.gears:
            joint = places.model.joints[name]
            m = joint.mimic.multiplier if joint.mimic else 1.0
            for g, x in zip(gear, v[joint.v_slice], strict=True):
                total = total + x * (g * m) if g else total
        return total
    if isinstance(transmission, PathTransmission):
        for on, wrench in places.stretch(transmission).pulls.items():
            for g, x in zip(wrench, places.twist(on), strict=True):
                total = total + x * g
        return total
    R, twist = places.pose(transmission.frame)[:3, :3], places.twist(transmission.frame)
    for g, x in zip(transmission.wrench, [*(R.T @ twist[:3]), *(R.T @ twist[3:])], strict=True):
        total = total + x * g if g else total
    return total


def joint_forces(model: Model, transmission: Transmission, force: Scalar, tau: list[Scalar]) -> None:
    """Add what the joints feel to nv numbers."""
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        joint = model.joints[name]
        m = joint.mimic.multiplier if joint.mimic else 1.0
        for i, g in enumerate(gear, joint.v_slice.start):
            if g:
                tau[i] = tau[i] + force * (g * m)


def wrenches(places: MovingFrames, transmission: Transmission) -> dict[str, list[Scalar]]:
    """For f = 1, what each body feels: [moment, force] (6) at its origin, in its frame."""
    found: dict[str, list[Scalar]] = {}
    if isinstance(transmission, FrameTransmission):
        moment, push = np.reshape(transmission.wrench, (2, 3))
        add_wrench(places.model, transmission.frame, moment, push, found)
    elif isinstance(transmission, PathTransmission):
        for on, wrench in places.stretch(transmission).pulls.items():
            R = places.pose(on)[:3, :3]
            add_wrench(places.model, on, R.T @ wrench[:3], R.T @ wrench[3:], found)
    return found


def add_pulled(found: dict[str, Any], felt: dict[str, list[Scalar]], force: Scalar) -> None:
    """Add the forces on bodies of a transmission that is pulled."""
    for body, unit in felt.items():
        own = [force * each for each in unit]
        found[body] = [a + b for a, b in zip(found[body], own, strict=True)] if body in found else own


def add_wrench(model: Model, name: str, moment: Any, push: Any, found: dict[str, list[Scalar]]) -> None:
    """Add a moment and a force at a frame, in its axes, to those on its body, by name."""
    frame = model.frame(name)
    if frame.body < 0:
        return
    X = np.array(frame.placement)
    f = X[:3, :3] @ push
    own = [*(X[:3, :3] @ moment + np.cross(X[:3, 3], f)), *f]
    body = model.bodies[frame.body].name
    found[body] = [a + b for a, b in zip(found[body], own, strict=True)] if body in found else own


def _norm_and_unit(way: Any) -> tuple[Scalar, Any]:
    """The length and direction of a vector; 0 and the x axis, as in MuJoCo, where it has none."""
    square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2]
    apart = square > _COINCIDENT**2
    length = sqrt(where(apart, square, 1.0))
    unit = [where(apart, x / length, axis) for x, axis in zip(way, (1.0, 0.0, 0.0), strict=True)]
    return where(apart, length, 0.0), np.array(unit, object)
