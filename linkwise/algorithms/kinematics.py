"""Poses, velocities and accelerations of the links. O(n) each.

There are three ways to write the motion of a place as six numbers:

- ``"mixed"``: world axes, at the place's origin: ω and the velocity of the origin as an onlooker sees them.
- ``"local"``: the place's own axes, at its origin: as one who moves along feels them.
- ``"world"``: world axes, at the world's origin: of the point of the body that is just there.

Everything is found in the first way, then changed into the others.

In the outward half of inverse and forward dynamics, accelerations are those of Jain 1991 §2: α = [ω'; a], rates taken
in the inertial frame, a that of the link's origin. Then f = Mα + b with b = [ω~Jω; ω~ω~h], and no linear velocity is
needed anywhere. Everything quadratic in ω goes through E = ω'~ + ω~ω~, which serves the next origin (a + E l), the
force (m a + E h) and the moment alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from linkwise.algorithms.sweeps import Field, configured, each, outward, per_body
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.transforms import Transform, TransformFactor
from linkwise.spatial.vectors import Force, Motion, Vec, weighted_sum

if TYPE_CHECKING:
    from linkwise.mechanism.flexible_link import Seat


@dataclass(frozen=True, slots=True)
class Placed:
    """A frame in the world: R from its axes to the world's, p its origin."""

    R: Mat3
    p: Vec

    def shifted(self, l: Vec) -> Placed:
        """The frame at l in this one, its axes parallel."""
        return Placed(self.R, self.p + self.R @ l)

    def turned(self, factor: TransformFactor) -> Placed:
        """The frame with the child side's axes."""
        return Placed(Mat3([list(factor.rotate_back(Vec.of(row))) for row in self.R.m]), self.p)

    def on_node(self, node: Any) -> Placed:
        """The frame at a node of a flexible body; its rotation comes after."""
        return self.shifted(node.l)

    def matrix(self) -> Matrix:
        """4×4."""
        return [[*row, x] for row, x in zip(self.R.m, self.p, strict=True)] + [[0.0, 0.0, 0.0, 1.0]]


@dataclass(frozen=True)
class Place:
    """A frame fixed to a link (None: to the world), or to a node of one that deforms."""

    link: Link | None
    offset: Transform
    """From the link's frame, or from the node."""
    seat: Seat | None = None
    """The node, if it is on one."""

    def phi(self, q: Flat) -> Transform:
        """From the link's frame to the place."""
        return self.offset if self.seat is None else self.seat.at(q).then(self.offset)

    def within(self, frames: Field[Placed], q: Flat) -> Placed:
        """This place in the world, given where the links are."""
        on = Placed(Mat3.identity(), Vec.zero()) if self.link is None else frames[self.link]
        place: Placed = self.phi(q).carry(on)
        return place


def placed(tree: Tree, q: Flat, tip: Link | None = None) -> Field[Placed]:
    """Every link's frame in the world; where a tip is named, of those that it hangs on alone."""
    part = tree if tip is None else tree.way_to(tip)
    return outward(part, lambda link, parent: link.phi(q).carry(parent), _root(tree))


def _root(tree: Tree) -> Placed:
    root: Placed = tree.root.carry(Placed(Mat3.identity(), Vec.zero()))
    return root


def pose(tree: Tree, q: Flat, place: Place) -> Matrix:
    """4×4 of one place."""
    return place.within(placed(tree, q, place.link), q).matrix()


def poses(tree: Tree, q: Flat) -> list[Matrix]:
    """4×4 of every body."""

    def move(link: Link, parent: Placed) -> tuple[Placed, Matrix]:
        frame: Placed = link.phi(q).carry(parent)
        return frame, link.to_body.carry(frame).matrix()

    return per_body(tree, outward(tree, move, _root(tree), keeps=True), (4, 4))


def velocities(tree: Tree, q: Flat, v: Flat, tip: Link | None = None) -> Field[Motion]:
    """V = φ*H*v: every link's velocity, at its origin and in its axes; with a tip, of those that it hangs on alone."""
    part = tree if tip is None else tree.way_to(tip)
    return outward(
        part, lambda link, parent: link.phi(q).T @ parent + combination(link.S(q), link.rates(v)), Motion.zero()
    )


