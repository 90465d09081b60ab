"""A simulation that runs on a page: a :class:`linkwise.Simulation` that a mouse and levers can move."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import LinkwiseError
from linkwise.mechanism.actuation import Actuator
from linkwise.model.model import Model
from linkwise.model.transmissions import MovingFrames, length
from linkwise.sim.drives import Drives
from linkwise.sim.elements import Element, Function, Vector, as_elements, state_names
from linkwise.sim.setup import usual_method
from linkwise.sim.simulation import Simulation
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.trajectory_files import coordinate_names
from linkwise.spatial.scalar import Scalar
from linkwise.viz.markers import Touches
from linkwise.viz.overlays import ShownState


@dataclass(frozen=True)
class Lever:
    """One control.

    Args:
        name: of the actuator, or of the joint.
        low: least value.
        high: greatest value.
        start: value at which it does nothing to a model at rest where it starts.
    """

    name: str
    low: float
    high: float
    start: float


def levers_of(model: Model, q: Array, place: int) -> tuple[tuple[Lever, ...], Element | None]:
    """Levers of a model that starts at q (nq), and the element by which they act; none where nothing can be driven.

    One for each actuator; in a model without any, one for each freedom whose force has a limit: its joint force.

    Args:
        model: the mechanism.
        q: where it starts (nq).
        place: in p, of the value of the first.
    """
    if model.actuators:
        end = place + len(model.actuators)
        levers = tuple(_of_actuator(model, actuator, q) for actuator in model.actuators)
        return levers, Drives(model, u=lambda t, q, v, p: list(p[place:end]))
    effort = np.asarray(model.limits.effort)
    driven = np.flatnonzero(np.isfinite(effort) & (effort > 0.0)).tolist()
    if not driven:
        return (), None

    def force(t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
        values: list[Scalar] = [0.0] * model.nv
        for n, k in enumerate(driven):
            values[k] = p[place + n]
        return values

    names = model.freedom_names
    return tuple(Lever(names[k], -float(effort[k]), float(effort[k]), 0.0) for k in driven), Function(force)


def _of_actuator(model: Model, actuator: Actuator, q: Array) -> Lever:
    """Lever of an actuator; a servo begins by holding what it moves where it is."""
    moving = actuator.muscle is None and (actuator.gain[1] or actuator.bias[1])
    at = float(length(MovingFrames(model, q), actuator.transmission)) if moving else 0.0
    gain, bias = (float(numbers[0] + numbers[1] * at) for numbers in (actuator.gain, actuator.bias))
    still = -bias / gain if gain else 0.0
    low, high = actuator.control_range
    reach = [abs((f - bias) / gain) for f in actuator.force_range if np.isfinite(f) and gain]
    usual = max([*reach, np.pi if actuator.bias[1] else 1.0]) if not reach or actuator.bias[1] else max(reach)
    low = low if np.isfinite(low) else min(-usual, high - usual) if np.isfinite(high) else -usual
    high = high if np.isfinite(high) else max(usual, low + usual)
    return Lever(actuator.name, float(low), float(high), float(np.clip(still, low, high)))


METHODS = ("moreau", "rk4", "euler", "variational", "dopri5", "dop853", "rodas4", "generalized_alpha")
_MOST_STEPS = 100_000
_KEPT = 600
"""Samples in the running plots."""
_GRIP = 2e-3
"""Seconds for which the force of the mouse stays as it is; its spring is soft enough for that."""


def methods_of(model: Model) -> tuple[str, ...]:
    """Integrators that can run a model, the best first: where bodies touch, that which knows how."""
    touching = usual_method(model, None, "") == "moreau"
    if touching and model._contact_scene is not None:
        return ("moreau",)
    no = {"variational"} if model.closures else set()
    if model._contact_scene is None and not touching:
        no.add("moreau")
    known = tuple(method for method in METHODS if method not in no)
    return ("rodas4", *(method for method in known if method != "rodas4")) if model._is_flexible else known


class Pull(Element):
    """The mouse: a wrench on one body, as it was when a piece of the simulation began.

    Which body, and the wrench in its frame, is read from p, after the model's own parameters: a number for each body (1
    for the one that is pulled), then the wrench (6). So nothing is compiled anew when another body is taken hold of,
    and what is compiled is small for models of any size.
    """

    is_actuator = False

    def __init__(self, model: Model, start: int) -> None:
        self.model, self.start = model, start

    def numbers(self, body: int | None, wrench: Array) -> Array:
        """Numbers of the pull in p."""
        chosen = np.zeros(len(self.model.bodies))
        if body is not None:
            chosen[body] = 1.0
        return np.concatenate([chosen, wrench])

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Vector]:
        """Wrench on each body, zero but for the one that is pulled."""
        n = len(self.model.bodies)
        chosen, wrench = p[self.start : self.start + n], p[self.start + n : self.start + n + 6]
        return {body.name: wrench * chosen[body.index] for body in self.model.bodies}


@dataclass
class Grip:
    """Grip of the mouse: a body, the point of it in its frame, where it is drawn to, and how firmly."""

    body: int
    point: Array
    place: Array
    stiffness: float
    damping: float


class _Sample(NamedTuple):
    """Sample of a recording."""

    t: float
    q: Array
    v: Array
    tau: Array
    energy: float


class LiveRun:
    """The state of a running simulation; :meth:`advance` moves it on.

    Args:
        model: the mechanism.
        q: where it starts (nq).
        v: velocity at the start (nv); at rest if not given.
        control: as for ``simulate``; without any, the actuators of the model act, and a hand drives them.
        dt: step of fixed-step methods, s.
    """

    def __init__(
        self, model: Model, q: Array, v: Array | None = None, control: object = None, dt: float = 1e-3
    ) -> None:
        names = model._parameter_names
        self.model = model if "gravity" in names else model.with_parameters((*names, "gravity"))
        self.gravity_place = next(each.slice for each in self.model.parameters if each.name == "gravity")
        self.base = np.array(self.model.parameters.nominal)
        self.pull = Pull(self.model, len(self.base))
        place = len(self.base) + len(self.pull.numbers(None, np.zeros(6)))
        self.levers, by_hand = ((), None) if control is not None else levers_of(self.model, np.array(q, float), place)
        self.u = np.array([lever.start for lever in self.levers])
        """Values of the levers."""
        self.elements = [*as_elements(control), *(() if by_hand is None else (by_hand,)), self.pull]
        self.recording = False
        self.recorded: list[_Sample] = []
        self.dt = dt
        self.method = methods_of(model)[0]
        self.gravity = True
        self.hold: Grip | None = None
        self.start = (np.array(q, float), np.zeros(model.nv) if v is None else np.array(v, float))
        self.reset()

    def reset(self, q: Array | None = None) -> None:
        """Go back to the start, or to rest at another configuration, which becomes the start."""
        if q is not None:
            self.start = (np.array(q, float), np.zeros(self.model.nv))
        self.recording = False
        self.t, (self.q, self.v) = 0.0, self.start
        self.x: Array | None = None  # of actuators; their own choice at the start
        self.simulation: Simulation | None = None
        self.tau = np.zeros(self.model.nv)
        self.f_ext: Array | None = None
        self.energy: float | None = None
        self.history: deque[Array] = deque(maxlen=_KEPT)
        self.pace: deque[tuple[float, float]] = deque(maxlen=60)

    @property
    def own(self) -> Array:
        """Run-time parameters of the model, with gravity on or off."""
        own = self.base.copy()
        if not self.gravity:
            own[self.gravity_place] = 0.0
        return own

    @property
    def p(self) -> Array:
        """Run-time parameters: the model's, the mouse's, and the levers'."""
        body = None if self.hold is None else self.hold.body
        return np.concatenate([self.own, self.pull.numbers(body, self.grip()), self.u])

    def grip(self) -> Array:
        """Wrench (6) of the mouse on the body that it holds, a spring's and a damper's, in the body's frame."""
        hold = self.hold
        if hold is None:
            return np.zeros(6)
        name = self.model.bodies[hold.body].name
        X = self.model.pose(self.q, name, p=self.base)
        speed = self.model.jacobian(self.q, name, hold.point, p=self.base)[3:] @ self.v
        away = hold.place - X[:3, :3] @ hold.point - X[:3, 3]
        force = X[:3, :3].T @ (hold.stiffness * away - hold.damping * speed)
        return np.concatenate([np.cross(hold.point, force), force])

    def take(self, body: int, point: Array, place: Array) -> None:
        """Take hold of a point (3, in its body's frame) and draw it to a place (3, in the world).

        The spring has ten radians per second with the mass that the point has there, critically damped; softer where
        the lightest direction would be too quick for a force that changes in steps.
        """
        J = self.model.jacobian(self.q, self.model.bodies[body].name, point, p=self.base)[3:]
        M = self.model.mass_matrix(self.q, p=self.base)
        mobility = np.linalg.eigvalsh(J @ np.linalg.solve(M, J.T))
        least, mean = (1.0 / max(float(x), 1e-9) for x in (mobility.max(), mobility.mean()))
        stiffness = min(100.0 * mean, 0.2 * least / _GRIP**2)
        damping = min(20.0 * mean, 0.2 * least / _GRIP)
        self.hold = Grip(body, np.array(point, float), np.array(place, float), stiffness, damping)

    def advance(self, duration: float) -> None:
        """Move on by so many seconds; raises LinkwiseError where the integrator cannot."""
        pieces = 1 if self.hold is None else max(1, math.ceil(duration / _GRIP))
        for _ in range(pieces):
            self._move(duration / pieces)
        self.history.append(self._signals())
        if self.recording:
            self.recorded.append(_Sample(self.t, self.q, self.v, self.tau, self.energy or 0.0))
        self.pace.append((time.perf_counter(), self.t))

    # Signals, to be plotted, and recordings.
    @property
    def signal_names(self) -> list[str]:
        """Names of what can be plotted: energy, closure error, and all coordinates, forces, controls and states."""
        v = self.model.freedom_names
        return [
            "energy",
            *(["closure error"] if self.model.closures else []),
            *(f"u {lever.name}" for lever in self.levers),
            *(f"q {name}" for name in coordinate_names(self.model)),
            *(f"v {name}" for name in v),
            *(f"τ {name}" for name in v),
            *(f"x {name}" for name in state_names(self.elements)),
        ]

    def _signals(self) -> Array:
        """The time, then the signals as they are named."""
        error = [self.closure_error] if self.model.closures else []
        x = np.full(len(state_names(self.elements)), np.nan) if self.x is None else self.x
        return np.concatenate([[self.t, self.energy or 0.0, *error], self.u, self.q, self.v, self.tau, x])

    def signals(self, names: Sequence[str]) -> tuple[Array, Array]:
        """Times (n) and values (n, len(names)) of some signals, as far back as they are kept."""
        known = self.signal_names
        table = np.array(self.history).reshape(len(self.history), len(known) + 1)
        return table[:, 0], table[:, [1 + known.index(name) for name in names]]

    def record(self, on: bool) -> None:
        """Begin a recording, which drops the one before, or end it."""
        if on:
            self.recorded = [_Sample(self.t, self.q, self.v, self.tau, self.energy or 0.0)]
        self.recording = on

    @property
    def recorded_motion(self) -> Trajectory | None:
        """The recording as a motion; None where there is none."""
        if len(self.recorded) < 2:
            return None
        t, q, v, tau, energy = (np.array(column) for column in zip(*self.recorded, strict=True))
        return Trajectory(t, q, v, model=self.model, derived={"tau": tau, "energy": energy}, method=self.method)

    def _move(self, duration: float) -> None:
        if self.simulation is None:
            how: dict[str, Any] = {
                "dt": self.dt,
                "method": self.method,
                "rtol": 1e-6,
                "atol": 1e-8,
                "max_steps": _MOST_STEPS,
                "as_is": True,  # whatever is on show
            }
            start: dict[str, Any] = {"control": self.elements, "p": self.p, "t0": self.t, "x0": self.x}
            self.simulation = Simulation(self.model, self.q, self.v, **start, **how)
        sim = self.simulation
        try:
            if sim.method != self.method:
                sim.method = self.method
            sim.advance(duration, p=self.p)
        except LinkwiseError as error:
            self.simulation = None  # the next one begins at the end of the last good piece
            raise LinkwiseError(
                "the simulation stopped", got=str(error), do="reset it, or choose another integrator"
            ) from error
        self.t, self.q, self.v, self.x = sim.t, sim.q, sim.v, sim.x
        self.tau, self.f_ext, self.energy = sim.tau, sim.f_ext, sim.energy

    @property
    def closure_error(self) -> float:
        """The largest residual of a closure."""
        if not self.model.closures:
            return 0.0
        return float(np.abs(self.model.closure_error(self.q, t=np.float64(self.t), p=self.own)).max(initial=0.0))

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds for each second that went by, over the last second or two."""
        if len(self.pace) < 2:
            return 0.0
        (wall0, t0), (wall1, t1) = self.pace[0], self.pace[-1]
        return (t1 - t0) / max(wall1 - wall0, 1e-9)

    @property
    def moment(self) -> ShownState:
        """The state, to be drawn."""
        sim = self.simulation
        steps = sim is not None and sim.method == "moreau"
        touches = Touches.of(sim.contacts, 0) if sim is not None and steps else None
        return ShownState(self.t, self.q, self.v, self.tau, self.f_ext, self.own, touches)

    def at_rest(self, q: Array) -> ShownState:
        """Another configuration at rest, to be drawn."""
        none = np.zeros(self.model.nv)
        return ShownState(self.t, q, none, none, None, self.own)
