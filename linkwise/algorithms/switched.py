"""Constraints that can be released and attached without another program: each has a number, 1 in force and 0 released.

The number multiplies the residuals, so everything that follows from them (rates, rows of J_c, bias) carries it too. A
released constraint has rows of zeros, and rows of zeros have multipliers of zero
(:mod:`linkwise.algorithms.multipliers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from linkwise.algorithms.equations import Between, Constraint
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.base import Closure, Relation
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Motion

Flat = Sequence[Scalar]


def switched(constraint: Constraint, active: Scalar) -> Constraint:
    """A constraint that holds where ``active`` is one, and asks for nothing where it is zero."""
    if isinstance(constraint, Between):
        return replace(constraint, type=SwitchedClosure(constraint.type, active))
    return replace(constraint, type=SwitchedRelation(constraint.type, active))


@dataclass(frozen=True, eq=False)
class SwitchedClosure(Closure):
    """A closure times a number."""

    closure: Closure
    active: Scalar

    @property
    def joins_origins(self) -> bool:
        """The same."""
        return self.closure.joins_origins

    @property
    def equations(self) -> tuple[str, ...]:
        """The same."""
        return self.closure.equations

    @property
    def rate_equations(self) -> tuple[str, ...]:
        """The same."""
        return self.closure.rate_equations

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        """Those of the closure, or zeros."""
        return [e * self.active for e in self.closure.residual(X, t)]

    def rate_residual(self, X: RelativePose, V: Motion, t: Scalar) -> list[Scalar]:
        """Those of the closure, or zeros."""
        return [g * self.active for g in self.closure.rate_residual(X, V, t)]


class SwitchedRelation(Relation):
    """A relation between joints times a number."""

    def __init__(self, relation: Relation, active: Scalar) -> None:
        self.relation, self.active = relation, active
        self.equations, self.rate_equations = relation.equations, relation.rate_equations

    def residual(self, q: Flat, t: Scalar) -> list[Scalar]:
        """Those of the relation, or zeros."""
        return [e * self.active for e in self.relation.residual(q, t)]

    def rate_residual(self, q: Flat, v: Flat, t: Scalar) -> list[Scalar]:
        """Those of the relation, or zeros."""
        return [g * self.active for g in self.relation.rate_residual(q, v, t)]
