"""Starts exactly on joint limits, on the surfaces of events and in singular configurations, against SciPy.

What is asked of a motion there is decided by a sign, which is zero: what comes next must follow from how it is left.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import linkwise as lw
from campaign.trial import Log, Trial, said
from linkwise import samples

Array = np.ndarray[Any, Any]

METHODS = ("rk4", "variational", "generalized_alpha", "dop853", "dopri5", "rk56", "rodas4")
SHARED = 6
"""Trials in a row that share a mechanism, and what is compiled for it."""
DURATION = 1.5
DT = 1e-3
LOOKS = 6000
"""Places of the reference at which signs are compared."""
LATE = 2e-3
"""s, that an event may be off, or a place divided by its speed."""
GRAZING = 0.02
"""Of the largest value of a function: what comes closer to zero than this without crossing is nobody's to decide."""
G = 9.81


@lru_cache(maxsize=2)
def arm(seed: int) -> lw.Model:
    """One or two joints, with limits."""
    rng = np.random.default_rng(seed)
    b = lw.ModelBuilder("arm", gravity=tuple(rng.normal(size=3) * 6.0))
    parent = "world"
    for k in range(int(rng.integers(1, 3))):
        axis = rng.normal(size=3)
        kind = lw.Revolute if rng.random() < 0.7 else lw.Prismatic
        lower, upper = -rng.uniform(0.3, 1.5), rng.uniform(0.3, 1.5)
        b.add_body(
            f"link{k}",
            parent,
            kind(axis=axis / np.linalg.norm(axis)),
            lw.transform(xyz=rng.normal(size=3) * 0.5),
            mass=rng.uniform(0.5, 2.0),
            com=rng.normal(size=3) * 0.3,
            inertia=np.diag(rng.uniform(0.15, 0.3, 3)),
            limits=lw.JointLimits(lower=lower, upper=upper),
        )
        parent = f"link{k}"
    return b.build()


def reference(model: lw.Model, q0: Array, v0: Array) -> Callable[[Any], Array]:
    """[q, v] over time, by SciPy; nothing stops it."""
    n = model.nv

    def rates(t: float, y: Array) -> Array:
        return np.concatenate([y[n:], model.forward_dynamics(y[:n], y[n:], np.zeros(n))])

    found = solve_ivp(
        rates, (0.0, DURATION), np.concatenate([q0, v0]), "DOP853", dense_output=True, rtol=1e-9, atol=1e-11
    )
    return lambda t: np.asarray(found.sol(t))


def crossings(g: Callable[[Array], Array], direction: int) -> tuple[list[float], float]:
    """When a function of times changes its sign, leaving zero at the start included; and since when that is unclear."""
    t = np.linspace(0.0, DURATION, LOOKS)
    values = g(t)
    values[0] = 0.0 if abs(values[0]) < 1e-12 else values[0]
    size = np.abs(values).max() + 1e-12
    found: list[float] = []
    unclear = DURATION
    side = np.sign(values[0])
    for k in range(1, LOOKS):
        here = np.sign(values[k])
        if here not in (0.0, side):
            when = (
                0.0 if side == 0.0 and k == 1 else float(brentq(lambda s: float(g(np.array([s]))[0]), t[k - 1], t[k]))
            )
            if direction in (0.0, here):
                found.append(when)
            steep = abs(values[k] - values[k - 1]) / (t[1] - t[0]) * 0.1
            if side != 0.0 and steep < GRAZING * size:
                unclear = min(unclear, t[k] - 0.1)
            side = here
        elif 1 < k < LOOKS - 1 and (values[k] - values[k - 1]) * (values[k + 1] - values[k]) <= 0.0:
            near = abs(values[k]) < GRAZING * size and t[k] > 0.05
            unclear = min(unclear, t[k] - 0.05) if near else unclear
    return found, unclear


def _start(rng: np.random.Generator, model: lw.Model) -> tuple[Array, Array]:
    """Exactly on some limits; at rest, or moving in any way."""
    lower, upper = model.limits.lower, model.limits.upper
    q0 = rng.uniform(lower, upper)
    on = rng.random(model.nq) < 0.6
    on[rng.integers(model.nq)] = True
    q0 = np.where(on, np.where(rng.random(model.nq) < 0.5, lower, upper), q0)
    return q0, rng.choice([0.0, 1.0]) * rng.normal(size=model.nv)


def _depth(exact: Callable[[Any], Array], k: int, bound: float, side: int, t: Array) -> Array:
    """How far a coordinate is beyond one of its limits."""
    return np.asarray((exact(t)[k] - bound) * side)


def on_limits(rng: np.random.Generator, model: lw.Model, method: str) -> str:
    """Where a motion that starts on limits ends."""
    q0, v0 = _start(rng, model)
    exact = reference(model, q0, v0)
    limits = [
        (k, bound, side)
        for k in range(model.nq)
        for bound, side in ((model.limits.lower[k], -1), (model.limits.upper[k], 1))
    ]
    found = [crossings(partial(_depth, exact, *limit), 1) for limit in limits]
    ends, unclear = [t for when, _ in found for t in when[:1]], min(doubt for _, doubt in found)
    end = min(ends, default=DURATION)
    motion = lw.simulate(model, q0, v0, DURATION, dt=DT, method=method, limits="stop")
    if max(end, motion.end) > min(unclear, DURATION) - LATE:  # too late, or unclear; what comes before is not
        wrong = min(end, motion.end) < min(unclear, DURATION) - 0.1
    else:
        wrong = motion.status != "event" or abs(motion.end - end) > LATE
    return (
        f"{method}: {motion.status} at {motion.end:g} s, should end at {end:g} s; q0 = {q0}, v0 = {v0}" if wrong else ""
    )


