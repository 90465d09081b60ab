"""Forces that act on bodies where they are: compensation of gravity, and a fluid around them.

Each is fixed to a frame and says, over any scalar, which force it exerts there. Those of a fluid are MuJoCo's two
models, in which the fluid has no state of its own: a box that has the inertia of the body, and an ellipsoid with
coefficients (https://mujoco.readthedocs.io/en/stable/computation/fluid.html).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkwise.checks import set_finite
from linkwise.dataclass import dataclass
from linkwise.spatial.scalar import Scalar, absolute, cross, dot, sqrt, where

Vector = Sequence[Scalar]


@dataclass(frozen=True, slots=True)
class GravityCompensation:
    """The force that holds a mass against gravity, at a frame: -mass · g, in world axes.

    Args:
        name: unlike any other field.
        frame: name of a body or frame; of its own mass centre where a body is to be held.
        mass: kg that are held; the body's own for all of its weight, more for one that rises.
    """

    name: str
    frame: str
    mass: float

    def __post_init__(self) -> None:
        set_finite(self, "mass", repr(self.name))


@dataclass(frozen=True, slots=True)
class FluidBox:
    """Drag of a fluid on a box at the origin and along the axes of a frame.

    Against each axis the pressure of a flow that stops, ½ρ A |v| v, and Stokes' friction of a sphere as wide as the
    box is on average; moments likewise.

    Args:
        name: unlike any other field.
        frame: name of a body or frame.
        size: lengths of the edges (3), m.
        density: ρ of the fluid, kg/m³.
        viscosity: Pa s.
        wind: velocity of the fluid (3) in world axes, m/s.
    """

    name: str
    frame: str
    size: tuple[float, float, float]
    density: float = 0.0
    viscosity: float = 0.0
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        set_finite(self, "size", repr(self.name), 3, least=0.0)
        set_finite(self, "density viscosity", repr(self.name), least=0.0)
        set_finite(self, "wind", repr(self.name), 3)

    def force(self, omega: Vector, v: Vector) -> list[Scalar]:
        """[moment, force] (6) at the frame's origin and in its axes, from how it moves through the fluid in these."""
        width = sum(self.size) / 3.0
        turning, moving = math.pi * width**3 * self.viscosity, 3.0 * math.pi * width * self.viscosity
        moment: list[Scalar] = []
        force: list[Scalar] = []
        for k in range(3):
            a, b, c = self.size[k], self.size[(k + 1) % 3], self.size[(k + 2) % 3]
            moment.append(-(turning + absolute(omega[k]) * (self.density * a * (b**4 + c**4) / 64.0)) * omega[k])
            force.append(-(moving + absolute(v[k]) * (0.5 * self.density * b * c)) * v[k])
        return [*moment, *force]


@dataclass(frozen=True, slots=True)
class FluidEllipsoid:
    """Added mass, drag, lift and friction of a fluid on an ellipsoid at the origin and along the axes of a frame.

    Args:
        name: unlike any other field.
        frame: name of a body or frame.
        semi_axes: (3), m.
        density: of the fluid, kg/m³.
        viscosity: Pa s.
        wind: velocity of the fluid (3) in world axes, m/s.
        drag: coefficients of blunt, slender and angular drag.
        lift: coefficients of the Kutta and of the Magnus force.
        virtual_mass: added mass (3) along the axes by the density, m³. Its momentum counts, its acceleration does not.
        virtual_inertia: added inertia (3) about the axes by the density, m⁵.
    """

    name: str
    frame: str
    semi_axes: tuple[float, float, float]
    density: float = 0.0
    viscosity: float = 0.0
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    drag: tuple[float, float, float] = (0.5, 0.25, 1.5)
    lift: tuple[float, float] = (1.0, 1.0)
    virtual_mass: tuple[float, float, float] = (0.0, 0.0, 0.0)
    virtual_inertia: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        set_finite(self, "semi_axes", repr(self.name), 3, least=0.0)
        set_finite(self, "density viscosity", repr(self.name), least=0.0)
        set_finite(self, "wind drag virtual_mass virtual_inertia", repr(self.name), 3)
        set_finite(self, "lift", repr(self.name), 2)

    def force(self, omega: Vector, v: Vector) -> list[Scalar]:
        """[moment, force] (6) at the frame's origin and in its axes, from how it moves through the fluid in these."""
        rho, (blunt, slender, angular), (kutta, magnus) = self.density, self.drag, self.lift
        s = self.semi_axes
        _, middle, large = sorted(s)
        # Momentum of the fluid that goes along, turned with the body.
        p = [rho * m * x for m, x in zip(self.virtual_mass, v, strict=True)]
        L = [rho * i * w for i, w in zip(self.virtual_inertia, omega, strict=True)]
        moment = [x + y for x, y in zip(cross(p, v), cross(L, omega), strict=True)]
        force = cross(p, omega)
        # The area A that the ellipsoid shows to the flow, and the normal n of that section.
        faces = [(s[(k + 1) % 3] * s[(k + 2) % 3]) ** 2 for k in range(3)]
        n = [f * x for f, x in zip(faces, v, strict=True)]
        num, denom = dot(n, v), dot(n, n)
        speed = _root(dot(v, v))
        area = math.pi * _root(denom / _at_least(num))
        incidence = num / _at_least(speed * denom)
        lifting = cross(cross(n, v), v)
        circulating = cross(omega, v)
        volume = 4.0 / 3.0 * math.pi * s[0] * s[1] * s[2]
        width = 2.0 / 3.0 * sum(s)
        drag = 3.0 * math.pi * width * self.viscosity + rho * speed * (
            area * blunt + slender * (math.pi * large * middle - area)
        )
        most = 8.0 / 15.0 * math.pi * middle * large**4
        about = [8.0 / 15.0 * math.pi * s[k] * max(s[(k + 1) % 3], s[(k + 2) % 3]) ** 4 for k in range(3)]
        spin = [w * (angular * i + slender * (most - i)) for w, i in zip(omega, about, strict=True)]
        braking = math.pi * width**3 * self.viscosity + rho * _root(dot(spin, spin))
        moment = [m - braking * w for m, w in zip(moment, omega, strict=True)]
        force = [
            f + (magnus * rho * volume) * c + (kutta * rho) * incidence * area * l - drag * x
            for f, c, l, x in zip(force, circulating, lifting, v, strict=True)
        ]
        return [*moment, *force]


Field = GravityCompensation | FluidBox | FluidEllipsoid

_LEAST = 1e-15


def _at_least(x: Scalar) -> Scalar:
    return where(x > _LEAST, x, _LEAST)


def _root(x: Scalar) -> Scalar:
    """Square root with a slope everywhere: that of zero, where there is none."""
    there = x > 0.0
    return where(there, sqrt(where(there, x, 1.0)), 0.0)
