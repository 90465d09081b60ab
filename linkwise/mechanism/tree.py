"""The tree as the algorithms see it: links with frames of our choosing, joint transforms and inertias over any scalar.

A link is a moving body in a frame that makes the mathematics cheap (see :mod:`linkwise.mechanism.layout`); ``to_body``
leads back to the frame the user knows.

:class:`Sweeps` is the interface of a tree for the algorithms: sweeps over its links, and vectors over its freedoms. Two
trees implement it. :class:`Tree` runs a step link after link (**unrolled**);
:class:`linkwise.functions.rolled.rolling.RolledTree` runs it once for each kind of link, as the body of a loop
(**rolled**).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from linkwise.dataclass import dataclass, replace
from linkwise.errors import ModelError
from linkwise.joints import Joint
from linkwise.spatial.dual import Dual, new_level, parts_of_level
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.moving import AccelerationField, RigidMotion
from linkwise.spatial.scalar import Flat, Scalar, is_zero
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec

if TYPE_CHECKING:
    from linkwise.mechanism.flexible_link import Seat


T = TypeVar("T")


class Field(Generic[T]):
    """One value for each link: ``field[link]``. Of an inward sweep, ``root`` is the sum of what reached the base."""

    def __init__(self, values: list[T], root: Any = None) -> None:
        self.values = values
        self.root = root

    def __getitem__(self, link: Any) -> T:
        value: T = self.values[link.index]
        return value


class Sweeps(Protocol):
    """The sweeps of :mod:`linkwise.algorithms.sweeps` over some links; each is explained there."""

    @property
    def rolls(self) -> bool:
        """Whether sweeps run as loops: then a text cannot go through the links one by one."""

    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> Field[Any]:
        """Base to tips."""

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> Field[Any]:
        """Tips to base."""

    def everywhere(self, value: Any) -> Field[Any]:
        """The same value for every link."""

    def only_at(self, values: Sequence[tuple[Any, Any]], elsewhere: Any) -> Field[Any]:
        """Values for some links, another for all others."""

    def looped_system(self, matrix: Sequence[Sequence[Any]], diagonal: Sequence[Any]) -> Any:
        """Solver in loops of a symmetric matrix with something added to its diagonal; None: to be written out."""


class Sweeper(Sweeps, Protocol):
    """A whole tree: its sweeps, and vectors over its freedoms."""

    def generalized(self, field: Field[Any]) -> Any:
        """A vector over the freedoms from one number for each joint axis."""

    def configured(self, field: Field[Any]) -> Any:
        """A configuration from the coordinates of each joint."""

    def per_body(self, field: Field[Any], shape: tuple[int, ...]) -> Any:
        """An array with one entry of this shape for each body."""

    def elementwise(self, function: Callable[..., Any], *vectors: Any) -> Any:
        """A vector over the freedoms from others, number by number."""

    def along(self, function: Callable[..., Any], at: Sequence[Any], directions: Sequence[Any]) -> tuple[Any, Any]:
        """Value and directional derivative of a function of configurations and vectors."""


class LinkByLink:
    """Sweeps of a tree whose links are at hand: parents before children, each with its ``index`` and ``parent``."""

    links: Sequence[Any]

    @property
    def rolls(self) -> bool:
        """Never: a text may go through these links one by one."""
        return False

    @property
    def places(self) -> int:
        """Number of links that a field has room for: the indices of these links are below it."""
        return len(self.links)

    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> Field[Any]:
        """Base to tips."""
        handed: list[Any] = [None] * self.places
        kept: list[Any] = [None] * self.places
        for link in self.links:
            result = step(link, root if link.parent < 0 else handed[link.parent])
            handed[link.index], kept[link.index] = result if keeps else (result, result)
        return Field(kept)

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> Field[Any]:
        """Tips to base."""
        sums: list[Any] = [nothing] * (self.places + 1)  # the last is the base's, whose index is -1
        kept: list[Any] = [None] * self.places
        for link in reversed(self.links):
            handed, kept[link.index] = step(link, sums[link.index])
            if handed is not None:
                known = sums[link.parent]
                sums[link.parent] = handed if known is nothing else known + handed
        return Field(kept, sums[-1])

    def everywhere(self, value: Any) -> Field[Any]:
        """The same value for every link."""
        return Field([value] * self.places)

    def only_at(self, values: Sequence[tuple[Any, Any]], elsewhere: Any) -> Field[Any]:
        """Values for some links, another for all others."""
        field = self.everywhere(elsewhere)
        for link, value in values:
            field.values[link.index] = value
        return field

    def looped_system(self, matrix: Sequence[Sequence[Any]], diagonal: Sequence[Any]) -> None:
        """None: elimination is written out, and leaves out what is zero."""
        return


class SomeLinks(LinkByLink):
    """Sweeps over some links of a tree only, each with all the links that it hangs on. They keep their indices."""

    def __init__(self, links: Sequence[Any], places: int) -> None:
        self.links = links
        self._places = places

    @property
    def places(self) -> int:
        """That of the whole tree: its fields and those of this part can be looked at alike."""
        return self._places


@dataclass(frozen=True, eq=False)
class Link:
    """One link and its inboard joint."""

    index: int
    name: str
    parent: int
    joint: Joint
    placement: Transform
    """Parent's link frame to joint frame (constant, or a function of run-time parameters)."""
    lead: float
    """Constant turn about z, between the placement and the joint."""
    tail: Transform
    """After the joint's motion, to the link's frame; the identity when the frame is aligned with the joint."""
    inertia: RigidInertia
    to_body: Transform
    """Link frame to body frame, constant."""
    armature: tuple[Scalar, ...]
    q_start: int
    v_start: int
    multiplier: float = 1.0
    offset: float = 0.0
    is_mimic: bool = False
    joint_name: str = ""
    seat: Seat | None = None
    """The node of a flexible parent that ``placement`` starts from; None: the parent's link frame."""

    @property
    def modes(self) -> int:
        """Axes in S before those of the joint."""
        return 0

    @property
    def hinge(self) -> Link:
        """The joint alone, without modal axes."""
        return self

    def seat_at(self, node: int) -> Seat | None:
        """The node of this number that others sit on; None for a link that does not deform."""
        return None

    @property
    def deforming(self) -> tuple[Any, ...]:
        """Deforming parts at this link: the node it sits on. Links that differ in it are of different kinds."""
        return () if self.seat is None else (self.seat.shape,)

    def alone(self) -> Link:
        """The link by itself: its own coordinates from index 0 on, then the modal ones of the parent it sits on."""
        return replace(self, q_start=0, v_start=0, seat=self.seat and self.seat.moved(self.joint.nq))

    def relaxed(self) -> Link:
        """The same link without elastic forces."""
        return self

    def coordinates(self, q: Flat) -> list[Scalar]:
        """This joint's part of q; computed from the joint it follows, for a mimic."""
        own = [q[self.q_start + i] for i in range(self.joint.nq)]
        return [x * self.multiplier + self.offset for x in own] if self.is_mimic else own

    def rates(self, v: Flat) -> list[Scalar]:
        """This joint's part of v (or of v̇)."""
        own = [v[self.v_start + i] for i in range(self.joint.nv)]
        return [x * self.multiplier for x in own] if self.is_mimic else own

    def external(self, f_ext: Flat) -> Force:
        """The external force on this link, from six numbers for each body in its own frame."""
        return self.to_body @ Force.of(self.own(f_ext, 6))

    def own(self, numbers: Flat, size: int) -> Flat:
        """This body's part of an array with so many numbers for each body."""
        return numbers[size * self.index : size * (self.index + 1)]

    def phi(self, q: Flat) -> Transform:
        """φ(parent, link)."""
        beyond = self.placement.then(self.joint.transform(self.coordinates(q)).after_turn(2, self.lead)).then(self.tail)
        return beyond if self.seat is None else self.seat.at(q).then(beyond.merged()).merged()

    def S(self, q: Flat) -> tuple[Motion, ...]:
        """The columns of the joint's map, in the link's frame."""
        return tuple(self.tail.T @ column for column in self.joint.subspace(self.coordinates(q)))

    def S_rate(self, q: Flat, v: Flat) -> Motion:
        """Ṡ v, in the link's frame."""
        return self.tail.T @ self.joint.subspace_rate(self.coordinates(q), self.rates(v))

    @property
    def rigid_part(self) -> RigidInertia:
        """The inertia of what is rigid in the link's frame."""
        return self.inertia

    def M(self, q: Flat) -> Any:
        """The link's own inertia."""
        return self.inertia

    def M_slopes(self, q: Flat, X: Motion) -> list[Any]:
        """Derivatives of M X by each modal coordinate, X held; nothing for a link that does not deform."""
        return []

    def wrench(self, q: Flat, motion: Any) -> Force:
        """The force Mα + b that a motion takes, with elastic forces where the link has some."""
        return self.inertia.wrench(motion)

    def in_field(self, q: Flat, field: AccelerationField) -> Force:
        """The force that a field of acceleration exerts on the link's mass, with that on modes where it has some."""
        return self.inertia.wrench(field)

    def moving(self, root: RigidMotion, V_J: Motion, A_J: Motion) -> Any:
        """Motion of the link, from that of its frame and what its axes add to the parent's."""
        return root

    def elastic_energy(self, q: Flat) -> Scalar:
        """Energy stored in the link's deformation, J."""
        return 0.0

    def elastic_forces(self, q: Flat, v: Flat) -> list[Scalar]:
        """Forces along the modes of the link that its deformation and its rate take."""
        return []

    def checked_inertia(self, inertia: Scalar) -> Scalar:
        """The inertia that a freedom of this joint feels; an error where it is none, whatever the configuration."""
        if is_zero(inertia):
            raise ModelError(
                f"joint {self.joint_name!r} moves no inertia, so its acceleration is not defined",
                got=f"{self.joint!r} with body {self.name!r}, whose mass lies where the joint does not move it",
                allowed="an inertia about the axis of a turn, a mass along a slide, or an armature",
                do=f"give {self.name!r} an inertia, give the joint an armature (armature=…), or lock it (lw.Fixed())",
            )
        return inertia


