"""Relations between joint coordinates: linear ones (gears, belts), polynomials (cams), and those of the user."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from linkwise.checks import finite_number
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.mechanism.closures.constraint import Relation, arguments_of, checked_function, equation_names, values_of
from linkwise.spatial.scalar import Flat, Scalar


@dataclass(frozen=True, init=False)
class Coupling(Relation):
    """Σ c q = offset over joints with one freedom each.

    Args:
        coefficients: c for each joint's name.
        offset: in the unit of the sum.

    Example:
        A wheel that turns twice as far as another, the other way:
        ``lw.closures.Coupling({"wheel": 1.0, "other": 2.0})``
    """

    joints: tuple[str, ...]
    coefficients: tuple[float, ...]
    offset: float

    numbers = ("coefficients", "offset")
    single_freedoms: ClassVar[bool] = True
    equations = ("coupling",)

    def __init__(self, coefficients: Mapping[str, float], offset: float = 0.0) -> None:
        allowed = 'finite numbers other than 0, e.g. {"motor": 1.0, "wheel": -5.0}'
        try:
            terms = {str(joint): float(c) for joint, c in coefficients.items()}
            offset = float(offset)
        except (AttributeError, TypeError, ValueError):
            raise InputError(
                "a coupling is a number for each joint, and an offset",
                got=f"{coefficients!r}, offset={offset!r}",
                allowed=allowed,
            ) from None
        if not terms or not all(math.isfinite(c) and c != 0.0 for c in terms.values()) or not math.isfinite(offset):
            raise InputError(
                "the coefficients of a coupling are not possible", got=f"{terms}, offset={offset!r}", allowed=allowed
            )
        object.__setattr__(self, "joints", tuple(terms))
        object.__setattr__(self, "coefficients", tuple(terms.values()))
        object.__setattr__(self, "offset", offset)

    @classmethod
    def gear(cls, a: str, b: str, ratio: float, offset: float = 0.0) -> Coupling:
        """q_a = ratio q_b + offset: a motor at a and a reduction of 100 to b is ratio 100.

        Negative where the two turn against each other, as two wheels that mesh from outside do.
        """
        return cls(_terms("gear", (a, 1.0), (b, -_number(ratio, "the ratio of a gear"))), offset)

    @classmethod
    def screw(cls, turning: str, sliding: str, pitch: float, offset: float = 0.0) -> Coupling:
        """q_sliding = pitch q_turning + offset, pitch in m per rad. A rack: the pinion's radius is the pitch."""
        return cls(_terms("screw", (sliding, 1.0), (turning, -_number(pitch, "the pitch of a screw"))), offset)

    @classmethod
    def belt(
        cls, a: str, b: str, radius_a: float, radius_b: float, *, crossed: bool = False, offset: float = 0.0
    ) -> Coupling:
        """r_a q_a = r_b q_b + offset (m): what one pulley takes up, the other gives; the other way round if crossed."""
        r_a, r_b = _number(radius_a, "a radius of a belt"), _number(radius_b, "a radius of a belt")
        return cls(_terms("belt", (a, r_a), (b, r_b if crossed else -r_b)), offset)

    @classmethod
    def differential(cls, carrier: str, left: str, right: str, offset: float = 0.0) -> Coupling:
        """q_carrier = (q_left + q_right)/2 + offset: the carrier turns by the mean of its two shafts."""
        return cls(_terms("differential", (carrier, 1.0), (left, -0.5), (right, -0.5)), offset)

    def residual(self, q: Flat, t: Scalar) -> list[Scalar]:
        total: Scalar = -self.offset
        for c, x in zip(self.coefficients, q, strict=True):
            total = total + x * c
        return [total]


def _number(value: float, what: str) -> float:
    number = finite_number(value, what, allowed="a finite number other than 0")
    if number == 0.0:
        raise InputError(f"{what} is not possible", got=repr(value), allowed="a finite number other than 0")
    return number


def _terms(kind: str, *terms: tuple[str, float]) -> dict[str, float]:
    if len(dict(terms)) < len(terms):
        names = ", ".join(repr(name) for name, _ in terms)
        raise InputError(f"a joint appears twice in one {kind}", got=names, allowed="different joints")
    return dict(terms)


@dataclass(frozen=True, init=False)
class PolynomialCoupling(Relation):
    """Σ c q = a₀ + a₁ x + a₂ x² + … with x = Σ d q - start, over joints with one freedom each.

    Args:
        left: c for each joint's name.
        right: d for each joint's name; no joint of ``left``.
        polynomial: a₀, a₁, …
        start: where x is zero.

    Example:
        A follower on a cam: ``lw.closures.PolynomialCoupling({"follower": 1.0}, {"cam": 1.0}, (0.0, 0.0, 0.05))``
    """

    joints: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    polynomial: tuple[float, ...]
    start: float

    single_freedoms: ClassVar[bool] = True
    equations = ("coupling",)

    def __init__(
        self, left: Mapping[str, float], right: Mapping[str, float], polynomial: Sequence[float], start: float = 0.0
    ) -> None:
        try:
            c, d = ({str(joint): float(x) for joint, x in side.items()} for side in (left, right))
            a, start = tuple(float(x) for x in polynomial), float(start)
        except (AttributeError, TypeError, ValueError):
            raise InputError(
                "a polynomial coupling is a number for each joint, and coefficients",
                got=f"{left!r}, {right!r}, {polynomial!r}, start={start!r}",
                allowed='e.g. {"follower": 1.0}, {"cam": 1.0}, (0.0, 0.0, 0.05)',
            ) from None
        numbers = (*c.values(), *d.values(), *a, start)
        if not c or not d or not a or not all(map(math.isfinite, numbers)) or set(c) & set(d):
            raise InputError(
                "the coefficients of a polynomial coupling are not possible",
                got=f"{c}, {d}, {a}, start={start!r}",
                allowed="finite numbers, joints on both sides, none on both",
            )
        for name, value in (
            ("joints", (*c, *d)),
            ("left", tuple(c.values())),
            ("right", tuple(d.values())),
            ("polynomial", a),
            ("start", start),
        ):
            object.__setattr__(self, name, value)

    def residual(self, q: Flat, t: Scalar) -> list[Scalar]:
        n = len(self.left)
        x: Scalar = -self.start
        for d, own in zip(self.right, q[n:], strict=True):
            x = x + own * d
        value: Scalar = self.polynomial[-1]
        for a in self.polynomial[-2::-1]:
            value = value * x + a
        total: Scalar = 0.0
        for c, own in zip(self.left, q[:n], strict=True):
            total = total + own * c
        return [total - value]


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
