"""Which shapes of a mechanism are tested against each other. Decided once, when a mechanism is laid out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations

from linkwise.contact.geometry.pairs import slots, touchable
from linkwise.dataclass import dataclass
from linkwise.errors import ModelError, UnknownNameError
from linkwise.mechanism.description import FIRST_PAIR_BIT, Geometry
from linkwise.mechanism.mechanism import Mechanism


@dataclass(frozen=True)
class Outline:
    """A shape for contact on a moving body, or on the world.

    Args:
        body: index of the body; -1 for the world.
        shape: in the body's frame.
    """

    body: int
    shape: Geometry


@dataclass(frozen=True)
class Meeting:
    """Two shapes that are tested against each other; normals point from the second to the first.

    Args:
        a: on a moving body.
        b: on another, or on the world.
        slots: number of their contact points.
    """

    a: Outline
    b: Outline
    slots: int

    @property
    def name(self) -> str:
        """The links of both."""
        return f"{self.a.shape.name} - {self.b.shape.name}"


def meetings(
    mechanism: Mechanism,
    *,
    ground: Sequence[Geometry] = (),
    only: Iterable[str] | None = None,
    excludes: Iterable[tuple[str, str]] = (),
    adjacent: bool = False,
    most: int | None = None,
    asked: Callable[[Collection[str], Collection[str], bool], bool] = lambda a, b, fixed: True,
) -> tuple[Meeting, ...]:
    """The shapes of a mechanism that are tested against each other.

    Not tested are shapes of one body, shapes of a body and the one that its joints are on (but the world), shapes whose
    bits do not fit (see :class:`~linkwise.mechanism.description.Geometry`), and shapes of links that the mechanism's
    ``_contact_excludes`` name. Shapes that a file names as a pair are tested all the same.

    Args:
        mechanism: its bodies' ``collisions`` and its ``_base_collisions`` are taken.
        ground: more shapes that are fixed to the world.
        only: names of links or of the bodies they are part of; of each two shapes one must belong to one of them. All,
            if not given.
        excludes: more pairs of links whose shapes are not tested.
        adjacent: whether a body and the one that its joint is on are tested too.
        asked: whether two shapes may touch, by all names of each, and whether the second is fixed to the world.
        most: number of contact points for pairs with flat faces; see :func:`linkwise.contact.geometry.pairs.contacts`.
    """
    known = {"world", *mechanism.bodies.names, *(frame.name for frame in mechanism.frames)}
    known.update(shape.name for shape in (*mechanism._base_collisions, *ground))
    wanted = None if only is None else set(only)
    apart = {frozenset(pair) for pair in (*mechanism._contact_excludes, *excludes)}
    for name in (wanted or set()).union(*apart):
        if name not in known:
            raise UnknownNameError("link", name, sorted(known))
    found = []
    outlines = [(outline, _names(mechanism, outline)) for outline in _outlines(mechanism, ground)]
    for (a, a_names), (b, b_names) in combinations(outlines, 2):
        if a.body < 0:
            a, b, a_names, b_names = b, a, b_names, a_names
        if a.body == b.body or not _bits_fit(a.shape, b.shape):
            continue
        next_to = b.body >= 0 and (_parent(mechanism, a) == b.body or _parent(mechanism, b) == a.body)
        kept_apart = frozenset((a.shape.name, b.shape.name)) in apart
        if ((next_to and not adjacent) or kept_apart) and not _are_a_pair(a.shape, b.shape):
            continue
        if wanted is not None and not wanted & {*a_names, *b_names}:
            continue
        if not asked(a_names, b_names, b.body < 0):
            continue
        _check_touchable(a.shape, b.shape)
        found.append(Meeting(a, b, slots(a.shape, b.shape, most)))
    return tuple(found)


def _outlines(mechanism: Mechanism, ground: Sequence[Geometry]) -> Iterator[Outline]:
    for body in mechanism.bodies:
        yield from (Outline(body.index, shape) for shape in body.collisions)
    yield from (Outline(-1, shape) for shape in (*mechanism._base_collisions, *ground))


def _names(mechanism: Mechanism, outline: Outline) -> set[str]:
    """Those that a shape answers to: its own, its link's, and that of the body that the link is part of."""
    return {*outline.shape.names_on("world" if outline.body < 0 else mechanism.bodies[outline.body].name)}


def _parent(mechanism: Mechanism, outline: Outline) -> int:
    """The body that carries a body; one that is not there for the world and for what the world carries.

    Bodies without mass and shapes are parts of a joint, of which a file writes several between two bodies.
    """
    parent = -1 if outline.body < 0 else mechanism.parents[outline.body]
    while parent >= 0 and mechanism.bodies[parent].mass == 0.0 and not mechanism.bodies[parent].collisions:
        parent = mechanism.parents[parent]
    return -2 if parent < 0 else parent


def _bits_fit(a: Geometry, b: Geometry) -> bool:
    return bool(a.contype & b.conaffinity or b.contype & a.conaffinity)


def _are_a_pair(a: Geometry, b: Geometry) -> bool:
    """Whether a file names the two: neither neighbours nor excludes of bodies count then, as in MuJoCo."""
    return (a.contype & b.conaffinity | b.contype & a.conaffinity) >> FIRST_PAIR_BIT > 0


def _check_touchable(a: Geometry, b: Geometry) -> None:
    if touchable(a, b):
        return
    mesh = next((shape for shape in (a, b) if shape.kind == "mesh"), None)
    if mesh is not None:
        raise ModelError(
            f"a mesh of {mesh.name!r} has no hull yet",
            got=mesh.mesh,
            allowed="convex shapes, for contact",
            do="model.with_contacts(…) makes hulls of mesh files; of meshes without files, "
            "linkwise.contact.geometry.hulls.with_hulls(mechanism, read)",
        )
    raise ModelError(
        f"a {a.kind} of {a.name!r} and a {b.kind} of {b.name!r} cannot touch",
        allowed="ground (plane, heightfield, terrain) is fixed to the world, and meets bodies",
        do="exclude the two, or change their contype and conaffinity",
    )
