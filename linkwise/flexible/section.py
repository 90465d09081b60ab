"""The cross-section of a beam."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelError


@dataclass(frozen=True)
class Section:
    """Cross-section of a beam, its stiffness and mass about its own axes: x along the beam, y and z across.

    Args:
        EA: stiffness against stretching, N.
        EI: against bending, about y (deflection along z) and about z (deflection along y), N m².
        GJ: against twist, N m².
        mass_per_length: kg/m.
        rotary_inertia: mass per length times squared radius of gyration, ρI about y and about z, kg m; about x it is
            their sum. Zero for a line without thickness.
        GA: against shear, along y and along z, N, shear correction factor included; None for no shear
            (Euler–Bernoulli).
    """

    EA: float
    EI: tuple[float, float]
    GJ: float
    mass_per_length: float
    rotary_inertia: tuple[float, float] = (0.0, 0.0)
    GA: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "EI", pair(self.EI, "EI", positive=True))
        object.__setattr__(self, "rotary_inertia", pair(self.rotary_inertia, "rotary_inertia", positive=False))
        if self.GA is not None:
            object.__setattr__(self, "GA", pair(self.GA, "GA", positive=True))
        for name in ("EA", "GJ", "mass_per_length"):
            object.__setattr__(self, name, positive(getattr(self, name), f"{name} of a beam's section"))

    @property
    def shear_stiffness(self) -> tuple[float, float]:
        """GA along y and z, infinite where the section does not shear."""
        return self.GA or (math.inf, math.inf)

    @classmethod
    def rectangle(cls, height: float, width: float, *, E: float, nu: float, density: float) -> Section:
        """A solid rectangle, `width` along y and `height` along z, isotropic, with shear (factor 5/6)."""
        for name, value in (("height", height), ("width", width), ("E", E), ("density", density)):
            positive(value, f"{name} of a section")
        poisson(nu)
        area, G = height * width, E / (2 * (1 + nu))
        I_y, I_z = width * height**3 / 12, height * width**3 / 12
        long, short = max(height, width), min(height, width)
        r = short / long
        # Saint-Venant's torsion constant of a rectangle, to 0.5 % (Roark).
        J = long * short**3 * (1 / 3 - 0.21 * r * (1 - r**4 / 12))
        shear = 5 / 6 * G * area
        return cls(
            EA=E * area,
            EI=(E * I_y, E * I_z),
            GJ=G * J,
            mass_per_length=density * area,
            rotary_inertia=(density * I_y, density * I_z),
            GA=(shear, shear),
        )


def pair(value: object, name: str, *, positive: bool) -> tuple[float, float]:
    """Two numbers, or one for both."""
    given = (value, value) if isinstance(value, (int, float)) else value
    allowed = f"one number or two (about y, about z), {'> 0' if positive else '>= 0'}"
    if not isinstance(given, Sequence) or len(given) != 2 or not all(isinstance(v, (int, float)) for v in given):
        raise InputError(f"{name} of a beam's section is not one number or two", got=repr(value), allowed=allowed)
    first, second = float(given[0]), float(given[1])
    if not all(math.isfinite(v) and (v > 0 if positive else v >= 0) for v in (first, second)):
        raise ModelError(f"{name} of a beam's section is not possible", got=repr(value), allowed=allowed)
    return first, second


def positive(value: object, what: str) -> float:
    """A finite number above zero."""
    allowed = "> 0, in SI units"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise InputError(f"{what} is not a number", got=repr(value), allowed=allowed)
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise ModelError(f"{what} is not possible", got=repr(value), allowed=allowed)
    return number


def poisson(value: float) -> float:
    """Poisson's ratio of a material that keeps a volume and a shape."""
    if not -1 < value < 0.5:
        raise ModelError("Poisson's ratio is not possible", got=repr(value), allowed="-1 < nu < 0.5")
    return float(value)
