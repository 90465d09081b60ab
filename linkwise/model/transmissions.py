"""Transmissions over any scalar: their length, its speed, and where its force goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from linkwise.array_types import Array
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.mechanism.actuation import FrameTransmission, JointTransmission, PathTransmission, Transmission
from linkwise.mechanism.equipment import closing_joint
from linkwise.mechanism.wrapping import Wrap
from linkwise.memoized import cached_property
from linkwise.spatial.scalar import Flat, Scalar, plus, sqrt, where

if TYPE_CHECKING:
    from linkwise.mechanism.closures.instances import ClosureFreedoms
    from linkwise.model.model import Model

Vector = Flat | Array

_COINCIDENT = 1e-15  # m: nearer than this, there is no direction from one point to the other


class TendonLength(NamedTuple):
    """The length of a tendon through space, and how it grows with the motion of what carries it.

    For each carrier, by name, [moment, force] (6) at its origin and in world axes that a unit of force along the tendon
    exerts: l̇ is the sum of their powers.
    """

    length: Scalar
    pulls: dict[str, Array]


class MovingFrames:
    """Frames and joints in one state, with their motions, each found once.

    Args:
        model: the mechanism.
        q: configuration (nq).
        v: velocity (nv); none where nothing is asked about speeds.
        p: the model's own run-time parameters, None for the nominal ones.
        active: for each closure 1 where it is in force and 0 where it is released; None where all are in force.
    """

    def __init__(
        self,
        model: Model,
        q: Vector,
        v: Vector = (),
        p: Vector | None = None,
        active: Vector | None = None,
    ) -> None:
        self.model, self.q, self.v, self.p, self.active = model, q, v, p, active
        self._poses: dict[str, Array] = {}
        self._twists: dict[str, Array] = {}
        self._stretched: dict[PathTransmission, TendonLength] = {}

    def carrier(self, name: str) -> str:
        """Carrier of a frame: its body, "world", or itself where it sits on a node of a flexible body."""
        frame = self.model.frame(name)
        return name if frame.node else "world" if frame.body < 0 else str(self.model.bodies[frame.body].name)

    def pose(self, name: str) -> Array:
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

    def twist(self, name: str) -> Array:
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

    @cached_property
    def closure_coordinates(self) -> Array:
        """Those of all closures that leave freedoms, one after the other."""
        return self.model._run("closure_coordinates", scalar_array(self.q), p=self.p)

    @cached_property
    def closure_velocities(self) -> Array:
        """Those along all freedoms of closures, one after the other."""
        return self.model._run("closure_velocities", scalar_array(self.q), scalar_array(self.v), p=self.p)

    def coordinates(self, name: str) -> list[Scalar]:
        """Of a joint, of the tree or one that closes a loop, a number for each freedom; of a ball joint, log q."""
        closing = closing_joint(self.model, name)
        if closing is not None:
            kind, mimic, own = closing.joint, None, list(self.closure_coordinates[closing.q_slice])
        else:
            joint = self.model.joints[name]
            kind, mimic, own = joint.type, joint.mimic, list(self.q[joint.q_slice])
        if kind.nq != kind.nv:
            own = list(kind.difference(kind.neutral(), own))
        return [x * mimic.multiplier + mimic.offset for x in own] if mimic else own

    def rates(self, name: str) -> list[Scalar]:
        """The velocities of a joint, of the tree or one that closes a loop."""
        closing = closing_joint(self.model, name)
        if closing is not None:
            return list(self.closure_velocities[closing.v_slice])
        joint = self.model.joints[name]
        return [x * joint.mimic.multiplier if joint.mimic else x for x in self.v[joint.v_slice]]

    def in_force(self, transmission: Transmission) -> Scalar:
        """1; 0 where a closure that a transmission goes along is released, which pulls nothing then."""
        active, found = self.active, cast("Scalar", 1.0)
        if active is not None:
            for each in closures_along(self.model, transmission):
                found = found * active[each.number]
        return found

    def stretch(self, way: PathTransmission) -> TendonLength:
        """The length of a tendon through space, and what it pulls."""
        if way not in self._stretched:
            self._stretched[way] = self._stretch(way)
        return self._stretched[way]

    def _stretch(self, way: PathTransmission) -> TendonLength:
        total: Scalar = 0.0
        pulls: dict[str, Array] = {}

        def pull(name: str, point: Array, along: Array, factor: Scalar) -> None:
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
        return TendonLength(total, pulls)

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
        for g, x in zip(gear, places.coordinates(name), strict=True):
            total = total + x * g if g else total
    return total


def speed(places: MovingFrames, transmission: Transmission) -> Scalar:
    """l̇."""
    total: Scalar = 0.0
    if isinstance(transmission, JointTransmission):
        for name, gear in transmission.gears:
            for g, x in zip(gear, places.rates(name), strict=True):
                total = total + x * g if g else total
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
    """Add what the joints of the tree feel to nv numbers."""
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        if closing_joint(model, name) is not None:
            continue
        joint = model.joints[name]
        m = joint.mimic.multiplier if joint.mimic else 1.0
        for i, g in enumerate(gear, joint.v_slice.start):
            if g:
                tau[i] = tau[i] + force * (g * m)


def closures_along(model: Model, transmission: Transmission) -> list[ClosureFreedoms]:
    """The freedoms of the closures that a transmission goes along."""
    names = transmission.joints if isinstance(transmission, JointTransmission) else ()
    return [each for each in (closing_joint(model, name) for name in names) if each is not None]


def closure_forces(model: Model, transmission: Transmission, force: Scalar, found: dict[str, list[Scalar]]) -> None:
    """Add what the freedoms of closures feel, by the closures' names."""
    gears = dict(transmission.gears) if isinstance(transmission, JointTransmission) else {}
    for each in closures_along(model, transmission):
        add_forces(found, each.name, [force * g for g in gears[each.name]])


