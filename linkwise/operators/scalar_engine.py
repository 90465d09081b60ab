"""The engine for symbols: one state of traced scalars (or SymPy, CasADi, mpmath, …), one link after another.

A stacked vector here may carry what has not yet crossed its joint: its value is

    direct + E_φ (across + G innovations).

A sweep takes all three at once, z⁺ = z + across + G(u - Hz), so that each link's φ is applied once although the
expression names E_φ several times (K = E_φG and E_ψ = E_φτ̄ in ψ(KT + b)). The traced program then is the
articulated-body algorithm itself (000 eq. 46), not merely equal to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.algorithms.articulated import Axis, articulate
from linkwise.algorithms.kinematics import Place, velocities
from linkwise.algorithms.rigid_motion import at_rest, next_motion
from linkwise.algorithms.sparse_factor import factorize
from linkwise.algorithms.sweeps import Field, each, inward, outward
from linkwise.model.tree import Link, Tree
from linkwise.operators.cells import (
    Cell,
    Composed,
    Gain,
    JointMap,
    Part,
    Projection,
    Symmetric,
    force,
    from_matrix,
    joint_inertia_inverse,
    matrix_of,
    minus,
    motion,
    plus,
)
from linkwise.operators.engine import INNER, Array, Engine
from linkwise.operators.spaces import Space
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia, coordinate_axis
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True)
class Stack:
    """A stacked vector: one part for each block, and what still has to cross the joints."""

    direct: Sequence[Part]
    across: Sequence[Part] | None = None
    innovations: Sequence[Part] | None = None


class ScalarEngine(Engine):
    """Blocks and sweeps for one state over any scalar.

    Args:
        tree: the layout.
        q: nq scalars.
        v: nv scalars, or None.
    """

    def __init__(self, tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar] | None) -> None:
        self.tree = tree
        self.q = q
        self.v = [0.0] * tree.nv if v is None else v
        self.links = Space("links", (6,) * len(tree.links))
        self.joints = Space("joints", tuple(link.joint.nv for link in tree))
        self.batch: tuple[int, ...] = ()
        self.dtype = np.dtype(object)
        self._cells: dict[str, list[Cell]] = {}

    # Stacked vectors in and out.
    def enter(self, space: Space, array: Array) -> Stack:
        flat = [float(x) if isinstance(x, (int, np.floating, np.integer)) else x for x in array]
        if space == self.joints:
            return Stack([[flat[link.v_start + i] for i in range(link.joint.nv)] for link in self.tree])
        return Stack([flat[space.slice(k)] for k in range(len(space.sizes))])

    def leave(self, space: Space, value: Stack) -> Array:
        value = self._settled(value)
        out = np.empty(space.size, object)
        for k, part in enumerate(value.direct):
            start = self.tree.links[k].v_start if space == self.joints else space.starts[k]
            for i, x in enumerate(part):
                out[start + i] = x
        return out

    def run(self, function: Callable[[Stack], Stack], space_in: Space, space_out: Space, x: Array) -> Array:
        if not self.is_matrix(x):
            return self.leave(space_out, function(self.enter(space_in, x)))
        columns = [self.leave(space_out, function(self.enter(space_in, column))) for column in x.T]
        return np.stack(columns, axis=-1)

    def zero(self, space: Space) -> Stack:
        return Stack([[0.0] * size for size in space.sizes])

    def add(self, x: Stack, y: Stack) -> Stack:
        return Stack(
            [plus(a, b) for a, b in zip(x.direct, y.direct, strict=True)],
            _sum(x.across, y.across),
            _sum(x.innovations, y.innovations),
        )

    def scale(self, c: Any, x: Stack) -> Stack:
        def scaled(parts: Sequence[Part]) -> list[Part]:
            return [[_times(c, a) for a in part] for part in parts]

        return Stack(
            scaled(x.direct),
            None if x.across is None else scaled(x.across),
            None if x.innovations is None else scaled(x.innovations),
        )

    # Operators.
    def diagonal(self, name: str, x: Stack, adjoint: bool) -> Stack:
        parts = self._settled(x).direct
        cells = self.cells(name)
        if adjoint:
            return Stack([cell.adjoint(part) for cell, part in zip(cells, parts, strict=True)])
        return Stack([cell.forward(part) for cell, part in zip(cells, parts, strict=True)])

    def shift(self, name: str, x: Stack, adjoint: bool) -> Stack:
        parts = self._settled(x).direct
        inner = INNER[name]
        if adjoint:

            def carry(link: Link) -> Part:
                return self._inner_adjoint(inner, link, self._from_parent(link, parts))

            return Stack([carry(link) for link in self.tree])
        nothing = self.zero(self.links).direct
        if inner == "G":
            return Stack(nothing, None, parts)
        if inner == "tau_bar":
            cells = self.cells("H")
            explained = [[-y for y in cell.forward(part)] for cell, part in zip(cells, parts, strict=True)]
            return Stack(nothing, parts, explained)
        return Stack(nothing, parts)

    def sweep(self, name: str, x: Stack, adjoint: bool) -> Stack:
        if adjoint:
            return self._sweep_outward(INNER[name], self._settled(x).direct)
        return Stack(self._sweep_inward(INNER[name] == "tau_bar", x))

    def _sweep_inward(self, articulated: bool, x: Stack) -> list[Part]:
        H = self.cells("H") if articulated else []

        def step(link: Link, outboard: Force) -> tuple[Force, Force]:
            k = link.index
            z = force(x.direct[k]) + outboard
            z_plus = z if x.across is None else z + force(x.across[k])
            eps: Part | None = None if x.innovations is None else x.innovations[k]
            if articulated:
                explained = H[k].forward(z)
                eps = [-y for y in explained] if eps is None else minus(eps, explained)
            if eps is not None:
                z_plus = z_plus + force(self.cells("G")[k].forward(eps))
            return self.phi[link] @ z_plus, z

        return list(inward(self.tree, step, Force.zero()).values)

    def _sweep_outward(self, inner: str | None, parts: Sequence[Part]) -> Stack:
        def step(link: Link, parent: Motion | None) -> Motion:
            own = motion(parts[link.index])
            if parent is None:
                return own
            return own + motion(self._inner_adjoint(inner, link, self.phi[link].T @ parent))

        return Stack(list(outward(self.tree, step, None).values))

    def _inner_adjoint(self, inner: str | None, link: Link, y: Part | None) -> Part:
        if y is None:  # the base's links have no parent to hear from
            return [0.0] * (link.joint.nv if inner == "G" else 6)
        return y if inner is None else self.cells(inner)[link.index].adjoint(y)

    def _from_parent(self, link: Link, parts: Sequence[Part]) -> Part | None:
        return None if link.parent < 0 else self.phi[link].T @ motion(parts[link.parent])

    def _settled(self, x: Stack) -> Stack:
        """The same vector with nothing left to cross: E_φ applied once."""
        if x.across is None and x.innovations is None:
            return x
        handed: list[Force] = [Force.zero()] * len(self.tree.links)
        for link in self.tree:
            k = link.index
            if link.parent >= 0:
                f = Force.zero() if x.across is None else force(x.across[k])
                if x.innovations is not None:
                    f = f + force(self.cells("G")[k].forward(x.innovations[k]))
                handed[link.parent] = handed[link.parent] + self.phi[link] @ f
        return Stack([plus(a, b) for a, b in zip(x.direct, handed, strict=True)])

    def pick(self, places: Sequence[Place], x: Stack, adjoint: bool) -> Stack:
        parts = self._settled(x).direct
        if adjoint:
            return Stack([list(p.offset.T @ motion(parts[p.link.index])) for p in places if p.link is not None])
        total = list(self.zero(self.links).direct)
        for place, part in zip(places, parts, strict=True):
            if place.link is not None:
                k = place.link.index
                total[k] = plus(total[k], list(place.offset @ force(part)))
        return Stack(total)

    # Blocks.
    def block(self, name: str, k: int) -> Array:
        inner = INNER.get(name, name)
        rows = matrix_of(self.cells(inner)[k], 6) if inner else np.eye(6).tolist()
        if name in INNER:
            columns = [list(self.phi.values[k] @ force(column)) for column in zip(*rows, strict=True)]
            rows = [list(row) for row in zip(*columns, strict=True)]
        out = np.empty((6, 6), object)
        out[:] = rows
        return out

    @cached_property
    def phi(self) -> Field[Transform]:
        """φ(parent, link) of every link."""
        return each(self.tree, lambda link: link.phi(self.q))

    @cached_property
    def _axes(self) -> Field[list[Axis]]:
        return articulate(self.tree, self.q)

    @cached_property
    def _articulated(self) -> Field[ArticulatedInertia]:
        """P, which the eliminated axes do not keep."""

        def step(link: Link, outboard: ArticulatedInertia) -> tuple[ArticulatedInertia, ArticulatedInertia]:
            P = P_plus = link.inertia.articulated() + outboard
            for axis, armature in zip(self._axes[link], link.armature, strict=True):
                left = coordinate_axis(axis.s) if is_zero(armature) else None
                P_plus = P_plus.without(P_plus @ axis.s, axis.g, left)
            return self.phi[link].congruence(P_plus), P

        return inward(self.tree, step, ArticulatedInertia.zero())

    @cached_property
    def _composite(self) -> Field[RigidInertia]:
        """R = M + E_φ R E_φ* (000 eq. 25)."""

        def step(link: Link, outboard: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
            R = link.inertia + outboard
            return self.phi[link].congruence(R), R

        return inward(self.tree, step, RigidInertia.zero())

    @cached_property
    def _upsilon(self) -> Field[list[list[Scalar]]]:
        """Υ(k) = H*D⁻¹H + ψ*(p,k)Υ(p)ψ(p,k) (004 eq. A.3), rows of each block."""

        def step(link: Link, parent: list[list[Scalar]] | None) -> list[list[Scalar]]:
            H, D_inverse = self.cells("H")[link.index], self.cells("D_inverse")[link.index]
            own = matrix_of(Symmetric(lambda f: H.adjoint(D_inverse.forward(H.forward(f)))), 6)
            if parent is None:
                return own
            outer = from_matrix(parent)

            def through(f: Part) -> Part:
                g = self.phi[link] @ force(self.cells("tau_bar")[link.index].forward(f))
                carried = self.phi[link].T @ motion(outer.forward(list(g)))
                return self.cells("tau_bar")[link.index].adjoint(carried)

            rows = matrix_of(Symmetric(through), 6)
            return [[a + b for a, b in zip(r, s, strict=True)] for r, s in zip(own, rows, strict=True)]

        return outward(self.tree, step, None)

    def cells(self, name: str) -> list[Cell]:
        """The blocks of a diagonal operator."""
        if name not in self._cells:
            if name != "D_inverse" and name.endswith("_inverse"):
                self._cells[name] = self._inverted(name.removesuffix("_inverse"))
            else:
                self._cells[name] = [_MAKE[name](self, link) for link in self.tree]
        return self._cells[name]

    def _inverted(self, name: str) -> list[Cell]:
        sizes = self.joints.sizes if name == "armature" else self.links.sizes
        rows = [matrix_of(cell, size) for cell, size in zip(self.cells(name), sizes, strict=True)]
        return [from_matrix(factorize(matrix).inverse()) for matrix in rows]

    # Velocity terms.
    def motion(self, name: str) -> Stack:
        field = {"V": "_velocity", "a": "_coriolis", "b": "_gyroscopic", "f": "_bias"}[name]
        return Stack(getattr(self, field).values)

    @cached_property
    def _velocity(self) -> Field[Motion]:
        return velocities(self.tree, self.q, self.v)

    def _turning(self, link: Link | None) -> RigidMotion:
        omega = Vec.zero() if link is None else self._velocity[link].ang
        return RigidMotion(omega, Vec.zero(), Vec.zero())

    @cached_property
    def _coriolis(self) -> Field[Motion]:
        """a(k), and on the base's links what gravity adds: the base at rest accelerates upwards."""

        def of(link: Link) -> Motion:
            parent = None if link.parent < 0 else self.tree.links[link.parent]
            moved = next_motion(link, self._turning(parent), self.q, self.v, None)
            a = Motion(moved.omega_dot, moved.a)
            return a if parent else a + self.phi[link].T @ Motion(Vec.zero(), -self.tree.gravity)

        return each(self.tree, of)

    @cached_property
    def _gyroscopic(self) -> Field[Force]:
        return each(self.tree, lambda link: link.inertia.wrench(self._turning(link)))

    @cached_property
    def _bias(self) -> Field[Force]:
        """Mφ*a + b, by the motion of v̇ = 0."""
        moving = outward(
            self.tree,
            lambda link, parent: next_motion(link, parent, self.q, self.v, None),
            at_rest(self.tree.gravity),
        )
        return each(self.tree, lambda link: link.inertia.wrench(moving[link]))


