"""Position limits of joints: where they are, and how they push back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.functions.function import CompiledFunction
from linkwise.joints import Joint
from linkwise.mechanism.actuation import JointTransmission, Transmission
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.description import JointLimits
from linkwise.model.model import Model
from linkwise.model.transmissions import MovingFrames, length, speed
from linkwise.spatial.scalar import Flat, Scalar, dot, where


@dataclass(frozen=True)
class Limit:
    """One end of the range of one coordinate of a joint; ``side`` is 1 at the upper end, -1 at the lower.

    Depth is how far beyond it the coordinate is. The coordinate of a joint that follows another is q = m q_leader + o,
    and its limit pushes the leader m times as hard: power is the same on both sides.
    """

    joint: JointInstance
    coordinate: int
    bound: float
    side: float
    stiffness: float

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.joint.name}: {'upper' if self.side > 0 else 'lower'} limit"

    @property
    def rounding(self) -> float:
        """The depth below which a joint lies on the limit: forces in balance do not hold it still to the last digit."""
        return 1e-13 * max(1.0, abs(self.bound))

    def depth(self, q: Flat) -> Scalar:
        """Distance beyond the limit; negative inside the range."""
        x = q[self.joint.q_slice.start + self.coordinate]
        mimic = self.joint.mimic
        x = x if mimic is None else x * mimic.multiplier + mimic.offset
        return (x - self.bound) * self.side

    def gradient(self, q: Flat) -> dict[int, Scalar]:
        """Growth of depth with each freedom: {number of v: ∂(rate of depth)/∂v}."""
        kind, start = self.joint.type, self.joint.v_slice.start
        if is_linear(kind):
            mimic = self.joint.mimic
            return {start + self.coordinate: self.side * (1.0 if mimic is None else mimic.multiplier)}
        own = list(q[self.joint.q_slice])
        units = ([1.0 if i == j else 0.0 for i in range(kind.nv)] for j in range(kind.nv))
        return {start + j: kind.rate(own, unit)[self.coordinate] * self.side for j, unit in enumerate(units)}

    def force(self, q: Flat, v: Flat, loss: float) -> dict[int, Scalar]:
        """K δ (1 + loss δ̇) against the depth δ, and never a pull, on each freedom: {number of v: joint force}."""
        depth, gradient = self.depth(q), self.gradient(q)
        rate = dot((v[i] for i in gradient), gradient.values())
        push = _push(depth, rate, self.stiffness, loss)
        return {i: -(push * slope) for i, slope in gradient.items()}

    def implicit_share(self, q: Flat, v: Flat, loss: float, h: Scalar) -> dict[int, Scalar]:
        """By h·damper + h²/4·spring of :meth:`force`, on each freedom, steps of h resist more, so that none is long."""
        depth, gradient = self.depth(q), self.gradient(q)
        rate = dot((v[i] for i in gradient), gradient.values())
        share = h * self.stiffness * (depth * loss + 0.25 * h)
        acts = _push(depth, rate, self.stiffness, loss) > 0.0
        return {i: where(acts, share * slope * slope, 0.0) for i, slope in gradient.items()}

    def energy(self, q: Flat) -> Scalar:
        """½ k δ²."""
        return _stored(self.depth(q), self.stiffness)


@dataclass(frozen=True)
class TransmissionLimit:
    """One end of the range of a length along a transmission; ``side`` is 1 at the longest, -1 at the shortest."""

    way: Transmission
    bound: float
    side: float
    stiffness: float

    def _depth(self, places: MovingFrames) -> Scalar:
        return (length(places, self.way) - self.bound) * self.side

    def push(self, places: MovingFrames, loss: float) -> Scalar:
        """K δ (1 + loss δ̇) against the depth δ, and never a pull: the force along the transmission."""
        depth, rate = self._depth(places), speed(places, self.way) * self.side
        return _push(depth, rate, self.stiffness, loss) * -self.side * places.in_force(self.way)

    def energy(self, places: MovingFrames) -> Scalar:
        """½ k δ²."""
        return _stored(self._depth(places), self.stiffness) * places.in_force(self.way)


class AllLimits:
    """All limits of a mechanism, seen at once from configurations that are numbers."""

    def __init__(self, limits: Sequence[Limit], nq: int) -> None:
        self.limits = tuple(limits)
        self._places = np.array([limit.joint.q_slice.start + limit.coordinate for limit in limits], int)
        self._slopes = np.array([limit.side * _multiplier(limit.joint) for limit in limits])
        self._at_zero = np.array([limit.depth([0.0] * nq) for limit in limits], float)
        self._slack = np.array([1e-9 * max(1.0, abs(limit.bound)) for limit in limits])

    def exceeded(self, q: Array) -> list[Limit]:
        """Those that some of the configurations (n, nq) lie beyond, by more than rounding."""
        return [self.limits[k] for k in np.flatnonzero((self._depths(q) > self._slack).any(axis=0))]

    def put_on(self, q: Array) -> None:
        """Put those of the configurations (n, nq), which lie beyond limits by no more than rounding, on them."""
        depths = self._depths(q)
        for state, k in np.argwhere((depths > 0.0) & (depths <= self._slack)):
            place, slope = self._places[k], self._slopes[k]
            q[state, place] = -self._at_zero[k] / slope
            if self._depths(q[state : state + 1])[0, k] > 0.0:
                q[state, place] = np.nextafter(q[state, place], q.dtype.type(-np.inf * slope))

    def _depths(self, q: Array) -> Array:
        return np.asarray(q[:, self._places] * self._slopes + self._at_zero)


def limits_of_joints(model: Model, limit_time: float) -> list[Limit]:
    """The finite position limits of all joints that have one coordinate for each freedom.

    The stiffness is that of a spring which turns the inertia at the joint round in about limit_time.
    """
    limited = [
        joint
        for joint in model.joints
        if joint.nv and len(joint.limits) == joint.nq and not (joint.mimic and joint.mimic.multiplier == 0.0)
    ]
    ends = [(joint, *end) for joint in limited for end in _finite_ends(joint.limits)]
    if not ends:
        return []
    inertia = np.diagonal(model.mass_matrix(model.neutral()))
    return [
        Limit(joint, k, bound, side, float(inertia[joint.v_slice.start + k]) / (_multiplier(joint) * limit_time) ** 2)
        for joint, k, bound, side in ends
    ]


def limits_along(model: Model, limit_time: float) -> list[TransmissionLimit]:
    """The finite limits of springs and tendons, and of the freedoms that closures leave.

    The stiffness is that of a spring which turns the inertia along the transmission round in about limit_time, at the
    neutral configuration; where nothing moves along it there, that of a kilogram.
    """
    ends: list[tuple[Transmission, float, float]] = []
    for each in model._closure_freedoms:
        if each.closure.limits and each.joint.nq == each.joint.nv:
            for k, bound, side in _finite_ends(each.closure.limits):
                along = JointTransmission({each.name: [1.0 if i == k else 0.0 for i in range(each.joint.nv)]})
                ends.append((along, bound, side))
    for spring in model.springs:
        sides = zip(spring.limits, (-1.0, 1.0), strict=True)
        ends += [(spring.transmission, bound, side) for bound, side in sides if np.isfinite(bound)]
    if not ends:
        return []
    q = np.asarray(model.neutral(), float)

    def speeds(v: Flat) -> list[Scalar]:
        places = MovingFrames(model, q, v)
        return [speed(places, way) for way, _, _ in ends]

    arms = CompiledFunction("speeds_along_limits", speeds, [("v", (model.nv,))])(np.eye(model.nv)).T
    inertia = model.mass_matrix(q)
    found = []
    for own, (way, bound, side) in zip(arms, ends, strict=True):
        yielding = float(own @ np.linalg.lstsq(inertia, own, rcond=None)[0])
        stiffness = (1.0 / yielding if yielding > 0.0 else 1.0) / limit_time**2
        found.append(TransmissionLimit(way, bound, side, stiffness))
    return found


def _finite_ends(limits: Sequence[JointLimits]) -> Iterator[tuple[int, float, float]]:
    """Number of each coordinate, and a finite end of its range with its side: -1 the lower, 1 the upper."""
    for k, limit in enumerate(limits):
        for bound, side in ((limit.lower, -1.0), (limit.upper, 1.0)):
            if np.isfinite(bound):
                yield k, float(bound), side


def _push(depth: Scalar, rate: Scalar, stiffness: float, loss: float) -> Scalar:
    """K δ (1 + loss δ̇) at the depth δ, and never a pull."""
    push = depth * stiffness * (1.0 + rate * loss)
    return where(depth > 0.0, where(push < 0.0, 0.0, push), 0.0)


def _stored(depth: Scalar, stiffness: float) -> Scalar:
    """½ k δ²."""
    return where(depth > 0.0, depth * depth * (0.5 * stiffness), 0.0)


def _multiplier(joint: JointInstance) -> float:
    return joint.mimic.multiplier if joint.mimic else 1.0


def is_linear(kind: Joint) -> bool:
    """Whether q̇ = v and moving is adding."""
    return not kind.quasi_velocities
