"""Motions, forces and inertias of links that deform: those of a rigid link with a modal tail.

A motion is [η̇; V], a force [χ; f], an inertia has a block for the modes, one for the root frame and one between the
two; V, f and the last block are those of the root frame, where every mode vanishes. Such a link meets others in two
places, and a factor of φ stands for each:

* :class:`RootFactor`: the link's root is held by its joint. Seen from there its tail is nothing: motions of the joint
  are [0; V], and of a force only f goes on towards the base.
* :class:`NodeFactor`: something sits on one of its nodes, at r(η), turned by the node's rotation. It moves by
  V_j = φ*(r)V + Πη̇, and a force on it is [Π*f; φ(r)f] to the link.

The rank of the tail is what it is: nothing here depends on the number of modes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Self

from linkwise.dataclass import dataclass
from linkwise.errors import ModelError
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Scalar, Value
from linkwise.spatial.transforms import KeptAxes, Shift, TransformFactor
from linkwise.spatial.vectors import Force, Motion, Vec

Tail = tuple[Scalar, ...]


class _WithTail:
    """A motion or force of m + 6 numbers. Added to a plain one, that one has an empty tail: nothing in its modes."""

    __slots__ = ()
    tail: Tail
    ang: Vec
    lin: Vec

    def __init__(self, tail: Sequence[Scalar], ang: Vec, lin: Vec) -> None:
        super().__init__(ang, lin)  # type: ignore[call-arg]  # of Motion or Force
        object.__setattr__(self, "tail", tuple(tail))  # in a slot of the class that ends the line

    @classmethod
    def of(cls, values: Sequence[Scalar]) -> Self:
        """Vector from any sequence of m + 6."""
        numbers = list(values)
        return cls(numbers[:-6], Vec.of(numbers[-6:-3]), Vec.of(numbers[-3:]))

    @classmethod
    def with_tail(cls, tail: Sequence[Scalar], six: Motion | Force) -> Self:
        """Vector of this tail before a plain motion or force."""
        return cls(tail, six.ang, six.lin)

    def __iter__(self) -> Iterator[Scalar]:
        yield from self.tail
        yield from self.ang
        yield from self.lin

    def __getitem__(self, i: int) -> Scalar:
        m = len(self.tail)
        return self.tail[i] if i < m else (self.ang if i < m + 3 else self.lin)[(i - m) % 3]

    def __add__(self, other: Motion | Force) -> Self:
        own = _tail(other)
        tail = tuple(x + y for x, y in zip(self.tail, own, strict=True)) if own else self.tail
        return type(self)(tail, self.ang + other.ang, self.lin + other.lin)

    __radd__ = __add__

    def __sub__(self, other: Motion | Force) -> Self:
        return self.__add__(-other)

    def __rsub__(self, other: Motion | Force) -> Self:
        return (-self).__add__(other)

    def __neg__(self) -> Self:
        return type(self)([-x for x in self.tail], -self.ang, -self.lin)

    def __mul__(self, scale: Scalar) -> Self:
        return type(self)([x * scale for x in self.tail], self.ang * scale, self.lin * scale)

    __rmul__ = __mul__


class FlexibleMotion(_WithTail, Motion):
    """[η̇; V]."""

    __slots__ = ("tail",)

    def dot(self, force: Force) -> Scalar:
        """Power of a force on this motion."""
        power = super().dot(force)
        for x, y in zip(self.tail, _tail(force), strict=False):  # a plain force does not touch the modes
            power = power + x * y
        return power


@cache
def flexible_motions(modes: int) -> type[FlexibleMotion]:
    """The motions of a link with so many modes, as a type that knows its zero."""
    zero = classmethod(lambda cls: FlexibleMotion.of([0.0] * (modes + 6)))
    return type(f"FlexibleMotion{modes}", (FlexibleMotion,), {"__slots__": (), "zero": zero})


class FlexibleForce(_WithTail, Force):
    """[χ; f]: what the modes feel, and the force on the root frame."""

    __slots__ = ("tail",)


def _tail(vector: object) -> Tail:
    """The tail of a motion or force; empty for a plain one."""
    tail: Tail = getattr(vector, "tail", ())
    return tail


class FlexibleInertia(Value):
    """[[tail, coupling*], [coupling, body]]: of a link that deforms, its own or with what is outboard of it.

    ``tail`` is m × m, ``coupling`` has for each mode the force on the root frame for a unit rate, and ``body`` is a
    rigid inertia, or an articulated one once axes are to be eliminated.
    """

    __slots__ = ("body", "coupling", "tail")

    def __init__(
        self, tail: Sequence[Sequence[Scalar]], coupling: Sequence[Force], body: RigidInertia | ArticulatedInertia
    ) -> None:
        self.tail = tuple(tuple(row) for row in tail)
        self.coupling = tuple(coupling)
        self.body: Any = body

    @classmethod
    def symmetric(
        cls,
        m: int,
        entry: Callable[[int, int], Scalar],
        coupling: Sequence[Force],
        body: RigidInertia | ArticulatedInertia,
    ) -> FlexibleInertia:
        """Inertia from the entries i <= j of the tail."""
        half = {(i, j): entry(i, j) for i in range(m) for j in range(i, m)}
        return cls([[half[min(i, j), max(i, j)] for j in range(m)] for i in range(m)], coupling, body)

    def __add__(self, other: Any) -> FlexibleInertia:
        if not isinstance(other, FlexibleInertia):  # on the root frame
            return FlexibleInertia(self.tail, self.coupling, self.body + other)
        return FlexibleInertia.symmetric(
            len(self.tail),
            lambda i, j: self.tail[i][j] + other.tail[i][j],
            [a + b for a, b in zip(self.coupling, other.coupling, strict=True)],
            self.body + other.body,
        )

    def __matmul__(self, V: Motion) -> FlexibleForce:
        rates = _tail(V)
        f = self.body @ V
        chi = [column.ang.dot(V.ang) + column.lin.dot(V.lin) for column in self.coupling]
        for j, rate in enumerate(rates):
            f = f + self.coupling[j] * rate
            chi = [x + row[j] * rate for x, row in zip(chi, self.tail, strict=True)]
        return FlexibleForce.with_tail(chi, f)

    def articulated(self) -> FlexibleInertia:
        """Inertia that axes can be eliminated from."""
        return FlexibleInertia(self.tail, self.coupling, self.body.articulated())

    def carried_in(self, factor: TransformFactor) -> RigidInertia | ArticulatedInertia:
        """Inertia at the root, where a joint holds the link: the modes are eliminated, or frozen."""
        if not isinstance(factor, RootFactor):
            raise TypeError("a link that deforms is held at its root")
        at_root: RigidInertia | ArticulatedInertia = self.body
        return at_root

    def without(self, u: FlexibleForce, g: FlexibleForce, axis: int | None) -> FlexibleInertia:
        """P - u D⁻¹ u*, as :meth:`ArticulatedInertia.without`; ``axis`` counts the modes first."""
        m = len(self.tail)

        def left(i: int, j: int, entry: Scalar) -> Scalar:
            return 0.0 if axis in (i, j) else entry - u[i] * g[j]

        coupling = [
            Force.of([left(i, m + a, x) for a, x in enumerate(column)]) for i, column in enumerate(self.coupling)
        ]
        on_root = None if axis is None or axis < m else axis - m
        body = self.body.without(Force(u.ang, u.lin), Force(g.ang, g.lin), on_root)
        return FlexibleInertia.symmetric(m, lambda i, j: left(i, j, self.tail[i][j]), coupling, body)

    def rows(self) -> list[list[Scalar]]:
        """Matrix of (m + 6) × (m + 6)."""
        six = [Force.of(list(self.body @ Motion.unit(i))) for i in range(6)]
        top = [[*row, *column] for row, column in zip(self.tail, self.coupling, strict=True)]
        return top + [[*(column[a] for column in self.coupling), *(six[b][a] for b in range(6))] for a in range(6)]


class RootFactor(KeptAxes, Value):
    """The last factor of φ of a link with m modes: from its joint's six numbers to its own m + 6."""

    __slots__ = ("modes",)
    l = Vec.zero()

    def __init__(self, modes: int) -> None:
        self.modes = modes

    def force_in(self, f: Force) -> Force:
        return Force(f.ang, f.lin)

    def motion_out(self, V: Motion) -> Motion:
        return FlexibleMotion((0.0,) * self.modes, V.ang, V.lin)

    def motion_in(self, V: Motion) -> Motion:
        return Motion(V.ang, V.lin)

    def rigid_in(self, M: RigidInertia) -> RigidInertia:
        return M

    def articulated_in(self, P: ArticulatedInertia) -> ArticulatedInertia:
        return P

    def carry(self, thing: Any) -> Any:
        return thing


