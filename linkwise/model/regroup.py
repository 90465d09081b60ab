"""Base parameters: each link hands to its parent the part of its inertia that its joint does not move.

From the leaves to the root, since what arrives is handed on in turn; where the split would cost digits, a link keeps
its inertia whole. The sequence cannot be broken up, so hinges, of which very long chains are made, are written out in
plain numbers; every other joint, and every inertia that depends on run-time parameters, takes the joint's own text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from operator import add
from typing import Any

import numpy as np

from linkwise.model.frames import Placements
from linkwise.model.joints import Joint, Revolute
from linkwise.model.terms import EXACT, ROUNDING, Terms, is_exact_split
from linkwise.model.tree import Link
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec

Array = Any
Numbers = Sequence[float]


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
    rows, sums = [*M.tolist(), [0.0] * 10], [*terms.tolist(), [0.0] * 10]  # the last ones are the base's
    hinges = [type(joint).split is Revolute.split and type(joint).transform is Revolute.transform for joint in joints]
    above, places = parents.tolist(), _hinge_places(placements).tolist()
    for k in range(len(joints) - 1, -1, -1):
        if hinges[k]:
            rows[k], handed, summed = _split_hinge(rows[k], sums[k], places[k])
        else:
            M_k, T_k = _inertia(rows[k]), Terms(sums[k][0], tuple(sums[k][1:4]), tuple(sums[k][4:]))
            lead = float(placements.lead[k])
            kept, brought, its_terms = _split(joints[k], placements.one(k), lead, M_k, T_k)
            rows[k], handed = _numbers(kept), _numbers(brought)
            summed = (its_terms.m, *its_terms.h, *its_terms.J)
        if handed is not None:
            parent = above[k]
            rows[parent] = list(map(add, rows[parent], handed))
            sums[parent] = list(map(add, sums[parent], summed))
    return np.array(rows[:-1]).reshape(-1, 10), _inertia(rows[-1])


def _split(
    joint: Joint, placement: Transform, lead: float, M: RigidInertia, terms: Terms
) -> tuple[RigidInertia, RigidInertia, Terms]:
    """What a link keeps, and what it hands on with its terms, in the parent's frame."""
    whole = terms.snapped(M)
    kept, shed = joint.split(whole)
    if not is_exact_split(whole, kept, shed):
        kept, shed = whole, RigidInertia.zero()
    still = placement.then(joint.transform(joint.neutral()).after_turn(2, lead))
    return kept, still.congruence(shed), terms.of_part(shed, whole).through(still)


def _hinge_places(placements: Placements) -> Array:
    """What :func:`_split_hinge` needs of each placement (n, 16)."""
    (c, s), (c_last, s_last) = placements.x.T, np.abs(placements.last.T)
    turn = (c, s, s * s, s * c, np.abs(c), np.abs(s))  # about x
    last = (c_last * c_last + s_last * s_last, 2.0 * c_last * s_last)  # about z: what it leaves in the terms
    return np.stack((*placements.l.T, *np.abs(placements.l.T), *turn, *last, *placements.z.T), axis=1)


def _split_hinge(row: Numbers, terms: Numbers, place: Numbers) -> tuple[list[float], Numbers | None, Numbers]:
    """:func:`_split` of a hinge: it sheds m, h_z and a moment j about all lines across it, which its turn keeps."""
    m, hx, hy, hz, xx, yy, zz, xy, xz, yz = row
    _, tx, ty, tz, txx, tyy, tzz, txy, txz, tyz = terms
    e = ROUNDING  # entries of which only rounding is left
    if -e * tx < hx < e * tx:
        hx = 0.0
    if -e * ty < hy < e * ty:
        hy = 0.0
    if -e * tz < hz < e * tz:
        hz = 0.0
    if -e * txx < xx < e * txx:
        xx = 0.0
    if -e * tyy < yy < e * tyy:
        yy = 0.0
    if -e * tzz < zz < e * tzz:
        zz = 0.0
    if -e * txy < xy < e * txy:
        xy = 0.0
    if -e * txz < xz < e * txz:
        xz = 0.0
    if -e * tyz < yz < e * tyz:
        yz = 0.0
    a, b, j = fsum((zz, xx, -yy)) * 0.5, fsum((zz, yy, -xx)) * 0.5, fsum((xx, yy, -zz)) * 0.5
    # J_xx = a + j and J_yy = b + j to rounding, whatever they are; the sum of a and b may have lost all digits.
    if abs(a + b - zz) > EXACT * abs(zz):
        return [m, hx, hy, hz, xx, yy, zz, xy, xz, yz], None, ()
    kept = [0.0, hx, hy, 0.0, a, b, a + b, xy, xz, yz]
    # The turn about x leaves h = (0, -s, c) h_z and J = diag(j, j - s²j, s²j) with J_yz = s c j.
    lx, ly, lz, x, y, z, c, s, ss, sc, c_size, s_size, along, mixed, c_z, s_z = place
    # Likewise the terms, after the last turn about z, which leaves traces in them.
    th, tj, moments = (hz if hz > 0.0 else -hz), (j + j if j > 0.0 else -j - j), txx + tyy + tzz
    if tz < th:
        th = tz
    if moments < tj:
        tj = moments
    along *= tj
    mixed *= tj
    turned = c_size * along
    tx, ty, tz = 0.0, s_size * th, c_size * th
    txx, tyy, tzz, txy, txz, tyz = (
        along,
        turned * c_size,
        s_size * along * s_size,
        mixed * c_size,
        mixed * s_size,
        turned * s_size,
    )
    moment = ss * j
    hx, hy, hz, xx, yy, zz, xy, xz, yz = 0.0, -s * hz, c * hz, j, j - moment, moment, 0.0, 0.0, sc * j
    if s_z or c_z != 1.0:
        c, s = c_z, s_z
        se, ce = s * s * (xx - yy), s * c * (xx - yy)
        hx, hy, xx, yy, xy, xz, yz = -s * hy, c * hy, xx - se, yy + se, ce, -s * yz, c * yz
        again = Terms(m, (tx, ty, tz), (txx, tyy, tzz, txy, txz, tyz)).turned(((c, s, 0), (s, c, 0), (0, 0, 1)))
        (tx, ty, tz), (txx, tyy, tzz, txy, txz, tyz) = again.h, again.J
    X, Y, Z = hx + lx * m, hy + ly * m, hz + lz * m
    p, q, r = lx * (hx + X), ly * (hy + Y), lz * (hz + Z)
    handed = (
        m, X, Y, Z, xx + (q + r), yy + (r + p), zz + (p + q),
        xy - (lx * hy + X * ly), xz - (lx * hz + X * lz), yz - (ly * hz + Y * lz),
    )  # fmt: skip
    X, Y, Z = tx + x * m, ty + y * m, tz + z * m
    p, q, r = x * (tx + X), y * (ty + Y), z * (tz + Z)
    summed = (
        m, X, Y, Z, txx + q + r, tyy + p + r, tzz + p + q,
        txy + x * ty + X * y, txz + x * tz + X * z, tyz + y * tz + Y * z,
    )  # fmt: skip
    return kept, handed, summed


def _inertia(row: Numbers) -> RigidInertia:
    return RigidInertia(row[0], Vec(*row[1:4]), Sym3.of(*row[4:]))


def _numbers(M: RigidInertia) -> list[Any]:
    return [M.m, *M.h, *M.J.six()]