def add_forces(found: dict[str, list[Scalar]], name: str, more: Flat) -> None:
    """Add forces along the freedoms of a closure to those that it feels."""
    found[name] = plus(found[name], more) if name in found else list(more)


def pushed_by_closures(places: MovingFrames, forces: Mapping[str, Flat]) -> list[Scalar]:
    """The joint forces (nv) of forces along the freedoms of closures in force, by the closures' names."""
    model, active = places.model, places.active
    along: list[Scalar] = [0.0] * sum(each.joint.nv for each in model._closure_freedoms)
    for name, own in forces.items():
        each = model._closure_freedoms[name]
        along[each.v_slice] = own if active is None else [f * active[each.number] for f in own]
    return list(model._run("closure_efforts", scalar_array(places.q), scalar_array(along), p=places.p))


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


def add_pulled(found: dict[str, list[Scalar]], units: dict[str, list[Scalar]], force: Scalar) -> None:
    """Add the forces on bodies of a transmission that is pulled."""
    for body, unit in units.items():
        own = [force * each for each in unit]
        found[body] = plus(found[body], own) if body in found else own


def add_wrench(model: Model, name: str, moment: Array, push: Array, found: dict[str, list[Scalar]]) -> None:
    """Add a moment and a force at a frame, in its axes, to those on its body, by name."""
    frame = model.frame(name)
    if frame.body < 0:
        return
    X = np.array(frame.placement)
    f = X[:3, :3] @ push
    own = [*(X[:3, :3] @ moment + np.cross(X[:3, 3], f)), *f]
    body = model.bodies[frame.body].name
    found[body] = plus(found[body], own) if body in found else own


def _norm_and_unit(way: Array) -> tuple[Scalar, Array]:
    """The length and direction of a vector; 0 and the x axis, as in MuJoCo, where it has none."""
    square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2]
    apart = square > _COINCIDENT**2
    length = sqrt(where(apart, square, 1.0))
    unit = [where(apart, x / length, axis) for x, axis in zip(way, (1.0, 0.0, 0.0), strict=True)]
    return where(apart, length, 0.0), np.array(unit, object)
