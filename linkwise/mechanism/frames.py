"""The frames of the links, chosen for all of them at once: arrays with a row for each link, the root's row the last.

Aligned frames are Denavit and Hartenberg's, see :mod:`linkwise.mechanism.layout`. Only where an origin depends on the
one before it (parallel axes, slides) does the choice go from link to link; everything else is the same few array
operations for a dozen links and for a hundred thousand. ``R[k]``, ``o[k]``: link frame k in body k's frame; as a
parent's index is -1 for the world, the last row is the root's frame in the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from linkwise.array_types import Array, FloatArray
from linkwise.dataclass import dataclass
from linkwise.joints.directions import turns_z_to
from linkwise.mechanism.bodies_and_joints import IDENTITY, Pose
from linkwise.mechanism.mechanism import Mechanism
from linkwise.spatial.transforms import Shift, Transform, TransformFactor, Turn
from linkwise.spatial.vectors import Vec

SNAP = 2e-15  # what rounding leaves of an exact zero or one, relative to the largest number beside it
_PARALLEL = 1e-14  # sine of the angle under which two axes are parallel
_ILL_CONDITIONED = 1e-2  # sine under which the common normal of two axes runs too far away to be of use
_NEAR = 1e-12  # metres from a line under which a point gives no direction away from it
_QUARTER = np.pi / 2

flattened = chain.from_iterable


@dataclass(frozen=True)
class Placements:
    """Of each link, from the parent's frame to the joint: a shift l (n, 3), turns about z, x and z again by (n) angles.

    The turns come as cosines and sines (n, 2). The last one is given as an angle too: a hinge absorbs it.
    """

    l: Array
    z: Array
    x: Array
    last: Array
    lead: Array

    def one(self, k: int, turns: int = 2) -> Transform:
        """The transform of one link, with its first two turns or all three, identities left out."""
        factors: list[TransformFactor] = []
        if self.l[k].any():
            factors.append(Shift(Vec.of(self.l[k].tolist())))
        for axis, numbers in ((2, self.z), (0, self.x), (2, self.last))[:turns]:
            c, s = numbers[k].tolist()
            if (c, s) != (1.0, 0.0):
                factors.append(Turn(axis, c, s))
        return Transform(*factors)


class BodyFrames:
    """Every link's frame is its body's; joints keep a tail from the axis's frame back to it."""

    def __init__(self, mechanism: Mechanism) -> None:
        n = len(mechanism.bodies)
        self.parents = np.array(mechanism.parents, int).reshape(n)
        self.X = poses([body.placement for body in mechanism.bodies])
        self.back = inverse_poses(poses([body.joint_frame for body in mechanism.bodies]))
        self.axes = axis_rotations(mechanism)
        self.R, self.o = np.tile(np.eye(3), (n + 1, 1, 1)), np.zeros((n + 1, 3))

    def placements(self) -> Placements:
        """From each parent's link frame to the joint's axis frame."""
        z, x, last = zxz(self.X[:, :3, :3] @ self.axes)
        return Placements(self.X[:, :3, 3], cosine_sine(z), cosine_sine(x), cosine_sine(last), np.zeros(len(z)))

    def after_joint_frame(self, k: int) -> FloatArray:
        """Rotation from the joint frame the user placed to the axis frame."""
        turn: FloatArray = self.axes[k]
        return turn

    def tails(self) -> tuple[Array, Array]:
        """From the frames after the joints' motion to those of the bodies: rotations and shifts."""
        R = self.axes.transpose(0, 2, 1)
        return R @ self.back[:, :3, :3], times(R, self.back[:, :3, 3])


