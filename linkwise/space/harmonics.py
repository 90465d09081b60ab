"""Spherical harmonics in Cartesian coordinates, over any scalar: fields of gravity and magnetism.

The solid harmonics V_nm + i W_nm = (R/r)ⁿ⁺¹ P_nm(sin φ) exp(i m λ), fully normalised, are made by two recursions from
1/r, without angles and so without poles; the gradient of degree n is a sum of those of degree n + 1. All factors are
constants of the text, so a field costs a handful of multiplications a term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from linkwise.errors import InputError
from linkwise.space.alike import Alike
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

    def up_to(self, degree: int, lowest: int = 0) -> Harmonics:
        """The part between two degrees, both included."""
        if not 0 <= degree <= self.degree:
            raise InputError(
                "there are no coefficients of this degree", got=repr(degree), allowed=f"0 to {self.degree}, {self.name}"
            )
        kept = {key: pair for key, pair in self.coefficients.items() if lowest <= key[0] <= degree}
        return Harmonics(self.mu, self.radius, kept, self.name)

    def _solid(self, r: Vec, degree: int) -> dict[tuple[int, int], tuple[Scalar, Scalar]]:
        """V̄ and W̄ up to a degree."""
        square = r.dot(r)
        x, y, z = r * (self.radius / square)
        ratio = (self.radius * self.radius) / square
        made: dict[tuple[int, int], tuple[Scalar, Scalar]] = {(0, 0): (self.radius / sqrt(square), 0.0)}
        for m in range(degree + 1):
            if m:
                factor = (2 * m - 1) * _norm(m, m) / _norm(m - 1, m - 1)
                V, W = made[m - 1, m - 1]
                made[m, m] = ((x * V - y * W) * factor, (x * W + y * V) * factor)
            for n in range(m + 1, degree + 1):
                one = (2 * n - 1) / (n - m) * _norm(n, m) / _norm(n - 1, m)
                V, W = (z * each * one for each in made[n - 1, m])
                if n - 2 >= m:
                    two = (n + m - 1) / (n - m) * _norm(n, m) / _norm(n - 2, m)
                    V, W = (a - ratio * b * two for a, b in zip((V, W), made[n - 2, m], strict=True))
                made[n, m] = (V, W)
        return made

    def potential(self, r: Vec) -> Scalar:
        """Sum of all terms at r (m), in m²/s², positive where it attracts; the central one left out."""
        solid = self._solid(r, self.degree)
        total: Scalar = 0.0
        for (n, m), (C, S) in self.coefficients.items():
            V, W = solid[n, m]
            total = total + V * C + W * S
        return total * (self.mu / self.radius)

    def gradient(self, r: Vec) -> Vec:
        """Sum of the accelerations of all terms at r (m), in m/s²; the central one left out."""
        if not self.coefficients:
            return Vec.zero()
        solid = self._solid(r, self.degree + 1)
        ax: Scalar = 0.0
        ay: Scalar = 0.0
        az: Scalar = 0.0
        for (n, m), (C, S) in self.coefficients.items():
            own = _norm(n, m)
            V, W = solid[n + 1, m + 1]
            outer = own / _norm(n + 1, m + 1) * (1.0 if m == 0 else 0.5)
            ax = ax - (V * (C * outer) + W * (S * outer))
            ay = ay - (W * (C * outer) - V * (S * outer))
            if m:
                V, W = solid[n + 1, m - 1]
                inner = 0.5 * (n - m + 2) * (n - m + 1) * own / _norm(n + 1, m - 1)
                ax = ax + V * (C * inner) + W * (S * inner)
                ay = ay + V * (S * inner) - W * (C * inner)
            V, W = solid[n + 1, m]
            along = (n - m + 1) * own / _norm(n + 1, m)
            az = az - (V * (C * along) + W * (S * along))
        return Vec(ax, ay, az) * (self.mu / self.radius**2)


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
