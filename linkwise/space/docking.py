"""Docking and berthing: a port, a probe that comes to it, what counts as captured, and the corridor on the way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.checks import check_not_negative, check_positive
from linkwise.joints import Fixed
from linkwise.model.model import Model, ModelBuilder
from linkwise.sim.elements import Vector, frame_pose, frame_velocity
from linkwise.sim.events import Event
from linkwise.spatial.scalar import Scalar, acos, clip, sqrt, tan, where


class Approach(NamedTuple):
    """Position and motion of a probe against its port."""

    ahead: Scalar
    """Distance along the port's axis, m."""
    aside: Scalar
    """Distance from the port's axis, m."""
    tilt: Scalar
    """Angle by which the frames are turned against each other, rad."""
    speed: Scalar
    """Velocity of the probe against the port, m/s."""
    closing: Scalar
    """The part of it towards the port, m/s."""


class Dock:
    """Port and probe: events of capture, of a contact that is too fast, and of leaving the corridor.

    Port and probe are frames that coincide when docked; the port's z axis points to where the probe comes from. The
    closure between them does not hold at the start: ``lw.simulate(..., events=dock.events, released=dock.closure)``.
    It takes hold where the probe is when it is captured; a latch then draws it in.

    Args:
        model: the mechanism, to which :meth:`add` has added frames and closure.
        name: that was given there.
        reach: distance within which it is captured, along the axis and from it, m.
        tilt: angle within which it is, rad.
        speed: velocity up to which it is, m/s; a probe that comes within reach faster, or more tilted, hits, which
            ends the run.
        latch: time in which a captured probe is drawn in, s; 0 leaves it where it was caught.
        corridor: half angle of the cone along the port's axis that the approach stays in, rad; None for no corridor.
        radius: of the port, and of the corridor there, m.
    """

    def __init__(
        self,
        model: Model,
        name: str,
        *,
        reach: float = 0.05,
        tilt: float = 0.1,
        speed: float = 0.1,
        latch: float = 0.0,
        corridor: float | None = None,
        radius: float = 0.5,
    ) -> None:
        self.model, self.name = model, name
        self.port, self.probe, self.closure = f"{name} port", f"{name} probe", name
        for frame in (self.port, self.probe):
            model.frame(frame)  # says what is wrong with a name
        check_positive(reach=reach, tilt=tilt, speed=speed, radius=radius)
        check_not_negative(latch=latch)
        if corridor is not None:
            check_positive(corridor=corridor)
        self.reach, self.tilt, self.speed, self.latch = float(reach), float(tilt), float(speed), float(latch)
        self.corridor, self.radius = corridor, float(radius)

    @staticmethod
    def add(
        builder: ModelBuilder,
        name: str,
        port: str,
        probe: str,
        *,
        port_placement: ArrayLike | None = None,
        probe_placement: ArrayLike | None = None,
        port_node: str | int | None = None,
    ) -> None:
        """Add frames ``name + " port"`` and ``name + " probe"``, and a closure between them, to a model in the making.

        Args:
            builder: of the model.
            name: of the dock and of its closure.
            port: body that has the port.
            probe: body that has the probe.
            port_placement: 4×4 of the port in its body's frame.
            probe_placement: 4×4 of the probe in its body's frame.
            port_node: of a flexible body, the node that the port is on.
        """
        one, two = (np.eye(4) if placement is None else placement for placement in (port_placement, probe_placement))
        builder.add_frame(f"{name} port", port, one, node=port_node)
        builder.add_frame(f"{name} probe", probe, two)
        builder.add_closure(name, port, one, probe, two, joint=Fixed(), node_a=port_node)

    def approach(self, t: Scalar, q: Vector, v: Vector, p: Vector = ()) -> Approach:
        """Position and motion of the probe against the port in a state."""
        frames = (self.port, self.probe)
        (R, a), (S, b) = (frame_pose(self.model, q, p, frame) for frame in frames)
        (spin, first), (_, second) = (frame_velocity(self.model, q, v, p, frame) for frame in frames)
        offset = b - a
        against = second - first - spin.cross(offset)
        seen, rate = R.transpose_times(offset), R.transpose_times(against)
        turned = R.T.times(S).m
        cosine = (turned[0][0] + turned[1][1] + turned[2][2] - 1.0) * 0.5
        aside = sqrt(seen.x * seen.x + seen.y * seen.y)
        return Approach(seen.z, aside, acos(clip(cosine, -1.0, 1.0)), sqrt(rate.dot(rate)), -rate.z)

    def _fits(self, seen: Approach) -> Scalar:
        """Whether tilt and speed allow a capture."""
        return (seen.tilt < self.tilt) & (seen.speed < self.speed)

    # Events look at the plane before the port that the probe comes through, and stay below zero behind it: a step that
    # ends beyond the port sees that it has been passed.
    def _captured(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> Scalar:
        """Way along the axis until capture, m, where all else allows it; else no less than the reach."""
        seen = self.approach(t, q, v, p)
        return where(self._fits(seen) & (seen.aside < self.reach), seen.ahead - self.reach, self.reach)

    def _hit(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> Scalar:
        """Way along the axis until the probe meets the port and is not captured, m."""
        seen = self.approach(t, q, v, p)
        return where(self._fits(seen) | (seen.aside > self.radius), self.reach, seen.ahead - self.reach)

    def _outside(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> Scalar:
        """Distance of the probe outside of its corridor, m."""
        seen = self.approach(t, q, v, p)
        assert self.corridor is not None
        ahead = where(seen.ahead > 0.0, seen.ahead, 0.0)
        return seen.aside - ahead * tan(self.corridor) - self.radius

    @property
    def events(self) -> tuple[Event, ...]:
        """Events named ``name + " captured"``, ``" hit"`` (which ends a run) and ``" left the corridor"``."""
        found = [
            Event(
                self._captured,
                direction=-1,
                name=f"{self.name} captured",
                attach=self.closure,
                where="here",
                latch=self.latch,
            ),
            Event(self._hit, direction=-1, terminal=True, name=f"{self.name} hit"),
        ]
        if self.corridor is not None:
            found.append(Event(self._outside, direction=1, name=f"{self.name} left the corridor"))
        return tuple(found)
