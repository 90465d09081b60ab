"""The inertias of all links at once, and base parameters: each link hands to its parent what its joint does not move.

A number far smaller than the terms it was added up from is what rounding left of a zero, and is better a zero: it then
costs nothing. A number that is small beside its neighbours is not: the moment of a rod about itself, the first moment
of a mass centre high above its hinge.

From the leaves to the root, since what arrives is handed on in turn; where the split would cost digits, a link keeps
its inertia whole. The sequence cannot be broken up, so hinges, of which very long chains are made, are split in plain
numbers: 2 µs a link where the joint's own text takes 22, which for a hundred thousand links is 2 s more than all else
takes. Every other joint, and every inertia that depends on run-time parameters, takes the joint's own text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.joints import Joint, Revolute
from linkwise.mechanism.bodies_and_joints import IDENTITY
from linkwise.mechanism.frames import Placements, poses, rows_of, snapped, times
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.tree import Link
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Flat, Scalar, is_zero
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Vec

Numbers = tuple[float, ...]

ROUNDING = 2e-15  # what the additions of one change of frame can leave of a zero, relative to their terms
EXACT = 1e-15  # how far a split may change an entry, relative to that entry


class AbsoluteSums:
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
    def of(cls, M: RigidInertia) -> AbsoluteSums:
        """Of an inertia that was not summed from anything."""
        return cls(_size(M.m), tuple(map(_size, M.h)), tuple(map(_size, M.J.six())))

    def __add__(self, other: AbsoluteSums) -> AbsoluteSums:
        h = tuple(a + b for a, b in zip(self.h, other.h, strict=True))
        return AbsoluteSums(self.m + other.m, h, tuple(a + b for a, b in zip(self.J, other.J, strict=True)))

    def turned(self, R: Iterable[Iterable[float]]) -> AbsoluteSums:
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
        return AbsoluteSums(self.m, (a * hx + b * hy + c * hz, d * hx + e * hy + f * hz, g * hx + h * hy + i * hz), J)

    def shifted(self, l: Iterable[float]) -> AbsoluteSums:
        """Of the inertia about an origin at -l; see :meth:`linkwise.spatial.transforms.Shift.rigid_in`."""
        x, y, z = map(abs, l)
        hx, hy, hz = self.h
        X, Y, Z = hx + x * self.m, hy + y * self.m, hz + z * self.m
        sx, sy, sz = x * (hx + X), y * (hy + Y), z * (hz + Z)
        xx, yy, zz, xy, xz, yz = self.J
        J = (xx + sy + sz, yy + sx + sz, zz + sx + sy, xy + x * hy + X * y, xz + x * hz + X * z, yz + y * hz + Y * z)
        return AbsoluteSums(self.m, (X, Y, Z), J)

    def through(self, transform: Transform) -> AbsoluteSums:
        """Of the inertia in another frame, φ M φ*."""
        terms = self
        for factor in reversed(transform.factors):
            R, l = factor.matrix()
            terms = terms.shifted(map(_size, l)) if isinstance(factor, Shift) else terms.turned(_sizes(R))
        return terms

    def of_part(self, part: RigidInertia, whole: RigidInertia) -> AbsoluteSums:
        """Of a part that was split off: an entry that changed was computed from the moments about all axes.

        No more than the part's own numbers, of which rounding takes its share anew: what is handed on from link to
        link must not remember all terms that ever were.
        """
        moments = self.J[0] + self.J[1] + self.J[2]
        most = AbsoluteSums.of(part)
        first, second = sum(most.h), most.J[0] + most.J[1] + most.J[2]
        J = (
            0.0 if is_zero(new) else min(size if new is old else moments, second)
            for new, old, size in zip(part.J.six(), whole.J.six(), self.J, strict=True)
        )
        h = (0.0 if is_zero(new) else min(size, first) for new, size in zip(part.h, self.h, strict=True))
        return AbsoluteSums(most.m, tuple(h), tuple(J))

    def snapped(self, M: RigidInertia) -> RigidInertia:
        """The inertia, with zeros for the numbers that rounding left where a zero belongs."""
        h = map(_snapped, M.h, self.h)
        return RigidInertia(M.m, Vec(*h), Sym3.of(*map(_snapped, M.J.six(), self.J)))


NOTHING = AbsoluteSums(0.0, (0.0,) * 3, (0.0,) * 6)


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


_BLOCK = 4096  # hinges whose placements are looked at together: enough to be quick, and little memory


def regrouped(links: Sequence[Link], terms: list[AbsoluteSums]) -> tuple[list[Link], RigidInertia]:
    """Links over any scalar with what they keep, and what reaches the base."""
    inertias = [link.inertia for link in links]
    base = RigidInertia.zero()
    for link in reversed(links):
        k = link.index
        inertias[k], handed, summed = _split(link.joint, link.placement, link.lead, inertias[k], terms[k])
        if link.parent < 0:
            base = base + handed
        else:
            inertias[link.parent] = inertias[link.parent] + handed
            terms[link.parent] = terms[link.parent] + summed
    return [replace(link, inertia=inertias[link.index]) for link in links], base


def regrouped_rows(
    joints: Sequence[Joint], parents: Array, placements: Placements, M: Array, terms: Array
) -> tuple[Array, RigidInertia]:
    """The same for numbers: rows m, h, J (n, 10) with the sums that they came from, to rows of what links keep."""
    n = len(joints)
    rows = np.zeros((n + 1, 20))  # a row and its sums; the last ones are the base's
    rows[:-1, :10], rows[:-1, 10:] = M, terms
    kinds = [type(joint) for joint in joints]
    turning = {kind for kind in set(kinds) if (kind.split, kind.transform) == (Revolute.split, Revolute.transform)}
    hinges = [kind in turning for kind in kinds]
    above, units, first = parents.tolist(), np.empty(0), n
    halves: dict[int, tuple[float, float]] = {}
    # Used again and again: to make arrays takes longer than the products.
    share: Any = np.empty(5)
    shed: Any = memoryview(share)
    arrives = np.empty(20)
    for k in range(n - 1, -1, -1):
        row = rows[k].tolist()
        if hinges[k]:
            if k < first:
                first = max(0, k + 1 - _BLOCK)
                units = _units_in_parents(placements, slice(first, k + 1))
            split = _split_hinge(row)
            if split is not None:
                halves[k], (shed[0], shed[1], shed[2], shed[3], shed[4]) = split
                parent = rows[above[k]]
                np.add(parent, share.dot(units[k - first], arrives), parent)
            continue
        T_k, lead = AbsoluteSums(row[10], tuple(row[11:14]), tuple(row[14:])), float(placements.lead[k])
        kept, handed, summed = _split(joints[k], placements.one(k), lead, _inertia(row[:10]), T_k)
        rows[k, :10] = _numbers(kept)
        rows[above[k]] += _numbers(handed) + _numbers(summed)
    # What hinges keep: entries of which only rounding is left are zero, and what they shed is gone.
    others, largest = rows[:-1, 1:10], ROUNDING * rows[:-1, 11:]
    others[(np.abs(others) < largest) & np.array(hinges, bool).reshape(n, 1)] = 0.0
    chosen = list(halves)
    rows[chosen, 0] = rows[chosen, 3] = 0.0
    a, b = rows_of(list(halves.values()), 2).T
    rows[chosen, 4], rows[chosen, 5], rows[chosen, 6] = a, b, a + b
    return rows[:-1, :10].copy(), _inertia(rows[-1, :10].tolist())


def _split(
    joint: Joint, placement: Transform, lead: float, M: RigidInertia, terms: AbsoluteSums
) -> tuple[RigidInertia, RigidInertia, AbsoluteSums]:
    """Inertia that a link keeps, and the one that it hands on with its terms, in the parent's frame."""
    whole = terms.snapped(M)
    kept, shed = joint.split(whole)
    if not is_exact_split(whole, kept, shed):
        kept, shed = whole, RigidInertia.zero()
    still = placement.then(joint.transform(joint.neutral()).after_turn(2, lead))
    return kept, still.congruence(shed), terms.of_part(shed, whole).through(still)


