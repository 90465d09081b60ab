"""Fields of acceleration on a mechanism: the forces that they exert on bodies and on modes, and their energy.

A field is given around each body's origin, in the body's axes, as far as the body feels it: accelerations a + E l at
the points l, E the gradient (for gravity, the tidal tensor). Forces then come from the body's own mass integrals, as
those of its motion do. Needs each body's own inertia: a regrouped one would feel its parent's part of the field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.algorithms.sweeps import each, generalized, per_body, total
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.moving import AccelerationField
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Vec

FIELD = 12
"""Numbers of a field around a body: a (3), then the rows of E (9)."""

POTENTIAL = 10
"""Numbers of a potential around a body: its value, its gradient (3), its second derivatives xx, yy, zz, xy, xz, yz."""


class FieldForces(NamedTuple):
    """Forces of a field: [moment, force] (n_bodies, 6) at bodies' origins and in their axes, and on modes (nv)."""

    on_bodies: Any
    on_modes: Any


def field_forces(tree: Tree, q: Flat, field: Flat) -> FieldForces:
    """Forces of a field that is given by :data:`FIELD` numbers for each body. The tree is one in body frames."""

    def pulled(link: Link) -> tuple[list[Scalar], list[Scalar]]:
        a, *rows = (link.own(field, FIELD)[i : i + 3] for i in range(0, FIELD, 3))
        f = link.in_field(q, AccelerationField(Mat3(rows), Vec.of(list(a))))
        on_modes: list[Scalar] = [*getattr(f, "tail", ()), *([0.0] * (link.joint.nv - link.modes))]
        return [*f.ang, *f.lin], on_modes

    on_bodies = each(tree, lambda link: pulled(link)[0])
    on_modes = each(tree, lambda link: pulled(link)[1])
    return FieldForces(per_body(tree, on_bodies, (6,)), generalized(tree, on_modes))


def field_energy(tree: Tree, q: Flat, potential: Flat) -> Scalar:
    """∫U dm, J, of a potential that is given by :data:`POTENTIAL` numbers for each body. The tree is in body frames."""

    def held(link: Link) -> Scalar:
        U, *more = link.own(potential, POTENTIAL)
        M = link.M(q)
        rigid: RigidInertia = getattr(M, "body", M)
        xx, yy, zz, xy, xz, yz = rigid.J.six()
        second = Sym3.of(*more[3:])
        # Half of tr(E S), S = tr(J)/2 - J being the spread of the mass.
        spread = (yy + zz - xx, xx + zz - yy, xx + yy - zz, -4.0 * xy, -4.0 * xz, -4.0 * yz)
        of_spread = sum((a * s for a, s in zip(second.six(), spread, strict=True)), 0.0 * U)
        return U * rigid.m + Vec.of(more[:3]).dot(rigid.h) + of_spread * 0.25

    return total(tree, held, 0.0)
