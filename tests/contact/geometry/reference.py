"""Signed distances of convex shapes in NumPy, by search over directions: slow, and independent of the package.

The signed distance of two convex shapes is the largest, over all directions n, of the least height of the first along
n less the greatest of the second: the distance where they are apart, minus the least shift that parts them where they
are not.
"""

from __future__ import annotations

import numpy as np

from linkwise.algorithms.kinematics import Placed
from linkwise.mechanism.description import Geometry
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.vectors import Vec

IDENTITY = tuple(tuple(float(i == j) for j in range(4)) for i in range(4))
ONE = (1.0, 1.0, 1.0)


def shape(kind, *size, **more):
    return Geometry(kind, tuple(map(float, size)), None, ONE, IDENTITY, "link", **more)


def rotation(rng):
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else -Q


def placed(R, p):
    return Placed(Mat3(np.asarray(R, float).tolist()), Vec(*map(float, p)))


def numbers(v):
    return np.array(list(v), float)


def reach(s, R, p, d):
    """Support function: the greatest n·x over the shape for each row n of d."""
    local = d @ R
    if s.kind == "sphere":
        h = np.full(len(d), s.size[0])
    elif s.kind == "capsule":
        h = s.size[0] + np.abs(local[:, 2]) * s.size[1] / 2
    elif s.kind == "box":
        h = np.abs(local) @ np.array(s.size) / 2
    elif s.kind == "cylinder":
        h = s.size[0] * np.hypot(local[:, 0], local[:, 1]) + np.abs(local[:, 2]) * s.size[1] / 2
    elif s.kind == "ellipsoid":
        h = np.linalg.norm(local * np.array(s.size), axis=1)
    elif s.kind == "convex":
        h = (local @ np.array(s.vertices).T).max(axis=1)
    else:  # a plane reaches everywhere but up
        h = np.where(local[:, 2] > 1 - 1e-12, 0.0, np.inf)
    return h + d @ p


def excess(s, R, p, x):
    """How far a point is outside of a shape, by some measure that is 0 on the surface and negative inside."""
    q = R.T @ (x - p)
    if s.kind == "sphere":
        return np.linalg.norm(q) - s.size[0]
    if s.kind == "capsule":
        return np.linalg.norm(q - [0, 0, np.clip(q[2], -s.size[1] / 2, s.size[1] / 2)]) - s.size[0]
    if s.kind == "box":
        return (np.abs(q) - np.array(s.size) / 2).max()
    if s.kind == "cylinder":
        return max(np.hypot(q[0], q[1]) - s.size[0], abs(q[2]) - s.size[1] / 2)
    if s.kind == "ellipsoid":
        return (np.linalg.norm(q / s.size) - 1) * min(s.size)
    if s.kind == "convex":
        from scipy.spatial import ConvexHull

        return (ConvexHull(np.array(s.vertices)).equations @ [*q, 1.0]).max()
    return q[2]


def _fibonacci(count):
    k = np.arange(count) + 0.5
    z, phi = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=1)


_SPHERE = _fibonacci(4000)
_DISC = np.stack(
    [np.sqrt((np.arange(300) + 0.5) / 300) * f(np.pi * (1 + 5**0.5) * np.arange(300)) for f in (np.cos, np.sin)], axis=1
)


def signed_distance(a, A, b, B, starts=4, rounds=60):
    """Gap and normal, from the second shape to the first; A and B are pairs (R, p)."""

    def gaps(d):
        return -reach(a, *A, -d) - reach(b, *B, d)

    if b.kind == "plane":
        n = B[0][:, 2]
        return -reach(a, *A, -n[None])[0] - n @ B[1], n
    best, chosen = -np.inf, None
    first = gaps(_SPHERE)
    for k in np.argsort(-first)[: 40 * starts : 40] if starts > 1 else [int(np.argmax(first))]:
        n, value, width = _SPHERE[k], first[k], 0.1
        for _ in range(rounds):
            u = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
            u /= np.linalg.norm(u)
            d = n + width * (_DISC @ np.stack([u, np.cross(n, u)]))
            d /= np.linalg.norm(d, axis=1)[:, None]
            found = gaps(d)
            i = int(np.argmax(found))
            if found[i] > value:
                n, value = d[i], found[i]
            else:
                width *= 0.5
        if value > best:
            best, chosen = value, n
    return best, chosen


def triangles_of_field(heights, edges):
    """Nodes of a heightfield, and numbers of the corners of two triangles a cell, cut from its first corner."""
    rows, columns = heights.shape
    x, y = (np.linspace(-0.5 * edge, 0.5 * edge, n) for edge, n in zip(edges, (columns, rows), strict=True))
    at = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = at[:-1, :-1], at[:-1, 1:], at[1:, :-1], at[1:, 1:]
    faces = np.concatenate([np.stack(three, -1).reshape(-1, 3) for three in ((a, b, d), (a, d, c))])
    return np.stack([*np.meshgrid(x, y), heights], axis=-1).reshape(-1, 3), faces


def to_triangles(p, triangles):
    """Distance of a point from each of many triangles, and the point of each that is nearest."""
    corners = triangles - p
    nearest = np.empty_like(corners[:, 0])
    best = np.full(len(corners), np.inf)
    for k in range(3):
        a, edge = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
        part = np.clip(-(a * edge).sum(axis=1) / (edge * edge).sum(axis=1), 0.0, 1.0)
        point = a + edge * part[:, None]
        nearer = np.linalg.norm(point, axis=1) < best
        nearest[nearer], best[nearer] = point[nearer], np.linalg.norm(point, axis=1)[nearer]
    # Weights of the foot of the perpendicular, by least squares: it is on the triangle if none is negative.
    u, v = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    gram = np.stack([np.stack([(x * y).sum(axis=1) for x in (u, v)], -1) for y in (u, v)], -1)
    right = np.stack([-(x * corners[:, 0]).sum(axis=1) for x in (u, v)], -1)
    weights = np.linalg.solve(gram, right[..., None])[..., 0]
    inside = (weights >= 0.0).all(axis=1) & (weights.sum(axis=1) <= 1.0)
    foot = corners[:, 0] + u * weights[:, :1] + v * weights[:, 1:]
    nearest[inside] = foot[inside]
    return np.linalg.norm(nearest, axis=1), nearest + p