def _units_in_parents(placements: Placements, some: slice) -> Array:
    """Shares that hinges shed, for a unit of each number, in the parents' frames: (n, 5, 20); see :func:`_split_hinge`.

    The text that carries an inertia through a placement, with an array for every number. It is linear in the inertia,
    so these units say all.
    """
    l, z, x, last = (array[some].T for array in (placements.l, placements.z, placements.x, placements.last))
    still = Transform(Shift(Vec(*l)), Turn(2, *z), Turn(0, *x), Turn(2, *last))
    units = np.zeros((10, 3, 1))
    units[0, 0] = units[3, 1] = units[4:6, 2] = 1.0
    M = _inertia(units)
    terms = AbsoluteSums.of(M).through(still)
    found = np.zeros((len(l[0]), 5, 20))
    for entry, (number, size) in enumerate(zip(_numbers(still.congruence(M)), _numbers(terms), strict=True)):
        found[:, :3, entry] = number.T
        found[:, (0, 3, 4), 10 + entry] = size.T
    return found


def _split_hinge(row: Sequence[float]) -> tuple[tuple[float, float], tuple[float, ...]] | None:
    """The split of a hinge, from m, h, J and their terms: a and b of diag(a, b, a + b) that it keeps, and its share.

    What it sheds is m, h_z and the j of diag(j, j, 0), which its turn keeps, and the terms of the latter two (that of m
    is m). None where the split would cost digits.
    """
    h_z, xx, yy, zz = row[3:7]
    t_z, t_xx, t_yy, t_zz = row[13:17]
    # entries of which only rounding is left
    h_z = 0.0 if abs(h_z) < ROUNDING * t_z else h_z
    xx = 0.0 if abs(xx) < ROUNDING * t_xx else xx
    yy = 0.0 if abs(yy) < ROUNDING * t_yy else yy
    zz = 0.0 if abs(zz) < ROUNDING * t_zz else zz
    a, b, j = fsum((zz, xx, -yy)) * 0.5, fsum((zz, yy, -xx)) * 0.5, fsum((xx, yy, -zz)) * 0.5
    # J_xx = a + j and J_yy = b + j to rounding, whatever they are; the sum of a and b may have lost all digits.
    if abs(a + b - zz) > EXACT * abs(zz):
        return None
    return (a, b), (row[0], h_z, j, min(t_z, abs(h_z)), min(t_xx + t_yy + t_zz, 2.0 * abs(j)))


