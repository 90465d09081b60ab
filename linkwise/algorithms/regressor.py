"""The inverse-dynamics regressor: τ = Y(q, v, v̇) π, linear in the inertial parameters of the bodies. O(n · depth).

π lists for each body m, m c (3), and the second moment about the body's origin (Jxx, Jxy, Jyy, Jxz, Jyz, Jzz).
For a flexible body these are of rigid parts on its root; what the flexible body takes itself, with the parts on its
other nodes, is not in π, as rotors are not: then τ = Yπ + what those take.
"""

from __future__ import annotations

from typing import Any

from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.kinematics import at_rest, next_motion
from linkwise.algorithms.sweeps import add, freedom, outward, own
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.flexible import FlexibleMoving
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3, zeros
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force, Vec

# Which of J's entries (in the order xx, yy, zz, xy, xz, yz) each of the last six parameters is.
_J_ORDER = (0, 3, 1, 4, 5, 2)


def unit_inertias() -> list[RigidInertia]:
    """The ten inertias with one parameter one and the others zero."""
    units = [RigidInertia(1.0, Vec.zero(), Sym3.zero())]
    units += [RigidInertia(0.0, Vec.unit(i), Sym3.zero()) for i in range(3)]
    units += [RigidInertia(0.0, Vec.zero(), Sym3.of(*(1.0 if i == j else 0.0 for i in range(6)))) for j in _J_ORDER]
    return units


def regressor(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> Matrix:
    """Y, nv × 10 n. ``tree`` is in body frames. Armature is not in π: its part of τ is left out."""
    motion = outward(tree, lambda link, parent: next_motion(link, parent, q, v, vdot), at_rest(tree.gravity))
    Y = zeros(tree.nv, 10 * len(tree.links))
    units = unit_inertias()
    for link in tree:
        for i, unit in enumerate(units):
            f = unit.wrench(_of_root(motion[link]))
            inner = None
            for ancestor in tree.ancestors(link):
                f = f if inner is None else inner.phi(q) @ f
                inner = ancestor
                for j, s in enumerate(ancestor.S(q)):
                    add(Y, freedom(ancestor, j), own(10 * link.index + i), s.dot(f))
    return Y


def regressor_product(tree: Tree, q: Flat, v: Flat, vdot: Flat, pi: Flat) -> list[Scalar]:
    """Y π (nv) without the matrix: the inverse dynamics of bodies with these inertial parameters. O(n)."""

    def move(link: Link, parent: RigidMotion) -> tuple[RigidMotion, Force]:
        motion = next_motion(link, parent, q, v, vdot)
        m, hx, hy, hz, *J = link.own(pi, 10)
        six = [J[_J_ORDER.index(k)] for k in range(6)]
        return motion, RigidInertia(m, Vec(hx, hy, hz), Sym3.of(*six)).wrench(_of_root(motion))

    needed = outward(tree, move, at_rest(tree.gravity), keeps=True)
    return external_force(tree, q, needed)


def inertial_parameters(tree: Tree) -> list[Scalar]:
    """π of the tree's own inertias."""
    values: list[Scalar] = []
    for link in tree:
        rigid = link.rigid_part
        xx, yy, zz, xy, xz, yz = rigid.J.six()
        values += [rigid.m, *rigid.h, xx, xy, yy, xz, yz, zz]
    return values


def _of_root(motion: Any) -> RigidMotion:
    """Motion of a link's frame, whether or not the link deforms."""
    root: RigidMotion = motion.root if isinstance(motion, FlexibleMoving) else motion
    return root
