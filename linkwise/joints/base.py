"""What every joint type says about itself, over any scalar.

A joint moves the child's frame relative to the joint frame. Types with an axis are written about z; the model
turns the axis the user gave into z once, when the tree is laid out. To add a type, write one file with the methods
below, in this order, and name it in ``joints/__init__.py``: nothing else needs to know. ``lw.check_joint`` tells
whether they fit together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from linkwise.errors import InputError
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, cos, sin
from linkwise.spatial.transforms import Rotation, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec, coordinate_axis


class Joint(ABC):
    """A joint type with its constants (axis, pitch). Immutable."""

    nq: int
    """Numbers in this joint's part of q."""
    nv: int
    """Numbers in this joint's part of v."""
    symmetry: ClassVar[Literal["axis", "direction", "none"]] = "none"
    """Which moves of the joint frame and the child's frame together leave the joint's formulas as they are: any turn
    about and shift along z (``axis``), any shift and any turn about z (``direction``), or none."""
    fixed_axes: ClassVar[bool] = True
    """Whether S is constant: the axes are fixed in the child. If not, :meth:`subspace_rate` is the type's own."""
    quasi_velocities: ClassVar[bool] = False
    """Whether v is not q̇: :meth:`rate`, :meth:`integrate` and :meth:`difference` are the type's own. The columns of S
    then are coordinate directions of the child's frame."""

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that hold functions of the user's, with the names of their arguments; a model keeps their formulas."""

    axis: tuple[float, float, float] | None = None
    """The axis as the user gave it, of length one, in the joint frame; None for a type without."""

    usual: ClassVar[tuple[float, ...]] = ()
    """How far from zero random coordinates go where nothing limits them, rad or m; π where nothing is said."""

    def __init_subclass__(cls) -> None:
        for trait, methods, wanted in (
            ("fixed_axes", ("subspace_rate",), False),
            ("quasi_velocities", ("rate", "integrate"), True),
        ):
            own = [method for method in methods if method in vars(cls)]
            if own and getattr(cls, trait) is not wanted:
                raise InputError(
                    f"the joint type {cls.__name__} has a {own[0]} of its own, but does not say what that means",
                    got=f"{trait} = {getattr(cls, trait)}",
                    do=f"write {trait} = {wanted} in the class, or leave {own[0]} to Joint",
                )

    @abstractmethod
    def neutral(self) -> tuple[float, ...]:
        """The coordinates of the zero position."""

    @abstractmethod
    def transform(self, q: Sequence[Scalar]) -> Transform:
        """Joint frame to child frame."""

    @abstractmethod
    def subspace(self, q: Sequence[Scalar]) -> tuple[Motion, ...]:
        """The columns of S, in the child's frame: V = S v."""

    def subspace_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Motion:
        """Ṡ v, the rate of S's components in the child's frame."""
        return Motion.zero()

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """q̇ from v."""
        return tuple(v)

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The coordinates reached from q by moving with the constant velocity dv for unit time."""
        return tuple(a + b for a, b in zip(q, dv, strict=True))

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """The dv for which ``integrate(q0, dv)`` is q1."""
        return tuple(b - a for a, b in zip(q0, q1, strict=True))

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        """The child's inertia as what it keeps and what may as well be fixed to the parent.

        The second part is one that this joint's motion does not change and whose energy it does not feel.
        """
        return M, RigidInertia.zero()

    def random(self, rng: Any, lower: Sequence[float], upper: Sequence[float]) -> tuple[float, ...]:
        """Random coordinates within the limits; within ± :attr:`usual` where there are none."""
        usual = (*self.usual, *(math.pi,) * self.nq)
        return tuple(_random(rng, a, b, r) for a, b, r in zip(lower, upper, usual, strict=False))

    def __repr__(self) -> str:
        constants = ", ".join(f"{name}={value!r}" for name, value in self._key())
        return f"{type(self).__name__}({constants})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def _key(self) -> tuple[tuple[str, Any], ...]:
        return tuple(sorted((name, value) for name, value in vars(self).items() if not name.startswith("_")))


def _random(rng: Any, lower: float, upper: float, usual: float) -> float:
    """A number between limits; a missing end is at ±usual, or twice that from the other end, if that is beyond."""
    low = lower if math.isfinite(lower) else -usual if upper > -usual else upper - 2.0 * usual
    high = upper if math.isfinite(upper) else usual if lower < usual else lower + 2.0 * usual
    share = float(rng.random())
    return min(max(low * (1.0 - share) + high * share, low), high)


def unit_axis(axis: Sequence[float], owner: str) -> tuple[float, float, float]:
    """An axis of length one, or an error that names the joint type."""
    try:
        x, y, z = map(float, axis)
        length = math.sqrt(x * x + y * y + z * z)
    except (TypeError, ValueError):
        raise InputError(
            f"the axis of {owner} is not three numbers", got=repr(axis), allowed="e.g. (0, 0, 1)"
        ) from None
    if not math.isfinite(length) or length < 1e-12:
        raise InputError(
            f"the axis of {owner} has no direction", got=repr(axis), allowed="three finite numbers, not all 0"
        )
    if abs(length - 1.0) < 4e-16:
        return (x, y, z)
    return (x / length, y / length, z / length)


def turn_about(axis: Sequence[float], angle: Scalar) -> Turn | Rotation:
    """A turn about any unit axis: axial when it is a coordinate axis, by Rodrigues' formula otherwise."""
    c, s = cos(angle), sin(angle)
    k = coordinate_axis(axis)
    if k is not None:
        return Turn(k, c, s * math.copysign(1.0, axis[k]))
    u = Vec.of(axis)
    K = Mat3.cross(u).m
    return Rotation(Mat3.build(lambda i, j: (c if i == j else 0.0) + s * K[i][j] + (1.0 - c) * (u[i] * u[j])))


def lamina_and_symmetric(J: Sym3) -> tuple[Sym3, Sym3]:
    """J as that of a lamina in the x-y plane (Jxx + Jyy = Jzz exactly) plus diag(j, j, 0), which turns about z keep.

    A lamina has a zero in Euler's tensor ½ tr(J) 1 - J, which the inverse dynamics can leave out.
    """
    xx, yy, zz, xy, xz, yz = J.six()
    a, b, j = (_sum(zz, xx, -yy) * 0.5, _sum(zz, yy, -xx) * 0.5, _sum(xx, yy, -zz) * 0.5)
    return Sym3.of(a, b, a + b, xy, xz, yz), Sym3.of(j, j, 0.0, 0.0, 0.0, 0.0)


def _sum(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """The sum; of constants, to the last digit: the moments of a rod leave next to nothing of each other."""
    return math.fsum((x, y, z)) if all(isinstance(each, (float, int)) for each in (x, y, z)) else x + y + z
