"""Links seen from their mass centres: the reference points of Saha 1999, where M = diag(I, m).

Two ways: a tree whose link frames sit at the mass centres (link axes, for the recursions), and every link in the axes
of the root (for the explicit matrices, in which B = [[1, 0], [c~, 1]]).
"""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.algorithms.sweeps import Field, outward
from linkwise.classics.requirements import own_mass
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat
from linkwise.spatial.transforms import Rotation, Shift, Transform
from linkwise.spatial.vectors import Motion, Vec


def at_mass_centres(tree: Tree, method: str) -> Tree:
    """The same mechanism with every link's frame moved to its mass centre."""
    own_mass(tree, method)
    centre = [link.inertia.h * (1.0 / link.inertia.m) for link in tree]

    def moved(link: Link) -> Link:
        p = centre[link.index]
        inner = Transform() if link.parent < 0 else Transform(Shift(-centre[link.parent]))
        inertia = Shift(-p).rigid_in(link.inertia)
        return replace(
            link,
            placement=inner.then(link.placement),
            tail=link.tail.then(Transform(Shift(p))),
            inertia=RigidInertia(inertia.m, Vec.zero(), inertia.J),
            to_body=Transform(Shift(-p)).then(link.to_body),
        )

    return replace(tree, links=tuple(moved(link) for link in tree))


@dataclass(frozen=True, slots=True)
class Body:
    """A link at its mass centre C in the axes of the root: columns p of its joint, inertia I about C, twist t."""

    C: Vec
    p: tuple[Motion, ...]
    M: RigidInertia
    t: Motion

    def twist_from(self, other: Body, t: Motion) -> Motion:
        """B t: the twist of ``other`` carried to this body, B = [[1, 0], [c~, 1]], c from this C to the other's."""
        return Motion(t.ang, t.lin + (other.C - self.C).cross(t.ang))


def in_root_axes(tree: Tree, q: Flat, v: Flat, method: str) -> Field[Body]:
    """Every link of the tree as a :class:`Body`."""
    centred = at_mass_centres(tree, method)
    frames = outward(centred, lambda link, parent: link.phi(q).carry(parent), Placed(Mat3.identity(), Vec.zero()))

    def step(link: Link, parent: Body | None) -> Body:
        R, C = frames[link].R, frames[link].p
        p = tuple(Motion(R @ s.ang, R @ s.lin) for s in link.S(q))
        t = Motion.zero() if parent is None else Motion(parent.t.ang, parent.t.lin + (parent.C - C).cross(parent.t.ang))
        for column, rate in zip(p, link.rates(v), strict=True):
            t = t + column * rate
        return Body(C, p, Rotation(R).rigid_in(link.inertia), t)

    return outward(centred, step, None)
