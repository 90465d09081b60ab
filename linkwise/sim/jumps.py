"""The two sides of an event: a state before it, and the state from which the motion goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.memoized import cached_property

Values = Mapping[str, Array]


class Jumps:
    """Where actions moved states of a batch, or terminal events ended them, in the order of time for each state.

    Args:
        t: times (n), s.
        state: which state of the batch, counted flat (n).
        states: by name (``q``, ``v``, ``x``) both sides, (n, 2, size): before and after.
        derived: the same for what follows from the states, or a function that finds it.
    """

    def __init__(self, t: Array, state: Array, states: Values, derived: Values | Callable[[], Values]) -> None:
        self.t, self.state, self._states, self._derived = t, state, states, derived

    def __len__(self) -> int:
        return len(self.t)

    @cached_property
    def sides(self) -> dict[str, Array]:
        """By name, (n, 2, ...)."""
        return {**self._states, **(self._derived() if callable(self._derived) else self._derived)}

    def of(self, chosen: Array) -> Jumps:
        """Those of some states, which are counted anew in the order in which they are chosen."""
        kept, numbers = [], []
        for number, state in enumerate(np.ravel(chosen)):
            found = np.flatnonzero(self.state == state)
            kept.append(found)
            numbers.append(np.full(len(found), number))
        index = np.concatenate([np.empty(0, int), *kept])
        sides = {name: values[index] for name, values in self.sides.items()}
        return Jumps(self.t[index], np.concatenate([np.empty(0, int), *numbers]), sides, {})

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: everything is computed first."""
        return {"t": self.t, "state": self.state, "_states": self.sides, "_derived": {}}

    def arrays(self) -> dict[str, Array]:
        """All of it under names for a file."""
        return {f"jump_{name}": values for name, values in {"t": self.t, "state": self.state, **self.sides}.items()}

    @classmethod
    def from_arrays(cls, arrays: Values) -> Jumps | None:
        """Jumps read back from the arrays that :meth:`arrays` made, found among others; None if there is none."""
        own = {name.removeprefix("jump_"): a for name, a in arrays.items() if name.startswith("jump_")}
        return cls(own.pop("t"), own.pop("state"), own, {}) if own else None
