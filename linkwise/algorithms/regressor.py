"""The inverse-dynamics regressor: τ = Y(q, v, v̇) π, linear in the inertial parameters of the bodies. O(n · depth).

π lists for each body m, m c (3), and the second moment about the body's origin (Jxx, Jxy, Jyy, Jxz, Jyz, Jzz).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.algorithms.freedoms import Matrix, add, freedom, own, zeros
from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.rigid_motion import at_rest, next_motion
from linkwise.algorithms.sweeps import outward
from linkwise.model.tree import Link, Tree, require_rigid
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Vec

# Which of J's entries (in the order xx, yy, zz, xy, xz, yz) each of the last six parameters is.
_J_ORDER = (0, 3, 1, 4, 5, 2)


def unit_inertias() -> list[RigidInertia]:
    """The ten inertias with one parameter one and the others zero."""
    units = [RigidInertia(1.0, Vec.zero(), Sym3.zero())]
    units += [RigidInertia(0.0, Vec.unit(i), Sym3.zero()) for i in range(3)]
    units += [RigidInertia(0.0, Vec.zero(), Sym3.of(*(1.0 if i == j else 0.0 for i in range(6)))) for j in _J_ORDER]
    return units


def regressor(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], vdot: Sequence[Scalar]) -> Matrix:
    """Y, nv × 10 n. ``tree`` is in body frames. Armature is not in π: its part of τ is left out."""
    require_rigid(tree, "the regressor")
    motion = outward(tree, lambda link, parent: next_motion(link, parent, q, v, vdot), at_rest(tree.gravity))
    Y = zeros(tree.nv, 10 * len(tree.links))
    units = unit_inertias()
    for link in tree:
        for i, unit in enumerate(units):
            f = unit.wrench(motion[link])
            inner = None
            for ancestor in tree.ancestors(link):
                f = f if inner is None else inner.phi(q) @ f
                inner = ancestor
                for j, s in enumerate(ancestor.S(q)):
                    add(Y, freedom(ancestor, j), own(10 * link.index + i), s.dot(f))
    return Y


def regressor_product(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], vdot: Sequence[Scalar], pi: Any
) -> list[Scalar]:
    """Y π (nv) without the matrix: the inverse dynamics of bodies with these inertial parameters. O(n)."""

    def move(link: Link, parent: RigidMotion) -> tuple[RigidMotion, Force]:
        motion = next_motion(link, parent, q, v, vdot)
        m, hx, hy, hz, *J = link.own(pi, 10)
        six = [J[_J_ORDER.index(k)] for k in range(6)]
        return motion, RigidInertia(m, Vec(hx, hy, hz), Sym3.of(*six)).wrench(motion)

    needed = outward(tree, move, at_rest(tree.gravity), keeps=True)
    return external_force(tree, q, needed)


def inertial_parameters(tree: Tree) -> list[Scalar]:
    """π of the tree's own inertias."""
    require_rigid(tree, "the vector of inertial parameters")
    values: list[Scalar] = []
    for link in tree:
        xx, yy, zz, xy, xz, yz = link.inertia.J.six()
        values += [link.inertia.m, *link.inertia.h, xx, xy, yy, xz, yz, zz]
    return values
