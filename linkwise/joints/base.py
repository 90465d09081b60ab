"""The base of every joint type: its motion, over any scalar, and what the rest of the library asks of it.

A joint moves the child's frame relative to the joint frame. Types with an axis are written about z; the model
turns the axis the user gave into z once, when the tree is laid out. To add a type, write one file with the methods
below, in this order, and name it in ``joints/__init__.py``: nothing else needs to know. ``lw.check_joint`` tells
whether they fit together.

The methods up to :meth:`Joint.random` say how a joint moves. Those after it (closing a loop, mirror image, files,
viewer) have answers here that follow from the motion; a type gives its own where it knows a shorter one.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.joints.directions import RelativePose, differences, nearest_coordinates, turn_z_to
from linkwise.spatial.dual import derivative
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Flat, Scalar, cos, sin
from linkwise.spatial.transforms import Rotation, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec, coordinate_axis

if TYPE_CHECKING:
    from linkwise.joints.mirrored import MirrorImage, Signs

_OF_THE_MOTION = ("closing_equations", "closing_residual", "nearest", "joins_origins", "mirrored", "series", "handles")
_TYPES: dict[str, type[Joint]] = {}


@dataclass(frozen=True)
class SeriesJoint:
    """One of the simple joints in series as which files can say a joint.

    Args:
        kind: a turn about an axis, a slide along one, a ``ball`` (quaternion; angular velocity in the child's frame),
            a ``plane`` (:class:`linkwise.Planar`, with its q and v), or no constraint (``free``, as
            :class:`linkwise.Free`). The last three stand alone.
        axis: in the joint frame with all joints of the series at zero; the normal of a plane.
        freedom: its first place in the joint's q and v.
        ratio: of one that follows the first of the series, its motion as a multiple of that one's; it has no freedom.
    """

    kind: Literal["turn", "slide", "ball", "plane", "free"]
    axis: Sequence[float] = (0.0, 0.0, 1.0)
    freedom: int = 0
    ratio: float | None = None

    @property
    def single(self) -> bool:
        """Whether it is a joint of one freedom of its own."""
        return self.kind in ("turn", "slide") and self.ratio is None


@dataclass(frozen=True)
class Handle:
    """The way in which a viewer moves one freedom.

    Args:
        label: what it is, beside the joint's name; empty where that says all.
        kind: a number of q (``coordinate``), a part of the rotation vector of a quaternion (``turn``), or a number of
            the way from the neutral position (``way``).
        place: in q, of the coordinate or of the quaternion's first number.
        part: of the rotation vector.
        reach: how far it goes either way where nothing limits it, rad; None for the size of the model.
    """

    label: str
    kind: Literal["coordinate", "turn", "way"]
    place: int = 0
    part: int = 0
    reach: float | None = math.pi


class Joint(ABC):
    """A joint type with its constants (axis, pitch). Immutable."""

    nq: int
    """Numbers in this joint's part of q."""
    nv: int
    """Numbers in this joint's part of v."""
    symmetry: ClassVar[Literal["axis", "direction", "none"]] = "none"
    """Moves of the joint frame and the child's frame together that leave the joint's formulas as they are: any turn
    about and shift along z (``axis``), any shift and any turn about z (``direction``), or none."""
    fixed_axes: ClassVar[bool] = True
    """Whether S is constant: the axes are fixed in the child. If not, :meth:`subspace_rate` is the type's own."""
    quasi_velocities: ClassVar[bool] = False
    """Whether v is not q̇: :meth:`rate`, :meth:`integrate` and :meth:`difference` are the type's own. The columns of S
    then are coordinate directions of the child's frame."""

    flies: ClassVar[bool] = False
    """Whether it holds nothing: q is a quaternion and a place, v the angular and linear velocity in the child's
    axes."""

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that hold functions of the user's, with the names of their arguments; a model keeps their formulas."""

    axis: tuple[float, float, float] | None = None
    """The axis as the user gave it, of length one, in the joint frame; None for a type without."""

    usual: ClassVar[tuple[float, ...]] = ()
    """Largest random coordinate where nothing limits it, rad or m; π where nothing is said."""

    word: ClassVar[str]
    """The type's name in native files and side files; its class's in small letters, if not given; "" for none."""
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names that files of a format (``urdf``, ``sdf``, ``mjcf``) have for the type."""

    joins_origins: ClassVar[bool] = False
    """Whether the first three numbers of :meth:`closing_residual` are X.p itself, and no other looks at X.p."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Constants that can be run-time parameters where the joint closes a loop."""

    def __init_subclass__(cls) -> None:
        if "word" not in vars(cls):
            name = cls.__name__.lower()
            cls.word = name if _TYPES.get(name, cls).__module__ == cls.__module__ else f"{cls.__module__}.{name}"
        if _TYPES.get(cls.word, cls).__module__ != cls.__module__:
            raise InputError(
                f"the joint type {cls.__name__} has a word that is taken",
                got=repr(cls.word),
                do=f"give it another: {_TYPES[cls.word].__name__} has this one",
            )
        if cls.word:
            _TYPES[cls.word] = cls
        if "transform" in vars(cls):  # another motion: what the parent class says of its own does not hold
            for name in _OF_THE_MOTION:
                if name not in vars(cls):
                    setattr(cls, name, vars(Joint)[name])
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

    def neutral(self) -> tuple[float, ...]:
        """The coordinates of the zero position; zeros, if not given."""
        return (0.0,) * self.nq

    @abstractmethod
    def transform(self, q: Flat) -> Transform:
        """Joint frame to child frame."""

    @abstractmethod
    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        """The columns of S, in the child's frame: V = S v."""

    def subspace_rate(self, q: Flat, v: Flat) -> Motion:
        """Ṡ v, the rate of S's components in the child's frame."""
        return Motion.zero()

    def rate(self, q: Flat, v: Flat) -> tuple[Scalar, ...]:
        """q̇ from v."""
        return tuple(v)

    def integrate(self, q: Flat, dv: Flat) -> tuple[Scalar, ...]:
        """The coordinates reached from q by moving with the constant velocity dv for unit time."""
        return tuple(a + b for a, b in zip(q, dv, strict=True))

    def difference(self, q0: Flat, q1: Flat) -> tuple[Scalar, ...]:
        """The dv for which ``integrate(q0, dv)`` is q1."""
        return tuple(b - a for a, b in zip(q0, q1, strict=True))

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        """The child's inertia as what it keeps and what may as well be fixed to the parent.

        The second part is one that this joint's motion does not change and whose energy it does not feel.
        """
        return M, RigidInertia.zero()

    @property
    def turns(self) -> bool:
        """Whether it is a turn about one axis, and nothing else: its coordinate is an angle."""
        return [(part.kind, part.ratio) for part in self.series() or ()] == [("turn", None)]

    def carried(self, v: Flat, turn: Flat) -> Flat:
        """The same velocity v (nv) after a motion ``turn`` (nv), written in the axes that are reached with it.

        Other than v only where v is written in axes that turn with the child and are not those it turns about.
        """
        return v

    def carry(self, q: Flat, dv: Flat) -> Flat:
        """The configuration (nq) reached in unit time from q with a velocity dv that is carried along, not constant."""
        return self.integrate(q, dv)

    def carry_rate(self, v: Flat) -> Flat:
        """The rate of :meth:`carried` (nv) for a motion with this velocity."""
        return [0.0] * self.nv

    def carry_way(self, q0: Flat, q1: Flat) -> Flat:
        """The u (nv) for which ``carry(q0, u)`` is q1."""
        return self.difference(q0, q1)

    def carry_way_rate(self, u: Flat, w: Flat) -> Flat:
        """The rate of u (nv) with which ``carry(q, u)`` moves with the velocity ``carried(w, u)``.

        If not given, from the joint's own exponential and logarithm by dual numbers: right where nothing is carried.
        """
        start = self.integrate(self.neutral(), u)

        def way(e: Flat) -> Flat:
            return self.difference(self.neutral(), self.integrate(start, [e[0] * x for x in w]))

        return derivative(way, [0.0], [1.0])[1]

    def random(self, rng: np.random.Generator, lower: Sequence[float], upper: Sequence[float]) -> tuple[float, ...]:
        """Random coordinates within the limits; within ± :attr:`usual` where there are none."""
        usual = (*self.usual, *(math.pi,) * self.nq)
        return tuple(_random(rng, a, b, r) for a, b, r in zip(lower, upper, usual, strict=False))

    def slides(self, freedom: int) -> bool:
        """Whether a freedom is a shift, in m, and not a turn, in rad: at the zero position nothing turns with it."""
        return not any(self.subspace(self.neutral())[freedom].ang)

    def closing(self) -> Joint:
        """The joint that says what holds where this one closes a loop."""
        if self.nv > 5:
            raise InputError(f"a {type(self).__name__} joint leaves everything free: there is nothing to close")
        return self

    def closing_equations(self) -> tuple[str, ...]:
        """A short name for each number of :meth:`closing_residual`."""
        return tuple(f"across {k + 1}" for k in range(6 - self.nv))

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """Numbers that are zero where the pose X of the child in the joint frame is one that the joint can have.

        If not given, by the nearest such pose: how X differs from it, in the directions in which the joint does not
        move at its zero position. That holds while S stays within a quarter turn of what it is there.
        """
        if self.axis is not None:
            A = Mat3(turn_z_to(self.axis).tolist())
            X = RelativePose(A.T.times(X.R).times(A), A.transpose_times(X.p))
        return differences(self, self.nearest(X), X)

    def nearest(self, X: RelativePose) -> Flat:
        """The coordinates whose transform comes nearest to X, both about z; exact where the joint can have the pose X.

        If not given, by Newton steps from the zero position: within half a turn of it.
        """
        return nearest_coordinates(self, X)

    def mirrored(self, signs: Signs) -> MirrorImage:
        """The image in a mirror through the origin; if not given, the same motion seen in reflected axes."""
        from linkwise.joints.mirrored import reflected_axes  # a joint type itself

        return reflected_axes(self, signs)

    def constants(self) -> dict[str, object]:
        """The constants that :meth:`from_constants` makes the joint of; if not given, what its constructor takes."""
        return {name: getattr(self, name) for name in self.constant_names()}

    @classmethod
    def constant_names(cls) -> tuple[str, ...]:
        """The names of the :meth:`constants`."""
        return () if cls.__init__ is object.__init__ else tuple(inspect.signature(cls).parameters)

    @classmethod
    def from_constants(cls, **constants: Any) -> Self:
        """The joint with these constants."""
        return cls(**constants)

    def series(self) -> tuple[SeriesJoint, ...] | None:
        """Simple joints in series that move as this one; None where there are none, as formats other than ours need."""
        return None

    def handles(self) -> tuple[Handle, ...]:
        """The ways a viewer moves the freedoms; if not given, by coordinates, or by the way from the zero position."""
        labels = [f"[{k}]" if self.nv > 1 else "" for k in range(self.nv)]
        if self.nq != self.nv:
            return tuple(Handle(label, "way") for label in labels)
        usual = (*self.usual, *(math.pi,) * self.nv)
        reach = [None if self.slides(k) else usual[k] for k in range(self.nv)]
        return tuple(Handle(label, "coordinate", k, reach=reach[k]) for k, label in enumerate(labels))

    def changed(self, **constants: object) -> Self:
        """A copy with other constants, unchecked."""
        made = copy(self)
        vars(made).update(constants)
        return made

    def __repr__(self) -> str:
        constants = ", ".join(f"{name}={value!r}" for name, value in self._key())
        return f"{type(self).__name__}({constants})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def _key(self) -> tuple[tuple[str, object], ...]:
        return tuple(sorted((name, value) for name, value in vars(self).items() if not name.startswith("_")))


def joint_types(form: str | None = None) -> dict[str, type[Joint]]:
    """The joint types by their words, or by those that files of a format have for them."""
    if form is None:
        return dict(_TYPES)
    # Those that a class itself gives: a subclass does not take its parent's away.
    own = {kind: vars(kind).get("words", {}) for kind in _TYPES.values()}
    return {word: kind for kind, words in own.items() for word in words.get(form, ())}


def _random(rng: np.random.Generator, lower: float, upper: float, usual: float) -> float:
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


def lamina_and_symmetric(M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
    """The inertia of a lamina in the x-y plane with all mass, and diag(j, j, 0), which turns about z keep.

    Together they have the second moment J; of the lamina's, Jxx + Jyy = Jzz exactly. A lamina has a zero in Euler's
    tensor ½ tr(J) 1 - J, which the inverse dynamics can leave out.
    """
    xx, yy, zz, xy, xz, yz = M.J.six()
    a, b, j = (_sum(zz, xx, -yy) * 0.5, _sum(zz, yy, -xx) * 0.5, _sum(xx, yy, -zz) * 0.5)
    lamina = RigidInertia(M.m, M.h, Sym3.of(a, b, a + b, xy, xz, yz))
    return lamina, RigidInertia(0.0, Vec.zero(), Sym3.of(j, j, 0.0, 0.0, 0.0, 0.0))


def _sum(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """The sum; of constants, to the last digit: the moments of a rod leave next to nothing of each other."""
    return math.fsum((x, y, z)) if all(isinstance(each, (float, int)) for each in (x, y, z)) else x + y + z
