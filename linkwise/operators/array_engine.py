"""The engine for plain numbers: blocks as NumPy arrays, all states and right-hand sides at once, level by level.

Every array has the link (by depth) as its first axis, then the flat batch: blocks are (n, B, rows, columns), stacked
vectors (n, B, 6, r), and in joint space (n, B, d, r) with d the largest nv of a joint, padded with zeros. One sweep is
one small matrix product for each level: time linear in n, whatever the depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.algorithms.kinematics import Place
from linkwise.algorithms.rigid_motion import next_motion
from linkwise.errors import InputError
from linkwise.model.tree import Tree
from linkwise.operators.engine import Engine, Value
from linkwise.operators.kinds import Kind
from linkwise.operators.lanes import Lanes, numbers
from linkwise.operators.plan import plan
from linkwise.operators.spaces import Space
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Vec

Array = Any


class ArrayEngine(Engine):
    """Blocks and sweeps for a batch of numeric states.

    Args:
        tree: the layout.
        q: (..., nq).
        v: (..., nv), the same leading axes, or None.
    """

    def __init__(self, tree: Tree, q: Array, v: Array | None) -> None:
        self.tree = tree
        self.batch: tuple[int, ...] = q.shape[:-1]
        self.dtype = q.dtype
        self.q = q.reshape(math.prod(self.batch), tree.nq)
        self.v = None if v is None else v.reshape(len(self.q), tree.nv)
        self.n = len(tree.links)
        self.plan = plan(tree)
        self.levels, self.width = self.plan.levels, self.plan.width
        self.links, self.joints = self.plan.links, self.plan.joints
        self._cells: dict[str, Array] = {}

    # Stacked vectors in and out.
    def enter(self, space: Space, array: Array) -> Value:
        return self._entered(space, array, (space.size,))

    def leave(self, space: Space, value: Value) -> Array:
        return self._left(space, value)[..., 0]

    def run(self, function: Callable[[Value], Value], space_in: Space, space_out: Space, x: Array) -> Array:
        matrix = self.is_matrix(x)
        core = (space_in.size, x.shape[-1]) if matrix else (space_in.size,)
        y = self._left(space_out, function(self._entered(space_in, x, core)))
        return y if matrix else y[..., 0]

    def _entered(self, space: Space, array: Array, core: tuple[int, ...]) -> Value:
        x = np.broadcast_to(array, self.batch + core).reshape(len(self.q), space.size, math.prod(core[1:]))
        if space == self.joints:
            padded = np.zeros((self.n, len(self.q), self.width, x.shape[-1]), x.dtype)
            padded[self.plan.link_of, :, self.plan.axis_of] = x.transpose(1, 0, 2)
            return padded
        blocks = x.reshape(len(self.q), len(space.sizes), 6, x.shape[-1]).swapaxes(0, 1)
        return blocks[self.levels.order] if space == self.links else blocks

    def _left(self, space: Space, value: Value) -> Array:
        if space == self.joints:
            x = value[self.plan.link_of, :, self.plan.axis_of].transpose(1, 0, 2)
        else:
            blocks = value[self.levels.position] if space == self.links else value
            x = blocks.swapaxes(0, 1).reshape(blocks.shape[1], space.size, blocks.shape[3])
        x = np.broadcast_to(x, (len(self.q), *x.shape[1:]))
        return x.reshape((*self.batch, *x.shape[1:]))

    def zero(self, space: Space) -> Value:
        return np.zeros((len(space.sizes), 1, self.width if space == self.joints else 6, 1))

    def add(self, x: Value, y: Value) -> Value:
        return x + y

    def scale(self, c: Any, x: Value) -> Value:
        return -x if isinstance(c, float) and c == -1.0 else x * c

    # Operators.
    def diagonal(self, name: str, x: Value, adjoint: bool) -> Value:
        cells = self.cells(name)
        return (cells.swapaxes(-1, -2) if adjoint else cells) @ x

    def shift(self, name: str, x: Value, adjoint: bool) -> Value:
        inner, cells = self.levels.inner, self.cells(name)
        batch = max(cells.shape[1], x.shape[1])
        y = np.zeros((self.n, batch, cells.shape[3 if adjoint else 2], x.shape[3]), np.result_type(cells, x))
        if adjoint:
            y[inner] = cells[inner].swapaxes(-1, -2) @ x[self.levels.parents]
            return y
        handed = cells[inner] @ x[inner]
        first = self.levels.inner.start
        for level in self.levels.inward():
            self.levels.sum_up(level, handed[level.here.start - first : level.here.stop - first], y)
        return y

    def sweep(self, name: str, x: Value, adjoint: bool) -> Value:
        cells = self.cells("E_" + name)
        shape = (self.n, max(cells.shape[1], x.shape[1]), 6, x.shape[3])
        z = np.array(np.broadcast_to(x, shape), np.result_type(cells, x))
        if adjoint:
            turned = cells.swapaxes(-1, -2)
            for level in self.levels.outward():
                z[level.here] += turned[level.here] @ z[level.heads if level.is_single else level.parents]
            return z
        return self.levels.accumulate(z, lambda here: cells[here] @ z[here])

    def pick(self, places: Sequence[Place], x: Value, adjoint: bool) -> Value:
        cells = np.stack([_six_by_six(place.offset) for place in places])[:, None]
        links = self.levels.position[[place.link.index for place in places if place.link is not None]]
        if adjoint:
            return cells.swapaxes(-1, -2) @ x[links]
        y = np.zeros((self.n, *x.shape[1:]), np.result_type(cells, x))
        np.add.at(y, links, cells @ x)
        return y

    # Blocks.
    def block(self, name: str, k: int) -> Array:
        cell = self.cells(name)[self.levels.position[k]]
        return np.broadcast_to(cell, (len(self.q), 6, 6)).reshape(*self.batch, 6, 6)

    def cells(self, name: str) -> Array:
        """The blocks of an operator (n, B or 1, rows, columns), made when first asked for."""
        if name not in self._cells:
            if name in _ARTICULATED:
                self._cells |= self._articulate()
            elif name.endswith("_inverse"):
                self._cells[name] = np.linalg.inv(self.cells(name.removesuffix("_inverse")))
            else:
                self._cells[name] = _MAKE[name](self)
        return self._cells[name]

    def _by_kind(self, shape: tuple[int, int], of: Callable[[Kind], Any], constant: bool = False) -> Array:
        """An array (n, B, *shape), or (n, 1, *shape) of constants, from rows of lanes; entries left out are zero."""
        out = np.zeros((self.n, 1 if constant else len(self.q), *shape), self.dtype)
        for kind in self.plan.kinds:
            at = self.levels.position[kind.indices]
            for index, entry in _entries(of(kind)):
                out[(at, slice(None), *index)] = numbers(entry)
        return out

    def _phi(self) -> Array:
        return self._by_kind((6, 6), lambda kind: _phi_rows(kind.link.phi(kind.coordinates(self.q))))

    def _h(self) -> Array:
        return self._by_kind((self.width, 6), lambda kind: [list(s) for s in kind.link.S(kind.coordinates(self.q))])

    def _m(self) -> Array:
        return self._by_kind((6, 6), _inertia_rows, constant=True)

    def _armature(self) -> Array:
        def of(kind: Kind) -> Any:
            return [[x if i == j else 0.0 for j in range(i + 1)] for i, x in enumerate(kind.link.armature)]

        return self._by_kind((self.width, self.width), of, constant=True)

    def _composite(self) -> Array:
        """R = M + E_φ R E_φ* (000 eq. 25)."""
        phi = self.cells("E_phi")
        R = np.array(np.broadcast_to(self.cells("M"), phi.shape))
        return self.levels.accumulate(R, lambda here: phi[here] @ R[here] @ phi[here].swapaxes(-1, -2))

    def _articulate(self) -> dict[str, Array]:
        """P, D, D⁻¹ and G (000 eq. 45), tips to base."""
        phi, H = self.cells("E_phi"), self.cells("H")
        P = np.array(np.broadcast_to(self.cells("M"), phi.shape))
        rotors = self.cells("armature") + self.plan.pad.astype(self.dtype)
        D = np.array(np.broadcast_to(rotors, (*H.shape[:3], self.width)))
        D_inverse, G = np.empty_like(D), np.empty((*phi.shape[:3], self.width), phi.dtype)

        def eliminate(here: slice) -> Array:
            u = P[here] @ H[here].swapaxes(-1, -2)
            D[here] += H[here] @ u
            D_inverse[here] = self._inverted(D[here], here)
            G[here] = u @ D_inverse[here]
            P_plus = phi[here] @ (P[here] - G[here] @ u.swapaxes(-1, -2)) @ phi[here].swapaxes(-1, -2)
            return 0.5 * (P_plus + P_plus.swapaxes(-1, -2))  # an asymmetry of rounding would grow from link to link

        self.levels.accumulate(P, eliminate)
        eliminate(self.levels.roots)
        return {"P": P, "D": D, "D_inverse": D_inverse, "G": G}

    def _inverted(self, D: Array, here: slice) -> Array:
        try:
            return 1.0 / D if self.width == 1 and D.all() else np.linalg.inv(D)
        except np.linalg.LinAlgError:
            names = [self.tree.links[k].name for k in self.levels.order[here]]
            raise InputError(
                "D = HPH* has no inverse: a joint moves no inertia",
                got=f"zero inertia about an axis of one of {', '.join(map(repr, names[:8]))}",
                allowed="mass or rotor inertia beyond every joint",
            ) from None

    def _upsilon(self) -> Array:
        """Υ(k) = H*D⁻¹H + ψ*(p,k)Υ(p)ψ(p,k) (004 eq. A.3), base to tips."""
        H, E = self.cells("H"), self.cells("E_psi")
        Y = H.swapaxes(-1, -2) @ self.cells("D_inverse") @ H
        for level in self.levels.outward():
            Y[level.here] += E[level.here].swapaxes(-1, -2) @ Y[level.parents] @ E[level.here]
        return Y

    # Velocity terms.
    def motion(self, name: str) -> Value:
        return getattr(self, {"V": "_velocity", "a": "_coriolis", "b": "_gyroscopic", "f": "_bias"}[name])

    @cached_property
    def _velocity(self) -> Array:
        rates = np.zeros(self.tree.nv) if self.v is None else self.v.reshape(*self.batch, self.tree.nv)
        v = self.enter(self.joints, rates)
        return self.sweep("phi", self.diagonal("H", v, True), True)

    def _omega(self, positions: Array, V: Array) -> Vec:
        return Vec(*(Lanes(V[positions, :, i, 0]) for i in range(3)))

    @cached_property
    def _coriolis(self) -> Array:
        V = self._velocity
        V_parent = np.zeros_like(V)
        V_parent[self.levels.inner] = V[self.levels.parents]

        def of(kind: Kind) -> Array:
            omega = self._omega(self.levels.position[kind.indices], V_parent)
            still = RigidMotion(omega, Vec.zero(), Vec.zero())
            motion = next_motion(kind.link, still, kind.coordinates(self.q), kind.rates(self.v), None)
            return [[x] for x in (*motion.omega_dot, *motion.a)]

        a = self._by_kind((6, 1), of)
        upwards = np.array([0.0, 0.0, 0.0, *(-g for g in self.tree.gravity)])[:, None]
        roots = self.levels.roots
        a[roots] += self.cells("E_phi")[roots].swapaxes(-1, -2) @ upwards
        return a

    @cached_property
    def _gyroscopic(self) -> Array:
        def of(kind: Kind) -> Array:
            omega = self._omega(self.levels.position[kind.indices], self._velocity)
            return [[x] for x in kind.link.inertia.wrench(RigidMotion(omega, Vec.zero(), Vec.zero()))]

        return self._by_kind((6, 1), of)

    @cached_property
    def _bias(self) -> Array:
        return self.diagonal("M", self.sweep("phi", self._coriolis, True), False) + self._gyroscopic


_ARTICULATED = ("P", "D", "D_inverse", "G")

_MAKE: dict[str, Callable[[ArrayEngine], Array]] = {
    "E_phi": ArrayEngine._phi,
    "H": ArrayEngine._h,
    "M": ArrayEngine._m,
    "armature": ArrayEngine._armature,
    "R": ArrayEngine._composite,
    "tau": lambda e: e.cells("G") @ e.cells("H"),
    "tau_bar": lambda e: np.eye(6, dtype=e.dtype) - e.cells("tau"),
    "E_psi": lambda e: e.cells("E_phi") @ e.cells("tau_bar"),
    "K": lambda e: e.cells("E_phi") @ e.cells("G"),
    "Upsilon": ArrayEngine._upsilon,
}


def _entries(rows: Sequence[Sequence[Any]]) -> Any:
    """((i, j), entry) of nested sequences, structural zeros left out."""
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            if not (isinstance(entry, float) and entry == 0.0):
                yield (i, j), entry


def _phi_rows(transform: Transform) -> list[list[Any]]:
    """[[R, l~R], [0, R]]."""
    R, l = transform.matrix()
    lR = Mat3.cross(l).times(R)
    upper = [[*R.m[i], *lR.m[i]] for i in range(3)]
    return upper + [[0.0, 0.0, 0.0, *R.m[i]] for i in range(3)]


def _inertia_rows(kind: Kind) -> list[list[Any]]:
    """[[J, h~], [-h~, m]]."""
    M = kind.link.inertia
    h = Mat3.cross(M.h).m
    upper = [[*M.J.m[i], *h[i]] for i in range(3)]
    return upper + [[*(-x for x in h[i]), *(M.m if i == j else 0.0 for j in range(3))] for i in range(3)]


def _six_by_six(transform: Transform) -> Array:
    return np.array(_phi_rows(transform), float)
