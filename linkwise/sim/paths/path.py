"""A path through configurations, as a function of time; built within limits.

A stretch leads from q₀ by q(u) = q₀ ⊕ b₁(u) w₁ ⊕ b₂(u) w₂ ⊕ …, u running from 0 to 1; a law gives the b. Velocities and
accelerations follow by differentiation, on any joints: v is the derivative of q(u + ε) ⊖ q(u).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.configuration import difference, integrate
from linkwise.array_types import Array
from linkwise.checks import check_choice, check_positive
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, where


@dataclass(frozen=True)
class Law:
    """Law by which a stretch is run through, from rest to rest for a law with one term."""

    name: str
    terms: int
    """Number of terms w."""
    shape: Callable[[Scalar, Scalar], list[Scalar]]
    """The b at u, for a law with a number of its own (the share of a ramp)."""


def _quintic(u: Scalar, _: Scalar) -> list[Scalar]:
    """Velocity and acceleration zero at both ends."""
    return [u * u * u * (10.0 + u * (-15.0 + u * 6.0))]


def _trapezoidal(u: Scalar, ramp: Scalar) -> list[Scalar]:
    """Constant acceleration for a share ``ramp`` of the time, constant velocity, constant deceleration."""
    peak = 1.0 / (1.0 - ramp)
    rest = 1.0 - u
    up, down = peak * u * u / (2.0 * ramp), 1.0 - peak * rest * rest / (2.0 * ramp)
    return [where(u < ramp, up, where(u < 1.0 - ramp, peak * (u - 0.5 * ramp), down))]


def _spline(u: Scalar, _: Scalar) -> list[Scalar]:
    """Sums of Bernstein's polynomials: a cubic with given velocities at its ends (Kim, Kim and Shin 1995)."""
    rest = 1.0 - u
    return [1.0 - rest * rest * rest, u * u * (3.0 - 2.0 * u), u * u * u]


QUINTIC = Law("quintic", 1, _quintic)
TRAPEZOIDAL = Law("trapezoidal", 1, _trapezoidal)
SPLINE = Law("spline", 3, _spline)
LAWS = {law.name: law for law in (QUINTIC, TRAPEZOIDAL, SPLINE)}


def place(law: Law, tree: Tree, q0: Flat, w: Flat, ramp: Scalar, u: Scalar) -> list[Scalar]:
    """The configuration at u; w has its terms one behind the other."""
    q, n = list(q0), tree.nv
    for k, b in enumerate(law.shape(u, ramp)):
        q = integrate(tree, q, [b * x for x in w[k * n : (k + 1) * n]])
    return q


