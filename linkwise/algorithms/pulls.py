"""Forces that act together on a mechanism, several at a time: on links, and along joint axes.

The columns of J_c*: what the multipliers of constraints, or forces on an end effector, do to the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.kinematics import velocities
from linkwise.algorithms.sweeps import Field, each, elementwise, generalized, only_at
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Matrix, Scalar, plus
from linkwise.spatial.vectors import Force

T = TypeVar("T")


@dataclass(frozen=True)
class Pulls:
    """``count`` unit pulls: for each link ``count`` forces, for each joint axis ``count`` efforts."""

    count: int
    forces: Sequence[Field[tuple[Force, ...]]] = ()
    """Fields whose sum is meant: one for each place that is pulled at."""
    efforts: Sequence[Field[Sequence[Flat]]] = ()
    """Likewise along joint axes: for the first axes of a link's joint, as many as there are, one number a pull."""

    def on_link(self, link: Link) -> tuple[Force, ...]:
        """The force of each pull on a link."""
        total = (Force.zero(),) * self.count
        for field in self.forces:
            total = tuple(a + b for a, b in zip(total, field[link], strict=True))
        return total

    def on_axes(self, link: Link) -> Sequence[Flat]:
        """The effort of each pull on each axis of a link's joint."""
        total: Matrix = [[0.0] * self.count for _ in range(link.joint.nv)]
        for field in self.efforts:
            for axis, more in zip(total, field[link], strict=False):
                axis[:] = plus(axis, more)
        return total

    def rates(self, tree: Tree, q: Flat, v: Flat) -> list[Scalar]:
        """J v, the velocity along each pull."""
        twists = velocities(tree, q, v)
        total: list[Scalar] = [0.0] * self.count
        for link in tree:
            own: list[Scalar] = [twists[link].dot(force) for force in self.on_link(link)]
            for axis, rate in zip(self.on_axes(link), link.rates(v), strict=True):
                own = [a + effort * rate for a, effort in zip(own, axis, strict=True)]
            total = plus(total, own)
        return total

    def generalized(self, tree: Tree, q: Flat) -> Matrix:
        """J_c: the joint forces of each pull, count × nv."""
        forces, efforts = _once_a_link(tree, self.on_link), _once_a_link(tree, self.on_axes)

        def one(r: int) -> list[Scalar]:
            row = external_force(tree, q, each(tree, lambda link: forces(link)[r]))
            if not self.efforts:
                return row
            own = generalized(tree, each(tree, lambda link: [axis[r] for axis in efforts(link)]))
            return elementwise(tree, lambda a, b: a + b, row, own)

        return [one(r) for r in range(self.count)]


def _once_a_link(tree: Tree, value: Callable[[Link], T]) -> Callable[[Link], T]:
    """The same function, which sums up fields, asked once for each link."""
    known: dict[int, T] = {}

    def kept(link: Link) -> T:
        if link.index not in known:
            known[link.index] = value(link)
        return known[link.index]

    return value if tree.rolls else kept  # where one link stands for many, it is read anew in each sweep


def joined(first: Pulls, second: Pulls) -> Pulls:
    """The pulls of both, those of the first before those of the second."""
    n, m = first.count, second.count
    still = Force.zero()

    def before(field: Field[tuple[Force, ...]]) -> Field[tuple[Force, ...]]:
        return _Mapped(field, lambda forces: (*forces, *(still,) * m))

    def after(field: Field[tuple[Force, ...]]) -> Field[tuple[Force, ...]]:
        return _Mapped(field, lambda forces: (*(still,) * n, *forces))

    return Pulls(
        n + m,
        [*map(before, first.forces), *map(after, second.forces)],
        [
            *(_Mapped(field, lambda axes: [[*axis, *[0.0] * m] for axis in axes]) for field in first.efforts),
            *(_Mapped(field, lambda axes: [[*[0.0] * n, *axis] for axis in axes]) for field in second.efforts),
        ],
    )


class _Mapped(Field[T]):
    """A field whose values are those of another, changed when they are read."""

    def __init__(self, field: Field[T], change: Callable[[T], T]) -> None:
        self.field, self.change = field, change

    def __getitem__(self, link: Link) -> T:
        return self.change(self.field[link])


def mimic_pulls(tree: Tree) -> Pulls:
    """The pulls that keep each mimic to the joint that it follows, one for each."""
    leaders = {link.v_start: link for link in tree.links if not link.is_mimic}
    followers = [link for link in tree.links if link.is_mimic]
    count = len(followers)
    efforts: dict[int, list[Scalar]] = {}
    for k, link in enumerate(followers):
        for end, value in ((link, 1.0), (leaders[link.v_start], -link.multiplier)):
            efforts.setdefault(end.index, [0.0] * count)[k] = value
    own = [(tree.links[index], [row]) for index, row in efforts.items()]
    return Pulls(count, (), [only_at(tree, own, [[0.0] * count])])


def own_efforts(link: Link, tau: Flat) -> Flat:
    """The joint forces on a link's own axes; a mimic has none."""
    return [0.0] * link.joint.nv if link.is_mimic else link.rates(tau)


def without_rotors(tree: Tree, tau: Flat, vdot: Flat) -> list[Scalar]:
    """Joint forces less what rotors take of them for some rates of velocities."""

    def left(link: Link) -> list[Scalar]:
        efforts = zip(own_efforts(link, tau), link.armature, link.rates(vdot), strict=True)
        return [t - J * x for t, J, x in efforts]

    return of_freedoms(tree, each(tree, left))


def of_freedoms(tree: Tree, field: Field[list[Scalar]]) -> list[Scalar]:
    """A vector over the freedoms from a number for each axis: that of the joint which others follow."""
    return generalized(tree, each(tree, lambda link: [0.0] * link.joint.nv if link.is_mimic else field[link]))
