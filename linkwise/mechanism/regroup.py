"""Base parameters: each link hands to its parent the part of its inertia that its joint does not move.

From the leaves to the root, since what arrives is handed on in turn; where the split would cost digits, a link keeps
its inertia whole. The sequence cannot be broken up, so hinges, of which very long chains are made, are split in plain
numbers: 2 µs a link where the joint's own text takes 22, 2 s of the 3 in which a hundred thousand links are built and
laid out. Every other joint, and every inertia that depends on run-time parameters, takes the joint's own text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.joints import Joint, Revolute
from linkwise.mechanism.frames import Placements
from linkwise.mechanism.terms import EXACT, ROUNDING, Terms, is_exact_split
from linkwise.mechanism.tree import Link
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Vec

Numbers = Sequence[float]

_BLOCK = 4096  # hinges whose placements are looked at together: enough to be quick, and little memory


def regrouped(links: Sequence[Link], terms: list[Terms]) -> tuple[list[Link], RigidInertia]:
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
    rows = np.zeros((len(joints) + 1, 20))  # a row and its sums; the last ones are the base's
    rows[:-1, :10], rows[:-1, 10:] = M, terms
    hinges = [type(joint).split is Revolute.split and type(joint).transform is Revolute.transform for joint in joints]
    above, units, first = parents.tolist(), np.empty(0), len(joints)
    for k in range(len(joints) - 1, -1, -1):
        row = rows[k].tolist()
        if hinges[k]:
            if k < first:
                first = max(0, k + 1 - _BLOCK)
                units = _units_in_parents(placements, slice(first, k + 1))
            rows[k, :10], shed = _split_hinge(row)
            if shed is not None:
                rows[above[k]] += np.array(shed).dot(units[k - first])
            continue
        T_k, lead = Terms(row[10], tuple(row[11:14]), tuple(row[14:])), float(placements.lead[k])
        kept, handed, summed = _split(joints[k], placements.one(k), lead, _inertia(row[:10]), T_k)
        rows[k, :10] = _numbers(kept)
        rows[above[k]] += _numbers(handed) + _numbers(summed)
    return rows[:-1, :10].copy(), _inertia(rows[-1, :10].tolist())


def _split(
    joint: Joint, placement: Transform, lead: float, M: RigidInertia, terms: Terms
) -> tuple[RigidInertia, RigidInertia, Terms]:
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
    terms = Terms.of(M).through(still)
    found = np.zeros((len(l[0]), 5, 20))
    for entry, (number, size) in enumerate(zip(_numbers(still.congruence(M)), _numbers(terms), strict=True)):
        found[:, :3, entry] = number.T
        found[:, (0, 3, 4), 10 + entry] = size.T
    return found


def _split_hinge(row: Numbers) -> tuple[list[float], tuple[float, ...] | None]:
    """The split of a hinge, from m, h, J and their terms: what it keeps, and how much it sheds.

    That is m, h_z and the j of diag(j, j, 0), which its turn keeps, and the terms of the latter two (that of m is m);
    None where the split would cost digits.
    """
    m, *others = row[:10]
    # entries of which only rounding is left
    h_x, h_y, h_z, xx, yy, zz, xy, xz, yz = [
        0.0 if abs(x) < ROUNDING * t else x for x, t in zip(others, row[11:], strict=True)
    ]
    a, b, j = fsum((zz, xx, -yy)) * 0.5, fsum((zz, yy, -xx)) * 0.5, fsum((xx, yy, -zz)) * 0.5
    # J_xx = a + j and J_yy = b + j to rounding, whatever they are; the sum of a and b may have lost all digits.
    if abs(a + b - zz) > EXACT * abs(zz):
        return [m, h_x, h_y, h_z, xx, yy, zz, xy, xz, yz], None
    moments = row[14] + row[15] + row[16]
    shed = m, h_z, j, min(row[13], abs(h_z)), min(moments, 2.0 * abs(j))
    return [0.0, h_x, h_y, 0.0, a, b, a + b, xy, xz, yz], shed


def _inertia(row: Any) -> RigidInertia:
    return RigidInertia(row[0], Vec(*row[1:4]), Sym3.of(*row[4:]))


def _numbers(M: RigidInertia | Terms) -> list[Any]:
    return [M.m, *M.h, *(M.J if isinstance(M, Terms) else M.J.six())]
