"""Surfaces of flexible bodies: every vertex moves with the modal coordinates η.

A surface has a skeleton. Bones lie where nodes are, or between them, and move as nodes do: by Γη + ½η*Qη, turned by Λη.
A vertex follows a few of them, the near ones more. So a picture of a surface is the poses of its bones, which are few,
and a browser moves them in the same instant as the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, replace
from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.viz.solids import Colour, Solid, as_wxyz, merged, towards

STEEL: Colour = (96, 160, 150)
_SIDES = 10
_PIECES = 5
"""Most pieces of a tube between two nodes."""
_MOST_BONES = 60
"""Bones of a tube, where its nodes alone are not more."""
_NEIGHBOURS = 3
"""Nodes that a vertex of a given surface follows."""


@dataclass(frozen=True)
class Bones:
    """Skeleton of B bones, moved by m modes."""

    position: Array
    """(B, 3) at rest, in the body's frame, m"""
    Gamma: Array
    """(B, 3, m)"""
    Lambda: Array
    """(B, 3, m)"""
    Q: Array
    """(B, 3, m, m)"""

    def at(self, eta: ArrayLike) -> tuple[Array, Rotation]:
        """Positions (B, 3) in the body's frame and turns of the bones at η (m)."""
        x = np.asarray(eta, float)
        moved: Array = self.position + self.Gamma @ x + 0.5 * (self.Q @ x) @ x
        return moved, Rotation.from_rotvec(self.Lambda @ x)

    def poses(self, eta: ArrayLike) -> tuple[Array, Array]:
        """Positions (B, 3) and quaternions (B, 4), w first, at η (m)."""
        position, turn = self.at(eta)
        return position, as_wxyz(turn)


@dataclass(frozen=True)
class Bending:
    """A surface of V vertices that follow bones.

    Args:
        solid: at rest.
        bones: its skeleton.
        nearest: bones that each vertex follows (V, k).
        weight: how much (V, k), with sum 1.
    """

    solid: Solid
    bones: Bones
    nearest: Array
    weight: Array

    def vertices(self, eta: ArrayLike) -> Array:
        """(V, 3) at η (m), in the body's frame: Σ w [r + R (x⁰ - r⁰)] over the bones of each vertex."""
        position, turn = self.bones.at(eta)
        arm = self.solid.vertices[:, None] - self.bones.position[self.nearest]
        each = position[self.nearest] + np.einsum("vkij,vkj->vki", turn.as_matrix()[self.nearest], arm)
        moved: Array = np.einsum("vk,vki->vi", self.weight, each)
        return moved

    def at(self, eta: ArrayLike) -> Solid:
        """The surface as it is at η."""
        return replace(self.solid, vertices=self.vertices(eta))

    @property
    def weights(self) -> Array:
        """(V, B), zero for bones that a vertex does not follow."""
        table = np.zeros((len(self.solid.vertices), len(self.bones.position)))
        np.add.at(table, (np.arange(len(table))[:, None], self.nearest), self.weight)
        return table


def bending(body: FlexibleBody, solids: Sequence[Solid], size: float) -> tuple[Bending, ...]:
    """The given surfaces, following the nodes of a body; without any, tubes between its nodes."""
    if solids:
        return tuple(_following(body, solid) for solid in solids)
    return _tubes(body, size)


def _following(body: FlexibleBody, solid: Solid) -> Bending:
    """Solid whose vertices follow the nearest nodes, near ones more."""
    nodes = body.material_nodes
    position, Gamma, Lambda, Q = (
        np.array([getattr(node, name) for node in nodes]) for name in ("position", "Gamma", "Lambda", "Q")
    )
    distance = np.linalg.norm(solid.vertices[:, None, :] - position, axis=-1)  # (V, n)
    nearest = np.argsort(distance, axis=1)[:, : min(_NEIGHBOURS, len(position))]
    weight = 1.0 / np.maximum(np.take_along_axis(distance, nearest, 1), 1e-9) ** 2
    return Bending(solid, Bones(position, Gamma, Lambda, Q), nearest, weight / weight.sum(axis=1, keepdims=True))


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
    pieces = int(np.clip(_MOST_BONES // len(tree.row) - 1, 1, _PIECES))
    tubes = [_tube(nodes[i], nodes[j], radius, pieces) for i, j in zip(tree.row, tree.col, strict=True)]
    solid = replace(merged([tube.solid for tube in tubes]), smooth=True)
    bones = Bones(
        *(
            np.concatenate([getattr(tube.bones, name) for tube in tubes])
            for name in ("position", "Gamma", "Lambda", "Q")
        )
    )
    nearest = np.concatenate([tube.nearest + n * (pieces + 1) for n, tube in enumerate(tubes)])
    return (Bending(solid, bones, nearest, np.ones(nearest.shape)),)


def _tube(a: FlexibleNode, b: FlexibleNode, radius: float, pieces: int) -> Bending:
    """A tube whose middle is the cubic through both nodes with their slopes, as in a beam element; a bone each ring."""
    way = b.position - a.position
    length = float(np.linalg.norm(way))
    d = way / length
    across = towards(d)[:, :2]
    angle = 2.0 * np.pi * np.arange(_SIDES) / _SIDES
    ring = radius * (np.cos(angle)[:, None] * across[:, 0] + np.sin(angle)[:, None] * across[:, 1])  # (k, 3)
    s = np.linspace(0.0, 1.0, pieces + 1)[:, None, None]
    h00, h10 = 2 * s**3 - 3 * s**2 + 1, s**3 - 2 * s**2 + s
    h01, h11 = -2 * s**3 + 3 * s**2, s**3 - s**2
    slope_a, slope_b = (np.cross(node.Lambda, d[:, None], axis=0) for node in (a, b))  # Λη × d, as (3, m) on η
    bones = Bones(
        a.position + s[:, 0] * way,
        h00 * a.Gamma + h01 * b.Gamma + length * (h10 * slope_a + h11 * slope_b),
        (1 - s) * a.Lambda + s * b.Lambda,
        (1 - s[..., None]) * a.Q + s[..., None] * b.Q,
    )
    at = np.arange((pieces + 1) * _SIDES).reshape(-1, _SIDES)
    p, q = at[:-1], np.roll(at[:-1], -1, axis=1)
    r, t = at[1:], np.roll(at[1:], -1, axis=1)
    faces = np.concatenate([np.stack([p, q, t], -1).reshape(-1, 3), np.stack([p, t, r], -1).reshape(-1, 3)])
    solid = Solid((bones.position[:, None] + ring).reshape(-1, 3), faces, STEEL)
    nearest = np.repeat(np.arange(pieces + 1), _SIDES)[:, None]
    return Bending(solid, bones, nearest, np.ones(nearest.shape))
