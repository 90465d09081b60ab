"""Materials of surfaces: how two that touch rub, bounce and give way."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Literal

from numpy.typing import ArrayLike

from linkwise.dataclass import Converted, dataclass, default, replace
from linkwise.errors import InputError


@dataclass(frozen=True)
class Material:
    """A surface. Where two touch, the values of both are combined, see :meth:`with_other`.

    Args:
        friction: Coulomb's μ, 0 or more; two numbers (μ₁, μ₂) for a surface that rubs differently along and across
            ``direction``.
        torsion: length in m; friction resists turning about the normal with moments up to torsion times the normal
            force (0: a point).
        rolling: length in m; likewise against rolling about axes in the plane.
        restitution: the fraction of the approaching speed with which surfaces part, 0 to 1.
        threshold: m/s; slower approaches do not bounce.
        impact: the law of restitution: ``"newton"`` for speeds, ``"poisson"`` for impulses.
        stiffness: N/m at each point; infinite for a rigid surface.
        damping: s; the force of a compliant point is stiffness (depth + damping · rate of depth), never pulling.
        law: ``"linear"``, or ``"hunt_crossley"``: the damping grows with the depth, stiffness · depth ·
            (1 + damping · rate of depth) with damping in s/m.
        direction: of an anisotropic surface, the direction of μ₁ in the frame of its shape.
        name: to be told apart by.
        combining: how frictions of two surfaces combine: ``"mean"``, the geometric one, or ``"larger"``, as MJCF has
            it; the larger where one of both says so.
        priority: of two surfaces with different ones, the material of the higher counts alone.
        directions: in how many friction acts: 1 none, 3 sliding, 4 turning too, 6 rolling too, as ``condim`` of MJCF;
            of two surfaces in those of either.
    """

    friction: Converted[float | tuple[float, float], ArrayLike] = default(0.8)
    torsion: float = 0.0
    rolling: float = 0.0
    restitution: float = 0.0
    threshold: float = 0.01
    impact: Literal["newton", "poisson"] = "newton"
    stiffness: float = math.inf
    damping: float = 0.0
    law: Literal["linear", "hunt_crossley"] = "linear"
    direction: Converted[tuple[float, float, float], ArrayLike] = default((1.0, 0.0, 0.0))
    name: str = ""
    combining: Literal["mean", "larger"] = "mean"
    priority: int = 0
    directions: int = 6

    def __post_init__(self) -> None:
        from linkwise.checks import finite_number, finite_numbers
        from linkwise.mechanism.body_checks import checked_vector

        said = "0 or more: one number, or two, along and across a direction"
        friction = finite_numbers(self.friction, "the friction of a material", least=0.0, allowed=said)
        _check("friction", self.friction, len(friction) in (1, 2), said)
        object.__setattr__(self, "friction", friction if len(friction) == 2 else friction[0])
        for name in ("torsion", "rolling", "threshold", "damping", "restitution"):
            (number,) = finite_numbers(getattr(self, name), f"the {name} of a material", 1, least=0.0)
            object.__setattr__(self, name, number)
        _check("restitution", self.restitution, self.restitution <= 1.0, "0 to 1")
        if self.stiffness != math.inf:
            rigid = "more than 0, or math.inf for a rigid surface"
            stiffness = finite_number(self.stiffness, "the stiffness of a material", above=0.0, allowed=rigid)
            object.__setattr__(self, "stiffness", stiffness)
        object.__setattr__(self, "direction", checked_vector(self.direction, "the direction of a material"))
        _check("direction", self.direction, any(self.direction), "a vector that is not zero")
        _check("priority", self.priority, isinstance(self.priority, Integral), "a whole number")
        choices = {"impact": ("newton", "poisson"), "law": ("linear", "hunt_crossley"), "combining": ("mean", "larger")}
        for name, known in choices.items():
            _check(name, getattr(self, name), getattr(self, name) in known, " or ".join(map(repr, known)))
        _check("number of directions", self.directions, self.directions in (1, 3, 4, 6), "1, 3, 4 or 6")

    @property
    def coefficients(self) -> tuple[float, float]:
        """μ along and across ``direction``."""
        mu = self.friction
        return (mu[0], mu[1]) if isinstance(mu, tuple) else (float(mu), float(mu))

    @property
    def is_rigid(self) -> bool:
        """Whether surfaces of it do not give way."""
        return math.isinf(self.stiffness)

    @property
    def is_isotropic(self) -> bool:
        """Whether it rubs alike in all directions."""
        a, b = self.coefficients
        return a == b

    @property
    def acting(self) -> Material:
        """The same without friction in directions in which it does not act."""
        return replace(
            self,
            friction=self.friction if self.directions >= 3 else 0.0,
            torsion=self.torsion if self.directions >= 4 else 0.0,
            rolling=self.rolling if self.directions >= 6 else 0.0,
            directions=6,
        )

    def with_other(self, other: Material) -> Material:
        """The material of a pair: geometric mean of frictions, the larger restitution, torsion and rolling.

        ``combining`` and ``priority`` say other things of friction, along the direction of the second surface, or of
        the one that rubs differently along and across. Compliances add up, as springs in series do. Of two impact laws
        that differ, that of the surface with the larger restitution counts; of two damping laws that of the softer one,
        with the larger damping of those that have it.
        """
        if self.priority != other.priority:
            return max(self, other, key=lambda material: material.priority)
        pairs = tuple(zip(self.coefficients, other.coefficients, strict=True))
        larger = "larger" in (self.combining, other.combining)
        both = tuple(max(pair) if larger else math.sqrt(pair[0] * pair[1]) for pair in pairs)
        give = 1.0 / self.stiffness + 1.0 / other.stiffness
        rough = self if other.is_isotropic else other
        bouncy = max(self, other, key=lambda material: material.restitution)
        soft = min(self, other, key=lambda material: material.stiffness)
        return Material(
            both[0] if both[0] == both[1] else (both[0], both[1]),
            max(self.torsion, other.torsion),
            max(self.rolling, other.rolling),
            max(self.restitution, other.restitution),
            max(self.threshold, other.threshold),
            bouncy.impact,
            1.0 / give if give > 0.0 else math.inf,
            max(material.damping for material in (self, other) if material.law == soft.law),
            soft.law,
            rough.direction,
            combining="larger" if larger else "mean",
            priority=self.priority,
            directions=max(self.directions, other.directions),
        )


def _check(name: str, value: object, right: bool, allowed: str) -> None:
    if not right:
        raise InputError(f"the {name} of a material is not possible", got=f"{name}={value!r}", allowed=allowed)