class AlignedFrames:
    """Frames aligned with the joints. ``free``: whether a body's placement depends on run-time parameters."""

    def __init__(self, mechanism: Mechanism, free: Array, centres: Array) -> None:
        """``centres``: the mass centre of each body in its frame, NaN for one without mass."""
        bodies = mechanism.bodies
        n = len(bodies)
        self.parents, self.free = np.array(mechanism.parents, int).reshape(n), free
        joint_frames = [body.joint_frame for body in bodies]
        placed = [k for k, frame in enumerate(joint_frames) if frame is not IDENTITY and frame != IDENTITY]
        self.J = np.tile(np.eye(4), (n, 1, 1))
        self.J[placed] = poses([joint_frames[k] for k in placed])
        self.X = poses([body.placement for body in bodies])
        self.X[placed] = self.X[placed] @ inverse_poses(self.J[placed])  # each body in its parent with q = 0
        traits = np.array([_SYMMETRIES[joint.type.symmetry] for joint in mechanism.joints], int).reshape(n)
        self.symmetry = np.append(traits, _SYMMETRIES["none"])
        self.R = np.concatenate((self.J[:, :3, :3] @ axis_rotations(mechanism), np.eye(3)[None]))
        self.o = np.concatenate((self.J[:, :3, 3], np.zeros((1, 3))))
        self._choose_origins()
        self._choose_x(centres)
        self._choose_root()

    def placements(self) -> Placements:
        """Shifts, turns, and the lead: a last turn about z, which a hinge absorbs."""
        X, R, o = self.X, self.R[:-1], self.o[:-1]
        back, o_parent = self.R[self.parents].transpose(0, 2, 1), self.o[self.parents]
        l = times(back, X[:, :3, 3] + times(X[:, :3, :3], o) - o_parent)
        l = snapped(l, sum(np.abs(each).max(axis=1) for each in (X[:, :3, 3], o, o_parent))[:, None])
        gamma, alpha, beta = zxz(back @ X[:, :3, :3] @ R)
        return Placements(l, cosine_sine(gamma), cosine_sine(alpha), cosine_sine(beta), beta)

    def after_joint_frame(self, k: int) -> FloatArray:
        """Rotation from the joint frame the user placed to the link's."""
        turn: FloatArray = self.J[k, :3, :3].T @ self.R[k]
        return turn

    def tails(self) -> None:
        """None: a link's frame is the one after its joint's motion."""

    def _choose_origins(self) -> None:
        """The foot of the common normal with the parent's axis; without one, the place nearest to its origin."""
        X, parents, n = self.X, self.parents, len(self.parents)
        own, above = self.symmetry[:-1], self.symmetry[parents]
        z = self.R[:-1, :, 2]
        u = times(X[:, :3, :3].transpose(0, 2, 1), self.R[parents][:, :, 2])  # the parent's axis in this body's frame
        c, sine_squared = (z * u).sum(axis=1), (np.cross(z, u) ** 2).sum(axis=1)
        hinges = (own == _SYMMETRIES["axis"]) & (parents >= 0) & ~self.free
        skew = hinges & (above != _SYMMETRIES["none"]) & (sine_squared > _ILL_CONDITIONED**2)
        slides = (own == _SYMMETRIES["direction"]) & ~self.free

        def feet(which: Array) -> None:
            """Puts the common normals of skew axes on the parent's line, whose point does not matter."""
            back = X[which, :3, :3].transpose(0, 2, 1)
            point = times(back, self.o[parents[which]] - X[which, :3, 3]) - self.J[which, :3, 3]
            across_u = np.cross(u[which], np.cross(z[which], u[which]))  # z - (z·u) u, to all digits
            along = (point * across_u).sum(axis=1)
            self.o[which] = self.J[which, :3, 3] + z[which] * (along / sine_squared[which])[:, None]

        settled = skew & (above != _SYMMETRIES["direction"])
        feet(np.flatnonzero(settled))
        one_by_one = np.flatnonzero((hinges | slides) & ~settled)
        if len(one_by_one):
            self._choose_one_by_one(one_by_one, z, u, c, np.where(skew, sine_squared, 0.0))
        if n:
            feet(np.flatnonzero(settled))  # once more, from the origins that the parents have in the end

    def _choose_one_by_one(self, which: Array, z: Array, u: Array, c: Array, sine_squared: Array) -> None:
        """Origins that depend on the parent's, in plain numbers: with very many links this is where time would go."""
        origins: dict[int, list[float]] = {}
        parents = self.parents[which]
        rows = zip(
            which.tolist(), parents.tolist(), self.o[parents].tolist(),
            self.X[which].tolist(), self.J[which, :3, 3].tolist(), z[which].tolist(),
            u[which].tolist(), c[which].tolist(), sine_squared[which].tolist(),
            (self.symmetry[which] == _SYMMETRIES["direction"]).tolist(), strict=True,
        )  # fmt: skip
        for k, parent, above, X, J, (zx, zy, zz), (ux, uy, uz), cosine, sine2, slides in rows:
            (a, b, e, px), (f, g, h, py), (i, j, m, pz), _ = X
            ox, oy, oz = origins.get(parent, above)  # chosen here, or before
            dx, dy, dz = ox - px, oy - py, oz - pz
            x, y, w = a * dx + f * dy + i * dz, b * dx + g * dy + j * dz, e * dx + h * dy + m * dz
            if slides:
                origins[k] = [x, y, w]
                continue
            x, y, w = x - J[0], y - J[1], w - J[2]
            t = x * zx + y * zy + w * zz
            if sine2 > 0.0:
                t = (t - cosine * (x * ux + y * uy + w * uz)) / sine2
            origins[k] = [J[0] + zx * t, J[1] + zy * t, J[2] + zz * t]
        self.o[which] = list(origins.values())

    def _choose_x(self, centres: Array) -> None:
        """Along the common normal to the first child that gives a direction; a leaf's towards its mass centre."""
        n, parents = len(self.parents), self.parents
        turnable = self.symmetry != _SYMMETRIES["none"]
        x = np.full((n, 3), np.nan)
        children = np.flatnonzero(~self.free & turnable[parents])
        above = parents[children]
        z, direction = self.R[above][:, :, 2], self._towards(children)
        gives = ~np.isnan(direction[:, 0])
        found, first = np.unique(above[gives], return_index=True)  # the first of each parent's children
        x[found] = across(direction[gives][first], z[gives][first])
        leaves = turnable[:-1].copy()
        leaves[parents[parents >= 0]] = False
        tips = np.flatnonzero(leaves & ~np.isnan(centres[:, 0]))
        arms, z = centres[tips] - self.o[tips], self.R[tips][:, :, 2]
        off = lengths(np.cross(z, arms)) > _NEAR
        x[tips[off]] = across(arms[off], z[off])
        chosen = np.flatnonzero(~np.isnan(x[:, 0]))
        z = self.R[chosen][:, :, 2]
        self.R[chosen] = np.stack((x[chosen], np.cross(z, x[chosen]), z), axis=2)

    def _towards(self, children: Array) -> Array:
        """A direction across the parent's axis that a child gives; NaN for none."""
        X, above = self.X[children], self.parents[children]
        z = self.R[above][:, :, 2]
        frame = X[:, :3, :3] @ self.R[children]
        normal = np.cross(z, frame[:, :, 2])
        sine = lengths(normal)
        apart = X[:, :3, 3] + times(X[:, :3, :3], self.o[children]) - self.o[above]
        apart[lengths(np.cross(z, apart)) <= _NEAR] = np.nan
        fixed = self.symmetry[children] == _SYMMETRIES["none"]  # parallel to a frame we cannot turn: take its x
        parallel = np.where(fixed[:, None], frame[:, :, 0], apart)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where((sine > _PARALLEL)[:, None], normal / sine[:, None], parallel)

    def _choose_root(self) -> None:
        """The root frame sits where its first child's joint does: that joint then has no placement at all."""
        first = np.flatnonzero((self.parents < 0) & ~self.free)[:1]
        if len(first):
            k = int(first[0])
            X = self.X[k]
            self.R[-1] = X[:3, :3] @ self.R[k]
            self.o[-1] = X[:3, 3] + X[:3, :3] @ self.o[k]


