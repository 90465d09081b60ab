"""Inputs that differ from member to member: their distributions, and where the numbers go."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.studies.designs import DRAWN_TOGETHER, Design, Seeds, by_groups

STATES = ("q0", "v0", "x0")
_SPECS = (
    "numbers, an array with a row for each member, a frozen distribution of scipy.stats, a list of these (one for each "
    "number), or a function of a random generator"
)


@dataclass(frozen=True)
class StudyInput:
    """One input: its name, how many numbers it has, and what they are drawn from.

    Args:
        name: as given.
        size: numbers in it.
        kind: "constant", "table" (a row for each member), "univariate" (a distribution for each number),
            "multivariate" (one for all of them), or "function" (of a member's own random numbers).
        source: the numbers, distributions or function.
    """

    name: str
    size: int
    kind: str
    source: Any

    @property
    def dimensions(self) -> int:
        """Coordinates of the design that it takes."""
        return len(self.labels())

    def labels(self) -> list[str]:
        """A name for each coordinate of the design."""
        if self.kind != "univariate":
            return []
        return [
            self.name if self.size == 1 else f"{self.name}[{k}]"
            for k, each in enumerate(self.source)
            if not isinstance(each, float)
        ]

    def least(self, members: int) -> float:
        """Number that hardly any of so many members falls below; 0 where that is known when members are drawn."""
        if self.kind in ("constant", "table"):
            return float(np.min(self.source))
        rare = np.array([0.01 / members])
        given = self.source if self.kind == "univariate" else ()
        return float(min([e if isinstance(e, float) else _inverse(e, rare)[0] for e in given], default=0.0))

    def values(self, points: Array, start: int, stop: int, seeds: Seeds) -> Array:
        """Rows (n, size) for members start … stop - 1, from their points (n, dimensions) of the design."""
        n = stop - start
        if self.kind == "constant":
            return np.broadcast_to(self.source, (n, self.size)).copy()
        if self.kind == "table":
            return np.array(self.source[start:stop])
        if self.kind == "univariate":
            made, column = np.empty((n, self.size)), 0
            for k, each in enumerate(self.source):
                if isinstance(each, float):
                    made[:, k] = each
                else:
                    made[:, k] = _inverse(each, points[:, column])
                    column += 1
            return made
        if self.kind == "multivariate":
            label, size = zlib.crc32(self.name.encode()), (DRAWN_TOGETHER, self.size)

            def drawn(group: int) -> Array:
                rows = self.source.rvs(size=DRAWN_TOGETHER, random_state=seeds.stream(3, label, group))
                return np.reshape(rows, size)

            return by_groups(start, stop, self.size, drawn)
        rows = [np.asarray(self.source(seeds.member(m)), float) for m in range(start, stop)]
        for m, row in enumerate(rows, start):
            if row.shape not in ((self.size,), *(((),) if self.size == 1 else ())):
                raise InputError(
                    f"the function of the input {self.name!r} returned something of the wrong shape",
                    got=f"{row.shape} for member {m}",
                    allowed=f"({self.size},)",
                )
        return np.array(rows).reshape(n, self.size)


class Inputs:
    """All inputs of a study and their places in q0, v0, x0 and p.

    Args:
        model: the mechanism.
        given: by name; ``q0``, ``v0``, ``x0`` and ``p`` are whole vectors, a parameter that the model declares goes by
            its own name, and any other name adds numbers to the end of p, in the order given.
        members: how many there are.
        sizes: of inputs whose numbers cannot be counted from what is given; of x0.
    """

    def __init__(self, model: Model, given: Mapping[str, object], members: int, sizes: Mapping[str, int]) -> None:
        self.own = {parameter.name: parameter.slice for parameter in model.parameters}
        self.signless = {parameter.name: parameter.slice for parameter in model.parameters if parameter.is_signless}
        self.nominal = model.parameters.nominal
        known = {"q0": model.nq, "v0": model.nv} | {name: s.stop - s.start for name, s in self.own.items()}
        if "p" in given:
            clash = [name for name in given if name not in (*STATES, "p")]
            if clash:
                raise InputError(
                    "p is given as a whole and in parts", got=f"p, {', '.join(clash)}", do="give one or the other"
                )
        self.parts = tuple(
            as_input(name, spec, members, known.get(name, sizes.get(name))) for name, spec in given.items()
        )
        for part in self.parts:
            least = part.least(members) if part.name in self.signless else 0.0
            if least < 0.0:
                raise InputError(
                    f"the input {part.name!r} cannot be negative",
                    got=f"as low as {least:.3g} among {members} members",
                    allowed="numbers >= 0",
                    do="a distribution above zero: scipy.stats.uniform, lognorm or truncnorm",
                )
        self.extra = [part for part in self.parts if part.name not in (*STATES, "p", *self.own)]
        self.members = members

    def without_sources(self) -> Inputs:
        """Inputs with nothing to draw from: all that is needed where members run."""
        made = copy.copy(self)
        made.parts = tuple(replace(part, source=None) for part in self.parts)
        made.extra = [replace(part, source=None) for part in self.extra]
        return made

    @property
    def dimensions(self) -> int:
        """Coordinates that the design must have."""
        return sum(part.dimensions for part in self.parts)

    @property
    def labels(self) -> list[str]:
        """A name for each of them."""
        return [label for part in self.parts for label in part.labels()]

    def values(self, design: Design, start: int, stop: int) -> dict[str, Array]:
        """Rows (stop - start, size) of each input."""
        points = design.points(start, stop)
        made, column = {}, 0
        for part in self.parts:
            own = points[:, column : column + part.dimensions]
            made[part.name] = part.values(own, start, stop, design.seeds)
            column += part.dimensions
        return made

    def parameters(self, values: Mapping[str, Array], count: int) -> Array | None:
        """p (count, np): the model's own, then the others; None where there is nothing but the nominal ones."""
        if "p" not in values and not self.extra and not any(name in values for name in self.own):
            return None
        p = values["p"] if "p" in values else np.tile(self.nominal, (count, 1))
        for name, place in self.own.items():
            if name in values:
                p[:, place] = values[name]
        for name, place in self.signless.items():
            if (p[:, place] < 0.0).any():
                raise InputError(f"{name} of a member is negative", got=f"{p[:, place].min():.3g}", allowed=">= 0")
        return np.concatenate([p, *(values[part.name] for part in self.extra)], axis=1)

    def places(self) -> dict[str, slice]:
        """Places of the named parameters in p."""
        found, start = dict(self.own), len(self.nominal)
        for part in self.extra:
            found[part.name] = slice(start, start + part.size)
            start += part.size
        return found


def as_input(name: str, spec: Any, members: int, size: int | None) -> StudyInput:
    """Input made of what a caller gave; ``size`` numbers, counted if None."""
    if not name or not name.isprintable() or "/" in name or name.startswith((".", "_")):
        raise InputError(
            "this cannot be the name of an input", got=repr(name), allowed="a word without slashes, e.g. 'gust'"
        )
    if _is_univariate(spec):
        lengths = [np.size(x) for x in _numbers_of(spec)]
        count = size or max(lengths, default=1)
        return StudyInput(name, count, "univariate", _each(name, spec, count))
    if hasattr(spec, "rvs"):
        count = int(np.size(spec.rvs(random_state=np.random.default_rng(0))))
        return StudyInput(name, _checked_size(name, count, size), "multivariate", spec)
    if callable(spec):
        row = np.asarray(spec(np.random.default_rng(0)), float)
        return StudyInput(name, _checked_size(name, row.size, size), "function", spec)
    if isinstance(spec, (list, tuple)) and any(_is_univariate(each) for each in spec):
        if not all(_is_univariate(each) or np.ndim(each) == 0 for each in spec):
            raise InputError(f"the input {name!r} cannot be read", got=repr(spec)[:80], allowed=_SPECS)
        count = _checked_size(name, len(spec), size)
        return StudyInput(name, count, "univariate", tuple(e if _is_univariate(e) else float(e) for e in spec))
    return _from_numbers(name, spec, members, size)


def _from_numbers(name: str, spec: Any, members: int, size: int | None) -> StudyInput:
    try:
        array = np.array(spec, float)
    except (TypeError, ValueError):
        raise InputError(f"the input {name!r} cannot be read", got=repr(spec)[:80], allowed=_SPECS) from None
    if size is None:  # a row for each member, or one for all
        size = array.shape[-1] if array.ndim == 2 else 1 if array.shape == (members,) else max(1, array.size)
    if array.shape in ((), (size,)) and not (array.shape == (members,) and size == 1 and members > 1):
        return StudyInput(name, size, "constant", np.broadcast_to(array, (size,)).copy())
    if array.shape == (members, size) or (size == 1 and array.shape == (members,)):
        return StudyInput(name, size, "table", array.reshape(members, size))
    raise InputError(
        f"the input {name!r} has the wrong shape",
        got=f"{array.shape}",
        allowed=f"({size},) for all members, or ({members}, {size}): a row for each",
    )


def _is_univariate(spec: Any) -> bool:
    return hasattr(spec, "ppf") or hasattr(spec, "icdf")


def _inverse(distribution: Any, points: Array) -> Array:
    """Quantiles: a distribution's value below which a share of all lies."""
    invert = distribution.ppf if hasattr(distribution, "ppf") else distribution.icdf
    return np.asarray(invert(points), float)


def _numbers_of(spec: Any) -> Sequence[Any]:
    """A distribution's own parameters, which may be arrays: one for each number."""
    if hasattr(spec, "dist"):
        return [*spec.args, *spec.kwds.values()]
    return list(getattr(spec, "_parameters", {}).values())


def _each(name: str, spec: Any, size: int) -> tuple[Any, ...]:
    if all(np.size(x) == 1 for x in _numbers_of(spec)):
        return (spec,) * size
    widths = {np.size(x) for x in _numbers_of(spec)} - {1}
    if widths != {size}:
        raise InputError(
            f"the distribution of {name!r} has parameters of the wrong length",
            got=", ".join(str(n) for n in sorted(widths)),
            allowed=f"1 or {size}",
        )

    def at(value: Any, k: int) -> float:
        return float(np.broadcast_to(np.reshape(value, -1), (size,))[k])

    if hasattr(spec, "dist"):
        return tuple(
            spec.dist(*(at(x, k) for x in spec.args), **{key: at(x, k) for key, x in spec.kwds.items()})
            for k in range(size)
        )
    return tuple(type(spec)(**{key: at(x, k) for key, x in spec._parameters.items()}) for k in range(size))


def _checked_size(name: str, found: int, size: int | None) -> int:
    if size is not None and found != size:
        raise InputError(f"the input {name!r} has the wrong length", got=f"{found} numbers", allowed=str(size))
    return found
