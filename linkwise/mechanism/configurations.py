"""Configurations with a name: home, folded, a keyframe of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.errors import UnknownNameError
from linkwise.mechanism.checks import finite_numbers

if TYPE_CHECKING:
    from linkwise.mechanism.mechanism import Mechanism


class Configurations(Mapping[str, NDArray[np.float64]]):
    """Name → q (nq), read-only."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[tuple[str, Sequence[float]]] = ()) -> None:
        self._values = {name: tuple(float(x) for x in q) for name, q in values}

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        if name not in self._values:
            raise UnknownNameError("configuration", name, self._values)
        q = np.array(self._values[name], float)
        q.flags.writeable = False
        return q

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configurations) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Configurations, (tuple(self._values.items()),)

    def __repr__(self) -> str:
        return f"<configurations: {', '.join(self._values) or 'none'}>"

    def _ipython_key_completions_(self) -> list[str]:
        """Names that complete inside ``model.configurations["``."""
        return list(self._values)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all configurations, in order."""
        return tuple(self._values)

    def with_configuration(self, name: str, q: Sequence[float]) -> Configurations:
        """A copy with one more, or with another q under a name that is there."""
        return Configurations((self._values | {str(name): tuple(q)}).items())


def configuration_of(mechanism: Mechanism, name: str, values: ArrayLike | Mapping[str, ArrayLike]) -> tuple[float, ...]:
    """q (nq) from numbers for the whole, or from a mapping of joints to theirs; the others at their zero position."""
    if not isinstance(values, Mapping):
        return finite_numbers(values, f"the configuration {name!r}", mechanism.nq)
    q = [0.0] * mechanism.nq
    own = {joint.name: joint for joint in mechanism._independent}
    for joint in own.values():
        q[joint.q_slice] = joint.type.neutral()
    for key, value in values.items():
        if key not in own:
            raise UnknownNameError(f"joint with coordinates of its own for configuration {name!r}", key, own)
        q[own[key].q_slice] = finite_numbers(value, f"joint {key!r} in configuration {name!r}", own[key].nq)
    return tuple(q)