def velocity(tree: Tree, q: Flat, v: Flat, place: Place, reference: Reference = "mixed") -> list[Scalar]:
    """[ω; v] of a place, written in one of the ways of :mod:`linkwise.algorithms.kinematics`."""
    if place.link is None:
        return [0.0] * 6
    V = place.phi(q).T @ velocities(tree, q, v, place.link)[place.link]
    if reference == "local":
        return [*V.ang, *V.lin]
    frame = place.within(placed(tree, q, place.link), q)
    ang, lin = seen(reference, frame, frame.R @ V.ang, frame.R @ V.lin)
    return [*ang, *lin]


def acceleration(
    tree: Tree,
    q: Flat,
    v: Flat,
    vdot: Flat,
    place: Place,
    reference: Reference = "mixed",
) -> list[Scalar]:
    """The rates of the six numbers of :func:`velocity`: J v̇ + J̇ v in the same way. Without gravity."""
    if place.link is None:
        return [0.0] * 6
    way = tree.way_to(place.link)
    motions = outward(way, lambda link, parent: next_motion(link, parent, q, v, vdot), at_rest(Vec.zero()))
    motion = place.phi(q).carry(motions[place.link])
    frame = place.within(placed(tree, q, place.link), q)
    A = frame.R @ motion.omega_dot, frame.R @ motion.a
    V = (Vec.zero(), Vec.zero())
    if reference != "mixed":
        local = place.phi(q).T @ velocities(tree, q, v, place.link)[place.link]
        V = frame.R @ local.ang, frame.R @ local.lin
    ang, lin = acceleration_seen(reference, frame, V, A)
    return [*ang, *lin]


def configuration_rate(tree: Tree, q: Flat, v: Flat) -> list[Scalar]:
    """q̇ from v."""
    rates = each(tree, lambda link: link.joint.rate(link.coordinates(q), link.rates(v)))
    return configured(tree, rates)


Reference = Literal["mixed", "local", "world"]
REFERENCES: tuple[Reference, ...] = ("mixed", "local", "world")


def seen(reference: Reference, frame: Placed, ang: Vec, lin: Vec) -> tuple[Vec, Vec]:
    """A velocity [ω; v] of a frame, or a column of its Jacobian, from the mixed way."""
    if reference == "local":
        return frame.R.transpose_times(ang), frame.R.transpose_times(lin)
    return (ang, lin) if reference == "mixed" else (ang, lin + frame.p.cross(ang))


def force_seen(reference: Reference, frame: Placed, f: Force) -> Force:
    """A force [N; F] in the mixed way, from one that is dual to velocities written in another."""
    if reference == "local":
        return Force(frame.R @ f.ang, frame.R @ f.lin)
    return f if reference == "mixed" else Force(f.ang - frame.p.cross(f.lin), f.lin)


def acceleration_seen(reference: Reference, frame: Placed, V: tuple[Vec, Vec], A: tuple[Vec, Vec]) -> tuple[Vec, Vec]:
    """The rates of the six numbers of a velocity, from V = [ω; v] and A = [ω'; a] in the mixed way."""
    (omega, v), (omega_dot, a) = V, A
    if reference == "mixed":
        return A
    if reference == "local":  # the axes turn too
        return seen("local", frame, omega_dot, a - omega.cross(v))
    return omega_dot, a + v.cross(omega) + frame.p.cross(omega_dot)


def at_rest(gravity: Vec) -> RigidMotion:
    """A base at rest in a field of gravity: the same as one accelerating upwards."""
    return RigidMotion(Vec.zero(), Vec.zero(), -gravity)


def next_motion(link: Link, parent: Any, q: Flat, v: Flat, vdot: Flat | None) -> Any:
    """α = φ*α(parent) + H*β' + a (Jain 1991 eq. 7), the joint's own motion put on top of the parent's.

    With ω_J, v_J the joint's motion in the child's frame, a is [ω × ω_J; (2ω - ω_J) × v_J] + Ṡv.
    ``vdot`` None means zero.
    """
    moved = link.phi(q).carry(parent)
    S = link.S(q)
    V_J = combination(S, link.rates(v))
    A_J = link.S_rate(q, v)
    if vdot is not None:
        A_J = A_J + combination(S, link.rates(vdot))
    omega = moved.omega + V_J.ang
    root = RigidMotion(
        omega,
        moved.omega_dot + A_J.ang + omega.cross(V_J.ang),
        moved.a + A_J.lin + (omega + moved.omega).cross(V_J.lin),
    )
    return link.moving(root, V_J, A_J)


def combination(S: Sequence[Motion], rates: Flat) -> Motion:
    """S v."""
    return weighted_sum(S, rates, Motion.zero())