_SYMMETRIES = {"none": 0, "axis": 1, "direction": 2}


def poses(of: Sequence[Pose]) -> Array:
    """Poses (n, 4, 4) from rows."""
    return np.fromiter(flattened(flattened(of)), float, 16 * len(of)).reshape(-1, 4, 4)


def rows_of(rows: Sequence[Sequence[float]], size: int) -> Array:
    """(n, size) from sequences of so many numbers."""
    return np.fromiter(flattened(rows), float, size * len(rows)).reshape(-1, size)


def inverse_poses(X: Array) -> Array:
    """The inverses of poses (n, 4, 4)."""
    inverse = np.zeros_like(X)
    inverse[:, :3, :3] = X[:, :3, :3].transpose(0, 2, 1)
    inverse[:, :3, 3] = -times(inverse[:, :3, :3], X[:, :3, 3])
    inverse[:, 3, 3] = 1.0
    return inverse


def times(A: FloatArray, x: FloatArray) -> FloatArray:
    """Matrices (n, 3, 3) by vectors (n, 3)."""
    product: FloatArray = np.einsum("nij,nj->ni", A, x)
    return product


def lengths(x: FloatArray) -> FloatArray:
    """Of vectors (n, 3)."""
    norms: FloatArray = np.sqrt((x * x).sum(axis=-1))
    return norms


