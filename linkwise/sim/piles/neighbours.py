"""Contacts of a pile: which shapes are near each other, by a tree of their balls, and the points where they touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from linkwise.algorithms.kinematics import Placed
from linkwise.array_types import Array
from linkwise.contact.geometry.figures import Figure
from linkwise.contact.geometry.pairs import contacts, slots, touchable
from linkwise.contact.geometry.points import UNUSED_GAP
from linkwise.contact.geometry.supports import radius_about_origin
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.mechanism.contacts import ContactScene, among
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.materials import Material
from linkwise.memoized import once
from linkwise.sim.piles.free_bodies import Bodies, rotations, turned
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Vec
from linkwise.targets.llvm.kernel import BatchKernel
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.block import Block
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Program

_SIZED = ("sphere", "capsule", "box")
"""Kinds of shapes whose sizes are numbers of a kernel: one serves all shapes of two such kinds."""


@dataclass(frozen=True)
class PileContacts:
    """Contact points of a pile at one time; m points.

    Args:
        body: numbers of the two bodies (m, 2); the second is the number of bodies for what is fixed to the world.
        pair: number of the pair of shapes (m); points of one pair have the same.
        gap: m, negative where surfaces overlap.
        normal: unit vectors from the second body to the first (m, 3), in the world.
        point: between the surfaces (m, 3), in the world, m.
        friction: coefficients (m).
        restitution: coefficients (m), and the speed of approach, m/s, from which they count, beside them (m, 2).
        surface: velocities of the second surface where that is a ground which moves in itself (m, 3), m/s.
        overflow: points that found no room.
    """

    body: Array
    pair: Array
    gap: Array
    normal: Array
    point: Array
    friction: Array
    restitution: Array
    surface: Array
    overflow: int


class Neighbours:
    """Contact points of bodies, wherever they are."""

    def __init__(self, bodies: Bodies, scene: ContactScene, excludes: Sequence[tuple[str, str]] = ()) -> None:
        self.bodies, self.scene, self.shapes = bodies, scene, bodies.shapes
        self.moving = np.flatnonzero(self.shapes.body < len(bodies.names))
        self.fixed = np.flatnonzero(self.shapes.body == len(bodies.names))
        kinds: dict[Geometry, int] = {}
        self.kind = np.array([kinds.setdefault(_kind(shape), len(kinds)) for shape in self.shapes.geometry])
        self.kinds = list(kinds)
        self.largest: dict[int, Geometry] = {}
        """Of each kind the shape with the largest ball around it."""
        for k in np.argsort(self.shapes.radius, kind="stable"):
            self.largest[int(self.kind[k])] = self.shapes.geometry[k]
        self.sizes = np.array([[*shape.size, 0.0, 0.0, 0.0][:3] for shape in self.shapes.geometry])
        self._kernels: dict[tuple[int, int], _PairKernel | None] = {}
        self._materials: dict[tuple[Material | None, Material | None, bool], tuple[float, float, float]] = {}
        self.excludes = tuple(excludes)
        self.asks = bool(scene.only is not None or scene.between is not None or scene.exclude or self.excludes)
        surfaces: dict[Material | None, int] = {}
        self.material = np.array([surfaces.setdefault(m, len(surfaces)) for m in self.shapes.material])
        self.surfaces = list(surfaces)

    def at(self, turn: Array, place: Array, reach: Array) -> PileContacts:
        """Contacts of bodies turned (n, 4) and placed (n, 3), with gaps below the reach (n) of both bodies together."""
        R = np.concatenate([rotations(turn), np.eye(3)[None]])
        p = np.concatenate([place, np.zeros((1, 3))])
        body = self.shapes.body
        axes = R[body] @ self.shapes.R
        origin = p[body] + turned(R[body], self.shapes.p)
        far = np.append(reach, 0.0)
        a, b = self._candidates(origin, axes, far[body])
        found = []
        code = self.kind[a] * len(self.kinds) + self.kind[b]
        for key in np.unique(code):
            rows = np.flatnonzero(code == key)
            kernel = self._kernel(int(key) // len(self.kinds), int(key) % len(self.kinds))
            if kernel is not None:
                found.append(self._points(kernel, a[rows], b[rows], axes, origin, far))
        return _joined(found)

    def _candidates(self, origin: Array, axes: Array, far: Array) -> tuple[Array, Array]:
        """Numbers of shapes (k), (k) whose balls come near: the first on a body, the second on another, or fixed."""
        shapes, moving = self.shapes, self.moving
        r = shapes.radius[moving] + far[moving]
        pairs = cKDTree(origin[moving]).query_pairs(2.0 * float(r.max()), output_type="ndarray")
        i, j = moving[pairs[:, 0]], moving[pairs[:, 1]]
        away = np.linalg.norm(origin[i] - origin[j], axis=1)
        near = away < shapes.radius[i] + shapes.radius[j] + far[i] + far[j]
        near &= (shapes.body[i] != shapes.body[j]) & self._bits_fit(i, j)
        first, second = [i[near]], [j[near]]
        for k in self.fixed:
            if shapes.geometry[k].kind == "plane":
                height = (origin[moving] - origin[k]) @ axes[k][:, 2]
            else:
                height = np.linalg.norm(origin[moving] - origin[k], axis=1) - shapes.radius[k]
            some = moving[(height < r) & self._bits_fit(moving, np.full(len(moving), k))]
            first.append(some)
            second.append(np.full(len(some), k))
        a, b = np.concatenate(first), np.concatenate(second)
        if self.asks:
            allowed = [self._allowed(i, j) for i, j in zip(a, b, strict=True)]
            a, b = a[allowed], b[allowed]
        return a, b

    def _bits_fit(self, a: Array, b: Array) -> Array:
        bits = self.shapes.bits
        return np.asarray((bits[a, 0] & bits[b, 1] | bits[b, 0] & bits[a, 1]) != 0)

    def _allowed(self, i: int, j: int) -> bool:
        a, b = self.shapes.names[i], self.shapes.names[j]
        fixed = bool(self.shapes.body[j] == len(self.bodies.names))
        return self.scene.may_touch(a, b, fixed) and not among(self.excludes, a, b)

    def _kernel(self, a: int, b: int) -> _PairKernel | None:
        return once(self._kernels, (a, b), lambda: _PairKernel.of(self.kinds[a], self.kinds[b], self.largest[a]))

    def _points(self, kernel: _PairKernel, a: Array, b: Array, axes: Array, origin: Array, far: Array) -> PileContacts:
        shapes = self.shapes
        gap, normal, point, overflow = kernel(axes[a], origin[a], self.sizes[a], axes[b], origin[b], self.sizes[b])
        bodies = np.stack([shapes.body[a], shapes.body[b]], axis=1)
        near = gap < far[bodies].sum(axis=1)[:, None]
        pair, slot = np.nonzero(near)
        where = point[pair, slot]
        surface = shapes.surface[b[pair]]
        law = self._laws(a, b)[pair]
        return PileContacts(
            bodies[pair],
            (a * len(shapes.body) + b)[pair],
            gap[pair, slot],
            normal[pair, slot],
            where,
            law[:, 0],
            law[:, 1:],
            surface[:, 3:] + np.cross(surface[:, :3], where - origin[b[pair]]),
            int(overflow[near.any(axis=1)].sum()),
        )

    def _laws(self, a: Array, b: Array) -> Array:
        """Friction, restitution and its threshold of pairs of shapes (k, 3)."""
        fixed = self.shapes.body[b] == len(self.bodies.names)
        code = (self.material[a] * len(self.surfaces) + self.material[b]) * 2 + fixed
        known, place = np.unique(code, return_inverse=True)
        laws = []
        for key in known:
            pair, is_fixed = divmod(int(key), 2)
            first, second = divmod(pair, len(self.surfaces))
            laws.append(self._law(self.surfaces[first], self.surfaces[second], bool(is_fixed)))
        return np.array(laws).reshape(-1, 3)[place]

    def _law(self, own: Material | None, other: Material | None, fixed: bool) -> tuple[float, float, float]:
        def made() -> tuple[float, float, float]:
            first, second = own, other
            if second is None and not fixed:
                second = Material()
            both = first or second or Material()
            if first is not None and second is not None:
                both = first.with_other(second)
            both = both.acting
            _check(both)
            return both.coefficients[0], both.restitution, both.threshold

        return once(self._materials, (own, other, fixed), made)


def _check(material: Material) -> None:
    """Raise InputError for what piles do not know."""
    unknown = {
        "compliance": not material.is_rigid,
        "friction that depends on the direction": not material.is_isotropic,
        "torsional or rolling friction": material.torsion > 0.0 or material.rolling > 0.0,
        "restitution by Poisson": material.restitution > 0.0 and material.impact != "newton",
    }
    asked = [what for what, there in unknown.items() if there]
    if asked:
        raise InputError(
            "many free bodies touch as rigid ones with Coulomb's friction",
            got=", ".join(asked),
            allowed="friction of one coefficient, and restitution by Newton",
            do="leave it out, or simulate fewer than nine bodies",
        )


def _kind(shape: Geometry) -> Geometry:
    """The shape with what is the same for all that one kernel serves."""
    size = () if shape.kind in _SIZED else shape.size
    return replace(shape, size=size, material=None, compliance=None, contype=1, conaffinity=1, rgba=None, texture=None)


class _PairKernel:
    """Contact points of many pairs of two kinds of shapes."""

    def __init__(self, code: Block | Program, count: int) -> None:
        self._kernel: BatchKernel | ProgramKernel
        self._kernel = BatchKernel.build(code) if isinstance(code, Block) else ProgramKernel.build(code)
        self.slots = count

    @classmethod
    def of(cls, a: Geometry, b: Geometry, most: Geometry) -> _PairKernel | None:
        """The kernel of two kinds, of the first of which a shape is the largest; None where they never touch."""
        if not touchable(a, b):
            return None
        count = slots(a, b)

        def points(X: Flat, c: Flat, s: Flat, Y: Flat, d: Flat, t: Flat) -> dict[str, list[Scalar]]:
            first: Any = _of_size(a, s)
            second = _of_size(b, t)
            if a.kind in _SIZED and b.kind in ("heightfield", "terrain"):
                none = (0.0, 0.0, 0.0)
                first = Figure(a.kind, first.size, radius_about_origin(first), none, none, name=a.name, most=most)
            found = contacts(first, _placed(X, c), second, _placed(Y, d))
            return {
                "gap": [point.gap for point in found.points],
                "normal": [x for point in found.points for x in point.normal],
                "point": [x for point in found.points for x in point.point],
                "overflow": [found.overflow + 0.0 * c[0]],
            }

        return cls(program("pair", points, {"X": 9, "c": 3, "s": 3, "Y": 9, "d": 3, "t": 3}), count)

    def __call__(self, *inputs: Array) -> tuple[Array, Array, Array, Array]:
        """Gaps (k, slots), normals and points (k, slots, 3) and overflow (k) of k pairs."""
        count = len(inputs[0])
        given = [np.ascontiguousarray(x.reshape(count, -1), float) for x in inputs]
        outs = [np.empty((count, size)) for size in (self.slots, 3 * self.slots, 3 * self.slots, 1)]
        self._kernel.evaluate(given, outs, count)
        gap, normal, point, overflow = outs
        gap[gap > 0.5 * UNUSED_GAP] = np.inf
        return gap, normal.reshape(count, -1, 3), point.reshape(count, -1, 3), overflow[:, 0]


def _of_size(shape: Geometry, size: Flat) -> Geometry:
    count = {"sphere": 1, "capsule": 2, "box": 3}.get(shape.kind)
    return shape if count is None else replace(shape, size=tuple(size[:count]))


def _placed(X: Flat, c: Flat) -> Placed:
    return Placed(Mat3([list(X[3 * k : 3 * k + 3]) for k in range(3)]), Vec(*c))


def _joined(found: list[PileContacts]) -> PileContacts:
    if not found:
        none, three = np.zeros(0), np.zeros((0, 3))
        whole = np.zeros(0, int)
        return PileContacts(np.zeros((0, 2), int), whole, none, three, three, none, np.zeros((0, 2)), three, 0)
    names = ("body", "pair", "gap", "normal", "point", "friction", "restitution", "surface")
    joined = {name: np.concatenate([getattr(one, name) for one in found]) for name in names}
    return PileContacts(**joined, overflow=sum(one.overflow for one in found))
