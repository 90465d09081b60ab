"""Newton steps on smoothed laws, for impulses that sweeps do not find.

Of redundant contacts (the corners of flat feet) Newton's method on the laws themselves, λ = proj(λ - w/ℓ), has a small
basin. Here corners of proj are rounded over a ``width`` σ (N s): a half line becomes a branch of a hyperbola, λ w/ℓ =
σ², and the bound of a disk likewise. Such equations are smooth, far from the solution their Newton steps are short, and
with σ → 0 their solutions lead to that of the laws: the way of interior-point methods (Chen and Harker 1993; Acary,
Armand, Nguyen and Shpakovych 2023), which may begin anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwise.contact.elimination import eliminated, sparse_product, squared
from linkwise.spatial.scalar import Scalar, is_zero, maximum, minimum, repeated, repeated_while, sqrt, where

if TYPE_CHECKING:
    from linkwise.contact.cones import Cone, Response

Flat = Sequence[Scalar]

LENGTHS = 4
"""Number of lengths of a step that are tried: 1, and each less than half of the one before."""

SHORTER = 0.45

PROXIMAL, PROXIMAL_SINGLE = 1e-8, 3e-5
"""On the diagonal of Newton's matrix, beside one: with sixteen digits, and with seven."""

NARROWER, MUCH_NARROWER = 0.3, 0.09
"""By how much widths shrink once smoothed laws are missed by less than the width, and by less than a thousandth."""

_TINY = 1e-30


def followed(response: Response, V: Flat, impulses: Flat, steps: int, tolerance: float) -> list[Scalar]:
    """V and impulses, once the laws hold or after some steps; as given, where that did not bring the laws nearer."""
    n, first = len(V), [*V, *impulses]
    points = sum(cone.kind == "half_line" for cone in response.cones) or 1
    size = sqrt(maximum(squared(impulses), _TINY))
    missed = squared(response.missing(V, impulses))
    scale = size / points**0.5
    # Half of the digits that are missing: a start near the solution keeps what it has.
    width = scale * minimum(1.0, 3.0 * sqrt(sqrt(missed) / size))

    proximal = where(size + 1e-10 * size > size, PROXIMAL, PROXIMAL_SINGLE)

    def goes_on(state: Flat) -> Scalar:
        return is_missed(squared(response.missing(state[:n], state[n:-2])), state[n:-2], tolerance) & (
            state[-1] < float(steps)
        )

    def step(state: list[Scalar]) -> list[Scalar]:
        now, width, passed = state[:-2], state[-2], state[-1]
        laws = SmoothedLaws(response, now[:n], now[n:], width)
        change = laws.newton_step(proximal)

        def trial(length: Scalar) -> list[Scalar]:
            there = [a + length * b for a, b in zip(now, change, strict=True)]
            return [*there, squared(SmoothedLaws(response, there[:n], there[n:], width).missing)]

        def shorter(found: list[Scalar]) -> list[Scalar]:
            length = SHORTER * found[-1]
            there = trial(length)
            nearer = there[-1] < found[-2]
            return [*(where(nearer, a, b) for a, b in zip(there, found[:-1], strict=True)), length]

        *found, least, _ = repeated(LENGTHS - 1, shorter, [*trial(1.0), 1.0])
        square = width * width
        rate = where(least < 1e-6 * square, MUCH_NARROWER, where(least < square, NARROWER, 1.0))
        return [*found, maximum(width * rate, 1e-10 * scale), passed + 1.0]

    after = repeated_while(goes_on, step, [*first, width, 0.0])[:-2]
    nearer = squared(response.missing(after[:n], after[n:])) < missed
    return [where(nearer, a, b) for a, b in zip(after, first, strict=True)]


def is_missed(square: Scalar, impulses: Flat, tolerance: float) -> Scalar:
    """Whether what is missing, squared, is more than a tolerance relative to impulses, or than precision can tell.

    It is where it counts beside a number that is 2⁵³ times as large as the square of what is allowed; in float32 sums
    have fewer digits, and the same comparison asks for no more than there are.
    """
    large = maximum((tolerance * tolerance * 2.0**53) * squared(impulses), _TINY)
    missed: Scalar = large + square > large
    return missed


@dataclass(frozen=True)
class SmoothedSlope:
    """A smoothed projection x → o of one cone and its slope, D = ratio I + (stay - ratio) u u*, follow by the normal.

    ``across`` and ``along`` are 1 - ratio and 1 - stay, which would be lost beside one.
    """

    value: tuple[Scalar, ...]
    ratio: Scalar
    stay: Scalar
    across: Scalar
    along: Scalar
    unit: tuple[Scalar, ...] | None = None
    follow: tuple[Scalar, ...] | None = None

    @classmethod
    def of(cls, cone: Cone, x: Flat, normal: Scalar, square: Scalar) -> SmoothedSlope:
        """At x = λ - w/ℓ, beside the smoothed impulse of the normal, with the width squared."""
        if cone.kind == "line":
            return cls(tuple(x), 1.0, 1.0, 0.0, 0.0)
        if cone.kind == "half_line":
            above, below, root = _rounded(x[0] - cone.least, square)
            return cls((cone.least + above,), above / root, above / root, below / root, below / root)
        reach = cone.radius * normal if cone.follows is not None else cone.radius
        length = sqrt(maximum(squared(x), _TINY))
        above, _, root = _rounded(length - reach, square)
        slip, inverse = above / root, 1.0 / (reach + above)
        ratio, across, bent = reach * inverse, above * inverse, length * inverse
        unit = tuple(a / length for a in x)
        follow = None
        if cone.follows is not None:
            part = cone.radius * bent * (across + ratio * slip)
            follow = tuple(part * u for u in unit)
        lost = bent * ratio * slip
        return cls(tuple(a * ratio for a in x), ratio, ratio - lost, across, across + lost, unit, follow)

    def times_D(self, x: Flat) -> list[Scalar]:
        """D x."""
        return self._split(x, self.ratio, self.stay)

    def divided(self, x: Flat, give: Scalar, proximal: Scalar) -> list[Scalar]:
        """A⁻¹ x, A = (1 + proximal) I - D(1 - give), where ``give`` is R/ℓ."""
        across, along = (
            1.0 / (proximal + rest + (0.0 if is_zero(give) else give * part))
            for rest, part in ((self.across, self.ratio), (self.along, self.stay))
        )
        return self._split(x, across, along)

    def _split(self, x: Flat, across: Scalar, along: Scalar) -> list[Scalar]:
        if self.unit is None:
            return [across * a for a in x]
        part = (along - across) * sum((u * a for u, a in zip(self.unit, x, strict=True)), 0.0)
        return [across * a + part * u for u, a in zip(self.unit, x, strict=True)]


