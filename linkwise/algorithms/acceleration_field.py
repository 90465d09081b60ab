"""Fields of acceleration on a mechanism: the forces that they exert on bodies and on modes, and their energy.

A field is given around each body's origin, in the body's axes, as far as the body feels it: accelerations a + E l at
the points l, E the gradient (for gravity, the tidal tensor). Forces then come from the body's own mass integrals, as
those of its motion do. Needs each body's own inertia: a regrouped one would feel its parent's part of the field.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.sweeps import each, generalized, outward, per_body, total
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.moving import AccelerationField
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Vec

FIELD = 12
"""Numbers of a field around a body: a (3), then the rows of E (9)."""

POTENTIAL = 10
"""Numbers of a potential around a body: its value, its gradient (3), its second derivatives xx, yy, zz, xy, xz, yz."""


def linear_field(tree: Tree, q: Sequence[Scalar], field: Sequence[Scalar]) -> list[list[Scalar]]:
    """Field around each body, :data:`FIELD` numbers each, of one that is given so around the world's origin.

    The tree is one in body frames. Carried from link to link, a turn costs what the joint's own turn does.
    """
    a, *rows = (list(field[i : i + 3]) for i in range(0, FIELD, 3))
    root: AccelerationField = tree.root.carry(AccelerationField(Mat3(rows), Vec.of(a)))
    around = outward(tree, lambda link, parent: link.phi(q).carry(parent), root)
    return per_body(tree, each(tree, lambda link: around[link].numbers()), (FIELD,))


def field_wrenches(tree: Tree, q: Sequence[Scalar], field: Sequence[Scalar]) -> list[list[Scalar]]:
    """[moment, force] (n_bodies, 6) at bodies' origins, in their axes, of :data:`FIELD` numbers for each body.

    The tree is one in body frames.
    """

    def pulled(link: Link) -> list[Scalar]:
        f = _pulled(link, q, field)
        return [*f.ang, *f.lin]

    return per_body(tree, each(tree, pulled), (6,))


def field_on_modes(tree: Tree, q: Sequence[Scalar], field: Sequence[Scalar]) -> list[Scalar]:
    """Forces (nv) on the modes of flexible bodies, as of :func:`field_wrenches`; zero at joints."""

    def on_modes(link: Link) -> list[Scalar]:
        on_modes: Sequence[Scalar] = getattr(_pulled(link, q, field), "tail", ())
        return [*on_modes, *([0.0] * (link.joint.nv - link.modes))]

    return generalized(tree, each(tree, on_modes))


def _pulled(link: Link, q: Sequence[Scalar], field: Sequence[Scalar]) -> Force:
    a, *rows = (link.own(field, FIELD)[i : i + 3] for i in range(0, FIELD, 3))
    return link.in_field(q, AccelerationField(Mat3(rows), Vec.of(list(a))))


def field_energy(tree: Tree, q: Sequence[Scalar], potential: Sequence[Scalar]) -> Scalar:
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
