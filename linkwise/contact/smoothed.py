"""Newton steps on smoothed laws, for impulses that sweeps do not find.

Of redundant contacts (the corners of flat feet) Newton's method on the laws themselves, λ = proj(λ - w/ℓ), has a small
basin. Here corners of proj are rounded over a ``width`` σ (N s): a half line becomes a branch of a hyperbola, λ w/ℓ =
σ², and the bound of a disk likewise. Such equations are smooth, far from the solution their Newton steps are short, and
with σ → 0 their solutions lead to that of the laws: the way of interior-point methods (Chen and Harker 1993; Acary,
Armand, Nguyen and Shpakovych 2023), which may begin anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Self

from linkwise.contact.elimination import eliminated, sparse_product, squared
from linkwise.dataclass import dataclass
from linkwise.spatial.scalar import Scalar, is_zero, maximum, minimum, repeated_while, sqrt, where

if TYPE_CHECKING:
    from linkwise.contact.cones import Cone, Response
    from linkwise.mechanism.contacts import ContactRules

Flat = Sequence[Scalar]

PROXIMAL, PROXIMAL_SINGLE = 1e-8, 3e-5
"""On the diagonal of Newton's matrix, beside one: with sixteen digits, and with seven."""

AT_NOISE = 1.0 / 16.0
"""With seven digits, which part of what is missed, squared, counts just after the first steps.

States that press with little while they move fast are known no better than to some times the tolerance: three in four
of those that are so near then come no nearer in a hundred rounds, in which others wait for them.
"""

RATES = ((0.2, 14), (0.5, 32), (0.6, 60))
"""By how much widths shrink in a step, and for how many steps: each time slower, if it had led nowhere."""

FIRMNESS = 0.25
"""Of normals' 1/ℓ, how much of it is taken in smoothed laws: an impulse then counts for more than a velocity."""

NARROW = 1e-10
"""The least width, relative to impulses."""

_TINY = 1e-30


class Unsolved(Protocol):
    """Cones and how velocities V answer to their impulses: what Newton's method asks of them."""

    @property
    def points(self) -> int:
        """Number of normals, at least one."""

    def missed(self, V: Flat, impulses: Flat) -> Scalar:
        """The sum of (λ - proj(λ - w/ℓ))², what the laws are missed by."""

    def newton_step(self, V: Flat, impulses: Flat, width: Scalar, proximal: Scalar) -> list[Scalar]:
        """The changes of V and of λ that smoothed laws ask for."""

    def with_ends_chosen(self, V: Flat) -> Self:
        """The same, whose smoothed laws speak of the ends of ranges alone that velocities lead to."""


def followed(response: Unsolved, V: Flat, impulses: Flat, rules: ContactRules) -> tuple[list[Scalar], list[Scalar]]:
    """V and impulses after Newton steps: of all, those that come nearest to the laws."""
    found, _, _ = nearest(response, V, impulses, rules)
    return found[: len(V)], found[len(V) :]


def nearest(
    response: Unsolved, V: Flat, impulses: Flat, rules: ContactRules, begin: Flat | None = None
) -> tuple[list[Scalar], Scalar, Scalar]:
    """V and impulses after Newton steps, what they miss the laws by, and what counts as nothing, both squared.

    Steps may ``begin`` elsewhere, with V and impulses that are nearer to a solution but may be beyond the laws' bounds.

    The first steps, ``rules.polish``, are on the laws all but unsmoothed, which nearly all need no more than. Then the
    width is that of half of the digits which were missing, and shrinks in every step, quickly; if that leads nowhere,
    from larger widths on and slowly. Every step is gone in full: shorter ones were no better, and each length costs a
    look at all laws.
    """
    n, count = len(V), len(V) + len(impulses)
    size = sqrt(maximum(squared(impulses), _TINY))
    missed = response.missed(V, impulses)
    scale = size / response.points**0.5
    narrow, widths = NARROW * scale, (scale * minimum(1.0, sqrt(sqrt(missed) / size)), scale, 10.0 * scale)
    has_digits = size + 1e-10 * size > size
    proximal = where(has_digits, PROXIMAL, PROXIMAL_SINGLE)
    counts = where(has_digits, 1.0, AT_NOISE) if rules.polish else 1.0
    nothing = (rules.tolerance * 1e-3) ** 2 * missed
    begins = [float(rules.polish)]
    for _, steps in RATES[:-1]:
        begins.append(begins[-1] + steps)

    def goes_on(state: Flat) -> Scalar:
        least, passed = state[-2], state[-1]
        is_polished = abs(passed - float(rules.polish)) < 0.5
        missing = is_missed(where(is_polished, counts, 1.0) * least, state[count + n : -3], rules.tolerance, nothing)
        return missing & (passed < float(rules.polish + rules.rounds - 1))

    def step(state: list[Scalar]) -> list[Scalar]:
        now, best, width, least, passed = state[:count], state[count:-3], state[-3], state[-2], state[-1] + 1.0
        change = response.with_ends_chosen(best[:n]).newton_step(now[:n], now[n:], width, proximal)
        now = [a + b for a, b in zip(now, change, strict=True)]
        left = response.missed(now[:n], now[n:])
        nearer = left < least
        best = [where(nearer, a, b) for a, b in zip(now, best, strict=True)]
        next_width = width * RATES[0][0]
        for begin, wide, (rate, _) in zip(begins, widths, RATES, strict=True):
            next_width = where(passed > begin, width * rate, where(passed < begin, next_width, wide))
        return [*now, *best, maximum(next_width, narrow), where(nearer, left, least), passed]

    state = [*(begin or (*V, *impulses)), *V, *impulses, narrow if rules.polish else widths[0], missed, 0.0]
    if rules.rounds > 1:
        state = repeated_while(goes_on, step, state)
    else:
        for _ in range(rules.polish):
            state = step(state)
    return state[count:-3], state[-2], nothing


