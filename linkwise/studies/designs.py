"""Designs, the members' points in the unit cube: random, Latin hypercube, Sobol sequence, Saltelli's pattern.

A design has ``dimensions`` coordinates, one for each number that is drawn. Any range of members can be asked for alone,
and is the same to the last bit each time, in whatever order ranges are asked for.
"""

from __future__ import annotations

import inspect
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError

NAMES = ("random", "latin", "sobol", "saltelli")
DRAWN_TOGETHER = 1024  # members that share a stream of random numbers; part of what a seed means, so never to change
_EDGE = 2.0**-54  # no number is 0 or 1, where a normal distribution is infinite


class Seeds:
    """Streams of random numbers that all follow from one seed.

    They are children of ``numpy.random.SeedSequence(entropy)`` as ``spawn`` makes them, known by their place in the
    tree: (0, k) draws the k-th group of members, (1, m) belongs to member m alone, (2,) scrambles sequences.

    Args:
        entropy: a whole number, or None to take it from the system.
    """

    def __init__(self, entropy: int | None = None) -> None:
        if entropy is not None and (isinstance(entropy, bool) or not isinstance(entropy, (int, np.integer))):
            raise InputError("the seed is not a whole number", got=repr(entropy), allowed="0, 1, 2, … or None")
        if entropy is not None and entropy < 0:
            raise InputError("the seed is negative", got=repr(entropy), allowed="0, 1, 2, … or None")
        self.entropy = secrets.randbits(128) if entropy is None else int(entropy)

    def stream(self, *place: int) -> np.random.Generator:
        """The random numbers of one place in the tree."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=place))

    def group(self, number: int) -> np.random.Generator:
        """Random numbers of the members that are drawn together as group ``number``."""
        return self.stream(0, number)

    def member(self, number: int) -> np.random.Generator:
        """Random numbers of one member alone."""
        return self.stream(1, number)


class QmcEngine(Protocol):
    """Sequence of points in the unit cube, as those of ``scipy.stats.qmc``."""

    d: int

    def random(self, n: int) -> Array:
        """The next n points (n, d)."""


class Design(ABC):
    """Points of all members in the unit cube (members, dimensions)."""

    def __init__(self, members: int, dimensions: int, seeds: Seeds) -> None:
        self.members, self.dimensions, self.seeds = members, dimensions, seeds

    @abstractmethod
    def points(self, start: int, stop: int) -> Array:
        """Points of members start … stop - 1, (stop - start, dimensions)."""


class Random(Design):
    """Independent points."""

    def points(self, start: int, stop: int) -> Array:
        """See :meth:`Design.points`."""
        size = (DRAWN_TOGETHER, self.dimensions)
        return _inside(by_groups(start, stop, self.dimensions, lambda group: self.seeds.group(group).random(size)))


def by_groups(start: int, stop: int, width: int, drawn: Callable[[int], Array]) -> Array:
    """Rows (stop - start, width) of members start … stop - 1, from groups of members that are drawn together."""
    made = [np.empty((0, width))]
    for group in range(start // DRAWN_TOGETHER, -(-stop // DRAWN_TOGETHER)):
        first = group * DRAWN_TOGETHER
        made.append(drawn(group)[max(0, start - first) : stop - first])
    return np.concatenate(made)


class _WholeDesign(Design):
    """A design that only exists as a whole: made once, and kept."""

    table: Array

    def points(self, start: int, stop: int) -> Array:
        """See :meth:`Design.points`."""
        return _inside(self.table[start:stop])


class Latin(_WholeDesign):
    """A Latin hypercube: along each coordinate the members lie in as many slices of equal size, one in each."""

    def __init__(self, members: int, dimensions: int, seeds: Seeds) -> None:
        from scipy.stats import qmc

        super().__init__(members, dimensions, seeds)
        self.table = _engine(qmc.LatinHypercube, max(1, dimensions), seeds).random(members)[:, :dimensions]


class Drawn(_WholeDesign):
    """The points of a sequence of the caller's own, taken once."""

    def __init__(self, members: int, dimensions: int, seeds: Seeds, engine: QmcEngine) -> None:
        super().__init__(members, dimensions, seeds)
        if engine.d != dimensions:
            raise InputError(
                "the sequence has another dimension than the study",
                got=f"d = {engine.d}",
                allowed=f"d = {dimensions}: one for each number that is drawn",
            )
        self.table = engine.random(members)


