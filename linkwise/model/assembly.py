"""Configurations in which all loops of a model are closed, from guesses: what :meth:`linkwise.Model.assemble` does.

Loops that share no joint are closed apart. Those that do are closed together by the trust region of
:mod:`linkwise.model.roots`; where that ends with one open, the loops are closed one after the other, each from where
those before it hold; and where that does not help, both are tried from guesses further and further away, in other
orders. Joints that move as prescribed are put where they are due and held there, locked ones where the guess has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.closures import ClosureInstance, Prescribed, RelationInstance
from linkwise.model.roots import nearest_root

if TYPE_CHECKING:
    from linkwise.model.model import Model

_ATTEMPTS = 24
"""Guesses that are tried: the user's own first, then others around it, further and further away."""
_NEAREST, _FURTHER, _FURTHEST = 0.03, 1.4, 2.0
"""Distance of the second guess, the factor from each to the next, and the largest distance: rad or m."""
_LONGEST = 1.0
"""Rad or m in one step: further away a linear model of a loop says nothing."""


class ClosedLoop(NamedTuple):
    """One closure or coupling: its equations between places, and the freedoms between its ends."""

    name: str
    rows: Array
    freedoms: frozenset[int]


class Assembly:
    """The search for closed configurations of one model.

    Args:
        model: the mechanism.
        residual: e (k, m) of all equations between places at configurations (k, nq) of states with numbers (k).
        jacobian: its derivative (k, m, nv).
        lower, upper: bounds of q (nq).
        locked: freedoms that stay as they are in the guess.
        tol: the largest residual allowed.
    """

    def __init__(
        self,
        model: Model,
        residual: Callable[[Array, Array], Array],
        jacobian: Callable[[Array, Array], Array],
        lower: Array,
        upper: Array,
        locked: Sequence[int],
        tol: float,
    ) -> None:
        self.model, self.residual, self.jacobian, self.tol = model, residual, jacobian, tol
        self.loops = loops_of(model)
        self.due = [(row, joint.q_slice.start, joint.v_slice.start) for row, joint in _prescribed(model, self.loops)]
        held = {*locked, *(place for _, _, place in self.due)}
        looped = set().union(*(loop.freedoms for loop in self.loops))
        self.free = np.array([k in looped and k not in held for k in range(model.nv)], bool)  # no others are touched
        self.low, self.high, self.place = _bounds(model, lower, upper, self.free)

    def closed(self, guesses: Array) -> Array:
        """The configurations (k, nq) that come of guesses (k, nq): closed, or with a loop as little open as it was."""
        q = self.inside(guesses)
        every = np.arange(len(q))
        if self.due:
            e = self.residual(q, every)
            for row, place, _ in self.due:
                q[:, place] -= e[:, row]
        for group in _sharing(self.loops, self.free):
            self._close(group, q, every)
        return q

    def open_alone(self, guess: Array, which: int) -> tuple[Array, Array]:
        """For one guess (nq), the numbers of loops that stay open by themselves, and the residuals (m) they keep."""
        left = np.zeros(sum(len(loop.rows) for loop in self.loops))
        for loop in self.loops:
            q = self.inside(guess[None])
            self._close([loop], q, np.array([which]))
            e = self.residual(q, np.array([which]))[0, loop.rows]
            if not np.abs(e).max(initial=0.0) <= self.tol:
                left[loop.rows] = e
        return np.flatnonzero(left), left

    def inside(self, q: Array) -> Array:
        """Configurations with what has bounds put between them, turned back there as often as it takes."""
        q = np.array(q, float)
        x, span = q[:, self.place], self.high - self.low
        turned = np.abs((x - self.low) % (2.0 * np.where(np.isfinite(span) & (span > 0.0), span, 1.0)))
        turned = self.low + np.where(turned > span, 2.0 * span - turned, turned)
        both = np.isfinite(span) & (span > 0.0)
        q[:, self.place] = np.where((x >= self.low) & (x <= self.high), x, np.where(both, turned, x))
        q[:, self.place] = np.clip(q[:, self.place], self.low, self.high)
        return q

    def _close(self, group: Sequence[ClosedLoop], q: Array, every: Array) -> None:
        """Close loops that share joints, in place, in the states that are open."""
        rows = np.concatenate([loop.rows for loop in group])
        freedoms = np.array(sorted({k for loop in group for k in loop.freedoms if self.free[k]}), int)
        if not len(freedoms) or not len(rows):
            return
        start, rng = q.copy(), np.random.default_rng(0)
        left = np.full(len(q), np.inf)
        for orders, far in _attempts(len(group), rng):
            open_ = np.flatnonzero(~(left <= self.tol))
            if not len(open_):
                return
            x = start[open_]
            if far:
                away = np.zeros((len(open_), self.model.nv))
                away[:, freedoms] = rng.normal(size=(len(open_), len(freedoms))) * far
                x = self.inside(self._moved(x, away))
            for order in orders:
                # One loop after the other: each from where those before it hold.
                chosen = np.concatenate([group[k].rows for k in order])
                x, _ = self._nearest(x, chosen, freedoms, every[open_])
            e = self.residual(x, every[open_])[:, rows]
            worst = np.where(np.isfinite(e), np.abs(e), np.inf).max(-1, initial=0.0)
            closer = worst < left[open_]
            q[open_[closer]], left[open_[closer]] = x[closer], worst[closer]

    def _nearest(self, q: Array, rows: Array, freedoms: Array, which: Array) -> tuple[Array, Array]:
        """The trust region over some equations and some freedoms."""

        def moved(x: Array, step: Array, _: Array) -> Array:
            whole = np.zeros((len(x), self.model.nv))
            whole[:, freedoms] = step
            return self._moved(x, whole)

        bounded = np.flatnonzero(np.isin(self._bounded, freedoms))
        columns = np.searchsorted(freedoms, self._bounded[bounded])
        low, high, place = self.low[bounded], self.high[bounded], self.place[bounded]

        def room(x: Array) -> tuple[Array, Array]:
            down, up = (np.full((len(x), len(freedoms)), end) for end in (-np.inf, np.inf))
            down[:, columns], up[:, columns] = np.minimum(low - x[:, place], 0.0), np.maximum(high - x[:, place], 0.0)
            return down, up

        return nearest_root(
            lambda x, k: self.residual(x, which[k])[:, rows],
            lambda x, k: self.jacobian(x, which[k])[:, rows][:, :, freedoms],
            moved,
            q,
            self.tol,
            room if len(bounded) else None,
            _LONGEST,
        )

    def _moved(self, q: Array, step: Array) -> Array:
        return np.array(self.model._run("integrate", q, step))

    @property
    def _bounded(self) -> Array:
        """The freedoms that have bounds, in the order of ``place``."""
        starts = {j.q_slice.start + k: j.v_slice.start + k for j in self.model.joints for k in range(j.nv)}
        return np.array([starts[int(place)] for place in self.place], int)