class SmoothedLaws:
    """Laws with their corners rounded off, for some V and impulses."""

    def __init__(self, response: Response, V: Flat, impulses: Flat, width: Scalar) -> None:
        self.response, square = response, width * width
        self.slopes: list[SmoothedSlope] = []
        self.missing: list[Scalar] = []
        """λ - proj(λ - w/ℓ), of every row."""
        for k, (cone, start) in enumerate(zip(response.cones, response.starts, strict=True)):
            inverse, own = 1.0 / response.slopes[k], impulses[start : start + len(cone.rows)]
            x = [a - w * inverse for a, w in zip(own, response.velocities(k, V, impulses), strict=True)]
            normal = 1.0 if cone.follows is None else self.slopes[cone.follows].value[0]
            self.slopes.append(SmoothedSlope.of(cone, x, normal, square))
            self.missing += [a - b for a, b in zip(own, self.slopes[k].value, strict=True)]

    def newton_step(self, proximal: Scalar) -> list[Scalar]:
        """The changes of V and of λ.

        As in :meth:`~linkwise.contact.cones.Response.newton_step`, A δ + D C δV/ℓ = -F is solved along the pulls, δV =
        ΛC*δ; the bound of a disk moves with o_n of its normal, by (1 + proximal) δ_n + F_n. The change of V that is
        returned is that of δ as it was rounded: laws that hold for another V would mean nothing.
        """
        response, n = self.response, self.response.size
        G: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        right: list[Scalar] = [0.0] * n
        lines: list[list[dict[int, Scalar]]] = []
        shifts: list[list[Scalar]] = []
        for k, cone in enumerate(response.cones):
            line, shift = self._eliminated(k, lines, shifts, proximal)
            lines.append(line)
            shifts.append(shift)
            for row, own, x in zip(cone.rows, line, shift, strict=True):
                for i, c in zip(row.pulls, row.factors, strict=True):
                    right[i] = right[i] - c * x
                    for m, f in own.items():
                        G[i][m] = G[i][m] + c * f
        matrix = [
            [sparse_product(G[i], column) + (1.0 if i == j else 0.0) for j, column in enumerate(response.Lambda)]
            for i in range(n)
        ]
        y = eliminated(matrix, right)
        V_change = [sparse_product(row, y) for row in response.Lambda]
        change: list[Scalar] = []
        for line, shift in zip(lines, shifts, strict=True):
            for own, x in zip(line, shift, strict=True):
                total: Scalar = x
                for i, f in own.items():
                    total = total + f * V_change[i]
                change.append(-total)
        return [*response.pushed([0.0] * n, change), *change]

    def _eliminated(
        self, k: int, lines: Sequence[list[dict[int, Scalar]]], shifts: Sequence[list[Scalar]], proximal: Scalar
    ) -> tuple[list[dict[int, Scalar]], list[Scalar]]:
        """-δ of one cone as line · δV + shift, where those of the cones before are known."""
        response, slope = self.response, self.slopes[k]
        cone, start, inverse = response.cones[k], response.starts[k], 1.0 / response.slopes[k]
        give = cone.compliance if is_zero(cone.compliance) else cone.compliance * inverse
        F: list[Scalar] = self.missing[start : start + len(cone.rows)]
        normal: dict[int, Scalar] = {}
        if cone.follows is not None and slope.follow is not None:
            normal = lines[cone.follows][0]
            moved = (1.0 + proximal) * shifts[cone.follows][0] - self.missing[response.starts[cone.follows]]
            F = [a + b * moved for a, b in zip(F, slope.follow, strict=True)]
        own = [dict(zip(row.pulls, row.factors, strict=True)) for row in cone.rows]
        found: list[dict[int, Scalar]] = [{} for _ in own]
        for i in sorted({*(i for line in own for i in line), *normal}):
            column = slope.times_D([line.get(i, 0.0) * inverse for line in own])
            if i in normal and slope.follow is not None:
                part = (1.0 + proximal) * normal[i]
                column = [a + b * part for a, b in zip(column, slope.follow, strict=True)]
            for line, x in zip(found, slope.divided(column, give, proximal), strict=True):
                line[i] = x
        return found, slope.divided(F, give, proximal)


def _rounded(x: Scalar, square: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """The max(x, 0) and max(-x, 0) of a hyperbola: positive, with the product ``square``; and their sum."""
    positive = x > 0.0
    root = sqrt(x * x + 4.0 * square)
    larger = 0.5 * (where(positive, x, -x) + root)
    smaller = square / larger
    return where(positive, larger, smaller), where(positive, smaller, larger), root