def across(x: Array, z: Array) -> Array:
    """Directions of ``x`` at right angles to ``z``, to rounding also where ``x`` is nearly along ``z``."""
    for _ in range(2):
        x = x - z * (z * x).sum(axis=1)[:, None]
        x = x / lengths(x)[:, None]
    return x


def axis_rotations(mechanism: Mechanism) -> Array:
    """For each joint, its frame to the one whose z is its axis; the identity for a type without."""
    axes = [joint.type.axis for joint in mechanism.joints]
    turned = np.tile(np.eye(3), (len(axes), 1, 1))
    given = np.array([axis is not None for axis in axes], bool)
    turned[given] = turns_z_to(rows_of([axis for axis in axes if axis is not None], 3))
    return turned


def zxz(R: Array) -> tuple[Array, Array, Array]:
    """Angles of R = Rz(γ) Rx(α) Rz(β), each (n); γ = 0 where only γ ± β is defined."""
    R = snapped(R, 1.0)
    sine, cosine = np.hypot(R[:, 0, 2], R[:, 1, 2]), R[:, 2, 2]
    alpha = np.arctan2(sine, cosine)
    gamma = np.arctan2(R[:, 0, 2], -R[:, 1, 2])
    # β not from R's last row but from Rz(-γ) R: where α is small only γ + β is well defined, and must come out right.
    first = np.cos(gamma)[:, None] * R[:, 0] + np.sin(gamma)[:, None] * R[:, 1]
    beta = np.arctan2(-first[:, 1], first[:, 0])
    half = np.abs(np.abs(gamma) - np.pi) < 1e-14  # Rz(π) Rx(α) Rz(β) = Rx(-α) Rz(β + π): one turn less
    gamma, alpha, beta = np.where(half, 0.0, gamma), np.where(half, -alpha, alpha), np.where(half, beta + np.pi, beta)
    flat = sine < _PARALLEL
    alpha = np.where(flat, np.where(cosine > 0, 0.0, np.pi), alpha)
    beta = np.where(flat, np.arctan2(-R[:, 0, 1], R[:, 0, 0]), beta)
    return np.where(flat, 0.0, _nice(gamma)), alpha, _nice(beta)


def _nice(angle: Array) -> Array:
    """Multiples of a quarter turn made exact."""
    whole = np.round(angle / _QUARTER) * _QUARTER
    return np.where(np.abs(angle - whole) < 4e-15, whole, angle)


def cosine_sine(angle: Array) -> Array:
    """Cosines and sines (n, 2), zeros and ones exact."""
    return snapped(np.stack((np.cos(angle), np.sin(angle)), axis=1), 1.0)


def snapped(x: Array, scale: float | Array) -> Array:
    """The numbers, zero where only rounding is left; beside one (``scale`` 1.0) also ±1 exact."""
    x = np.where(np.abs(x) < SNAP * scale, 0.0, x)
    if isinstance(scale, float):
        x = np.where(np.abs(np.abs(x) - 1.0) < SNAP, np.sign(x), x)
    return x
