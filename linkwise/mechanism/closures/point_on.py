"""Points that stay on a plane, a surface or a curve, or at a distance; and wheels that roll."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from linkwise.checks import finite_number
from linkwise.dataclass import dataclass
from linkwise.joints.base import unit_axis
from linkwise.joints.directions import RelativePose, directions
from linkwise.mechanism.closures.constraint import Closure, checked_function, values_of
from linkwise.spatial.scalar import Scalar, sqrt
from linkwise.spatial.vectors import Motion, Vec


@dataclass(frozen=True, init=False)
class PointOnPlane(Closure):
    """The origin of b stays on a plane through the origin of a.

    Args:
        normal: of the plane, in frame a.
    """

    normal: tuple[float, float, float]

    equations = ("height",)

    def __init__(self, normal: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "normal", unit_axis(normal, "PointOnPlane"))

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [directions(self.normal).along(X.p)]


@dataclass(frozen=True)
class PointOnSurface(Closure):
    """The origin of b stays on a surface of a: f(x, y, z) = 0.

    Args:
        f: function of the three coordinates in frame a, made of ``lw.math.sin``, … and arithmetic; its gradient must
            not vanish on the surface. Best scaled to metres: a gradient of length one.

    Example:
        The inside of a bowl of radius 2:
        ``lw.closures.PointOnSurface(lambda x, y, z: (x * x + y * y + z * z) / 4 - 1)``
    """

    f: Callable[[Scalar, Scalar, Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"f": ("x", "y", "z")}

    equations = ("f",)

    def __post_init__(self) -> None:
        checked_function(self.f, "the surface of PointOnSurface", "f(x, y, z)")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return values_of(self.f, list(X.p), 1, "the surface of PointOnSurface")


@dataclass(frozen=True)
class PointOnCurve(Closure):
    """The origin of b stays on a curve of a, where two surfaces meet: f(x, y, z) = 0 and g(x, y, z) = 0.

    Args:
        f: function of the three coordinates in frame a, written with ``lw.math.sin``, … and arithmetic.
        g: another; where both vanish, their gradients must not be parallel.

    Example:
        A bead on a parabola: ``lw.closures.PointOnCurve(lambda x, y, z: z - x * x, lambda x, y, z: y)``
    """

    f: Callable[[Scalar, Scalar, Scalar], Scalar]
    g: Callable[[Scalar, Scalar, Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"f": ("x", "y", "z"), "g": ("x", "y", "z")}

    equations = ("f", "g")

    def __post_init__(self) -> None:
        for function in (self.f, self.g):
            checked_function(function, "a surface of PointOnCurve", "f(x, y, z) and g(x, y, z)")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [y for h in (self.f, self.g) for y in values_of(h, list(X.p), 1, "a surface of PointOnCurve")]


@dataclass(frozen=True, init=False)
class Distance(Closure):
    """The origins of a and b stay at a distance L: (p·p - L²)/2L = 0, smooth also where the points meet.

    A rod without mass, with a ball at each end; where L is a function of time, an actuator.

    Args:
        length: L > 0 in m, or a function of the time t in s that returns it.
    """

    length: float | Callable[[Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"length": ("t",)}

    numbers = ("length",)
    equations = ("length",)

    def __init__(self, length: float | Callable[[Scalar], Scalar]) -> None:
        if not callable(length):
            length = finite_number(
                length,
                "the length of Distance",
                above=0.0,
                allowed="a finite length > 0 in m, or a function of t",
                do="use lw.Spherical() for two points that coincide",
            )
        object.__setattr__(self, "length", length)

    @property
    def time_dependent(self) -> bool:
        return callable(self.length)

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        if callable(self.length):
            (L,) = values_of(self.length, [t], 1, "the length of Distance")
        else:
            L = self.length
        return [(X.p.dot(X.p) - L * L) / (2.0 * L)]


@dataclass(frozen=True, init=False)
class Rolling(Closure):
    """A ball or a thin disc, whose centre is the origin of b, rolls on a plane through the origin of a.

    The place: the centre stays above the plane by as much as the contact is below the centre. The rates: the point
    of b at the contact does not move along the plane. Turning on the spot stays free. The plane holds the body from
    both sides, and the disc is not to lie flat.

    Args:
        radius: in m.
        axis: of the disc, in frame b, at right angles to its face; None for a ball.
        normal: of the plane, in frame a, towards the body.
    """

    radius: float
    axis: tuple[float, float, float] | None
    normal: tuple[float, float, float]

    equations = ("height",)

    def __init__(
        self, radius: float, axis: Sequence[float] | None = None, normal: Sequence[float] = (0.0, 0.0, 1.0)
    ) -> None:
        object.__setattr__(self, "radius", finite_number(radius, "the radius of Rolling", above=0.0))
        object.__setattr__(self, "axis", None if axis is None else unit_axis(axis, "Rolling"))
        object.__setattr__(self, "normal", unit_axis(normal, "the plane of Rolling"))

    @property
    def rate_equations(self) -> tuple[str, ...]:
        first, second = directions(self.normal).across_names
        return (f"slip {first}", f"slip {second}")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [directions(self.normal).along(X.p + self._contact(X))]

    def rate_residual(self, X: RelativePose, V: Motion, t: Scalar) -> list[Scalar]:
        return directions(self.normal).off(X.R @ V.lin + (X.R @ V.ang).cross(self._contact(X)))

    def _contact(self, X: RelativePose) -> Vec:
        """From the centre to the contact, in a's axes: the way down, as steep as the disc allows."""
        n = directions(self.normal).axis
        if self.axis is None:
            return n * -self.radius
        d = X.R @ Vec.of(self.axis)
        level = n.cross(d)
        steepest: Vec = d.cross(level) * (-self.radius / sqrt(level.dot(level)))
        return steepest
