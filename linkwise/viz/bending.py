"""Surfaces of flexible bodies: every vertex moves with the modal coordinates η.

x(η) = x⁰ + Γη + ½η*Qη for each vertex, as for a node; what a vertex has is put together from the nodes around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.viz.solids import Colour, Solid, towards

STEEL: Colour = (96, 160, 150)
_SIDES = 10
_PIECES = 5
"""Number of pieces of a tube between two nodes."""
_NEIGHBOURS = 3
"""Nodes that a vertex of a given surface follows."""


@dataclass(frozen=True)
class Bending:
    """A surface that deforms: of V vertices and m modes."""

    solid: Solid
    Gamma: Array
    """(V, 3, m)"""
    Q: Array
    """(V, 3, m, m)"""

    def vertices(self, eta: ArrayLike) -> Array:
        """(V, 3) at η (m), in the body's frame."""
        x = np.asarray(eta, float)
        moved: Array = self.solid.vertices + self.Gamma @ x + 0.5 * (self.Q @ x) @ x
        return moved

    def at(self, eta: ArrayLike) -> Solid:
        """The surface as it is at η."""
        return replace(self.solid, vertices=self.vertices(eta))


def bending(body: FlexibleBody, solids: Sequence[Solid], size: float) -> tuple[Bending, ...]:
    """The given surfaces, following the nodes of a body; without any, tubes between its nodes."""
    if solids:
        return tuple(_following(body, solid) for solid in solids)
    return _tubes(body, size)


def _following(body: FlexibleBody, solid: Solid) -> Bending:
    """Solid whose vertices follow the nearest nodes: x = Σ wᵢ [rᵢ + Γᵢη + Λᵢη × (x⁰ - rᵢ)], near ones weigh more."""
    nodes = body.material_nodes
    positions = np.array([node.position for node in nodes])
    away = solid.vertices[:, None, :] - positions  # (V, n, 3)
    distance = np.linalg.norm(away, axis=-1)
    count = min(_NEIGHBOURS, len(positions))
    nearest = np.argsort(distance, axis=1)[:, :count]
    weight = 1.0 / np.maximum(np.take_along_axis(distance, nearest, 1), 1e-9) ** 2
    weight /= weight.sum(axis=1, keepdims=True)
    Gamma, Lambda, Q = (np.array([getattr(node, name) for node in nodes]) for name in ("Gamma", "Lambda", "Q"))
    arm = np.take_along_axis(away, nearest[..., None], 1)
    moved = Gamma[nearest] + np.cross(Lambda[nearest], arm[..., None], axisa=2, axisb=2, axisc=2)
    return Bending(solid, np.einsum("vk,vkim->vim", weight, moved), np.einsum("vk,vkimn->vimn", weight, Q[nearest]))


def _tubes(body: FlexibleBody, size: float) -> tuple[Bending, ...]:
    """Tubes along the shortest tree that joins the nodes."""
    nodes = body.material_nodes
    if len(nodes) < 2:
        return ()
    from scipy.sparse.csgraph import minimum_spanning_tree

    positions = np.array([node.position for node in nodes])
    distance = np.linalg.norm(positions[:, None] - positions, axis=-1)
    tree = minimum_spanning_tree(distance).tocoo()
    reach = float(distance.max())
    radius = 0.012 * (reach if reach > 0.0 else size)
    pieces = [_tube(nodes[i], nodes[j], radius) for i, j in zip(tree.row, tree.col, strict=True)]
    starts = np.cumsum([0, *(len(piece.solid.vertices) for piece in pieces)])
    solid = Solid(
        np.concatenate([piece.solid.vertices for piece in pieces]),
        np.concatenate([piece.solid.faces + start for piece, start in zip(pieces, starts, strict=False)]),
        STEEL,
        smooth=True,
    )
    return (
        Bending(
            solid, np.concatenate([piece.Gamma for piece in pieces]), np.concatenate([piece.Q for piece in pieces])
        ),
    )


def _tube(a: FlexibleNode, b: FlexibleNode, radius: float) -> Bending:
    """A tube whose middle is the cubic through both nodes with their slopes, as in a beam element."""
    way = b.position - a.position
    length = float(np.linalg.norm(way))
    d = way / length
    across = towards(d)[:, :2]
    angle = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    ring = radius * (np.cos(angle)[:, None] * across[:, 0] + np.sin(angle)[:, None] * across[:, 1])  # (k, 3)
    s = np.linspace(0.0, 1.0, _PIECES + 1)[:, None, None]
    h00, h10 = 2 * s**3 - 3 * s**2 + 1, s**3 - 2 * s**2 + s
    h01, h11 = -2 * s**3 + 3 * s**2, s**3 - s**2

    def turned(Lambda: Array, arm: Array) -> Array:
        """Λη × arm, as a matrix (3, m) on η."""
        return np.cross(Lambda, arm[:, None], axis=0)

    middle = (
        h00 * a.Gamma + h01 * b.Gamma + length * (h10 * turned(a.Lambda, d) + h11 * turned(b.Lambda, d))
    )  # (s, 3, m)
    turn = (1 - s) * a.Lambda + s * b.Lambda
    section = np.stack([np.stack([turned(each, arm) for arm in ring]) for each in turn])  # (s, k, 3, m)
    Gamma = middle[:, None] + section
    Q = np.broadcast_to(((1 - s[..., None]) * a.Q + s[..., None] * b.Q)[:, None], (len(s), _SIDES, *a.Q.shape))
    rest = a.position + s * way + ring  # (s, k, 3)
    at = np.arange(rest.shape[0] * _SIDES).reshape(-1, _SIDES)
    p, q = at[:-1], np.roll(at[:-1], -1, axis=1)
    r, t = at[1:], np.roll(at[1:], -1, axis=1)
    faces = np.concatenate([np.stack([p, q, t], -1).reshape(-1, 3), np.stack([p, t, r], -1).reshape(-1, 3)])
    m = a.Gamma.shape[1]
    return Bending(Solid(rest.reshape(-1, 3), faces, STEEL), Gamma.reshape(-1, 3, m), Q.reshape(-1, 3, m, m))