def _inertia(row: Flat | Array) -> RigidInertia:
    return RigidInertia(row[0], Vec(*row[1:4]), Sym3.of(*row[4:]))


def _numbers(M: RigidInertia | AbsoluteSums) -> list[Scalar]:
    return [M.m, *M.h, *(M.J if isinstance(M, AbsoluteSums) else M.J.six())]


class Parts:
    """Parts of the bodies of a rigid mechanism, as arrays with a row for each."""

    def __init__(self, mechanism: Mechanism) -> None:
        parts = [part for body in mechanism.bodies for part in body.parts]
        self.count = len(mechanism.bodies)
        self.body = np.repeat(np.arange(self.count), [len(body.parts) for body in mechanism.bodies])
        self.mass = np.array([part.mass for part in parts], float)
        self.com = rows_of([part.com for part in parts], 3)
        self.six = rows_of([part.inertia for part in parts], 6)
        placed = [i for i, part in enumerate(parts) if part.placement is not IDENTITY]
        self.X = np.tile(np.eye(4), (len(parts), 1, 1))
        self.X[placed] = poses([parts[i].placement for i in placed])

    def centres(self) -> Array:
        """The mass centre of each body (n, 3) in its frame; NaN for one without mass."""
        moments = self.mass[:, None] * (times(self.X[:, :3, :3], self.com) + self.X[:, :3, 3])
        total = self._summed(self.mass)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total[:, None] == 0.0, np.nan, self._summed(moments) / total[:, None])

    def inertias(self, R: Array, o: Array) -> tuple[Array, Array]:
        """Each link's m, h (3) and J (6) in its frame, and the sums of absolute values that each came from: (n, 10).

        ``R``, ``o``: the link frames in those of the bodies.
        """
        back = R[self.body].transpose(0, 2, 1)
        turn = snapped(back @ self.X[:, :3, :3], 1.0)
        l = snapped(times(back, self.X[:, :3, 3] - o[self.body]), 1.0)
        com, shift = Vec(*self.com.T), Vec(*l.T)
        about_com = RigidInertia(self.mass, Vec.zero(), Sym3.of(*self.six.T))
        nothing: Scalar = np.zeros_like(self.mass)
        about = AbsoluteSums(np.abs(self.mass), (nothing,) * 3, tuple(np.abs(self.six.T)))
        summed = about.shifted(np.abs(self.com.T)).turned(np.abs(turn).transpose(1, 2, 0))
        summed = summed.shifted(np.abs(l.T))
        own = RigidInertia.from_com(self.mass, com, about_com.J)
        M = Shift(shift).rigid_in(_turned(turn, own))
        terms = self._summed(_rows(summed.m, summed.h, summed.J))
        total = self._summed(_rows(M.m, M.h, M.J.six()))
        return snapped_by(total, terms), terms

    def _summed(self, rows: Array) -> Array:
        """Over the parts of each body, in order."""
        if len(rows) == self.count and (self.body == np.arange(self.count)).all():
            return rows + 0.0
        total = np.zeros((self.count, *rows.shape[1:]))
        np.add.at(total, self.body, rows)
        return total


def snapped_by(M: Array, terms: Array) -> Array:
    """Inertias (n, 10), with zeros for the numbers that rounding left where a zero belongs."""
    small = np.abs(M) < 2e-15 * terms
    small[:, 0] = False
    return np.where(small, 0.0, M)


def _rows(m: Scalar, h: Iterable[Scalar], J: Iterable[Scalar]) -> Array:
    return np.stack((m, *h, *J), axis=1)


def _turned(R: Array, M: RigidInertia) -> RigidInertia:
    """Inertias in turned axes: R h and R J Rᵀ in full, each entry from what it depends on.

    A trace that is kept would save one of them at the cost of its digits where another moment is far larger.
    """
    J = np.stack([x for row in M.J.m for x in row], axis=1).reshape(-1, 3, 3)
    turned = R @ J @ R.transpose(0, 2, 1)
    six = (turned[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    return RigidInertia(M.m, Vec(*times(R, np.stack(list(M.h), axis=1)).T), Sym3.of(*six))
