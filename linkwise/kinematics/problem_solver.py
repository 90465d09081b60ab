"""Search for many targets from many starts: the order in which they run, and the results that are kept.

Every target tries the same starts in the same order: the caller's guess, then rows of a table of random configurations.
So a result does not depend on the batch it was part of. Passes run in portions; between them what has ended makes room,
and targets that got stuck go on from their next starts, several at once where there is room in the lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.kinematics.levenberg import CONTROL, FIRST_DAMPING, FIRST_SHARE, REACHED, RUNNING, reaching, settling
from linkwise.kinematics.problem import KinematicsProblem
from linkwise.memoized import cached_property, once
from linkwise.targets.llvm.program_kernel import ProgramKernel

_PORTION = 12  # passes between two looks
_NEW = (RUNNING, FIRST_DAMPING, 0.0, -1.0, 0.0, 0.0)  # see CONTROL
_AT_ONCE = 64  # starts that run together when few targets are left, at most


class Reached(NamedTuple):
    """Result of inverse kinematics, for each target of a batch (...)."""

    q: Array
    """(..., nq), the best configuration found."""
    converged: Array
    """(...), whether all errors are within the tolerances there."""
    position_error: Array
    """(...), the largest distance that is left of any goal, m."""
    angle_error: Array
    """(...), the largest angle that is left of any goal, rad."""
    iterations: Array
    """(...), passes made, over all starts."""
    start: Array
    """(...), the start that led there: 0 for the given one, k for the k-th random one."""


class KinematicsSolver:
    """Compiled inverse kinematics of one problem."""

    def __init__(self, problem: KinematicsProblem) -> None:
        self.problem = problem
        self._settlers: dict[bool, ProgramKernel] = {}

    @cached_property
    def _routine(self) -> Any:
        return reaching(self.problem)

    @cached_property
    def one(self) -> ProgramKernel:
        """Kernel for few states."""
        return ProgramKernel.build(self._routine, single=True)

    @cached_property
    def many(self) -> ProgramKernel:
        """Kernel for many states, in lanes."""
        return ProgramKernel.build(self._routine)

    def solve(
        self,
        x: Array,
        q0: Array,
        starts: Callable[[], Array],
        tolerance: Sequence[float],
        iterations: int,
        threads: int = 1,
        rest: Array | None = None,
    ) -> tuple[Array, ...]:
        """Run to the end.

        Args:
            x: what is aimed at (count, aims).
            q0: first guesses (count, nq).
            starts: gives further starts (k, nq), the same for all; asked for only when they are needed.
            tolerance: for lengths, angles and closures (3).
            iterations: passes for each start, at most.
            threads: to split the work over.
            rest: configurations (count, nq) to stay near, if any.

        Returns:
            q, whether it converged, its errors (count, 3), all passes, the start.
        """
        rows = self._run(q0, x, tolerance, iterations, threads)
        control = rows["control"]
        converged = control[:, 0] == REACHED
        passes = control[:, CONTROL.index("passes")].astype(int)
        best = _Best(rows["q"], converged, rows["errors"], passes, np.zeros(len(x), int))
        if not converged.all():
            self._from(best, starts(), q0, x, tolerance, iterations, threads)
            self._refine(best, x, tolerance, iterations, threads)
        if rest is not None:
            self._settle(best, x, rest, tolerance, iterations, threads)
        return best.q, best.converged, best.errors, best.passes, best.start

    def _refine(self, best: _Best, x: Array, tolerance: Sequence[float], iterations: int, threads: int) -> None:
        """Bring what cannot be reached as near as it goes: patience has no end."""
        which = np.flatnonzero(~best.converged & np.isfinite(best.errors).all(axis=1))
        if len(which):
            rows = self._run(best.q[which], x[which], tolerance, iterations, threads, patient=True)
            best.take(which, best.start[which], rows)

    def _settle(
        self, best: _Best, x: Array, rest: Array, tolerance: Sequence[float], iterations: int, threads: int
    ) -> None:
        """Bring those that converged nearer to the preferred configuration."""
        which = np.flatnonzero(best.converged)
        control = np.empty((len(which), 4))
        control[:] = (RUNNING, FIRST_SHARE, 0.0, iterations)
        part = {"q": best.q[which], "x": x[which], "rest": np.ascontiguousarray(rest[which]), "control": control}
        kernel = self._settling(len(which) < 3)
        kernel.run(part, {}, {}, len(which), threads)
        rows = self._run(part["q"], part["x"], tolerance, iterations, threads)
        good = rows["control"][:, 0] == REACHED
        own = which[good]
        best.q[own] = np.where(self.problem.idle, rest[own], rows["q"][good])
        best.errors[own] = rows["errors"][good]
        best.passes[which] += (iterations - control[:, 3]).astype(int)

    def _settling(self, scalar: bool) -> ProgramKernel:
        return once(self._settlers, scalar, lambda: ProgramKernel.build(settling(self.problem), single=scalar))

    def _from(
        self,
        best: _Best,
        starts: Array,
        q0: Array,
        x: Array,
        tolerance: Sequence[float],
        iterations: int,
        threads: int,
    ) -> None:
        """Try further starts for what has not converged; what does not move is as in the first."""
        tried, room = 0, self.many.lanes
        while tried < len(starts):
            open_ = np.flatnonzero(~best.converged & np.isfinite(x).all(axis=1))
            if not len(open_):
                break
            together = min(len(starts) - tried, max(1, room // len(open_)))
            which = np.repeat(open_, together)
            number = np.tile(np.arange(tried, tried + together), len(open_))
            q = np.where(self.problem.unmoved, q0[which], starts[number])
            best.take(which, number + 1, self._run(q, x[which], tolerance, iterations, threads))
            tried, room = tried + together, min(2 * room, _AT_ONCE)

    def _run(
        self,
        q: Array,
        x: Array,
        tolerance: Sequence[float],
        iterations: int,
        threads: int,
        patient: bool = False,
    ) -> dict[str, Array]:
        """One start for each target, to the end; in portions of passes while many run, so that lanes stay busy."""
        count = len(q)
        rows = {
            "q": np.array(q, float, order="C"),
            "x": np.ascontiguousarray(x),
            "control": np.empty((count, len(CONTROL))),
            "errors": np.empty((count, 3)),
            "tolerance": np.empty((count, 3)),
        }
        rows["control"][:] = _NEW
        if patient:
            rows["control"][:, CONTROL.index("waited")] = -1e9
        rows["tolerance"][:] = tolerance
        kernel = self.one if count < 3 else self.many
        going = np.arange(count)
        left = iterations
        while left > 0 and len(going):
            portion = min(left, _PORTION) if len(going) > 2 * kernel.lanes else left
            part = rows if len(going) == count else {name: row[going] for name, row in rows.items()}
            part["control"][:, CONTROL.index("left")] = portion
            kernel.run(part, {}, {}, len(going), threads)
            if part is not rows:
                for name in ("q", "control", "errors"):
                    rows[name][going] = part[name]
            left -= portion
            if left > 0:
                going = going[part["control"][:, 0] == RUNNING]
        return rows


@dataclass
class _Best:
    """The best of each target so far."""

    q: Array
    converged: Array
    errors: Array
    passes: Array
    start: Array

    def take(self, which: Array, start: Array, rows: dict[str, Array]) -> None:
        """Take over results of some starts of some targets."""
        control, errors = rows["control"], rows["errors"]
        np.add.at(self.passes, which, control[:, CONTROL.index("passes")].astype(int))
        reached = control[:, 0] == REACHED
        size = np.where(np.isfinite(errors).all(axis=1), np.max(errors, axis=1), np.inf)
        # Of several starts of one target the first that converged, else the one with the least error.
        order = np.lexsort((start, np.where(reached, 0.0, size), ~reached, which))
        first = np.ones(len(order), bool)
        first[1:] = which[order][1:] != which[order][:-1]
        chosen = order[first]
        own = which[chosen]
        better = reached[chosen] | (size[chosen] < self.errors[own].max(axis=1))
        chosen, own = chosen[better], own[better]
        self.q[own], self.errors[own] = rows["q"][chosen], errors[chosen]
        self.converged[own], self.start[own] = reached[chosen], start[chosen]