def on_surfaces(rng: np.random.Generator, model: lw.Model, method: str) -> str:
    """All events of a function that is zero at the start."""
    q0, v0 = _start(rng, model)
    q0 = q0 * rng.uniform(0.2, 1.0)
    a = rng.normal(size=model.nq)
    direction = int(rng.integers(-1, 2))
    exact = reference(model, q0, v0)
    expected, unclear = crossings(lambda t: a @ (exact(t)[: model.nq] - q0.reshape(-1, 1)), direction)

    def surface(t: Any, q: Any, v: Any, p: Any) -> Any:
        return sum(p[k] * (q[k] - p[model.nq + k]) for k in range(model.nq))

    event = lw.Event(surface, direction, name="surface")
    p = np.concatenate([a, q0])
    motion = lw.simulate(model, q0, v0, DURATION, dt=DT, method=method, limits="ignore", events=event, p=p)
    found = [e.t for e in motion.events if e.t < unclear - LATE]
    expected = [t for t in expected if t < unclear - LATE]
    close = len(found) == len(expected) and np.allclose(found, expected, rtol=0.0, atol=LATE)
    return (
        ""
        if close
        else f"{method}, {direction}: events at {found}, should be at {expected}; q0 = {q0}, v0 = {v0}, a = {a}"
    )


def bouncing(rng: np.random.Generator, method: str) -> str:
    """A ball, from the ground or above it, that loses some of its speed or all of it, and comes to rest."""
    keep = float(rng.choice([0.0, rng.uniform(0.05, 0.9)]))
    height = float(rng.choice([0.0, rng.uniform(0.1, 1.0)]))
    speed = float(rng.choice([0.0, rng.uniform(-1.0, 1.0)]))
    ground = lw.Event(
        lambda t, q, v, p: q[0], int(rng.integers(-1, 1)), action=lambda t, q, v: (0 * q, -keep * v), name="ground"
    )
    if ground.direction == 0 and height == 0.0 and speed > 0.0:
        speed = 0.0  # which would be an event at the start
    motion = lw.simulate(
        _ball(), [height], [speed], 20.0, dt=1e-2, method=method, events=ground, output_times=[0.0, 20.0]
    )
    landing = speed + np.sqrt(speed**2 + 2.0 * G * height)
    rest = landing / G + 2.0 * keep * (landing - speed) / G / (1.0 - keep)
    lowest = min((float(e.q[0]) for e in motion.events), default=0.0)
    good = motion.status == "zeno" and abs(motion.end - rest) < 1e-5 * (1.0 + rest) and lowest > -1e-9
    return (
        ""
        if good
        else f"{method}: {motion.status} at {motion.end:g} s, should rest at {rest:g} s; {height}, {speed}, {keep}"
    )


@lru_cache(maxsize=1)
def _ball() -> lw.Model:
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    return b.build()


@lru_cache(maxsize=2)
def _bars(n: int) -> lw.Model:
    return samples.four_bar(n)


def singular(rng: np.random.Generator, method: str) -> str:
    """Parallelograms that start flat, or pass through it, with steps of any length."""
    n = int(rng.integers(1, 3))
    model = _bars(n)
    sign = np.array([1.0 if joint.name.startswith("foot") else -1.0 for joint in model.joints])
    angle = np.pi / 2 * float(rng.choice([1.0, rng.uniform(-1.0, 1.0)]))
    speed = float(rng.uniform(0.3, 5.0) * rng.choice([-1.0, 1.0]))
    dt = float(10.0 ** rng.uniform(-3.3, -1.9))
    k = 3 * (3 * n + 1) / (2 * (4 * n + 1)) * G
    true = solve_ivp(
        lambda t, y: [y[1], k * np.sin(y[0])], (0.0, 3.0), [angle, speed], "DOP853", rtol=1e-11, atol=1e-12
    )
    motion = lw.simulate(model, angle * sign, speed * sign, 3.0, dt=dt, method=method)
    off = float(np.abs(motion.q[-1] - true.y[0, -1] * sign).max()) if motion.status == "done" else np.inf
    allowed = 100.0 * dt**2 + 1e-3
    return "" if off < allowed else f"{method}: {motion.status}, off by {off:g}; n = {n}, {angle}, {speed}, dt = {dt}"


def once(seed: int, number: int) -> str:
    """One trial; what is wrong, or ""."""
    rng = np.random.default_rng([seed, number])
    shared = np.random.default_rng([seed, number // SHARED])
    model, method = arm(int(shared.integers(2**31))), str(shared.choice(METHODS))
    kind = int(shared.integers(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == 0:
            return on_limits(rng, model, method)
        if kind == 1:
            return on_surfaces(rng, model, method)
        return bouncing(rng, method) if kind == 2 else singular(rng, method)


class Edges(Trial):
    """Starts where a sign is zero."""

    name, unit, target, chunk = "edges", "starts on limits, events and singular configurations", 10_000, 48

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """One by one."""
        for number in log.numbers(numbers):
            try:
                problem = once(seed, number)
            except Exception as error:
                problem = said(error)
            if problem:
                log.fail(number, problem)