def _joint_map(engine: ScalarEngine, link: Link) -> JointMap:
    return JointMap(link.S(engine.q))


def _gain(engine: ScalarEngine, link: Link) -> Gain:
    return Gain(engine._axes[link])


def _joint_inertia(engine: ScalarEngine, link: Link) -> Cell:
    """D = HPH* + rotor inertia."""
    H, P = _joint_map(engine, link), engine._articulated[link]

    def apply(x: Part) -> Part:
        rotor = [J * u for J, u in zip(link.armature, x, strict=True)]
        return plus(H.forward(list(P @ motion(H.adjoint(x)))), rotor)

    return Symmetric(apply)


_MAKE: dict[str, Callable[[ScalarEngine, Link], Cell]] = {
    "H": _joint_map,
    "M": lambda e, link: Symmetric(lambda x: list(link.inertia @ motion(x))),
    "R": lambda e, link: Symmetric(lambda x: list(e._composite[link] @ motion(x))),
    "P": lambda e, link: Symmetric(lambda x: list(e._articulated[link] @ motion(x))),
    "D": _joint_inertia,
    "D_inverse": lambda e, link: joint_inertia_inverse(e._axes[link]),
    "armature": lambda e, link: Symmetric(lambda x: [J * u for J, u in zip(link.armature, x, strict=True)]),
    "G": _gain,
    "tau": lambda e, link: Composed(_gain(e, link), _joint_map(e, link)),
    "tau_bar": lambda e, link: Projection(_joint_map(e, link), _gain(e, link)),
    "Upsilon": lambda e, link: from_matrix(e._upsilon[link]),
}


def _sum(x: Sequence[Part] | None, y: Sequence[Part] | None) -> Sequence[Part] | None:
    if x is None or y is None:
        return y if x is None else x
    return [plus(a, b) for a, b in zip(x, y, strict=True)]


def _times(c: Any, x: Scalar) -> Scalar:
    return -x if isinstance(c, float) and c == -1.0 else x * c