def is_missed(square: Scalar, impulses: Flat, tolerance: float, least: Scalar = 0.0) -> Scalar:
    """Whether what is missing, squared, is more than a tolerance relative to impulses, or than precision can tell.

    It is where it counts beside a number that is 2⁵³ times as large as the square of what is allowed; in float32 sums
    have fewer digits, and the same comparison asks for no more than there are. Where impulses vanish, all is well below
    ``least``, also a square.
    """
    allowed = maximum((tolerance * tolerance) * squared(impulses), least)
    large = maximum(2.0**53 * allowed, _TINY)
    missed: Scalar = large + square > large
    return missed


@dataclass(frozen=True)
class SmoothedSlope:
    """A smoothed projection x → o of one cone and its slope, D = ratio I + (stay - ratio) u u*, follow by the normal.

    ``across`` and ``along`` are 1 - ratio and 1 - stay, which would be lost beside one; ``rim`` is the slope by the
    reach of a disk.
    """

    value: tuple[Scalar, ...]
    ratio: Scalar
    stay: Scalar
    across: Scalar
    along: Scalar
    unit: tuple[Scalar, ...] | None = None
    follow: tuple[Scalar, ...] | None = None
    rim: tuple[Scalar, ...] | None = None

    @classmethod
    def of(cls, cone: Cone, x: Flat, normal: Scalar, square: Scalar, step: Scalar = 1.0) -> SmoothedSlope:
        """At x = λ - w/ℓ, beside the smoothed impulse of the normal, with the width squared; for a range with 1/ℓ."""
        if cone.kind == "line":
            return cls(tuple(x), 1.0, 1.0, 0.0, 0.0)
        if cone.kind in ("half_line", "range"):
            # Of a range only the end that the best step so far leads to: those that overshoot are not thrown back.
            is_range = cone.kind == "range"
            above, below, root = _rounded(cone.beyond_chosen_end(x[0], step) if is_range else x[0] - cone.least, square)
            inverse, value = 1.0 / root, cone.side * above if is_range else cone.least + above
            return cls((value,), above * inverse, above * inverse, below * inverse, below * inverse)
        reach = cone.radius * normal if cone.follows is not None else cone.radius
        length = sqrt(maximum(squared(x), _TINY))
        above, _, root = _rounded(length - reach, square)
        slip, inverse = above / root, 1.0 / (reach + above)
        ratio, across, bent = reach * inverse, above * inverse, length * inverse
        shrunk = 1.0 / length
        unit = tuple(a * shrunk for a in x)
        follow = rim = None
        if cone.follows is not None:
            part = cone.radius * bent * (across + ratio * slip)
            follow = tuple(part * u for u in unit)
            rim = tuple(bent * (across + ratio * slip) * u for u in unit)
        lost = bent * ratio * slip
        return cls(tuple(a * ratio for a in x), ratio, ratio - lost, across, across + lost, unit, follow, rim)

    def times_D(self, x: Flat) -> list[Scalar]:
        """D x."""
        return self.split(x, self.ratio, self.stay)

    def divided(self, x: Flat, give: Scalar, proximal: Scalar) -> list[Scalar]:
        """A⁻¹ x."""
        return self.split(x, *self.inverse(give, proximal))

    def inverse(self, give: Scalar, proximal: Scalar) -> tuple[Scalar, Scalar]:
        """A⁻¹ across and along the unit vector, A = (1 + proximal) I - D(1 - give), where ``give`` is R/ℓ."""
        across, along = (
            1.0 / (proximal + rest + (0.0 if is_zero(give) else give * part))
            for rest, part in ((self.across, self.ratio), (self.along, self.stay))
        )
        return across, along

    def split(self, x: Flat, across: Scalar, along: Scalar) -> list[Scalar]:
        """The x with its part along the unit vector taken ``along`` times, the rest ``across`` times."""
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
            inverse, own = self._inverse(k), impulses[start : start + len(cone.rows)]
            x = [a - w * inverse for a, w in zip(own, response.velocities(k, V, impulses), strict=True)]
            normal = 1.0 if cone.follows is None else self.slopes[cone.follows].value[0]
            self.slopes.append(SmoothedSlope.of(cone, x, normal, square, inverse))
            self.missing += [a - b for a, b in zip(own, self.slopes[k].value, strict=True)]

    def _inverse(self, k: int) -> Scalar:
        """1/ℓ of one cone."""
        inverse = self.response.inverses[k]
        return FIRMNESS * inverse if self.response.cones[k].kind in ("half_line", "range") else inverse

    def newton_step(self, proximal: Scalar) -> list[Scalar]:
        """The changes of V and of λ.

        As in :meth:`~linkwise.contact.cones.Response.changes`, A δ + D C δV/ℓ = -F is solved along the pulls, δV =
        ΛC*δ; the bound of a disk moves with o_n of its normal, by (1 + proximal) δ_n + F_n. The change of V that is
        returned is that of δ as it was rounded: laws that hold for another V would mean nothing.
        """
        response, n = self.response, self.response.size
        G: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        right: list[Scalar] = [0.0] * n
        steps: list[tuple[list[dict[int, Scalar]], list[Scalar]]] = []
        for k, cone in enumerate(response.cones):
            steps.append(self._eliminated(k, steps, proximal))
            for row, own, x in zip(cone.rows, *steps[k], strict=True):
                for i, c in zip(row.pulls, row.factors, strict=True):
                    right[i] = right[i] + c * x
                    if not is_zero(c):
                        for m, f in own.items():
                            G[i][m] = G[i][m] - c * f
        matrix = [
            [sparse_product(G[i], column) + (1.0 if i == j else 0.0) for j, column in enumerate(response.Lambda)]
            for i in range(n)
        ]
        y = eliminated(matrix, right)
        V_change = [sparse_product(row, y) for row in response.Lambda]
        if all(row.is_pull for cone in response.cones for row in cone.rows):  # then C*δ is δ
            return [*V_change, *y]
        change: list[Scalar] = []
        for lines, shift in steps:
            for own, x in zip(lines, shift, strict=True):
                total: Scalar = x
                for i, f in own.items():
                    total = total + f * V_change[i]
                change.append(total)
        return [*response.pushed([0.0] * n, change), *change]

    def _eliminated(
        self, k: int, steps: Sequence[tuple[list[dict[int, Scalar]], list[Scalar]]], proximal: Scalar
    ) -> tuple[list[dict[int, Scalar]], list[Scalar]]:
        """The δ of one cone as lines · δV + shift, where those of the cones before are known."""
        response, slope = self.response, self.slopes[k]
        cone, start, inverse = response.cones[k], response.starts[k], self._inverse(k)
        give = cone.compliance if is_zero(cone.compliance) else cone.compliance * inverse
        across, along = slope.inverse(give, proximal)
        F = self.missing[start : start + len(cone.rows)]
        rows = [dict(zip(row.pulls, row.factors, strict=True)) for row in cone.rows]
        unit = [[1.0 if i == j else 0.0 for i in range(len(rows))] for j in range(len(rows))]
        B = [slope.split(x, -across * slope.ratio * inverse, -along * slope.stay * inverse) for x in unit]
        if cone.follows is not None and slope.follow is not None:
            (line,), (shift,) = steps[cone.follows]
            moved = (1.0 + proximal) * shift + self.missing[response.starts[cone.follows]]
            F = [a - b * moved for a, b in zip(F, slope.follow, strict=True)]
            pushed = [(1.0 + proximal) * along * b for b in slope.follow]  # along the unit vector, as it is
            rows.append(line)
            B = [[*a, b] for a, b in zip(B, pushed, strict=True)]
        lines: list[dict[int, Scalar]] = []
        for factors in B:
            found: dict[int, Scalar] = {}
            for b, row in zip(factors, rows, strict=True):
                for i, c in row.items():
                    if not is_zero(c):
                        found[i] = found.get(i, 0.0) + b * c
            lines.append(found)
        return lines, slope.split(F, -across, -along)


def _rounded(x: Scalar, square: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """The max(x, 0) and max(-x, 0) of a hyperbola: positive, with the product ``square``; and their sum."""
    positive = x > 0.0
    root = sqrt(x * x + 4.0 * square)
    larger = 0.5 * (where(positive, x, -x) + root)
    smaller = square / larger
    return where(positive, larger, smaller), where(positive, smaller, larger), root
