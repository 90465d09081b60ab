"""One step of an environment as one compiled function: action, motion, reward, end, reset and observation.

An environment's functions are given a moment of it and, for resets, random numbers over any scalar. The generator is
that of Wichmann and Hill (1982): three sequences x ← a x mod m with m ≈ 30 000, whose sum's fraction is uniform, with a
period of 7e12. Every product is a whole number below 2²⁴, so it is the same number in float32 and float64, on a
processor and on a GPU; remainders are found by comparing and subtracting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction, compile
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.functions.traced_loops import loop
from linkwise.math import cos, log, sin, sqrt, where
from linkwise.model.held_motion import one_step
from linkwise.model.model import Model
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar

Beginning = Sequence[Flat | Array]
"""Of an episode: q, v and, if there is a goal, its numbers."""


@dataclass(frozen=True)
class Moment:
    """Moment of one environment: arrays of numbers that are traced, so that functions of them become machine code.

    Attributes:
        model: the mechanism.
        q: its configuration (nq).
        v: its velocity (nv).
        action: action in force (size of an action); zeros right after a reset.
        goal: numbers that a reset has chosen for the whole episode.
        p: run-time parameters of the model, for ``model.pose(q, body, p=moment.p)`` and others; None if it has none.
        time: since the beginning of the episode, s.
        impulses: those of the contacts in the last step, N s; empty without contacts.
    """

    model: Model
    q: Array
    v: Array
    action: Array
    goal: Array
    p: Array | None
    time: Scalar
    impulses: Array

    def way(self, body: str) -> Array:
        """From a body or frame to the goal, a point of the world (3), m."""
        return self.goal - self.model.pose(self.q, body)[:3, 3]


_FACTORS = (171.0, 172.0, 170.0)
_PRIMES = (30269.0, 30307.0, 30323.0)

SEED_SIZE = len(_PRIMES)
"""Numbers of a seed."""


def seeds(generator: np.random.Generator, count: int) -> Array:
    """Seeds of independent sequences (count, 3): whole numbers from 1 to below each prime."""
    return generator.integers(1, np.array(_PRIMES), size=(count, SEED_SIZE)).astype(float)


class Draws:
    """Sequence of random numbers.

    Args:
        seed: whole numbers (3), traced or not; see :func:`seeds`.
    """

    def __init__(self, seed: Flat | Array) -> None:
        self.seed = list(seed)

    def _next(self) -> Scalar:
        """Uniform between 0 and 1."""
        self.seed = [
            _remainder(factor * x, prime) for factor, prime, x in zip(_FACTORS, _PRIMES, self.seed, strict=True)
        ]
        total = sum(x * (1.0 / prime) for x, prime in zip(self.seed, _PRIMES, strict=True))
        return total - where(total >= 2.0, 2.0, where(total >= 1.0, 1.0, 0.0))

    def uniform(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> Scalar | Array:
        """Number between two others, or an array of such: bounds are numbers or arrays of one shape."""
        low, high = np.broadcast_arrays(low, high)
        if low.ndim == 0:
            return low[()] + (high[()] - low[()]) * self._next()
        found = [a + (b - a) * self._next() for a, b in zip(low.ravel(), high.ravel(), strict=True)]
        return np.array(found, dtype=object).reshape(low.shape)

    def normal(self, count: int, scale: float = 1.0) -> Array:
        """Array (count) of normally distributed numbers with this standard deviation, by Box and Muller."""
        found: list[Scalar] = []
        while len(found) < count:
            radius = sqrt(-2.0 * log(self._next() + 1e-9)) * scale
            angle = 2.0 * math.pi * self._next()
            found += [radius * cos(angle), radius * sin(angle)]
        return np.array(found[:count], dtype=object)

    def rotation(self) -> Array:
        """Quaternion [w, x, y, z] of an orientation, all orientations being equally likely (Shoemake 1992)."""
        part, first, second = self._next(), 2.0 * math.pi * self._next(), 2.0 * math.pi * self._next()
        a, b = sqrt(1.0 - part), sqrt(part)
        return np.array([b * cos(second), a * sin(first), a * cos(first), b * sin(second)], dtype=object)


def _remainder(x: Scalar, prime: float) -> Scalar:
    """Remainder of a whole number below 256 primes: what is too much goes in halves."""
    for power in range(7, -1, -1):
        much = prime * 2.0**power
        x = where(x >= much, x - much, x)
    return x


Method = Literal["semi-implicit", "rk4", "contact"]
Autoreset = Literal["next_step", "same_step", "disabled"]

_UNROLLED = 4  # substeps up to which each is written out

State = dict[str, Array]
"""Arrays of an environment between two steps, by name."""
_NAMES = ("q", "v", "goal", "impulses", "p", "clock", "seed", "over")  # ``clock`` counts steps; ``over``: has ended


@dataclass(frozen=True)
class Rules:
    """Rules of an environment: functions over any scalar, and how the mechanism moves.

    Args:
        model: the mechanism, with run-time parameters if these are drawn.
        observe: what is seen, an array of any length, of a :class:`~linkwise.gym.environment_step.Moment`.
        reward: of the moment that a step leads to, with the action that led there.
        done: whether the episode ends there.
        act: joint forces (nv) of a moment with its action; the action itself if None.
        reset: of the model and :class:`~linkwise.gym.environment_step.Draws`: q, v and, if there is one, goal.
        choices: rows of actions to choose from (n, size); None for actions that are numbers.
        size: numbers of an action.
        dt: of a step, s.
        substeps: of the motion in a step.
        method: of the motion.
        drawn: for each number of the model's parameters its bounds (n, 2); None without parameters.
        max_episode_steps: None for episodes without end.
    """

    model: Model
    observe: Callable[[Moment], Flat | Array]
    reward: Callable[[Moment], Scalar]
    done: Callable[[Moment], Scalar]
    act: Callable[[Moment], Flat | Array] | None
    reset: Callable[[Model, Draws], Beginning]
    choices: Array | None
    size: int
    dt: float
    substeps: int
    method: Method
    drawn: Array | None
    max_episode_steps: int | None

    def fresh(self, seed: Flat | Array) -> State:
        """State at the beginning of an episode."""
        draws = Draws(seed)
        q, v, *goal = self.reset(self.model, draws)
        p = [] if self.drawn is None else [low if low == high else draws.uniform(low, high) for low, high in self.drawn]
        state = {"q": q, "v": v, "goal": goal[0] if goal else [], "p": p, "impulses": np.zeros(self.impulses)}
        return {name: _flat(values) for name, values in (state | {"clock": [0.0], "seed": draws.seed}).items()}

    @property
    def impulses(self) -> int:
        """Numbers that contacts keep between steps."""
        return self.model.contacts.rows if self.method == "contact" else 0

    def moment(self, state: State, action: Array) -> Moment:
        """Moment of a state."""
        p = state["p"] if self.drawn is not None else None
        time = state["clock"][0] * self.dt
        return Moment(self.model, state["q"], state["v"], action, state["goal"], p, time, state["impulses"])

    def _chosen(self, action: Array) -> Array:
        """Action that is meant: of a choice, its row."""
        if self.choices is None:
            return action
        row = self.choices[-1]
        for k in range(len(self.choices) - 2, -1, -1):
            row = [where(action[0] < k + 0.5, a, b) for a, b in zip(self.choices[k], row, strict=True)]
        return _flat(row)

    def moved(self, state: State, action: Array) -> State:
        """State after a step."""

        def once(_: Scalar, parts: list[Array]) -> list[Array]:
            q, v, impulses = parts
            return list(self._substep({**state, "q": q, "v": v, "impulses": impulses}, action))

        parts = [state["q"], state["v"], state["impulses"]]
        if self.substeps <= _UNROLLED and self.method != "contact":
            for k in range(self.substeps):
                parts = once(k, parts)
        else:
            parts = loop(self.substeps, once, parts)
        q, v, impulses = map(_flat, parts)
        return {**state, "q": q, "v": v, "impulses": impulses, "clock": _flat([state["clock"][0] + 1.0])}

    def _substep(self, state: State, action: Array) -> tuple[Array, Array, Array]:
        model, h = self.model, self.dt / self.substeps
        p = None if self.drawn is None else state["p"]

        def forces(q: Array, v: Array) -> Array:
            moment = self.moment({**state, "q": q, "v": v}, action)
            own = _flat(action if self.act is None else self.act(moment))
            if len(own) != model.nv:
                raise InputError("act returns too few or too many joint forces", got=len(own), allowed=model.nv)
            return own + model.passive_force(q, v, p=p)

        def rate(q: Array, v: Array) -> Array:
            return model.forward_dynamics(q, v, forces(q, v), p=p)

        q, v, impulses = state["q"], state["v"], state["impulses"]
        if self.method == "contact":
            found = model.contact_step(q, v, forces(q, v), impulses, h, p=p)
            return _flat(found.q), _flat(found.v), _flat(found.impulses)
        q, v = one_step(model, rate, q, v, h, fourth_order=self.method == "rk4", p=p)
        return q, v, impulses

    def compiled_step(self, mode: Autoreset) -> CompiledFunction:
        """A step of one environment, with the reset that follows the end of an episode, as one function.

        Takes the arrays of :attr:`kept` and the action; returns them anew, and ``obs``, ``reward``, ``terminated``,
        ``truncated`` (0 or 1) and, in the same-step mode, ``final_obs``.
        """

        def step(model: Model, *arrays: Array) -> NamedNumbers:
            *kept, action = arrays
            state = self._state(kept)
            over = state.pop("over")[0] > 0.5
            chosen = self._chosen(action)
            moved = self.moved(state, chosen)
            moment = self.moment(moved, chosen)
            reward, ended = _one("reward", self.reward(moment)), _number(_one("done", self.done(moment)))
            late = 0.0
            if self.max_episode_steps is not None:
                late = _number(moved["clock"][0] >= self.max_episode_steps - 0.5)
            final = {}
            if mode == "next_step":
                moved = _either(over, self.fresh(state["seed"]), moved)
                reward, ended, late = (where(over, 0.0, x) for x in (reward, ended, late))
            elif mode == "same_step":
                final["final_obs"] = self.observe(moment)
                moved = _either(ended + late > 0.5, self.fresh(state["seed"]), moved)
            held = [1.0 - where(over, 1.0, 0.0)] * self.size if mode == "next_step" else [1.0] * self.size
            seen = self.observe(self.moment(moved, _flat([a * h for a, h in zip(chosen, held, strict=True)])))
            results = {"obs": seen, "reward": reward, "terminated": ended, "truncated": late, **final}
            return {**self._some(moved), "over": _flat([where(ended + late > 0.5, 1.0, 0.0)]), **results}

        return compile(step, self.model, self._inputs() | {"action": self._taken}, name=f"{self.model.name} step")

    def compiled_reset(self) -> CompiledFunction:
        """The beginning of an episode where ``over`` says so: takes :attr:`kept`, returns them anew, and ``obs``."""

        def reset(model: Model, *arrays: Array) -> NamedNumbers:
            state = self._state(arrays)
            over = state.pop("over")[0] > 0.5
            state = _either(over, self.fresh(state["seed"]), state)
            seen = self.observe(self.moment(state, np.zeros(self.size)))
            return {**self._some(state), "over": _flat([0.0]), "obs": seen}

        return compile(reset, self.model, self._inputs(), name=f"{self.model.name} reset")

    @property
    def _taken(self) -> int:
        return self.size if self.choices is None else 1

    @cached_property
    def kept(self) -> dict[str, int]:
        """Arrays of an environment between two steps, and their lengths; those without numbers are left out."""
        example = self.fresh([1.0] * SEED_SIZE) | {"over": _flat([0.0])}
        for name, size in (("q", self.model.nq), ("v", self.model.nv)):
            if len(example[name]) != size:
                raise InputError(f"reset returns a {name} of the wrong length", got=len(example[name]), allowed=size)
        return {name: len(example[name]) for name in _NAMES if len(example[name])}

    def _inputs(self) -> dict[str, str | int | tuple[int, ...]]:
        return {name: name if name in ("q", "v") else (size,) for name, size in self.kept.items()}

    def _state(self, arrays: Sequence[Array]) -> State:
        return dict.fromkeys(_NAMES, _flat([])) | dict(zip(self.kept, arrays, strict=True))

    def _some(self, state: State) -> State:
        return {name: state[name] for name in self.kept if name in state}


def _flat(values: object) -> Array:
    flat: Array = scalar_array(np.asarray(values, dtype=object).reshape(-1))
    return flat


def _one(what: str, value: Scalar) -> Scalar:
    if np.ndim(value):
        raise InputError(
            f"{what} does not return one number", got=f"shape {np.shape(value)}", do="sum, all or any of it"
        )
    return value


def _number(truth: Scalar) -> Scalar:
    if isinstance(truth, (bool, np.bool_, float, int)):
        return float(truth)
    try:
        return where(truth, 1.0, 0.0)
    except TypeError:
        raise InputError("done does not return a condition", allowed="such as now.q[0] > 1.0") from None


def _either(condition: Scalar, yes: State, no: State) -> State:
    """State of one or the other kind, number by number."""
    return {name: _flat([where(condition, a, b) for a, b in zip(yes[name], no[name], strict=True)]) for name in no}
