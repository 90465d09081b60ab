"""One problem of inverse kinematics of one mechanism: its equations over any scalar, the freedoms that solve it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.algorithms import configuration
from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.closed_system import closure_error, constraint_jacobian, places_only
from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.kinematics.goals import Goal, GoalRows
from linkwise.mechanism.mechanism import Mechanism
from linkwise.memoized import cached_property
from linkwise.spatial.scalar import Flat, Matrix, Scalar, is_zero, within
from linkwise.trace.tracer import Tracer

LENGTH, ANGLE, CLOSURE = 0, 1, 2
"""Kinds of error, each with a tolerance of its own."""
_KINDS = {"length": LENGTH, "angle": ANGLE}


@dataclass(frozen=True)
class RowGroup:
    """Rows of the equations whose size together is one error."""

    kind: int
    rows: range
    scale: float
    """Factor of the rows."""


class KinematicsProblem:
    """Goals of a mechanism, with the freedoms that may move and their limits.

    Args:
        mechanism: what moves.
        goals: what is to be reached; closures of the mechanism are kept closed with them.
        movable: which freedoms may move (nv, truth values).
        lower: limits of the coordinates (nq).
        upper: limits of the coordinates (nq).
        samples: some configurations (k, nq), by which lengths are weighed against angles.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        goals: Sequence[Goal],
        movable: Array,
        lower: Array,
        upper: Array,
        samples: Array,
    ) -> None:
        self.mechanism = mechanism
        self.goals = tuple(goals)
        self.movable = movable
        self.lower, self.upper = lower, upper
        self.samples = samples
        self.trees = Trees(mechanism)
        self.sizes = tuple(goal.aims().shape[-1] for goal in goals)
        self.nq, self.nv = mechanism.nq, mechanism.nv

    @property
    def aims(self) -> int:
        """Numbers that say what is aimed at."""
        return sum(self.sizes)

    def _blocks(self, q: Flat, x: Flat) -> list[tuple[GoalRows, float, int]]:
        """The errors of all goals and closures, each with its weight and kind."""
        found = []
        start = 0
        for goal, size in zip(self.goals, self.sizes, strict=True):
            for block in goal.blocks(self.trees, q, x[start : start + size]):
                found.append((block, goal.weight, _KINDS[block.kind]))
            start += size
        tree = self.trees.fast
        closures = [places_only(constraint) for constraint in self.trees.constraints(tree)]
        if closures:
            unmoved = [0.0] * self.nv
            e = closure_error(tree, q, closures, 0.0)
            J = constraint_jacobian(tree, q, unmoved, closures, 0.0)
            found.append((GoalRows("length", e, J), 1.0, CLOSURE))
        return found

    @cached_property
    def middle(self) -> Array:
        """The configuration (nq) in the middle of the limits; zero, or next to it, where there are not two."""
        q = np.zeros(self.nq)
        for joint in self.mechanism._independent:
            q[joint.q_slice] = joint.type.neutral()
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        q[both] = 0.5 * (self.lower[both] + self.upper[both])
        return np.clip(q, self.lower, self.upper)

    @cached_property
    def length(self) -> float:
        """The lever arm (m) by which lengths are made angles: the mean of what turning freedoms have on the goals."""
        squares = []
        x = np.concatenate(
            [np.asarray(goal.aims()).reshape(-1, size)[0] for goal, size in zip(self.goals, self.sizes, strict=True)]
        )
        for q in self.samples:
            for block, _, kind in self._blocks(q.tolist(), x.tolist()):
                if kind == LENGTH:
                    columns = np.array(block.J, float)[:, self.movable & ~self.sliding]
                    squares += [s for s in (columns**2).sum(0) if s > 0.0]
        return float(np.sqrt(np.mean(squares))) if squares else 1.0

    @cached_property
    def sliding(self) -> Array:
        """Mask (nv) of freedoms that move without turning."""
        found = np.zeros(self.nv, bool)
        for joint in self.mechanism._independent:
            axes = joint.type.subspace(joint.type.neutral())
            found[joint.v_slice] = [all(is_zero(a) for a in s.ang) for s in axes]
        return found

    @cached_property
    def active(self) -> tuple[int, ...]:
        """The freedoms that may move and matter."""
        tracer = Tracer()
        q, x = tracer.input("q", (self.nq,)), tracer.input("x", (self.aims,))
        rows = [row for block, _, _ in self._blocks(q, x) for row in block.J]
        return tuple(j for j in range(self.nv) if self.movable[j] and not all(is_zero(row[j]) for row in rows))

    def _coordinates(self, freedoms: Array) -> Array:
        """The coordinates (nq, truth values) of joints of which some freedom is among these (nv)."""
        found = np.zeros(self.nq, bool)
        for joint in self.mechanism._independent:
            found[joint.q_slice] = freedoms[joint.v_slice].any()
        return found

    @cached_property
    def unmoved(self) -> Array:
        """Coordinates (nq) that do not change on the way, since they may not or do not matter."""
        return ~self._coordinates(np.isin(np.arange(self.nv), self.active))

    @cached_property
    def idle(self) -> Array:
        """Coordinates (nq) that may change and do not matter."""
        return self.unmoved & self._coordinates(self.movable)

    def inside(self, q: Array) -> Array:
        """Configurations (..., nq) with all that moves within its limits."""
        least, most = self._ends
        return np.minimum(np.maximum(q, least), most)

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """The limits of what moves."""
        return np.where(self.unmoved, -np.inf, self.lower), np.where(self.unmoved, np.inf, self.upper)

    @cached_property
    def metric(self) -> list[float]:
        """Ease of motion of each active freedom: squares of what is a unit of it."""
        return [self.length**2 if self.sliding[j] else 1.0 for j in self.active]

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """Groups of the rows of :meth:`equations`."""
        tracer = Tracer()
        q, x = tracer.input("q", (self.nq,)), tracer.input("x", (self.aims,))
        found, start = [], 0
        for block, weight, kind in self._blocks(q, x):
            rows = range(start, start + len(block.e))
            start = rows.stop
            # Closures mix lengths and angles and are none of the goals; they count at least as much.
            found.append(RowGroup(kind, rows, weight / self.length if kind == LENGTH else weight))
        return tuple(found)

    @property
    def rows(self) -> int:
        """The number of equations."""
        return self.groups[-1].rows.stop if self.groups else 0

    def equations(self, q: Flat, x: Flat) -> tuple[list[Scalar], Matrix]:
        """Errors (rows) and their Jacobian by the active freedoms, weighted."""
        e: list[Scalar] = []
        J: Matrix = []
        for (block, _, _), group in zip(self._blocks(q, x), self.groups, strict=True):
            e += [value * group.scale for value in block.e]
            J += [[row[j] * group.scale for j in self.active] for row in block.J]
        return e, J

    def moved(self, q: Flat, step: Flat) -> list[Scalar]:
        """The configuration after a step of the active freedoms, no coordinate beyond its limits."""
        dv: list[Scalar] = [0.0] * self.nv
        for j, value in zip(self.active, step, strict=True):
            dv[j] = value
        new = configuration.integrate(self.trees.fast, q, dv)
        return [within(a, float(lo), float(hi)) for a, lo, hi in zip(new, self.lower, self.upper, strict=True)]

    def posture_step(self, q: Flat, rest: Flat) -> list[Scalar]:
        """Step from q to the preferred configuration, for the active freedoms."""
        whole = configuration.difference(self.trees.fast, q, rest)
        return [whole[j] for j in self.active]

    def bounds(self, q: Flat) -> list[tuple[Scalar, float, float] | None]:
        """Coordinate and limits of each active freedom, where it has both."""
        places: dict[int, int] = {}
        for joint in self.mechanism._independent:
            if not joint.type.quasi_velocities:
                places.update(zip(range(self.nv)[joint.v_slice], range(self.nq)[joint.q_slice], strict=True))
        found: list[tuple[Scalar, float, float] | None] = []
        for j in self.active:
            k = places.get(j)
            limited = k is not None and (np.isfinite(self.lower[k]) or np.isfinite(self.upper[k]))
            found.append((q[k], float(self.lower[k]), float(self.upper[k])) if limited and k is not None else None)
        return found
