"""Thrusters, and the propellant that they use."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.checks import check_not_negative, check_positive
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.elements import (
    Element,
    FrameKey,
    Vector,
    Wrenches,
    as_elements,
    checked_direction,
    checked_numbers,
    frame_pose,
    frame_velocity,
)
from linkwise.sim.events import Event
from linkwise.sim.varying import flow_wrench
from linkwise.space.kepler import STANDARD_GRAVITY
from linkwise.space.surfaces import Facet
from linkwise.space.tanks import Tank
from linkwise.space.wheels import Command, asked
from linkwise.spatial.dual import derivative
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import NamedNumbers, Scalar, clip, sqrt, where
from linkwise.spatial.vectors import Vec

_HELD = 3  # numbers of a thruster that fires in pulses: start of its next period, whether it burns, until when
_BEFORE = -1e300
_EMPTY = 1e-9  # of a tank's capacity


@dataclass(frozen=True)
class Thruster:
    """Nozzle on a body.

    Args:
        body: name of the body or frame that it is on.
        direction: of the force, in the body's axes, or in those of the node.
        thrust: when it burns, N.
        command: part of the thrust, 0 to 1, a number or a function ``(t, q, v, p)``; of a pulsed one, the part of
            each period in which it burns.
        place: of the nozzle, in the same frame, m.
        impulse: specific impulse, s; None for a force that uses nothing up.
        period: s, of a thruster that fires in pulses; None for one that can be throttled.
        minimum: shortest pulse, s; shorter ones are left out.
        node: of a flexible body, the node that it sits on.
        plume: how narrow its plume is, n of momentum by solid angle as cosⁿ of the angle to its axis, 1, 2, …; None for
            one that presses on nothing.
    """

    body: str
    direction: tuple[float, float, float]
    thrust: float
    command: Command = 1.0
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    impulse: float | None = None
    period: float | None = None
    minimum: float = 0.0
    node: str | int | None = None
    plume: int | None = None

    def __post_init__(self) -> None:
        if self.plume is not None and (self.plume < 1 or self.plume != int(self.plume)):
            raise InputError("this is not how narrow a plume is", got=repr(self.plume), allowed="1, 2, 3, …, or None")
        object.__setattr__(self, "direction", tuple(checked_direction(self.direction, "the direction").tolist()))
        object.__setattr__(self, "place", tuple(checked_numbers(self.place, 3, "the place").tolist()))
        check_positive(thrust=self.thrust)
        if self.impulse is not None:
            check_positive(impulse=self.impulse)
        check_not_negative(minimum=self.minimum)
        if self.period is not None:
            check_positive(period=self.period)
            if self.minimum > self.period:
                raise InputError(
                    "the shortest pulse is longer than the period", got=f"{self.minimum} s", allowed=f"{self.period} s"
                )
        elif self.minimum:
            raise InputError("only pulses have a shortest one", got=f"minimum={self.minimum}", do="give a period")
        if not callable(self.command):
            object.__setattr__(self, "command", float(checked_numbers([self.command], 1, "the command")[0]))

    @property
    def flow(self) -> float:
        """Propellant that it uses when it burns, kg/s."""
        return 0.0 if self.impulse is None else self.thrust / (self.impulse * STANDARD_GRAVITY)

    @property
    def key(self) -> FrameKey:
        """Its place, as wrenches name it."""
        return self.body if self.node is None else (self.body, self.node)


class Propulsion(Element):
    """Thrusters with the tank that feeds them: thrust, mass that is used up, and the moments of its flow.

    The mass left is a state, by which the propellant's mass, centre and inertia follow. What flows to the nozzle and
    leaves there damps the craft's turning (jet damping): it leaves faster, across the axis, than where it came from.
    Thrusters stop when the tank is empty; :meth:`empty` is the event.

    Args:
        model: the mechanism; with a tank, :meth:`Tank.add` has put the propellant into it.
        thrusters: one or several.
        tank: what feeds them all.
        damping: whether the flow's moments act.
        facets: what plumes press on, on this craft and on others; see :meth:`pressed`.
    """

    def __init__(
        self,
        model: Model,
        thrusters: Thruster | Sequence[Thruster],
        tank: Tank | None = None,
        *,
        damping: bool = True,
        facets: Facet | Sequence[Facet] = (),
    ) -> None:
        self.model, self.tank = model, tank
        self.facets = (facets,) if isinstance(facets, Facet) else tuple(facets)
        for facet in self.facets:
            model.frame(facet.body, facet.node)  # says what is wrong with a name
        self.thrusters = (thrusters,) if isinstance(thrusters, Thruster) else tuple(thrusters)
        if not self.thrusters or not all(isinstance(each, Thruster) for each in self.thrusters):
            raise InputError("there is no thruster", got=repr(thrusters)[:80], allowed="lw.space.Thruster(...)")
        for each in self.thrusters:
            model.frame(each.body, each.node)  # says what is wrong with a name
            if tank is None and each.impulse is not None:
                raise InputError(
                    f"a thruster on {each.body!r} uses propellant and has no tank",
                    got=f"impulse={each.impulse} s, tank=None",
                    do="give tank=lw.space.Tank.sphere(...), or leave the impulse out: the force then uses nothing up",
                )
        if tank is not None:
            model.frame(tank.body)
            if not any(each.impulse for each in self.thrusters):
                raise InputError("no thruster uses the tank", got=repr(tank), do="give thrusters a specific impulse")
        if bool(self.facets) != any(each.plume for each in self.thrusters):
            raise InputError(
                "a plume needs facets to press on, and facets a thruster with a plume",
                got=f"{len(self.facets)} facets, plumes {[each.plume for each in self.thrusters]}",
                do="lw.space.Thruster(…, plume=8) and facets=…, or neither",
            )
        self.commands = tuple(each.command for each in self.thrusters if callable(each.command))
        self.damping = bool(damping) and tank is not None
        self.nx = 0 if tank is None else 1
        self.nh = _HELD * sum(each.period is not None for each in self.thrusters)

    def initial(self) -> Sequence[float]:
        """Propellant at the start; the first pulses are due at once."""
        return [*([] if self.tank is None else [self.tank.propellant]), *([_BEFORE, 0.0, 0.0] * (self.nh // _HELD))]

    @property
    def state_names(self) -> tuple[str, ...]:
        """The tank's mass; of each pulsed thruster when its next period begins, whether it burns, until when."""
        mass = () if self.tank is None else (self.tank.body,)
        pulsed = [each.body for each in self.thrusters if each.period is not None]
        return (*mass, *(f"{name} {what}" for name in pulsed for what in ("period", "burns", "until")))

    def empty(self, control: object) -> Event:
        """Event at which the tank is empty, named ``body + " empty"``.

        Args:
            control: all that a simulation is given as such, this among it: it tells where the tank's mass stands in x.
        """
        elements = as_elements(control)
        if self.tank is None or not any(element is self for element in elements):
            raise InputError(
                "there is no tank to look at" if self.tank is None else "this is not part of the control",
                got=repr(self),
                do="give the control that the simulation gets",
            )
        place = 0
        for element in elements:
            if element is self:
                break
            place += element.nx
        least = _EMPTY * self.tank.capacity

        def left(t: Scalar, q: Vector, v: Vector, p: Vector, x: Vector) -> Scalar:
            return x[place] - least

        return Event(left, direction=-1, name=f"{self.tank.body} empty")

    # Pulses.
    def _pulses(self, x: Vector) -> list[tuple[Thruster, list[Scalar]]]:
        pulsed = [each for each in self.thrusters if each.period is not None]
        held = list(x[self.nx : self.nx + self.nh])
        return [(each, held[_HELD * k : _HELD * (k + 1)]) for k, each in enumerate(pulsed)]

    def next_sample(self, x: Vector) -> Scalar:
        """The end of the next pulse, or the beginning of the next period."""
        soonest: Scalar = np.inf
        for _, (begin, burns, until) in self._pulses(x):
            own = where((burns > 0.5) & (until < begin), until, begin)
            soonest = own if soonest is np.inf else where(own < soonest, own, soonest)
        return soonest

    def sample(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Nozzles that open and close."""
        due, after = self.next_sample(x), []
        for each, (begin, burns, until) in self._pulses(x):
            assert each.period is not None
            closes = (burns > 0.5) & (until < begin)
            opens = begin <= where(due > _BEFORE, due, begin)
            long = clip(asked(each.command, t, q, v, p, 1, "the command")[0], 0.0, 1.0) * each.period
            fires = where(long < max(each.minimum, 1e-12), 0.0, 1.0)
            shut = closes & (until <= due)
            after.append(where(shut, begin, where(opens, t + each.period, begin)))
            after.append(where(shut, 0.0, where(opens, fires, burns)))
            after.append(where(shut, until, where(opens, t + long, until)))
        return after

    # Forces.
    def burning(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> list[Scalar]:
        """Part of its thrust that each thruster gives, 0 to 1."""
        pulses = iter(self._pulses(x))
        parts = []
        for each in self.thrusters:
            if each.period is not None:
                part = next(pulses)[1][1]
            else:
                part = clip(asked(each.command, t, q, v, p, 1, "the command")[0], 0.0, 1.0)
            if self.tank is not None and each.impulse is not None:
                part = where(x[0] > _EMPTY * self.tank.capacity, part, 0.0)
            parts.append(part)
        return parts

    def rate(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """The rate at which the propellant is used up."""
        used: Scalar = 0.0
        for each, part in zip(self.thrusters, self.burning(t, q, v, x, p), strict=True):
            used = used + part * each.flow
        return [] if self.tank is None else [-used]

    def parameters(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> NamedNumbers | None:
        """Mass, centre and inertia of the propellant."""
        if self.tank is None:
            return None
        centre, inertia = self.tank.content(x[0])
        name = self.tank.body
        return {f"{name}.mass": x[0], f"{name}.com": list(centre), f"{name}.inertia": inertia}

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """Thrust at the nozzles, and what the flow does to the tank's body."""
        total: Wrenches = {}
        parts = self.burning(t, q, v, x, p)
        for each, part in zip(self.thrusters, parts, strict=True):
            d = Vec.of(each.direction)
            six = [*Vec.of(each.place).cross(d), *d]
            old = total.get(each.key, [0.0] * 6)
            total[each.key] = [a + b * (part * each.thrust) for a, b in zip(old, six, strict=True)]
        pushes = [
            (facet.key, self.pressed(each, facet, q, p, part))
            for each, part in zip(self.thrusters, parts, strict=True)
            if each.plume
            for facet in self.facets
        ]
        if self.tank is not None and self.damping:
            pushes.append((self.tank.body, self._flow(self.tank, q, v, x, p, parts)))
        for key, six in pushes:
            total[key] = [a + b for a, b in zip(total.get(key, [0.0] * 6), six, strict=True)]
        return total

    def pressed(self, thruster: Thruster, facet: Facet, q: Vector, p: Vector, part: Scalar = 1.0) -> list[Scalar]:
        """Wrench (6) of a plume on a facet at the origin of its frame, in its axes.

        A source flow: at a distance r and an angle θ to the axis, momentum F (n + 2) cosⁿθ / (2π r²) goes through an
        area, away from the nozzle; all of it together has the thrust F along the axis. A facet takes what it faces,
        and nothing shades it.
        """
        assert thruster.plume is not None
        frames = (frame_pose(self.model, q, p, each.body, each.node) for each in (thruster, facet))
        (R, nozzle), (S, there) = frames
        away = there + S @ Vec.of(facet.place) - nozzle - R @ Vec.of(thruster.place)
        square = away.dot(away)
        u = away * (1.0 / sqrt(square))
        ahead, flow = -(R @ Vec.of(thruster.direction)).dot(u), S.transpose_times(u)
        faced = 1.0 if facet.normal is None else -Vec.of(facet.normal).dot(flow)
        narrow: Scalar = thruster.thrust * (thruster.plume + 2) / (2.0 * math.pi) * facet.area * part
        for _ in range(int(thruster.plume)):
            narrow = narrow * ahead
        push = flow * where((ahead > 0.0) & (faced > 0.0), narrow * faced / square, 0.0)
        return [*Vec.of(facet.place).cross(push), *push]

    def _flow(self, tank: Tank, q: Vector, v: Vector, x: Vector, p: Vector, parts: Sequence[Scalar]) -> list[Scalar]:
        """Moment and force of Coriolis on what flows from the tank to the nozzles, in the tank's axes."""
        R, at = frame_pose(self.model, q, p, tank.body)
        omega = R.transpose_times(frame_velocity(self.model, q, v, p, tank.body)[0])

        def moments(m: Sequence[Scalar]) -> list[Scalar]:
            """First and second moments of the propellant about the tank's origin: 3 and 9 numbers."""
            c, (xx, yy, zz, xy, xz, yz) = tank.content(m[0])
            square = c.dot(c)
            J = Mat3(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
            about = Mat3.build(lambda i, j: J.m[i][j] + ((square if i == j else 0.0) - c[i] * c[j]) * m[0])
            return [*(c * m[0]), *(value for row in about.m for value in row)]

        slope = derivative(moments, [x[0]], [1.0])[1]
        total: list[Scalar] = [0.0] * 6
        for each, part in zip(self.thrusters, parts, strict=True):
            if each.impulse is None:
                continue
            turned, origin = frame_pose(self.model, q, p, each.body, each.node)
            nozzle = turned @ Vec.of(each.place) + origin
            used = part * each.flow
            rates = [value * -used for value in slope]
            J_rate = [rates[k : k + 3] for k in (3, 6, 9)]
            six = flow_wrench(list(omega), used, list(R.transpose_times(nozzle - at)), rates[:3], J_rate)
            total = [a + b for a, b in zip(total, six, strict=True)]
        return total
