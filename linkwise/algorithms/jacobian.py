"""Jacobians of places: J v = [ω; v], their rates, and products with their transposes. O(n) each."""

from __future__ import annotations

from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.kinematics import Place, Reference, configuration_rate, force_seen, placed, seen
from linkwise.algorithms.sweeps import add, along, elementwise, freedom, only_at, own
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.dual import derivative
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Force, Vec


def jacobian(tree: Tree, q: Flat, place: Place, point: Vec | None = None, reference: Reference = "mixed") -> Matrix:
    """6 × nv, J v = [ω; v], at the place's origin or at a ``point`` given in its frame; see :class:`Reference`."""
    J = zeros(6, tree.nv)
    if place.link is None:
        return J
    frames = placed(tree, q, place.link)
    at = place.within(frames, q)
    at = at if point is None else at.shifted(point)
    beyond: Place | Link = place
    for link in tree.ancestors(place.link):
        frame, S = frames[link], link.S(q)
        if link.modes:  # seen at the node where the way to the place leaves the link
            node = Transform(*beyond.phi(q).factors[:1])
            frame, S = node.carry(frame), tuple(node.T @ s for s in S)
        for i, s in enumerate(S):
            turn = frame.R @ s.ang
            move = frame.R @ s.lin + turn.cross(at.p - frame.p)
            ang, lin = seen(reference, at, turn, move)
            for row, value in enumerate((*ang, *lin)):
                add(J, own(row), freedom(link, i), value)
        beyond = link
    return J


def jacobian_rate(
    tree: Tree,
    q: Flat,
    v: Flat,
    place: Place,
    point: Vec | None = None,
    reference: Reference = "mixed",
) -> Matrix:
    """J̇ along the motion: the Jacobian's text, differentiated in the direction q̇."""
    _, rate = derivative(
        lambda x: [entry for row in jacobian(tree, x, place, point, reference) for entry in row],
        q,
        configuration_rate(tree, q, v),
    )
    return [rate[i * tree.nv : (i + 1) * tree.nv] for i in range(6)]


def pulled(
    tree: Tree,
    q: Flat,
    place: Place,
    point: Vec | None,
    f: Flat,
    reference: Reference = "mixed",
) -> list[Scalar]:
    """J*f (nv): what a force [N; F] at the place, or at a point in its frame, amounts to at the joints."""
    if place.link is None:
        return elementwise(tree, lambda x: x, [0.0] * tree.nv)
    force = force_on_link(tree, q, place, point, Force.of(f), reference)
    return external_force(tree, q, only_at(tree, [(place.link, force)], Force.zero()))


def force_at(tree: Tree, q: Flat, place: Place, f: Flat) -> list[Scalar]:
    """J*f (nv) for a force [N; F] at a place and in its own axes."""
    if place.link is None:
        return elementwise(tree, lambda x: x, [0.0] * tree.nv)
    return external_force(tree, q, only_at(tree, [(place.link, place.phi(q) @ Force.of(f))], Force.zero()))


def pulled_rate(
    tree: Tree,
    q: Flat,
    v: Flat,
    place: Place,
    point: Vec | None,
    f: Flat,
    reference: Reference = "mixed",
) -> list[Scalar]:
    """J̇*f (nv), along the motion."""
    _, rate = along(tree, lambda x: pulled(tree, x, place, point, f, reference), [q], [configuration_rate(tree, q, v)])
    vector: list[Scalar] = rate
    return vector


def force_on_link(
    tree: Tree, q: Flat, place: Place, point: Vec | None, f: Force, reference: Reference = "mixed"
) -> Force:
    """A force at a place, or at a point in its frame, in the frame of its link."""
    at = place.within(placed(tree, q, place.link), q)
    R = at.R
    f = force_seen(reference, at if point is None else at.shifted(point), f)
    local = Force(R.transpose_times(f.ang), R.transpose_times(f.lin))
    return place.phi(q) @ (local if point is None else Shift(point).force_in(local))
