"""Where independent freedoms are chosen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """A closed configuration at which it is decided which freedoms are independent and which equations redundant."""

    q: tuple[float, ...]
    t: float = 0.0
    independent: tuple[int, ...] = ()
    """Places in v that are to be independent; what else is free besides them is found."""
