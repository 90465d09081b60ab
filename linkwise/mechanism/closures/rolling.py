"""Rolling without slip on a plane."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.dataclass import dataclass
from linkwise.joints.base import unit_axis
from linkwise.joints.directions import RelativePose, directions
from linkwise.mechanism.checks import finite_number
from linkwise.mechanism.closures.base import Closure
from linkwise.spatial.scalar import Scalar, sqrt
from linkwise.spatial.vectors import Motion, Vec


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
