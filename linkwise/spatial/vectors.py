"""Vectors of three and of six numbers over any scalar. Angular parts come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self, TypeVar

from linkwise.spatial.scalar import Scalar, Value

_NOTHING = 2.0**-53  # what is less than this beside one changes no digit of it


def coordinate_axis(axis: Sequence[float]) -> int | None:
    """Coordinate axis (0, 1 or 2) that a unit vector lies along, either way; None for any other direction.

    The other two components tell: beside a tilt of 1e-8 the third is one to the last digit.
    """
    along = [k for k in range(3) if abs(axis[k]) > _NOTHING]
    return along[0] if len(along) == 1 else None


class Vec(Value):
    """A vector of three scalars."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Scalar, y: Scalar, z: Scalar) -> None:
        self.x = x
        self.y = y
        self.z = z

    @classmethod
    def of(cls, values: Sequence[Scalar]) -> Vec:
        """Vector from any sequence of three."""
        x, y, z = values
        return cls(x, y, z)

    @classmethod
    def zero(cls) -> Vec:
        return cls(0.0, 0.0, 0.0)

    @classmethod
    def unit(cls, axis: int) -> Vec:
        """The coordinate axis 0, 1 or 2."""
        return cls(*(1.0 if i == axis else 0.0 for i in range(3)))

    def __iter__(self) -> Iterator[Scalar]:
        yield self.x
        yield self.y
        yield self.z

    def __getitem__(self, i: int) -> Scalar:
        return (self.x, self.y, self.z)[i]

    def __add__(self, other: Vec) -> Vec:
        return Vec(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vec) -> Vec:
        return Vec(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vec:
        return Vec(-self.x, -self.y, -self.z)

    def __mul__(self, scale: Scalar) -> Vec:
        return Vec(self.x * scale, self.y * scale, self.z * scale)

    __rmul__ = __mul__

    def dot(self, other: Vec) -> Scalar:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vec) -> Vec:
        return Vec(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def __repr__(self) -> str:
        return f"Vec({self.x!r}, {self.y!r}, {self.z!r})"


class SpatialVector(Value):
    """Six numbers, angular first. Motions and forces share their arithmetic, not their meaning."""

    __slots__ = ("ang", "lin")

    def __init__(self, ang: Vec, lin: Vec) -> None:
        self.ang = ang
        self.lin = lin

    @classmethod
    def of(cls, values: Sequence[Scalar]) -> Self:
        """From any sequence of six."""
        a, b, c, d, e, f = values
        return cls(Vec(a, b, c), Vec(d, e, f))

    def __iter__(self) -> Iterator[Scalar]:
        yield from self.ang
        yield from self.lin

    def __getitem__(self, i: int) -> Scalar:
        return self.ang[i] if i < 3 else self.lin[i - 3]

    def __sub__(self, other: Self) -> Self:
        return self.__class__(self.ang - other.ang, self.lin - other.lin)

    def __neg__(self) -> Self:
        return self.__class__(-self.ang, -self.lin)

    def __mul__(self, scale: Scalar) -> Self:
        return self.__class__(self.ang * scale, self.lin * scale)

    __rmul__ = __mul__


class Motion(SpatialVector):
    """A spatial velocity or acceleration: [ω; v] at the frame's origin."""

    __slots__ = ()

    @classmethod
    def zero(cls) -> Motion:
        return cls(Vec.zero(), Vec.zero())

    @classmethod
    def unit(cls, i: int) -> Motion:
        """The i-th coordinate direction: 0–2 turns about x, y, z; 3–5 shifts along them."""
        return cls.of([1.0 if i == j else 0.0 for j in range(6)])

    def __add__(self, other: Motion) -> Motion:
        return Motion(self.ang + other.ang, self.lin + other.lin)

    def dot(self, force: Force) -> Scalar:
        """Power of a force on this motion."""
        return self.ang.dot(force.ang) + self.lin.dot(force.lin)

    def cross(self, other: Motion) -> Motion:
        """crm(self) other = [ω×ω'; v×ω' + ω×v']."""
        return Motion(self.ang.cross(other.ang), self.lin.cross(other.ang) + self.ang.cross(other.lin))

    def cross_force(self, force: Force) -> Force:
        """crf(self) f = [ω×N + v×F; ω×F]."""
        return Force(self.ang.cross(force.ang) + self.lin.cross(force.lin), self.ang.cross(force.lin))


class Force(SpatialVector):
    """A spatial force or momentum: [N; F], the moment about the frame's origin."""

    __slots__ = ()

    @classmethod
    def zero(cls) -> Force:
        return NO_FORCE if cls is Force else cls(Vec.zero(), Vec.zero())

    def __add__(self, other: Force) -> Force:
        if other is NO_FORCE:
            return self
        if self is NO_FORCE and other.__class__ is Force:
            return other
        return Force(self.ang + other.ang, self.lin + other.lin)


NO_FORCE = Force(Vec.zero(), Vec.zero())
"""The force that is zero: many links have it, and what comes of it is known without arithmetic."""


T = TypeVar("T", Vec, Motion, Force)


def weighted_sum(columns: Iterable[T], weights: Iterable[Scalar], zero: T) -> T:
    """Σ columns weights, of vectors of one kind, which is that of ``zero``."""
    for column, weight in zip(columns, weights, strict=True):
        zero = zero + column * weight
    return zero
