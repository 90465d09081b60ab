"""How closures are kept closed while errors of integration would open them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkwise.errors import InputError
from linkwise.sim.checks import check_positive


@dataclass(frozen=True)
class Closing:
    """Stabilisation: the measures besides asking for accelerations that obey."""

    projects: bool
    """Whether places and velocities are put back after each step."""
    rate: float = 0.0
    """1/s, of Baumgarte's feedback; zero for none."""


@dataclass(frozen=True)
class Baumgarte:
    """Feedback that closes what has opened: ë + 2a ė + a²e = 0, critically damped (Baumgarte 1972).

    Errors are not removed but kept small, about as large as those of a few times 1/a; the motion pays for it with a
    force that does work. A small a lets the mechanism drift, a large one makes the equations of motion stiff (steps of
    explicit methods stay below some 2/a).

    Args:
        rate: a, in 1/s.
    """

    rate: float = 20.0

    def __post_init__(self) -> None:
        check_positive("the rate of Baumgarte's feedback", self.rate)


def as_closing(stabilization: Any) -> Closing:
    """Stabilisation that a user wants, by a word or an object."""
    if stabilization is None:
        return Closing(False)
    if stabilization == "projection":
        return Closing(True)
    if stabilization == "baumgarte":
        stabilization = Baumgarte()
    if isinstance(stabilization, Baumgarte):
        return Closing(False, float(stabilization.rate))
    raise InputError(
        "no such stabilization",
        got=repr(stabilization),
        allowed='"projection", "baumgarte" or lw.Baumgarte(rate=…), or None',
    )