class NodeFactor(KeptAxes, ABC):
    """The first factor of φ of what sits on a node: r(η) and Π(η), in root axes; the rotation is a factor of its own.

    Args:
        l: r(η), from the root.
        Pi: for each mode the motion of the node for a unit rate.
    """

    __slots__ = ("Pi", "l")

    def __init__(self, l: Vec, Pi: Sequence[Motion]) -> None:
        self.l = l
        self.Pi = tuple(Pi)

    @abstractmethod
    def moved(self, rates: Sequence[Scalar]) -> Motion:
        """Πη̇."""

    @abstractmethod
    def bias(self, rates: Sequence[Scalar]) -> Motion:
        """Π̇η̇: what the node accelerates by while η̈ = 0 and the root is at rest."""

    def force_in(self, f: Force) -> Force:
        return FlexibleForce.with_tail([column.dot(f) for column in self.Pi], Shift(self.l).force_in(f))

    def motion_out(self, V: Motion) -> Motion:
        rigid = Shift(self.l).motion_out(V)
        rates = _tail(V)
        return rigid + self.moved(rates) if rates else rigid

    def motion_in(self, V: Motion) -> Motion:
        raise ModelError(
            "the motion of a node of a flexible body does not tell that of its root",
            do="ask for a function that does not need it",
        )

    def rigid_in(self, M: RigidInertia) -> Any:
        return self._inertia_in(M, Shift(self.l).rigid_in(M))

    def articulated_in(self, P: ArticulatedInertia) -> Any:
        return self._inertia_in(P, Shift(self.l).articulated_in(P))

    def _inertia_in(
        self, X: RigidInertia | ArticulatedInertia, body: RigidInertia | ArticulatedInertia
    ) -> FlexibleInertia:
        """[Π*; φ] X [Π, φ*]."""
        U = [X @ column for column in self.Pi]
        coupling = [Shift(self.l).force_in(u) for u in U]
        return FlexibleInertia.symmetric(len(U), lambda i, j: self.Pi[i].dot(U[j]), coupling, body)

    def carry(self, thing: Any) -> Any:
        return thing.on_node(self)


@dataclass(frozen=True, slots=True)
class FlexibleMoving:
    """Motion of a link that deforms: its root frame as a rigid one, η̇ and η̈."""

    root: RigidMotion
    rate: Tail
    rate_dot: Tail

    def shifted(self, l: Vec) -> RigidMotion:
        """Motion at a point that is fixed to the root."""
        return self.root.shifted(l)

    def turned(self, factor: TransformFactor) -> RigidMotion:
        """Motion in other axes, fixed to the root."""
        return self.root.turned(factor)

    def on_node(self, node: NodeFactor) -> RigidMotion:
        """Motion at a node, in root axes: [ω + w; ω' + w' + ω×w; a + E r + 2ω×r' + r''], w and r' the node's own."""
        V = node.moved(self.rate)
        A = node.bias(self.rate) + node.moved(self.rate_dot)
        root = self.root
        return RigidMotion(
            root.omega + V.ang,
            root.omega_dot + A.ang + root.omega.cross(V.ang),
            root.shifted(node.l).a + A.lin + (root.omega * 2.0).cross(V.lin),
        )
