"""Relations between joint coordinates, or between their rates, that the user writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from linkwise.dataclass import dataclass
from linkwise.mechanism.closures.base import Relation, arguments_of, checked_function, equation_names, values_of
from linkwise.spatial.scalar import Flat, Scalar

_OF_COORDINATES = "fn(q) or fn(q, t)"
_OF_RATES = "fn(q, v) or fn(q, v, t)"


@dataclass(frozen=True, init=False)
class JointFunction(Relation):
    """``fn(q) = 0`` or ``fn(q, t) = 0``.

    Args:
        fn: returns a number, or a list of them; of ``lw.math.sin``, … and arithmetic. Its derivatives by q must
            be independent where it vanishes. Arguments with defaults are left alone.
        equations: how many numbers it returns, or a name for each.
        joints: names of the joints whose coordinates, one after the other, are q; those of the whole model if not
            given. A function of a quaternion should not depend on its length.
    """

    fn: Callable[..., Scalar | Flat]
    equations: tuple[str, ...]
    joints: tuple[str, ...] | None
    time_dependent: bool

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"fn": ("q", "t")}

    def __init__(
        self, fn: Callable[..., Scalar | Flat], equations: int | Sequence[str] = 1, joints: Sequence[str] | None = None
    ) -> None:
        what = "the function of JointFunction"
        checked_function(fn, what, _OF_COORDINATES)
        object.__setattr__(self, "fn", fn)
        object.__setattr__(self, "equations", equation_names(equations, "JointFunction"))
        object.__setattr__(self, "joints", names_of(joints))
        object.__setattr__(self, "time_dependent", arguments_of(fn, what, (1, 2), _OF_COORDINATES) == 2)

    def residual(self, q: Flat, t: Scalar) -> list[Scalar]:
        arguments = [list(q), t] if self.time_dependent else [list(q)]
        return values_of(self.fn, arguments, len(self.equations), "the function of JointFunction")


def names_of(joints: Sequence[str] | None) -> tuple[str, ...] | None:
    """Joint names as a tuple; a single one need not be in a list."""
    return None if joints is None else (joints,) if isinstance(joints, str) else tuple(joints)


@dataclass(frozen=True, init=False)
class RateFunction(Relation):
    """``fn(q, v) = 0`` or ``fn(q, v, t) = 0``: a nonholonomic constraint, linear in v or not.

    Args:
        fn: returns a number, or a list of them; of ``lw.math.sin``, … and arithmetic. Its derivatives by v must
            be independent where it vanishes. Arguments with defaults are left alone.
        equations: how many numbers it returns, or a name for each.
        joints: names of the joints whose coordinates, one after the other, are q and whose rates are v; those of the
            whole model if not given.
    """

    fn: Callable[..., Scalar | Flat]
    rate_equations: tuple[str, ...]
    joints: tuple[str, ...] | None
    time_dependent: bool

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"fn": ("q", "v", "t")}

    def __init__(
        self, fn: Callable[..., Scalar | Flat], equations: int | Sequence[str] = 1, joints: Sequence[str] | None = None
    ) -> None:
        what = "the function of RateFunction"
        checked_function(fn, what, _OF_RATES)
        object.__setattr__(self, "fn", fn)
        object.__setattr__(self, "rate_equations", equation_names(equations, "RateFunction"))
        object.__setattr__(self, "joints", names_of(joints))
        object.__setattr__(self, "time_dependent", arguments_of(fn, what, (2, 3), _OF_RATES) == 3)

    def rate_residual(self, q: Flat, v: Flat, t: Scalar) -> list[Scalar]:
        arguments = [list(q), list(v), t] if self.time_dependent else [list(q), list(v)]
        return values_of(self.fn, arguments, len(self.rate_equations), "the function of RateFunction")
