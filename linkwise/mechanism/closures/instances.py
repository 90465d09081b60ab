"""Constraints where they are: on which bodies and joints of a mechanism, and which links feel them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwise.dataclass import dataclass
from linkwise.joints import Joint
from linkwise.mechanism.closures.base import Closure, Relation
from linkwise.mechanism.closures.from_joint import JointClosure
from linkwise.mechanism.description import JointLimits
from linkwise.spatial.scalar import Flat, Scalar

if TYPE_CHECKING:
    from linkwise.mechanism.bodies_and_joints import Pose
    from linkwise.mechanism.mechanism import Mechanism
    from linkwise.mechanism.tree import Link


@dataclass(frozen=True)
class ClosureInstance:
    """A closure between two frames of a mechanism. Bodies are moving ones: a place on a welded one is a place on it."""

    name: str
    type: Closure
    body_a: int
    """Index of the moving body that carries frame a; -1 for the world."""
    placement_a: Pose
    """Frame a in that body's frame."""
    body_b: int
    """Index of the moving body that carries frame b; -1 for the world."""
    placement_b: Pose
    """Frame b in that body's frame."""
    node_a: int = 0
    """Of a flexible body, the place in its ``nodes`` that ``placement_a`` starts from."""
    node_b: int = 0
    """Likewise for frame b."""
    limits: tuple[JointLimits, ...] = ()
    """Of the freedoms that its joint leaves, if it has any; so are those below, as of a joint in the tree."""
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    rest: tuple[float, ...] = ()

    @property
    def sides(self) -> tuple[tuple[int, Pose, int], tuple[int, Pose, int]]:
        """Body, placement and node of frame a, and those of frame b."""
        return (self.body_a, self.placement_a, self.node_a), (self.body_b, self.placement_b, self.node_b)

    @property
    def joint(self) -> Joint | None:
        """The joint whose freedoms the closure leaves, with their coordinates; None where there are none."""
        kind = self.type
        return kind.joint if isinstance(kind, JointClosure) and kind.joint.nv else None

    @property
    def centre(self) -> float:
        """The place within half a turn of which an angle is told: the middle of its limits, or else its rest."""
        if self.joint is None or self.joint.nv != 1 or not self.joint.fixed_axes:
            return 0.0
        if self.limits and math.isfinite(self.limits[0].upper - self.limits[0].lower):
            return 0.5 * (self.limits[0].lower + self.limits[0].upper)
        return self.rest[0] if self.rest else 0.0

    @property
    def is_active(self) -> bool:
        """Whether a spring, a damper or friction acts along its freedoms."""
        return any((*self.stiffness, *self.damping, *self.friction))

    @property
    def equations(self) -> tuple[str, ...]:
        """The names of all its equations: between places, then between rates."""
        return (*self.type.equations, *self.type.rate_equations)


@dataclass(frozen=True)
class RelationInstance:
    """A relation between joints of a mechanism."""

    name: str
    type: Relation
    joints: tuple[int, ...] | None
    """Indices of the joints, in the relation's order; None where it is about the whole of q and v."""

    @property
    def equations(self) -> tuple[str, ...]:
        """The names of all its equations: between places, then between rates."""
        return (*self.type.equations, *self.type.rate_equations)

    def coordinates(self, links: Sequence[Link], q: Flat) -> list[Scalar]:
        """The q of the relation's residuals from the model's, given the links of its tree."""
        return list(q) if self.joints is None else [x for k in self.joints for x in links[k].hinge.coordinates(q)]

    def rates(self, links: Sequence[Link], v: Flat) -> list[Scalar]:
        """The v of the relation's residuals from the model's, given the links of its tree."""
        return list(v) if self.joints is None else [x for k in self.joints for x in links[k].hinge.rates(v)]


@dataclass(frozen=True)
class ClosureFreedoms:
    """The freedoms of one closure, and their places among those of all closures of a mechanism."""

    closure: ClosureInstance
    number: int
    """The closure's place in ``closures``."""
    joint: Joint
    q_slice: slice
    """Its part of ``model.constraints.coordinates(q)``."""
    v_slice: slice
    """Its part of ``model.constraints.velocities(q, v)`` and of the forces of ``model.constraints.efforts(q, f)``."""

    @property
    def name(self) -> str:
        """The closure's."""
        return self.closure.name


def freedoms_of_closures(closures: Sequence[ClosureInstance | RelationInstance]) -> list[ClosureFreedoms]:
    """Those of the closures that have some, in order."""
    found: list[ClosureFreedoms] = []
    q = v = 0
    for k, closure in enumerate(closures):
        joint = closure.joint if isinstance(closure, ClosureInstance) else None
        if joint is not None:
            assert isinstance(closure, ClosureInstance)
            found.append(ClosureFreedoms(closure, k, joint, slice(q, q + joint.nq), slice(v, v + joint.nv)))
            q, v = q + joint.nq, v + joint.nv
    return found


@dataclass(frozen=True)
class Reference:
    """A closed configuration at which it is decided which freedoms are independent and which equations redundant."""

    q: tuple[float, ...]
    t: float = 0.0
    independent: tuple[int, ...] = ()
    """Places in v that are to be independent; what else is free besides them is found."""


_LINK, _COLUMN = 400, 70
"""Operations of forward dynamics, of a link without closures and for each equation more; a pair of these adds one."""


def equations_on_bodies(mechanism: Mechanism) -> NDArray[np.int64]:
    """For each body, how many equations of closures it feels."""
    counts = np.zeros(len(mechanism.bodies), np.int64)
    for closure in mechanism.closures:
        if isinstance(closure, ClosureInstance):
            ends = [closure.body_a, closure.body_b]
        else:
            ends = list(range(len(mechanism.bodies)) if closure.joints is None else closure.joints)
        reached: set[int] = set()
        for body in ends:
            while body >= 0 and body not in reached:
                reached.add(body)
                body = mechanism.parents[body]  # on the way to the base
        counts[list(reached)] += len(closure.equations)
    return counts


def share_of_work(mechanism: Mechanism) -> float:
    """Of what loops compute, the part that is not zero for certain; 1 without closures."""
    counts = equations_on_bodies(mechanism)
    most = sum(len(closure.equations) for closure in mechanism.closures)

    def work(columns: NDArray[np.int64]) -> int:
        return int((_LINK + _COLUMN * columns + columns**2).sum())

    return work(counts) / max(1, work(np.full_like(counts, most)))
