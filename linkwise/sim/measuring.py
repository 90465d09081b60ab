"""Sensors in the loop: readings with noise, bias, steps of finite size, a rate and a delay, inside sampled controls.

All of it runs in the compiled loop. Noise comes from L'Ecuyer's two multiplicative generators (1988), whose numbers are
exact in double precision, and from Box and Muller's formula; where they start is drawn by NumPy from a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.checks import check_count, check_not_negative, check_positive
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.model.model import Model
from linkwise.sim.elements import Vector, law
from linkwise.sim.sensors import Encoder
from linkwise.sim.tables import Table
from linkwise.spatial.scalar import Flat, Scalar, cos, either, log, plus, sin, sqrt, where

_GENERATORS = ((40014.0, 2147483563.0), (40692.0, 2147483399.0))
"""Multipliers and moduli."""
_WHOLE = 1.5 * 2.0**52
"""Added to a number in double precision and taken away again, it leaves the nearest whole number."""


@dataclass(frozen=True)
class Measured:
    """A sensor in the loop of a :class:`~linkwise.Sampled` control.

    Args:
        output: function ``(t, q, v, p)``, or ``(t, q, v, p, x)`` with the states of all elements, that gives what is
            measured: k numbers, in their own units.
        size: k.
        noise: standard deviation of each reading, one for all or k.
        bias: standard deviation of a constant offset.
        walk: standard deviation of what the offset changes by in a second, growing with the root of time.
        step: readings are multiples of it; 0 for no such steps.
        rate: readings a second, Hz; as often as the control is asked if not given. It must divide the control's.
        delay: s that a reading is late, a multiple of the control's period.
        seed: of :func:`numpy.random.default_rng`.
        batch: leading axes: noise and bias of its own for each member of a batch.
    """

    output: Callable[..., Vector]
    size: int
    noise: Any = 0.0
    bias: Any = 0.0
    walk: Any = 0.0
    step: Any = 0.0
    rate: float | None = None
    delay: float = 0.0
    seed: int | np.random.Generator | None = 0
    batch: int | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_count(size=self.size)
        check_not_negative(delay=self.delay)
        if self.rate is not None:
            check_positive(rate=self.rate)
        for name in ("noise", "bias", "walk", "step"):
            given = np.asarray(getattr(self, name), float)
            if given.shape not in ((), (self.size,)) or not (np.isfinite(given).all() and (given >= 0.0).all()):
                raise InputError(
                    f"{name} of a sensor is not made of numbers of at least zero",
                    got=repr(getattr(self, name)),
                    allowed=f"one, or {self.size}",
                )
            object.__setattr__(self, name, tuple(np.broadcast_to(given, (self.size,)).tolist()))

    @property
    def drawn(self) -> Table:
        """The start of the generators (2), and the offset (k): a table of one time, with the axes of the batch."""
        shape = (self.batch,) if isinstance(self.batch, int) else tuple(self.batch)
        rng = np.random.default_rng(self.seed)
        starts = [rng.integers(1, int(modulus) - 1, size=(*shape, 1, 1)) for _, modulus in _GENERATORS]
        offset = rng.normal(size=(*shape, 1, self.size)) * np.array(self.bias)
        return Table([0.0], np.concatenate([*starts, offset], axis=-1), "held")

    def within(self, rate: float) -> InLoop:
        """The sensor in a loop of so many samples a second."""
        own = rate if self.rate is None else float(self.rate)
        every, late = rate / own, self.delay * rate
        for what, ratio in (("rate", every), ("delay", late)):
            if abs(ratio - round(ratio)) > 1e-6 or (what == "rate" and round(ratio) < 1):
                raise InputError(
                    f"the {what} of a sensor does not fit the control's",
                    got=f"{what}={getattr(self, what)!r} with {rate:g} samples a second",
                    allowed="a rate that divides the control's" if what == "rate" else "a multiple of its period",
                )
        return InLoop(self, round(every), round(late), 1.0 / own)


@dataclass(frozen=True)
class InLoop:
    """A sensor asked at every so many samples of a control, whose readings are so many samples late.

    Its states: how many samples ago it was asked, 0 at first; two numbers of the generators; the offset; the last
    reading; those on their way.
    """

    sensor: Measured
    every: int
    late: int
    period: float

    @property
    def size(self) -> int:
        """Number of states."""
        return 3 + self.sensor.size * (2 + self.late)

    def read(
        self, t: Scalar, q: Vector, v: Vector, p: Vector, x: Flat, drawn: Flat
    ) -> tuple[list[Scalar], list[Scalar]]:
        """The reading that has arrived (k), and the states after it."""
        s, k = self.sensor, self.sensor.size
        fresh = x[0] < 0.5
        due = fresh | (x[0] > self.every - 0.5)
        start = either(fresh, drawn, x[1 : 3 + k])
        numbers, offset = start[:2], start[2:]
        after, normals = drawn_from(numbers, k * (any(s.noise) + any(s.walk)))
        walked = offset
        if any(s.walk):
            sizes = [a * math.sqrt(self.period) for a in s.walk]
            walked = [a + b * c for a, b, c in zip(offset, sizes, normals[-k:], strict=True)]
        found = list(np.asarray(law(s.output, t, q, v, p), dtype=object).reshape(-1))
        if len(found) != k:
            raise InputError("a sensor's output has the wrong length", got=f"{len(found)} numbers", allowed=f"{k}")
        taken = plus(found, offset)
        if any(s.noise):
            taken = [a + b * c for a, b, c in zip(taken, s.noise, normals[:k], strict=True)]
        taken = [whole(a * (1.0 / b)) * b if b else a for a, b in zip(taken, s.step, strict=True)]
        last = either(due, taken, x[3 + k : 3 + 2 * k])
        coming = [where(fresh, taken[i % k], a) for i, a in enumerate(x[3 + 2 * k :])]
        line = [*coming, *last]
        kept = either(due, [*after, *walked], start)
        return line[:k], [where(due, 1.0, x[0] + 1.0), *kept, *last, *line[k:]]


def in_loop(sensor: object, model: Model, rate: float) -> InLoop:
    """A sensor in a loop of so many samples a second; of a :class:`~linkwise.Encoder`, its positions."""
    if isinstance(sensor, Encoder):
        joints = [model.joints[name] for name in sensor.joints or model.joints.names]
        if any(joint.nq != 1 or joint.mimic for joint in joints):
            raise InputError(
                "an encoder in the loop reads joints with one coordinate of their own",
                got=", ".join(joint.name for joint in joints),
                do="name the joints to read: lw.Encoder([...])",
            )
        places = [joint.q_slice.start for joint in joints]
        turns = [1.0 if joint.type.slides(0) else 2.0 * math.pi for joint in joints]
        step = [size / sensor.counts if sensor.counts else 0.0 for size in turns]

        def positions(t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
            return [q[i] for i in places]

        sensor = Measured(positions, len(joints), sensor.noise, sensor.bias, step=step)
    if not isinstance(sensor, Measured):
        raise InputError(
            "this cannot be measured inside the loop",
            got=repr(sensor),
            allowed="linkwise.sim.measuring.Measured(output, size, ...), or lw.Encoder(...)",
        )
    return sensor.within(rate)


def whole(x: Scalar) -> Scalar:
    """The nearest whole number, of numbers in double precision below 2⁵¹."""
    return (x + _WHOLE) - _WHOLE


def drawn_from(numbers: Flat, count: int) -> tuple[list[Scalar], list[Scalar]]:
    """The generators' next two numbers after normal ones, and these."""
    a, b = numbers
    uniform: list[Scalar] = []
    for _ in range(count + count % 2):
        a, b = (_next(x, *constants) for x, constants in zip((a, b), _GENERATORS, strict=True))
        difference = a - b
        modulus = _GENERATORS[0][1]
        uniform.append(where(difference < 0.5, difference + (modulus - 1.0), difference) * (1.0 / modulus))
    normals: list[Scalar] = []
    for first, second in zip(uniform[::2], uniform[1::2], strict=True):
        radius, angle = sqrt(log(first) * -2.0), second * (2.0 * math.pi)
        normals += [radius * cos(angle), radius * sin(angle)]
    return [a, b], normals[:count]


def _next(x: Scalar, multiplier: float, modulus: float) -> Scalar:
    product = x * multiplier
    left = product - whole(product * (1.0 / modulus)) * modulus
    return where(left < 0.0, left + modulus, left)


def readings(
    sensors: Sequence[InLoop], t: Scalar, q: Vector, v: Vector, p: Vector, x: Flat, drawn: Flat
) -> tuple[Array, list[Scalar]]:
    """All readings, one after the other, and the states of all sensors after them."""
    found: list[Scalar] = []
    after: list[Scalar] = []
    at = start = 0
    for each in sensors:
        width = 2 + each.sensor.size
        own = each.read(t, q, v, p, list(x[at : at + each.size]), list(drawn[start : start + width]))
        found += own[0]
        after += own[1]
        at, start = at + each.size, start + width
    return scalar_array(found), after
