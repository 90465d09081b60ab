"""Functions that read what changes: each call must see the values of its own time, a model those it was built with.

What is compared with is Python itself: the same text, run on floats, with the number that holds now.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from campaign.trial import Log, Trial, said
from linkwise import samples
from tests.captures import CAPTURES

CLOSE = 1e-9
STEP, STEPS = 1e-3, 5  # small enough for light arms and strong pushes

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Formula:
    """Joint forces of (k, t, q, v), of a random shape; on floats it is its own reference."""

    shape: int
    numbers: tuple[float, ...]

    def __call__(self, k: Any, t: Any, q: Sequence[Any], v: Sequence[Any]) -> list[Any]:
        """One for each freedom."""
        a, b, c, d = self.numbers
        found = []
        for i, (x, w) in enumerate(zip(q, v, strict=True)):
            push = (
                k * (a - x) - b * w,
                lw.math.sin(k * t + a * x) * b - c * w * k,
                lw.math.where(x > c * k, a * k, -b * x),
                lw.math.tanh(k * w) * a + lw.math.where(w < k, d, x * c),
                k * k * a / (1.0 + x * x) + (t + i) * b,
            )[self.shape]
            found.append(push)
        return found


@cache
def _arm(n: int) -> lw.Model:
    return samples.planar_arm(n)


class _Push(lw.Element):
    """An element of a class that is not the library's."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def force(self, t: Any, q: Any, v: Any, x: Any, p: Any) -> Any:
        return self.function(t, q, v)


def _acting(kind: int, model: lw.Model, capture: Any, formula: Formula) -> tuple[Any, Change]:
    """A control that exerts these forces, in one of several ways."""
    if kind == 0:
        function, change = capture(lambda k, t, q, v, p: formula(k, t, q, v))
        return function, change
    if kind == 1:
        function, change = capture(formula)
        return _Push(function), change
    if kind == 2:
        function, change = capture(lambda k, t, q, v, x, p: (formula(k, t, q, v), []))
        return lw.Controller(model, function), change
    function, change = capture(lambda k, t, q, v, p: formula(k, t, q, v))
    return lw.Sampled(model, function, 1.0 / STEP, python=kind == 4), change


def forces(rng: np.random.Generator, capture: Any) -> str:
    """Forces at all samples of a motion, by one of the ways to have it, against Python."""
    model = _arm(int(rng.integers(1, 4)))
    formula = Formula(int(rng.integers(5)), tuple(rng.uniform(0.2, 2.0, 4).round(3).tolist()))
    acting, change = _acting(int(rng.integers(5)), model, capture, formula)
    q0, v0 = rng.normal(size=model.nq) * 0.3, rng.normal(size=model.nv) * 0.3
    given = {"dt": STEP, "method": str(rng.choice(["rk4", "euler"])), "control": acting}
    for k in _values(rng):
        change(k)
        way = int(rng.integers(3))
        if way == 0:
            motion = lw.simulate(model, q0, v0, duration=STEPS * STEP, **given)
            if rng.random() < 0.5:
                change(float(k) + 1.0)  # what follows from a motion is worked out later
            samples = [(motion.t[i], motion.q[i], motion.v[i], motion.tau[i]) for i in range(STEPS)]
        elif way == 1:
            going = lw.Simulation(model, q0, v0, **given).advance(STEP)
            if rng.random() < 0.5:
                change(float(k) - 1.0)  # a simulation that has begun keeps its formulas
            held = isinstance(acting, lw.Sampled)
            samples = [(0.0, q0, v0, going.tau) if held else (STEP, going.q, going.v, going.tau)]
        else:
            keep = {name: _Sample(name) for name in ("q", "v", "tau")}
            inputs = {"q0": np.array([q0, q0]), "v0": np.array([v0, v0])}
            times = np.arange(STEPS + 1) * STEP
            kept = lw.ensemble(
                model, inputs, duration=STEPS * STEP, output_times=times, keep=keep, progress=False, threads=1, seed=1,
                **given,
            )  # fmt: skip
            samples = [(2 * STEP, kept["q"][1], kept["v"][1], kept["tau"][1])]
        for t, q, v, tau in samples:
            right = np.array(formula(float(k), float(t), q.tolist(), v.tolist()), float)
            if not np.allclose(tau, right, rtol=CLOSE, atol=CLOSE):
                return f"{formula} with k = {k!r} at t = {t}: {tau.tolist()}, not {right.tolist()} (way {way})"
    return ""


