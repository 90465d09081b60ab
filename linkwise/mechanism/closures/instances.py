"""Constraints where they are: on which bodies and joints of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.mechanism.closures.base import Closure, Relation
from linkwise.spatial.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.mechanism.bodies_and_joints import Pose


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

    def coordinates(self, links: Sequence[Any], q: Sequence[Scalar]) -> list[Scalar]:
        """The q of the relation's residuals from the model's, given the links of its tree."""
        return list(q) if self.joints is None else [x for k in self.joints for x in links[k].hinge.coordinates(q)]

    def rates(self, links: Sequence[Any], v: Sequence[Scalar]) -> list[Scalar]:
        """The v of the relation's residuals from the model's, given the links of its tree."""
        return list(v) if self.joints is None else [x for k in self.joints for x in links[k].hinge.rates(v)]
