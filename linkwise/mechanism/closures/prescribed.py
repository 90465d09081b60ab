"""A joint that moves as given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from linkwise.mechanism.closures.base import Relation
from linkwise.mechanism.closures.functions import checked_function, values_of
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True, init=False)
class Prescribed(Relation):
    """The coordinate of a joint with one freedom is a given function of time.

    Args:
        joint: its name.
        motion: function of the time t in s that returns the coordinate (rad or m); written with ``lw.math.sin``, … and
            arithmetic, twice differentiable.

    Example:
        ``builder.add_coupling("drive", lw.closures.Prescribed("crank_joint", lambda t: 2.0 * t))``
    """

    joints: tuple[str, ...]
    motion: Callable[[Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"motion": ("t",)}

    single_freedoms: ClassVar[bool] = True
    equations = ("coordinate",)
    time_dependent = True

    def __init__(self, joint: str, motion: Callable[[Scalar], Scalar]) -> None:
        object.__setattr__(self, "joints", (str(joint),))
        object.__setattr__(self, "motion", checked_function(motion, "the motion of Prescribed", "a function of t"))

    def residual(self, q: Sequence[Scalar], t: Scalar) -> list[Scalar]:
        (due,) = values_of(self.motion, [t], 1, "the motion of Prescribed")
        return [q[0] - due]