def rigid_only(name: str) -> ModelError:
    """The error for a body that deforms where only rigid ones can be taken."""
    return ModelError(
        "this function is for models whose bodies are all rigid",
        got=f"the flexible body {name!r}",
        do="use inverse and forward dynamics, the mass matrix, energies, momenta, poses, Jacobians or linearisations",
    )


@dataclass(frozen=True, eq=False)
class Tree(LinkByLink):
    """Links, parents first, and the frame they stand on."""

    links: Sequence[Link]
    nq: int
    nv: int
    gravity: Vec
    """In the root frame."""
    root: Transform
    """World to root frame, constant."""
    base_inertia: RigidInertia
    """Inertia of links that counts to the root frame, because no joint moves it."""

    def __iter__(self) -> Iterator[Link]:
        return iter(self.links)

    def ancestors(self, link: Link) -> Iterator[Link]:
        """The link itself, its parent, and so on to the root."""
        index = link.index
        while index >= 0:
            yield self.links[index]
            index = self.links[index].parent

    def way_to(self, link: Link) -> Sweeps:
        """The links from the base to one, for sweeps that are about it alone."""
        return SomeLinks([*self.ancestors(link)][::-1], self.places)

    def inboard(self, link: Link) -> list[Link]:
        """Its ancestors without the link itself, the parent first."""
        return list(self.ancestors(link))[1:]

    def generalized(self, field: Field[Any]) -> list[Scalar]:
        """One number for each freedom from one for each joint axis; what acts on a mimic acts on its leader."""
        total: list[Scalar] = [0.0] * self.nv
        for link in self.links:
            for i, value in enumerate(field[link]):
                total[link.v_start + i] = total[link.v_start + i] + value * link.multiplier
        return total

    def configured(self, field: Field[Any]) -> list[Scalar]:
        """A configuration from the coordinates of each joint; mimics have none."""
        whole: list[Scalar] = [0.0] * self.nq
        for link in self.links:
            if not link.is_mimic:
                whole[link.q_start : link.q_start + link.joint.nq] = field[link]
        return whole

    def per_body(self, field: Field[Any], shape: tuple[int, ...]) -> Sequence[Any]:
        """One entry for each body, in order."""
        return field.values

    def elementwise(self, function: Callable[..., Scalar], *vectors: Flat) -> list[Scalar]:
        """A vector over the freedoms from others, number by number."""
        return [function(*numbers) for numbers in zip(*vectors, strict=True)]

    def along(
        self, function: Callable[..., Any], at: Sequence[Any], directions: Sequence[Any]
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Value and directional derivative, by dual numbers."""
        level = new_level()
        moved = ([Dual(a, b, level) for a, b in zip(x, d, strict=True)] for x, d in zip(at, directions, strict=True))
        return parts_of_level(function(*moved), level)

    def without_gravity(self) -> Tree:
        """The same tree, weightless and without elastic forces: of inertia alone."""
        return replace(self, gravity=Vec.zero(), links=tuple(link.relaxed() for link in self.links))

    @property
    def has_modes(self) -> bool:
        """Whether some link deforms."""
        return getattr(self.links, "deform", True) and any(link.modes for link in self.links)

    @property
    def has_mimics(self) -> bool:
        """Whether some joint follows another."""
        known = getattr(self.links, "is_mimic", None)
        return any(link.is_mimic for link in self.links) if known is None else bool(known.any())
