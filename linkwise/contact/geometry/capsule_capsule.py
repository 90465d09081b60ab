"""Capsule and capsule."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import (
    ContactPoint,
    Contacts,
    along_segment,
    between_balls,
    chosen,
    direction,
    ends,
    unused,
)
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, absolute, clip, maximum, minimum, where

_PARALLEL = 0.05**2  # sin² of the angle between axes below which two capsules touch at two places


def capsule_capsule(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The nearest points of two capsules, and for nearly parallel ones the far end of where they lie side by side.

    Two slots. The first is exact: the nearest points of two segments (Ericson, Real-Time Collision Detection, §5.1.9).
    The normal is perpendicular to both axes where they intersect.
    """
    (p, p_end), (c, c_end) = ends(a, A), ends(b, B)
    d, e = p_end - p, c_end - c
    dd, ee, de = d.dot(d), e.dot(e), d.dot(e)
    r = p - c
    crossing = dd * ee - de * de
    skew = crossing > 1e-12 * dd * ee
    # Where a is nearest to the line of b; of parallel ones, where b ends on a.
    s = clip((de * e.dot(r) - d.dot(r) * ee) / where(skew, crossing, 1.0), 0.0, 1.0)
    low, high = along_segment(c, p, d), along_segment(c_end, p, d)
    s = where(skew, s, low)
    t = along_segment(p + d * s, c, e)
    s = along_segment(c + e * t, p, d)
    across = direction(d.cross(e), direction(A.R.column(0).cross(e), A.R.column(1)))

    def at(s: Scalar) -> ContactPoint:
        on_a = p + d * s
        on_b = c + e * along_segment(on_a, c, e)
        return between_balls(on_a, a.size[0], on_b, b.size[0], across)

    first = at(s)
    low, high = minimum(low, high), maximum(low, high)
    far = where(absolute(low - s) > absolute(high - s), low, high)
    parallel = (crossing < _PARALLEL * dd * ee) & (absolute(far - s) > 1e-3)
    return Contacts((first, chosen(parallel, at(far), unused())))