def motion(
    law: Law, tree: Tree, q0: Flat, w: Flat, ramp: Scalar, u: Scalar, rate: Scalar
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """q, v and v̇ at u, which changes at the given rate (1/s)."""

    def velocity(at: Flat) -> list[Scalar]:
        q, q_dot = derivative(lambda x: place(law, tree, q0, w, ramp, x[0]), at, [rate])
        return derivative(lambda x: difference(tree, q, x), q, q_dot)[1]

    v, vdot = derivative(velocity, [u], [rate])
    return place(law, tree, q0, w, ramp, u), v, vdot


_QUINTIC_VELOCITY = 15.0 / 8.0  # the largest ṡ of a stretch that takes 1 s
_QUINTIC_ACCELERATION = 10.0 / math.sqrt(3.0)
_RAMP = 0.25  # of the time, where no acceleration is limited


def rates(delta: Array, velocity: Array, acceleration: Array) -> tuple[float, float]:
    """The largest ṡ and s̈ with which s δ keeps within limits; infinite where there are none."""
    size = np.abs(delta)
    moves = size > 0.0
    fastest = float((velocity[moves] / size[moves]).min(initial=np.inf))
    strongest = float((acceleration[moves] / size[moves]).min(initial=np.inf))
    return fastest, strongest


def quintic_time(delta: Array, velocity: Array, acceleration: Array) -> float:
    """The least time from rest to rest, s."""
    fastest, strongest = rates(delta, velocity, acceleration)
    return max(_QUINTIC_VELOCITY / fastest, math.sqrt(_QUINTIC_ACCELERATION / strongest))


def trapezoidal_time(delta: Array, velocity: Array, acceleration: Array) -> tuple[float, float]:
    """The least time from rest to rest, s, and the share of it that each ramp takes."""
    fastest, strongest = rates(delta, velocity, acceleration)
    if math.isinf(strongest):
        return 1.0 / ((1.0 - _RAMP) * fastest), _RAMP
    if fastest * fastest >= strongest:  # the top speed is not reached
        return 2.0 / math.sqrt(strongest), 0.5
    time = 1.0 / fastest + fastest / strongest
    return time, fastest / strongest / time


def knot_velocities(times: Array, q: Array, deltas: Array, plain: list[tuple[int, int]], nv: int) -> Array:
    """Velocities (points, nv) at the points of a spline that begins and ends at rest.

    Where v is q̇ (``plain``: places in v and q), those of the cubic spline with continuous acceleration. Elsewhere, the
    mean of the velocities before and after, each weighted with the other's time (Catmull and Rom).
    """
    from scipy.interpolate import CubicSpline

    h = np.diff(times)[:, None]
    v = np.zeros((len(times), nv))
    slopes = deltas / h
    v[1:-1] = (h[1:] * slopes[:-1] + h[:-1] * slopes[1:]) / (h[1:] + h[:-1])
    if plain:
        in_v, in_q = (list(x) for x in zip(*plain, strict=True))
        v[:, in_v] = CubicSpline(times, q[:, in_q], bc_type="clamped")(times, 1)
    return v


_LOOKS = 33  # at each stretch of a spline, for its largest values
_SLACK = 1e-9


class PathPoint(NamedTuple):
    """Points of a path at some times."""

    q: Array
    """(..., nq)"""
    v: Array
    """(..., nv)"""
    vdot: Array
    """(..., nv)"""


class Path:
    """Configurations as a function of time; made by :func:`path`.

    Call it with times (...) for q, v and v̇. Before its start and after its end it rests. ``path.q``, ``path.v`` and
    ``path.vdot`` are functions (t, p), as ``lw.ComputedTorque(model, path.q, path.v, path.vdot)`` takes them.
    """

    def __init__(self, model: Model, law: Law, times: Array, points: Array, w: Array, ramps: Array) -> None:
        self.model, self.law = model, law
        self.times, self.points = times, points
        self._w, self._ramps = w, ramps

    @property
    def kind(self) -> str:
        """The law's name."""
        return self.law.name

    @property
    def duration(self) -> float:
        """From the first point to the last, s."""
        return float(self.times[-1] - self.times[0])

    @cached_property
    def _stretch(self) -> CompiledFunction:
        model, law = self.model, self.law
        n = law.terms * model.nv
        inputs = [("q0", (model.nq,)), ("w", (n,)), ("ramp", ()), ("u", ()), ("rate", ())]

        def text(q0: Flat, w: Flat, ramp: Flat, u: Flat, rate: Flat) -> NamedNumbers:
            q, v, vdot = motion(law, model._trees.fast, q0, w, ramp[0], u[0], rate[0])
            return {"q": q, "v": v, "vdot": vdot}

        return CompiledFunction(f"{law.name}_path", text, inputs)

    def __call__(self, t: ArrayLike) -> PathPoint:
        """q (..., nq), v (..., nv) and v̇ (..., nv) at times (...)."""
        time = np.asarray(t, float)
        k = np.clip(np.searchsorted(self.times, time, side="right") - 1, 0, len(self.times) - 2)
        rate = 1.0 / (self.times[k + 1] - self.times[k])
        u = np.clip((time - self.times[k]) * rate, 0.0, 1.0)
        found = self._stretch(self.points[k], self._w[k], self._ramps[k], u, rate)
        outside = ((time < self.times[0]) | (time > self.times[-1]))[..., None]
        q = np.where((time >= self.times[-1])[..., None], self.points[-1], found.q)  # to the last digit
        return PathPoint(q, np.where(outside, 0.0, found.v), np.where(outside, 0.0, found.vdot))

    def q(self, t: Scalar, p: object = None) -> Flat | Array:
        """The configuration (nq) at a time, which may be a symbol."""
        return self._at(t)[0]

    def v(self, t: Scalar, p: object = None) -> Flat | Array:
        """The velocity (nv) at a time, which may be a symbol."""
        return self._at(t)[1]

    def vdot(self, t: Scalar, p: object = None) -> Flat | Array:
        """The acceleration (nv) at a time, which may be a symbol."""
        return self._at(t)[2]

    def _at(self, t: Scalar) -> PathPoint | tuple[Flat, Flat, Flat]:
        if isinstance(t, (float, int, np.ndarray, np.floating, np.integer)):
            return self(t)
        numbers = np.concatenate(
            [self.times[:-1, None], self.times[1:, None], self._ramps[:, None], self.points[:-1], self._w], axis=1
        )
        row: list[Scalar] = numbers[0].tolist()
        for k in range(1, len(numbers)):
            later = t >= float(self.times[k])
            row = [
                old if isinstance(old, float) and old == new else where(later, new, old)
                for old, new in zip(row, numbers[k].tolist(), strict=True)
            ]
        begin, end, ramp, rest = row[0], row[1], row[2], row[3:]
        nq = self.model.nq
        rate = 1.0 / (end - begin)
        u = (t - begin) * rate
        inside = (t >= float(self.times[0])) & (t <= float(self.times[-1]))
        u = where(u < 0.0, 0.0, where(u > 1.0, 1.0, u))
        q, v, vdot = motion(self.law, self.model._trees.fast, rest[:nq], rest[nq:], ramp, u, rate)
        return q, [where(inside, x, 0.0) for x in v], [where(inside, x, 0.0) for x in vdot]

    def trajectory(self, dt: float = 0.01) -> Trajectory:
        """Sampled every ``dt`` seconds and at the end, with the joint forces it takes: to plot, save or view."""
        check_positive(dt=dt)
        count = max(1, int(np.ceil(self.duration / dt - 1e-9)))
        t = np.append(self.times[0] + dt * np.arange(count), self.times[-1])
        q, v, vdot = self(t)
        model = self.model
        energy = model.kinetic_energy(q, v) + model.potential_energy(q)
        derived = {"vdot": vdot, "tau": model.inverse_dynamics(q, v, vdot), "energy": energy}
        return Trajectory(t, q, v, model=model, derived=derived, method=f"{self.kind} path")

    def __repr__(self) -> str:
        return f"<{self.kind} path of {self.model.name!r}: {len(self.points)} points in {self.duration:.4g} s>"


def path(
    model: Model,
    points: ArrayLike,
    duration: float | None = None,
    *,
    kind: Literal["quintic", "trapezoidal", "spline"] = "quintic",
    times: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    limits: Literal["respect", "ignore"] = "respect",
    body: str | None = None,
    q0: ArrayLike | None = None,
    tolerance: float = 1e-4,
) -> Path:
    """A path from rest to rest through configurations, or of a body through poses.

    Quaternions and free bodies move as they should: along the straightest way of each joint between two points.

    With ``body`` that moves through the points, and inverse kinematics finds what the joints do: along straight lines,
    with a stop at every point (``"quintic"``), or smoothly through all of them (``"spline"``).

    Args:
        model: what moves.
        points: configurations (n, nq), two or more; of a body, poses (n, 4, 4) or positions (n, 3) in the world, m.
        duration: of the whole, s. As short as the limits allow if neither this nor ``times`` is given.
        kind: ``"quintic"`` stops at every point, with zero velocity and acceleration; ``"trapezoidal"`` stops at every
            point, as fast as limited velocities and accelerations allow; ``"spline"`` stops at the ends only: cubic,
            with continuous velocities, and continuous accelerations of joints whose velocity is q̇.
        times: when to be at each point (n), s.
        velocity: limits, one for all or one for each freedom; those of the model if left out.
        acceleration: limits, one for all or one for each freedom; none if left out.
        limits: ``"ignore"`` allows points, and a spline between them, beyond the joints' position limits.
        body: name of a body or frame that is to move through the points.
        q0: (nq) near which the joints begin, of a path of a body; ``model.start`` if not given.
        tolerance: how far a body may be from its way, m.

    Example:
        >>> import numpy as np, linkwise as lw
        >>> from linkwise.samples import planar_arm
        >>> way = lw.path(planar_arm(2), [[0.0, 0.0], [1.0, -0.5]], duration=2.0)
        >>> way(1.0).q.round(12).tolist()
        [0.5, -0.25]
        >>> arm = lw.samples.seven_joint_arm()
        >>> here = arm.pose(arm.start, "tool")
        >>> there = here @ lw.transform(xyz=(0.0, 0.2, 0.1))
        >>> line = lw.path(arm, [here, there], duration=2.0, body="tool")
        >>> bool(abs(arm.pose(line(2.0).q, "tool") - there).max() < 1e-6)
        True
    """
    check_choice("kind of path", kind, tuple(LAWS))
    fastest = _limit("velocity", model.limits.velocity if velocity is None else velocity, model.nv)
    strongest = _limit("acceleration", np.inf if acceleration is None else acceleration, model.nv)
    timing = Timing(fastest, strongest, duration, times)
    if limits not in ("respect", "ignore"):
        raise InputError("limits cannot be treated so", got=repr(limits), allowed='"respect" or "ignore"')
    if body is not None:
        from linkwise.sim.paths.cartesian import path_of_body

        made = path_of_body(model, body, points, q0, tolerance, kind, limits, timing)
        if limits == "respect":
            _check_inside(model, made(_dense(made.times)).q, "the path between its points")
        return made
    q = np.array(points, float)
    if q.ndim != 2 or q.shape[1] != model.nq or len(q) < 2 or not np.isfinite(q).all():
        raise InputError("points are not configurations", got=f"shape {q.shape}", allowed=f"(n, {model.nq}), finite")
    if limits == "respect":
        _check_inside(model, q, "a point of the path")
    deltas = model.difference(q[:-1], q[1:])
    build = _through if kind == "spline" else _stretches
    made = build(model, LAWS[kind], q, deltas, timing)
    if limits == "respect" and kind == "spline":
        _check_inside(model, made(_dense(made.times)).q, "the spline between its points")
    return made


@dataclass(frozen=True, eq=False)
class Timing:
    """Limits of a path's rates, and the time that it is to take.

    Args:
        fastest: limits of velocities (nv).
        strongest: limits of accelerations (nv).
        duration: of the whole, s; None: as short as the limits allow.
        times: when to be at each point, s; None: as the duration, or the limits, let it.
    """

    fastest: Array
    strongest: Array
    duration: float | None
    times: ArrayLike | None

    @property
    def is_free(self) -> bool:
        """Whether the limits alone say how long it takes."""
        return self.duration is None and self.times is None

    def knots(self, shares: Array) -> Array:
        """Times at which points are reached: those given, or such that stretches take these shares of the duration."""
        if self.times is not None:
            if self.duration is not None:
                raise InputError("a path takes duration or times, not both")
            knots = np.array(self.times, float)
            if knots.shape != (len(shares) + 1,) or not (np.diff(knots) > 0.0).all() or not np.isfinite(knots).all():
                allowed = f"{len(shares) + 1} rising numbers"
                raise InputError("times do not fit the points", got=str(knots), allowed=allowed)
            return knots
        knots = np.concatenate([[0.0], np.cumsum(shares)])
        if self.duration is None:
            return knots
        check_positive(duration=self.duration)
        return knots * (float(self.duration) / float(knots[-1]))

    def kept_by(self, made: Path) -> Path:
        """A path that keeps the limits: as fast as they allow where its time is free, else as it is, or refused."""
        knots = made.times
        _, v, vdot = made(_dense(knots))
        too_fast, too_strong = np.abs(v) / self.fastest, np.abs(vdot) / self.strongest
        slower = max(float(too_fast.max(initial=0.0)), float(np.sqrt(too_strong.max(initial=0.0))))
        if self.is_free:
            if not slower > 0.0:
                raise _no_time()
            return Path(made.model, made.law, knots * slower, made.points, made._w, made._ramps)
        if slower > 1.0 + 1e-6:
            raise InputError(
                "the path is too fast for its limits",
                got=f"{knots[-1] - knots[0]:.4g} s",
                allowed=f"{slower * (knots[-1] - knots[0]):.4g} s or more",
                do="leave out duration and times for the shortest",
            )
        return made


def _stretches(model: Model, law: Law, q: Array, deltas: Array, timing: Timing) -> Path:
    """From rest to rest, point by point."""
    ramps = np.zeros(len(deltas))
    least = np.zeros(len(deltas))
    for k, delta in enumerate(deltas):
        if law is TRAPEZOIDAL:
            least[k], ramps[k] = trapezoidal_time(delta, timing.fastest, timing.strongest)
        else:
            least[k] = quintic_time(delta, timing.fastest, timing.strongest)
    lengths = np.abs(deltas).max(axis=1, initial=0.0)
    unlimited = (lengths > 0.0) & (least <= 0.0)
    if timing.is_free and (unlimited.any() or not lengths.any()):
        raise _no_time()
    knots = timing.knots(_positive(lengths if unlimited.any() else least))
    short = np.diff(knots) < least * (1.0 - _SLACK)
    if short.any():
        k = int(np.flatnonzero(short)[0])
        raise InputError(
            f"the path from point {k} to point {k + 1} is too fast for its limits",
            got=f"{np.diff(knots)[k]:.4g} s",
            allowed=f"{least[k]:.4g} s or more; {least.sum():.4g} s for the whole",
            do="leave out duration for the shortest",
        )
    return Path(model, law, knots, q, deltas, ramps)


def _through(model: Model, law: Law, q: Array, deltas: Array, timing: Timing) -> Path:
    """Without a stop: a spline of some timing, then slowed down until it keeps the limits."""
    lengths = np.abs(deltas).max(axis=1, initial=0.0)
    guess = np.array([1.0 / rates(delta, timing.fastest, timing.strongest)[0] for delta in deltas])
    knots = timing.knots(_positive(guess if ((guess > 0.0) | (lengths == 0.0)).all() else lengths))
    return timing.kept_by(spline_of(model, law, q, deltas, knots))


def spline_of(model: Model, law: Law, q: Array, deltas: Array, knots: Array) -> Path:
    """The spline through configurations at these times, from rest to rest."""
    plain = []
    for joint in model._independent:
        if not joint.type.quasi_velocities:
            plain += list(zip(range(model.nv)[joint.v_slice], range(model.nq)[joint.q_slice], strict=True))
    v = knot_velocities(knots, q, deltas, plain, model.nv)
    third = np.diff(knots)[:, None] / 3.0
    first, last = third * v[:-1], third * v[1:]
    middle = model.difference(model.integrate(q[:-1], first), model.integrate(q[1:], -last))
    w = np.concatenate([first, middle, last], axis=1)
    return Path(model, law, knots, q, w, np.zeros(len(deltas)))


def _positive(spans: Array) -> Array:
    """The same, with a little time where nothing moves."""
    return np.where(spans > 0.0, spans, 1e-3 * (spans.max(initial=0.0) or 1.0))


def _no_time() -> Exception:
    return InputError(
        "nothing says how long the path may take",
        got="no duration, and no limits for what moves",
        do="pass duration=, times=, or velocity= and acceleration= limits",
    )


def _dense(knots: Array) -> Array:
    return np.unique(np.concatenate([np.linspace(a, b, _LOOKS) for a, b in pairwise(knots)]))


def _limit(name: str, value: ArrayLike, size: int) -> Array:
    try:
        array = np.broadcast_to(np.asarray(value, float), (size,))
    except (TypeError, ValueError):
        raise InputError(f"{name} has the wrong shape", got=repr(value), allowed=f"a number, or {size}") from None
    if not (array > 0.0).all():
        raise InputError(f"{name} is not positive", got=repr(value), allowed="limits greater than 0")
    return array


def _check_inside(model: Model, q: Array, what: str) -> None:
    beyond = np.maximum(model.limits.lower - q, q - model.limits.upper)
    if beyond.max(initial=0.0) > 1e-9:
        row, column = np.unravel_index(int(beyond.argmax()), beyond.shape)
        name = next(j.name for j in model._independent if column in range(model.nq)[j.q_slice])
        raise InputError(
            f"{what} is beyond the limits of joint {name!r}",
            got=f"{q[row, column]:.4g}",
            allowed=f"{model.limits.lower[column]:.4g} … {model.limits.upper[column]:.4g}",
            do='choose other points, or pass limits="ignore"',
        )
