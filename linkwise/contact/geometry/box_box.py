"""Box and box, by separating axes."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.manifold import margin_of, overlap
from linkwise.contact.geometry.points import ContactPoint, Contacts, choose, half_edges, halfway
from linkwise.contact.geometry.supports import facing, support
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import absolute, sqrt, where
from linkwise.spatial.vectors import Vec

_PARALLEL = 1e-12  # sin² of the angle between two edges below which they have no axis of their own


def box_box(a: Geometry, A: Placed, b: Geometry, B: Placed, *, slots: int = 4) -> Contacts:
    """Contact points of two boxes: corners of where the two faces that meet overlap, or where two edges cross.

    The normal is that of the fifteen axes (three of each box, nine across two edges) along which the boxes are
    farthest apart, or overlap least (Gottschalk, Lin and Manocha 1996). That is the signed distance of boxes that
    overlap or whose faces or edges look at each other; where only corners do, it is less than the distance.

    Args:
        slots: 4 or 8. Points of the overlap within 2 % of the smaller box's size that find no slot are counted.
    """
    h, k = half_edges(a), half_edges(b)
    between = A.p - B.p
    axes_a, axes_b = ([X.R.column(i) for i in range(3)] for X in (A, B))
    cosines = [[x.dot(y) for y in axes_b] for x in axes_a]
    shift_a, shift_b = ([x.dot(between) for x in axes] for axes in (axes_a, axes_b))

    best, n = None, Vec.unit(2)
    for i in range(3):
        reach = h[i] + sum(k[j] * absolute(cosines[i][j]) for j in range(3))
        gap = absolute(shift_a[i]) - reach
        axis = axes_a[i] * where(shift_a[i] < 0.0, -1.0, 1.0)
        n = axis if best is None else choose(gap > best, axis, n)
        best = gap if best is None else where(gap > best, gap, best)
    for j in range(3):
        reach = k[j] + sum(h[i] * absolute(cosines[i][j]) for i in range(3))
        gap = absolute(shift_b[j]) - reach
        n = choose(gap > best, axes_b[j] * where(shift_b[j] < 0.0, -1.0, 1.0), n)
        best = where(gap > best, gap, best)
    for i in range(3):
        for j in range(3):
            c = cosines[i][j]
            square = 1.0 - c * c
            apart = square > _PARALLEL
            inverse = 1.0 / sqrt(where(apart, square, 1.0))
            # |axis · a_i'| for an axis a_i × b_j is |cos| of the third axis: (a_i × b_j)·a_k = ± a_l·b_j.
            reach = sum(h[m] * absolute(cosines[3 - i - m][j]) for m in range(3) if m != i)
            reach = reach + sum(k[m] * absolute(cosines[i][3 - j - m]) for m in range(3) if m != j)
            across = axes_a[i].cross(axes_b[j])
            shift = across.dot(between)
            gap = (absolute(shift) - reach) * inverse
            better = apart & (gap > best)
            n = choose(better, across * (inverse * where(shift < 0.0, -1.0, 1.0)), n)
            best = where(better, gap, best)
    nearest = ContactPoint(best, n, halfway(support(a, A, -n), support(b, B, n)))
    return overlap(facing(a, A, -n), facing(b, B, n), nearest, slots, margin_of(a, b))
