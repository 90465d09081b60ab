"""How large the terms were that an inertia was summed from: what rounding can have left of them.

A number far smaller than the terms it was added up from is what rounding left of a zero, and is better a zero: it then
costs nothing. A number that is small beside its neighbours is not: the moment of a rod about itself, the first moment
of a mass centre high above its hinge.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Vec

Numbers = tuple[float, ...]

ROUNDING = 2e-15  # what the additions of one change of frame can leave of a zero, relative to their terms
EXACT = 1e-15  # how far a split may change an entry, relative to that entry


class Terms:
    """Sums of absolute values, one for each entry of an inertia: m, h (x, y, z), J (xx, yy, zz, xy, xz, yz).

    Plain numbers, written out, since this runs for every one of a hundred thousand links. NaN where a run-time
    parameter is in an entry.
    """

    __slots__ = ("J", "h", "m")

    def __init__(self, m: float, h: Numbers, J: Numbers) -> None:
        self.m = m
        self.h = h
        self.J = J

    @classmethod
    def of(cls, M: RigidInertia) -> Terms:
        """Of an inertia that was not summed from anything."""
        return cls(_size(M.m), tuple(map(_size, M.h)), tuple(map(_size, M.J.six())))

    def __add__(self, other: Terms) -> Terms:
        h = tuple(a + b for a, b in zip(self.h, other.h, strict=True))
        return Terms(self.m + other.m, h, tuple(a + b for a, b in zip(self.J, other.J, strict=True)))

    def turned(self, R: Iterable[Iterable[float]]) -> Terms:
        """Of the inertia in axes turned by R: R h and R J Rᵀ."""
        (a, b, c), (d, e, f), (g, h, i) = ((abs(x), abs(y), abs(z)) for x, y, z in R)
        hx, hy, hz = self.h
        xx, yy, zz, xy, xz, yz = self.J
        # the rows of R J
        ax, ay, az = a * xx + b * xy + c * xz, a * xy + b * yy + c * yz, a * xz + b * yz + c * zz
        dx, dy, dz = d * xx + e * xy + f * xz, d * xy + e * yy + f * yz, d * xz + e * yz + f * zz
        gx, gy, gz = g * xx + h * xy + i * xz, g * xy + h * yy + i * yz, g * xz + h * yz + i * zz
        J = (
            ax * a + ay * b + az * c, dx * d + dy * e + dz * f, gx * g + gy * h + gz * i,
            ax * d + ay * e + az * f, ax * g + ay * h + az * i, dx * g + dy * h + dz * i,
        )  # fmt: skip
        return Terms(self.m, (a * hx + b * hy + c * hz, d * hx + e * hy + f * hz, g * hx + h * hy + i * hz), J)

    def shifted(self, l: Iterable[float]) -> Terms:
        """Of the inertia about an origin at -l; see :meth:`linkwise.spatial.transforms.Shift.rigid_in`."""
        x, y, z = map(abs, l)
        hx, hy, hz = self.h
        X, Y, Z = hx + x * self.m, hy + y * self.m, hz + z * self.m
        sx, sy, sz = x * (hx + X), y * (hy + Y), z * (hz + Z)
        xx, yy, zz, xy, xz, yz = self.J
        J = (xx + sy + sz, yy + sx + sz, zz + sx + sy, xy + x * hy + X * y, xz + x * hz + X * z, yz + y * hz + Y * z)
        return Terms(self.m, (X, Y, Z), J)

    def through(self, transform: Transform) -> Terms:
        """Of the inertia in another frame, φ M φ*."""
        terms = self
        for factor in reversed(transform.factors):
            R, l = factor.matrix()
            terms = terms.shifted(map(_size, l)) if isinstance(factor, Shift) else terms.turned(_sizes(R))
        return terms

    def of_part(self, part: RigidInertia, whole: RigidInertia) -> Terms:
        """Of a part that was split off: an entry that changed was computed from the moments about all axes.

        No more than the part's own numbers, of which rounding takes its share anew: what is handed on from link to
        link must not remember all terms that ever were.
        """
        moments = self.J[0] + self.J[1] + self.J[2]
        most = Terms.of(part)
        first, second = sum(most.h), most.J[0] + most.J[1] + most.J[2]
        J = (
            0.0 if is_zero(new) else min(size if new is old else moments, second)
            for new, old, size in zip(part.J.six(), whole.J.six(), self.J, strict=True)
        )
        h = (0.0 if is_zero(new) else min(size, first) for new, size in zip(part.h, self.h, strict=True))
        return Terms(most.m, tuple(h), tuple(J))

    def snapped(self, M: RigidInertia) -> RigidInertia:
        """The inertia, with zeros for the numbers that rounding left where a zero belongs."""
        h = map(_snapped, M.h, self.h)
        return RigidInertia(M.m, Vec(*h), Sym3.of(*map(_snapped, M.J.six(), self.J)))


NOTHING = Terms(0.0, (0.0,) * 3, (0.0,) * 6)


def is_exact_split(whole: RigidInertia, kept: RigidInertia, shed: RigidInertia) -> bool:
    """Whether two parts make up the whole to the last digits of each entry.

    Where an entry of the whole is far smaller than the numbers its parts were computed from, they do not. With
    run-time parameters in it there is nothing to see yet, and the answer is yes.
    """
    for x, a, b in zip(_entries(whole), _entries(kept), _entries(shed), strict=True):
        if all(isinstance(number, (float, int)) for number in (x, a, b)):
            largest = abs(x) if a == 0.0 or b == 0.0 else max(abs(x), abs(a), abs(b))
            if abs(a + b - x) > EXACT * largest:
                return False
    return True


def _entries(M: RigidInertia) -> tuple[Scalar, ...]:
    return (M.m, *M.h, *M.J.six())


def _size(x: Scalar) -> Scalar:
    return abs(x) if isinstance(x, (float, int, np.ndarray)) else math.nan  # an array stands for a number of each link


def _sizes(R: Mat3) -> list[list[float]]:
    return [[_size(x) for x in row] for row in R.m]


def _snapped(x: Scalar, terms: float) -> Scalar:
    return 0.0 if isinstance(x, float) and abs(x) < ROUNDING * terms else x