def loops_of(model: Model) -> list[ClosedLoop]:
    """The closures and couplings of a model in their order."""
    found, first = [], 0
    for closure in model.closures:
        rows = np.arange(first, first + len(closure.type.equations))
        first += len(rows)
        found.append(ClosedLoop(closure.name, rows, frozenset(_between(model, closure))))
    return found


def _between(model: Model, closure: ClosureInstance | RelationInstance) -> Iterator[int]:
    """The freedoms that move the ends of a closure against each other, or that a relation is about."""
    if isinstance(closure, ClosureInstance):
        a, b = (set(_inward(model, body)) for body in (closure.body_a, closure.body_b))
        bodies = a ^ b
        # The modes of the last body that both ends hang on move them, its joint does not.
        shared = max(a & b, default=-1)
        if shared >= 0:
            yield from range(*model.bodies[shared].v_slice.indices(model.nv))
    else:
        bodies = set(range(len(model.bodies)) if closure.joints is None else closure.joints)
    for k in bodies:
        yield from range(*model.joints[k].v_slice.indices(model.nv))
        yield from range(*model.bodies[k].v_slice.indices(model.nv))


def _inward(model: Model, body: int) -> Iterator[int]:
    while body >= 0:
        yield body
        body = model.parents[body]


def _sharing(loops: Sequence[ClosedLoop], free: Array) -> list[list[ClosedLoop]]:
    """Loops in groups that have no free freedom in common, each group with the loops of fewest freedoms first."""
    groups: list[list[ClosedLoop]] = []
    for loop in loops:
        own = {k for k in loop.freedoms if free[k]}
        touched = [group for group in groups if any(own & each.freedoms for each in group)]
        groups = [group for group in groups if not any(group is each for each in touched)]
        groups.append([*(each for group in touched for each in group), loop])
    return [sorted(group, key=lambda loop: len(loop.freedoms)) for group in groups]


def _attempts(n: int, rng: np.random.Generator) -> Iterator[tuple[list[Sequence[int]], float]]:
    """Sets of loops to be closed in turn, of n, and how far from the guess to begin."""
    together: list[Sequence[int]] = [range(n)]
    in_turn: list[Sequence[int]] = [range(k) for k in range(1, n + 1)]
    yield together, 0.0
    if n > 1:
        yield in_turn, 0.0
    far = _NEAREST
    for attempt in range(_ATTEMPTS):
        mixed = rng.permutation(n).tolist()
        yield together if attempt % 2 or n == 1 else [mixed[:k] for k in range(1, n + 1)], far
        far = min(far * _FURTHER, _FURTHEST)


def _prescribed(model: Model, loops: Sequence[ClosedLoop]) -> Iterator[tuple[int, JointInstance]]:
    """The rows of motions that are given for joints, with their joints, each joint once."""
    seen: set[int] = set()
    for closure, loop in zip(model.closures, loops, strict=True):
        if isinstance(closure, RelationInstance) and isinstance(closure.type, Prescribed) and closure.joints:
            (k,) = closure.joints
            if model.joints[k].mimic is None and k not in seen:
                seen.add(k)
                yield int(loop.rows[0]), model.joints[k]


def _bounds(model: Model, lower: Array, upper: Array, free: Array) -> tuple[Array, Array, Array]:
    """Lower and upper bounds and places in q, of coordinates that are freedoms, may move and have a bound."""
    places = [
        joint.q_slice.start + k
        for joint in model.joints
        if joint.nq == joint.nv and joint.mimic is None and not joint.type.quasi_velocities
        for k in range(joint.nv)
        if free[joint.v_slice.start + k]
    ]
    place = np.array([k for k in places if np.isfinite(lower[k]) or np.isfinite(upper[k])], int)
    return lower[place], upper[place], place
