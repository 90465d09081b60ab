"""Forces that act together on a mechanism, several at a time: on links, and along joint axes.

The columns of J_c*: what the multipliers of constraints, or forces on an end effector, do to the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.sweeps import Field, each, elementwise, generalized
from linkwise.model.tree import Link, Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force


@dataclass(frozen=True)
class Pulls:
    """``count`` unit pulls: for each link ``count`` forces, for each joint axis ``count`` efforts, None where zero."""

    count: int
    forces: Sequence[Field[tuple[Force, ...]]] = ()
    """Fields whose sum is meant: one for each place that is pulled at."""
    efforts: Field[Sequence[Sequence[Scalar]]] | None = None
    """For each axis of a link's joint one number a pull."""

    def on_link(self, link: Link) -> tuple[Force, ...]:
        """The force of each pull on a link."""
        total = (Force.zero(),) * self.count
        for field in self.forces:
            total = tuple(a + b for a, b in zip(total, field[link], strict=True))
        return total

    def on_axes(self, link: Link) -> Sequence[Sequence[Scalar]]:
        """The effort of each pull on each axis of a link's joint."""
        return [[0.0] * self.count] * link.joint.nv if self.efforts is None else self.efforts[link]

    def generalized(self, tree: Tree, q: Sequence[Scalar]) -> list[list[Scalar]]:
        """J_c: the joint forces of each pull, count × nv."""
        rows = []
        for r in range(self.count):
            row = external_force(tree, q, each(tree, lambda link, r=r: self.on_link(link)[r]))  # type: ignore[misc]
            if self.efforts is not None:
                own = generalized(tree, each(tree, lambda link, r=r: [axis[r] for axis in self.on_axes(link)]))  # type: ignore[misc]
                row = elementwise(tree, lambda a, b: a + b, row, own)
            rows.append(row)
        return rows
