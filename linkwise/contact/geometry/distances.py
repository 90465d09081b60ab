"""Distances between the shapes of a mechanism at a configuration, for planners."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.kinematics import Placed, placed
from linkwise.contact.geometry.pairs import contacts, distance
from linkwise.contact.geometry.points import Contacts, on_body
from linkwise.contact.geometry.selection import Meeting, Outline
from linkwise.mechanism.tree import Tree
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, minimum, where
from linkwise.spatial.vectors import Vec


def distances(tree: Tree, q: Sequence[Scalar], pairs: Sequence[Meeting]) -> list[Scalar]:
    """Signed distance of each pair of shapes, m, negative where they overlap.

    Args:
        tree: the links.
        q: configuration (nq).
        pairs: from :func:`linkwise.contact.geometry.selection.meetings`.
    """
    where_is = _Shapes(tree, q)
    return [distance(pair.a.shape, where_is(pair.a), pair.b.shape, where_is(pair.b)) for pair in pairs]


def collides(tree: Tree, q: Sequence[Scalar], pairs: Sequence[Meeting], margin: Scalar = 0.0) -> Scalar:
    """1 where two shapes are nearer to each other than the margin (m), else 0."""
    least: Scalar = margin
    for gap in distances(tree, q, pairs):
        least = minimum(least, gap)
    return where(least < margin, 1.0, 0.0)


def contact_points(
    tree: Tree, q: Sequence[Scalar], pairs: Sequence[Meeting], most: int | None = None
) -> list[Contacts]:
    """Contact points of each pair of shapes, in the world's frame."""
    where_is = _Shapes(tree, q)
    return [contacts(pair.a.shape, where_is(pair.a), pair.b.shape, where_is(pair.b), most) for pair in pairs]


class _Shapes:
    """Placements of shapes in the world, each computed once."""

    def __init__(self, tree: Tree, q: Sequence[Scalar]) -> None:
        self.tree = tree
        self.frames = placed(tree, q)
        self.known: dict[int, Placed] = {-1: Placed(Mat3.identity(), Vec.zero())}
        self.found: dict[Outline, Placed] = {}

    def __call__(self, outline: Outline) -> Placed:
        if outline.body not in self.known:
            link = self.tree.links[outline.body]
            self.known[outline.body] = link.to_body.carry(self.frames[link])
        if outline not in self.found:
            self.found[outline] = on_body(outline.shape, self.known[outline.body])
        return self.found[outline]