class Sobol(Design):
    """A scrambled Sobol sequence; most even where the members are a power of two."""

    def points(self, start: int, stop: int) -> Array:
        """See :meth:`Design.points`."""
        return _inside(_sobol(self.dimensions, self.seeds, start, stop))


class Saltelli(Design):
    """The pattern that Sobol indices are estimated from: of n(d + 2) members, d + 2 belong together.

    Points A and B, and for each coordinate i the point A with its i-th coordinate from B (Saltelli et al. 2010).
    """

    def __init__(self, members: int, dimensions: int, seeds: Seeds) -> None:
        super().__init__(members, dimensions, seeds)
        if not dimensions or members % (dimensions + 2):
            raise InputError(
                "this number of members does not fit Saltelli's pattern",
                got=f"{members} members for {dimensions} numbers that are drawn",
                allowed=f"a multiple of {dimensions + 2}; best {dimensions + 2} times a power of two",
            )

    def points(self, start: int, stop: int) -> Array:
        """See :meth:`Design.points`."""
        d = self.dimensions
        first, last = start // (d + 2), -(-stop // (d + 2))
        both = _sobol(2 * d, self.seeds, first, last)
        A, B = both[:, None, :d], both[:, None, d:]
        mixed = np.where(np.eye(d, dtype=bool), B, A)
        whole = np.concatenate([A, B, mixed], axis=1).reshape(-1, d)
        return _inside(whole[start - first * (d + 2) : stop - first * (d + 2)])


def make_design(design: QmcEngine | str, members: int, dimensions: int, seeds: Seeds) -> Design:
    """A design by its name, or from an engine of ``scipy.stats.qmc``."""
    known: dict[str, type[Design]] = {"random": Random, "latin": Latin, "sobol": Sobol, "saltelli": Saltelli}
    if isinstance(design, str):
        if design in known:
            return known[design](members, dimensions, seeds)
    elif callable(getattr(design, "random", None)) and hasattr(design, "d"):
        return Drawn(members, dimensions, seeds, design)
    raise InputError(
        "no such design", got=repr(design), allowed=f"{', '.join(map(repr, NAMES))}, or an engine of scipy.stats.qmc"
    )


def grid(axes: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """All combinations of values, as inputs of an ensemble: the last axis changes fastest.

    >>> grid({"kp": [1.0, 2.0], "kd": [0.1, 0.2, 0.3]})["kd"].tolist()
    [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]

    Args:
        axes: for each input its values (n), or (n, size) for inputs of several numbers.
    """
    values = {name: np.asarray(each, float) for name, each in axes.items()}
    for name, each in values.items():
        if each.ndim not in (1, 2) or not len(each):
            raise InputError(f"the axis {name!r} of a grid is not a list of values", got=f"shape {each.shape}")
    places: Sequence[Array] = np.meshgrid(*(np.arange(len(each)) for each in values.values()), indexing="ij")
    return {name: each[place.reshape(-1)] for (name, each), place in zip(values.items(), places, strict=True)}


def _sobol(dimensions: int, seeds: Seeds, start: int, stop: int) -> Array:
    from scipy.stats import qmc

    if not dimensions:
        return np.empty((stop - start, 0))
    engine = _engine(qmc.Sobol, dimensions, seeds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that part of a sequence is less even than the whole: it is put together again
        return np.asarray(engine.fast_forward(start).random(stop - start) if start else engine.random(stop - start))


def _engine(kind: Any, dimensions: int, seeds: Seeds) -> Any:
    """A sequence of ``scipy.stats.qmc``, scrambled; SciPy before 1.15 calls its generator ``seed``."""
    name = "rng" if "rng" in inspect.signature(kind).parameters else "seed"
    return kind(dimensions, scramble=True, **{name: seeds.stream(2)})


def _inside(points: Array) -> Array:
    return np.clip(points, _EDGE, 1.0 - 2.0**-53)