@dataclass(frozen=True)
class _Sample:
    """The third sample of a channel."""

    name: str

    def __call__(self, motion: lw.Trajectory) -> Any:
        return getattr(motion, self.name)[:, 2]


def happenings(rng: np.random.Generator, capture: Any) -> str:
    """When an event happens and where its action leads, which are known."""
    model, reach = _arm(1), float(rng.uniform(0.001, 0.02))
    condition, set_condition = capture(lambda k, t, q, v, p: t - 0.02 - reach * lw.math.sin(k))
    action, set_action = capture(lambda k, t, q, v: (q, [k]))
    event = lw.Event(condition, action=action)
    for k in _values(rng):
        set_condition(k)
        set_action(k)
        happened = lw.simulate(model, [0.1], duration=0.05, dt=0.01, method="rk4", events=event).events
        right = 0.02 + reach * float(np.sin(float(k)))
        if len(happened) != 1 or abs(happened[0].t - right) > CLOSE or happened[0].v_after[0] != float(k):
            return f"events with k = {k!r}: {happened}, not at {right}"
    return ""


def mechanism(rng: np.random.Generator, capture: Any) -> str:
    """A model and what was compiled, against the numbers that they were made with."""
    relation, change = capture(lambda k, q: q[0] - k * lw.math.sin(q[1]))
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.eye(3)}
    ratio, *others = (float(k) for k in _values(rng))
    change(ratio)

    def built(function: Any) -> lw.Model:
        b = lw.ModelBuilder("closed")
        for name in ("a", "b"):
            b.add_body(name, joint=lw.Revolute(axis=(0, 1, 0)), **rod)
        b.add_coupling("gear", function)
        return b.build()

    model, fresh = built(lambda q: relation(q)), built(lambda q: q[0] - ratio * lw.math.sin(q[1]))
    f = lw.compile(lambda m, q: relation(q), model, {"q": "q"})
    q, v, tau = rng.normal(size=2), rng.normal(size=2), rng.normal(size=2)
    right = q[0] - ratio * np.sin(q[1])
    for k in others:
        change(k)
        for what, found in (("closure_error", model.closure_error(q)[0]), ("compiled", f(q))):
            if not abs(found - right) < CLOSE:
                return f"{what} with {ratio!r} when it was made and {k!r} now: {found}, not {right}"
        got, wanted = (each.forward_dynamics(q, v, tau) for each in (model, fresh))
        if not np.array_equal(got, wanted):
            return f"forward_dynamics with {ratio!r} when it was made and {k!r} now: {got}, not {wanted}"
    return ""


def _values(rng: np.random.Generator) -> list[Any]:
    """Some numbers of several types, one of them twice."""
    found: list[Any] = [round(float(x), 3) for x in rng.uniform(-2.0, 2.0, int(rng.integers(2, 4)))]
    found.append(found[0])
    kinds: tuple[Callable[[Any], Any], ...] = (float, float, np.float64, lambda x: int(np.ceil(x)))
    return [kinds[int(rng.integers(len(kinds)))](x) for x in found]


class Captures(Trial):
    """Functions that capture numbers in every way we know, which then change."""

    name, unit, target, chunk = "captures", "functions that read changing values", 10_000, 40
    share = 0.5
    patience = 300.0

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """One function, some values."""
        ways = list(CAPTURES)
        for number in log.numbers(numbers):
            rng = np.random.default_rng([seed, number])
            way = str(rng.choice(ways))
            trial = (forces, forces, forces, happenings, mechanism)[int(rng.integers(5))]
            log.begin(number, f"{trial.__name__} {way}")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    problem = trial(rng, CAPTURES[way])
            except Exception as error:  # any is a finding
                problem = said(error)
            if problem:
                log.fail(number, f"{trial.__name__} {way}: {problem}")
