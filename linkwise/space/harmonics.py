"""Spherical harmonics in Cartesian coordinates, over any scalar: fields of gravity and magnetism.

The solid harmonics V_nm + i W_nm = (R/r)ⁿ⁺¹ P_nm(sin φ) exp(i m λ), fully normalised, are powers of x + i y times
polynomials in z, made by a recursion without angles and so without poles. The slope of one is a sum of others of the
next degree, so potential, gradient and tidal tensor are expansions alike, summed over one basis. All factors are
constants of the text: a term costs one product for each number that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from linkwise.dataclass import Alike
from linkwise.errors import InputError
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Scalar, sqrt
from linkwise.spatial.vectors import Vec

Coefficients = Mapping[tuple[int, int], tuple[float, float]]


class Harmonics(Alike):
    """Potential (μ/r) Σ (R/r)ⁿ P̄_nm(sin φ) (C̄_nm cos mλ + S̄_nm sin mλ) in axes that turn with the planet.

    Args:
        mu: gravitational parameter, m³/s².
        radius: reference radius R, m.
        coefficients: by (n, m) the pair (C̄, S̄), fully normalised; the central term (0, 0) is 1 and left out.
        name: shown.

    >>> jgm3().degree
    20
    """

    def __init__(self, mu: float, radius: float, coefficients: Coefficients, name: str = "harmonics") -> None:
        wrong = [key for key in coefficients if not 0 <= key[1] <= key[0]]
        if wrong:
            raise InputError("the order of a harmonic is at most its degree", got=f"(n, m) = {wrong[0]}")
        self.mu, self.radius, self.name = float(mu), float(radius), name
        self.terms = tuple(coefficients.items())

    def __repr__(self) -> str:
        return f"<Harmonics {self.name!r}: degree {self.degree}>"

    @property
    def coefficients(self) -> dict[tuple[int, int], tuple[float, float]]:
        """By (n, m) the pair (C̄, S̄)."""
        return dict(self.terms)

    @property
    def degree(self) -> int:
        """Highest degree."""
        return max((n for n, _ in self.coefficients), default=0)

    def up_to(self, degree: int) -> Harmonics:
        """The part up to a degree."""
        if not 0 <= degree <= self.degree:
            raise InputError(
                "there are no coefficients of this degree", got=repr(degree), allowed=f"0 to {self.degree}, {self.name}"
            )
        kept = {key: pair for key, pair in self.coefficients.items() if key[0] <= degree}
        return Harmonics(self.mu, self.radius, kept, self.name)

    def _sums(self, r: Vec, square: Scalar, expansions: Sequence[Coefficients]) -> list[Scalar]:
        """Values at r of Σ A V̄ + B W̄ by pairs (A, B) for (n, m); ``square`` is r·r, in whatever axes it is known."""
        inverse = 1.0 / square * self.radius
        x, y, z = r * inverse
        w = inverse * self.radius
        degree = max(n for expansion in expansions for n, _ in expansion)
        totals: list[Scalar] = [0.0] * len(expansions)
        power: tuple[Scalar, Scalar] = (1.0, 0.0)  # of x + i y
        for m in range(degree + 1):
            if m:
                power = (power[0] * x - power[1] * y, power[1] * x + power[0] * y)
            sums: list[list[Scalar]] = [[0.0, 0.0] for _ in expansions]
            polynomial: Scalar = 1.0  # in z and w, its leading coefficient one
            before: Scalar = 0.0
            for n in range(m, degree + 1):
                if n > m:
                    less = ((n - 1) ** 2 - m * m) / (4 * (n - 1) ** 2 - 1) if n > 1 else 0.0
                    polynomial, before = z * polynomial - w * less * before, polynomial
                for pair, expansion in zip(sums, expansions, strict=True):
                    for k, coefficient in enumerate(expansion.get((n, m), ())):
                        pair[k] = pair[k] + polynomial * (coefficient * _leading(n, m))
            totals = [a + (A * power[0] + B * power[1]) for a, (A, B) in zip(totals, sums, strict=True)]
        return [total * sqrt(w) for total in totals]

    def potential(self, r: Vec) -> Scalar:
        """Sum of all terms at r (m), in m²/s², positive where it attracts; the central one left out."""
        return self._sums(r, r.dot(r), [self.coefficients])[0] * (self.mu / self.radius)

    def gradient(self, r: Vec, square: Scalar | None = None) -> Vec:
        """Sum of the accelerations of all terms at r (m), in m/s²; the central one left out.

        ``square`` is r·r, where it is known already.
        """
        if not self.coefficients:
            return Vec.zero()
        found = self._sums(r, r.dot(r) if square is None else square, slopes(self.coefficients))
        return Vec(*found) * (self.mu / self.radius**2)

    def tensor(self, r: Vec, square: Scalar | None = None) -> Sym3:
        """Gradient of :meth:`gradient`, 1/s²: symmetric and without trace."""
        if not self.coefficients:
            return Sym3.zero()
        along_x, along_y, _ = slopes(self.coefficients)
        wanted = [*slopes(along_x), *slopes(along_y)[1:]]
        found = self._sums(r, r.dot(r) if square is None else square, wanted)
        xx, xy, xz, yy, yz = (each * (self.mu / self.radius**3) for each in found)
        return Sym3.of(xx, yy, -(xx + yy), xy, xz, yz)


def slopes(expansion: Coefficients) -> tuple[Coefficients, Coefficients, Coefficients]:
    """Expansions of R times the slopes of one along x, y and z: the slope of degree n is one of degree n + 1."""
    made: tuple[dict[tuple[int, int], tuple[float, float]], ...] = ({}, {}, {})

    def add(axis: int, n: int, m: int, A: float, B: float) -> None:
        before = made[axis].get((n, m), (0.0, 0.0))
        made[axis][n, m] = (before[0] + A, before[1] + (B if m else 0.0))

    for (n, m), (C, S) in expansion.items():
        own = _norm(n, m)
        outer = own / _norm(n + 1, m + 1) * (1.0 if m == 0 else 0.5)
        add(0, n + 1, m + 1, -C * outer, -S * outer)
        add(1, n + 1, m + 1, S * outer, -C * outer)
        if m:
            inner = 0.5 * (n - m + 2) * (n - m + 1) * own / _norm(n + 1, m - 1)
            add(0, n + 1, m - 1, C * inner, S * inner)
            add(1, n + 1, m - 1, S * inner, -C * inner)
        along = (n - m + 1) * own / _norm(n + 1, m)
        add(2, n + 1, m, -C * along, -S * along)
    return made[0], made[1], made[2]


@cache
def _leading(n: int, m: int) -> float:
    """Leading coefficient of P̄_nm(u) / (1 - u²)^(m/2)."""
    ratio: float = math.factorial(2 * n) / (2**n * math.factorial(n) * math.factorial(n - m))
    return _norm(n, m) * ratio


@cache
def _norm(n: int, m: int) -> float:
    """Factor of full normalisation."""
    return math.sqrt((1 if m == 0 else 2) * (2 * n + 1) * math.factorial(n - m) / math.factorial(n + m))


@cache
def jgm3() -> Harmonics:
    """The Earth's field JGM-3 up to degree and order 20."""
    lines = files("linkwise.space").joinpath("data/jgm3.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    coefficients = {(int(n), int(m)): (float(C), float(S)) for n, m, C, S in rows}
    return Harmonics(3.986004415e14, 6378136.3, coefficients, "JGM-3")


def oblateness(mu: float, radius: float, j2: float) -> Harmonics:
    """The field of J2 alone."""
    return Harmonics(mu, radius, {(2, 0): (-j2 / math.sqrt(5.0), 0.0)}, "J2")
