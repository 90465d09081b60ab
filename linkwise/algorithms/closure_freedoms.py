"""The freedoms that closures leave, as coordinates, velocities, and joint forces along them.

A joint that closes a loop has its freedoms like any other, though no place in q and v: its coordinates are those at
which the joint has the pose of frame b in frame a, its velocities u those of V = S u, and a force along them is the τ_a
of Featherstone 2000 eq. 19: a wrench W on b and -W on a with S*W = τ_a, which the tree feels as J*W. O(n).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwise.algorithms.equations import Between, Constraint
from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.kinematics import Place, placed, velocities
from linkwise.algorithms.sweeps import only_at
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.from_joint import JointClosure
from linkwise.mechanism.closures.instances import ClosureFreedoms
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Rotation, Shift
from linkwise.spatial.vectors import Force, Motion

Freedoms = Sequence[ClosureFreedoms]


def closure_coordinates(tree: Tree, q: Flat, constraints: Sequence[Constraint], freedoms: Freedoms) -> list[Scalar]:
    """The coordinates of all closures that leave freedoms, one after the other."""
    return [x for _, _, _, _, own in _seen(tree, q, constraints, freedoms) for x in own]


def closure_velocities(
    tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], freedoms: Freedoms
) -> list[Scalar]:
    """Their velocities: u of V = S u, where V is the twist of b relative to a."""
    V = velocities(tree, q, v)

    def twist(place: Place) -> Motion:
        return Motion.zero() if place.link is None else place.phi(q).T @ V[place.link]

    found: list[Scalar] = []
    for a, b, kind, X, own in _seen(tree, q, constraints, freedoms):
        of_a, of_b = twist(a), twist(b)
        lin = X.R.transpose_times(of_a.lin + of_a.ang.cross(X.p))
        relative = of_b - Motion(X.R.transpose_times(of_a.ang), lin)
        found += [relative.dot(W) for W in kind.pushes(own)]
    return found


def closure_efforts(
    tree: Tree, q: Flat, forces: Flat, constraints: Sequence[Constraint], freedoms: Freedoms
) -> list[Scalar]:
    """The joint forces (nv) that forces along their freedoms amount to."""
    on: dict[int, tuple[Link, Force]] = {}

    def act(place: Place, f: Force) -> None:
        if place.link is not None:
            on_link = place.phi(q) @ f
            known = on.get(place.link.index)
            on[place.link.index] = place.link, on_link if known is None else known[1] + on_link

    given = iter(forces)
    for a, b, kind, X, own in _seen(tree, q, constraints, freedoms):
        W = Force.zero()
        for push in kind.pushes(own):
            W = W + push * next(given)
        act(b, W)
        act(a, -Shift(X.p).force_in(Rotation(X.R).force_in(W)))
    if not on:
        return [0.0] * tree.nv
    return external_force(tree, q, only_at(tree, list(on.values()), Force.zero()))


def _seen(
    tree: Tree, q: Flat, constraints: Sequence[Constraint], freedoms: Freedoms
) -> Iterator[tuple[Place, Place, JointClosure, RelativePose, list[Scalar]]]:
    """For each closure with freedoms its two places, its type, the pose of b in a, and its coordinates."""
    frames = placed(tree, q)
    for each in freedoms:
        constraint = constraints[each.number]
        assert isinstance(constraint, Between)
        assert isinstance(constraint.type, JointClosure)
        a, b = (place.within(frames, q) for place in (constraint.a, constraint.b))
        X = RelativePose(b.R, b.p).seen_from(RelativePose(a.R, a.p))
        yield constraint.a, constraint.b, constraint.type, X, constraint.type.coordinates(X, each.closure.centre)
