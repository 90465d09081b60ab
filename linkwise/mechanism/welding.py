"""What is fixed to a body becomes part of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from linkwise.mechanism.description import Geometry
from linkwise.mechanism.pieces import Body, Part, Pose
from linkwise.mechanism.poses import Array, product

__all__ = ["moved_part", "moved_shape", "welded"]


def moved_part(part: Part, X: Pose | Array, node: int = 0) -> Part:
    """A part in the frame of the body that carries its own, which is at X there."""
    return replace(part, placement=product(X, part.placement), node=node)


def moved_shape(shape: Geometry, X: Pose | Array) -> Geometry:
    """A shape likewise."""
    return replace(shape, placement=product(X, shape.placement))


def welded(
    body: Body,
    X: Pose | Array,
    node: int,
    parts: Iterable[Part],
    visuals: Iterable[Geometry] = (),
    collisions: Iterable[Geometry] = (),
) -> Body:
    """A body with parts and shapes fixed to it, their frame at X on the body, or on a node of one that deforms.

    Shapes know no nodes: they stay where they are while nothing is deformed.
    """
    at_rest = X
    if body.flexible is not None:
        root = np.eye(4)
        root[:3, 3] = body.flexible.nodes[node].position
        at_rest = product(root, X)
    return replace(
        body,
        parts=(*body.parts, *(moved_part(part, X, node) for part in parts)),
        visuals=(*body.visuals, *(moved_shape(shape, at_rest) for shape in visuals)),
        collisions=(*body.collisions, *(moved_shape(shape, at_rest) for shape in collisions)),
    )
