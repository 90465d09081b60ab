"""Impulses of a pile: sweeps over its contacts, then Newton's method on islands of bodies that hang together by them.

Islands that are settled are left alone. For the others an interior-point method comes near the solution, and rounds of
an augmented Lagrangian find its last digits; both have sparse matrices, so that islands may be large.

In a sweep, compiled, each contact in turn obeys its laws, all others as they are (Gauss–Seidel): it gets the impulse
that makes it stick, if the cone holds it; else first the normal's, then the tangents', projected onto the disk of μ
times it. Where nothing changes any more all laws hold exactly. A sweep upwards is followed by one downwards. The table
of contacts is data, so one compiled program serves every pile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from linkwise.array_types import Array
from linkwise.contact.elimination import eliminated
from linkwise.sim.piles.interior import START, InteriorPoint
from linkwise.sim.piles.islands import Island, Rows, projected
from linkwise.spatial.scalar import Scalar, dot, maximum, sqrt, where
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Call, Copy, For, Program, Stretch, input_buffer, output_buffer

PASSES = 25
"""Pairs of sweeps, up and down, in one call."""

_SIZES = {"va": 6, "vb": 6, "row": 57, "impulse": 3}
"""Numbers of a contact: velocities [ω, u] of its bodies, its row (see :func:`_numbers`), its impulse."""

_kept: list[ProgramKernel] = []
"""The last kernel. Its code, which all have in common, would be loaded for each of them if nobody held it."""


def swept(rows: Rows, velocity: Array, impulse: Array) -> tuple[Array, Array]:
    """Velocities [ω, u] of all bodies (n, 6) and impulses (m, 3) after some passes from these."""
    order = np.argsort(rows.height, kind="stable")
    known = np.concatenate([velocity, np.zeros((1, 6))])
    numbers = _numbers(rows)
    kernel = ProgramKernel.build(_program(rows.body[order], order, len(known), len(impulse)), single=True)
    _kept[:] = [kernel]
    out = [np.empty((1, known.size)), np.empty((1, impulse.size))]
    kernel.evaluate([known.reshape(1, -1), numbers.reshape(1, -1), impulse.reshape(1, -1)], out, 1)
    return out[0].reshape(-1, 6)[:-1], out[1].reshape(-1, 3)


def _numbers(rows: Rows) -> Array:
    """For each contact (m, 57): rows of the first body, of the second, then the Delassus matrix, bias, and μ.

    Rows are given as moments, since both bodies have the same directions; what an impulse does to a body's spin, too.
    """
    gained = np.einsum("msij,mskj->mski", rows.inverse_inertia[rows.body], rows.arms)
    masses = rows.inverse_mass[rows.body]
    parts = [rows.frame.reshape(-1, 9), rows.arms.reshape(-1, 18), gained.reshape(-1, 18), masses]
    return np.ascontiguousarray(
        np.hstack([*parts, rows.own[:, _UPPER[0], _UPPER[1]], rows.bias, rows.friction[:, None]])
    )


_UPPER = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])


def _program(body: Array, order: Array, bodies: int, contacts: int) -> Program:
    width = _SIZES["row"]
    table = np.stack([6 * body[:, 0], 6 * body[:, 1], width * order, 3 * order], axis=1).astype(np.int64)
    sizes = {"velocity": 6 * bodies, "row": width * contacts, "impulse": 3 * contacts}
    specs = {name: ArraySpec(name, (size,)) for name, size in sizes.items()}
    a, b, impulse = (
        Stretch(f"out:{name}", column) for name, column in (("velocity", 0), ("velocity", 1), ("impulse", 3))
    )
    turn = (Call(_turn(), (a, b, Stretch("in:row", 2), impulse), (a, b, impulse)),)
    both = (For("contacts", turn), For("contacts", turn, reverse=True))
    return Program(
        "sweeps",
        (*map(input_buffer, specs.values()), output_buffer(specs["velocity"]), output_buffer(specs["impulse"])),
        (*(Copy(f"in:{name}", f"out:{name}") for name in ("velocity", "impulse")), For(PASSES, both)),
        rows=table,
        ranges=(("contacts", 0, len(table)),),
    )


@cache
def _turn() -> Block:
    def text(va: list[Scalar], vb: list[Scalar], row: list[Scalar], old: list[Scalar]) -> dict[str, Any]:
        frame, a, b, more_a, more_b = (_three(row[9 * k : 9 * k + 9]) for k in range(5))
        xx, xy, xz, yy, yz, zz = row[47:53]
        W = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        w = [
            bias + dot(d, va[3:]) - dot(d, vb[3:]) + dot(x, va[:3]) - dot(y, vb[:3])
            for bias, d, x, y in zip(row[53:56], frame, a, b, strict=True)
        ]
        new = _impulse(W, w, old, row[-1])
        more = [x - y for x, y in zip(new, old, strict=True)]
        made = []
        for v, sign, gained, mass in ((va, 1.0, more_a, row[45]), (vb, -1.0, more_b, row[46])):
            change = [*_combined(gained, more), *(mass * x for x in _combined(frame, more))]
            made.append([x + sign * y for x, y in zip(v, change, strict=True)])
        return {"a": made[0], "b": made[1], "new": new}

    made = program("turn", text, _SIZES)
    assert isinstance(made, Block)
    return made


def _impulse(W: list[list[Scalar]], w: Sequence[Scalar], old: Sequence[Scalar], mu: Scalar) -> list[Scalar]:
    """The impulse that obeys the laws, for a contact that would move with w after the old one."""
    stuck = [x - y for x, y in zip(old, eliminated(W, w), strict=True)]
    normal = maximum(old[0] - w[0] / W[0][0], 0.0)
    more = normal - old[0]
    # No less than what the tangents' block can do, so that steps on the disk come to rest.
    yy, yz, zz = W[1][1], W[1][2], W[2][2]
    slope = 0.5 * (yy + zz) + sqrt(0.25 * (yy - zz) * (yy - zz) + yz * yz)
    slip = [old[k] - (w[k] + W[k][0] * more) / slope for k in (1, 2)]
    radius, square = mu * normal, slip[0] * slip[0] + slip[1] * slip[1]
    out = square > radius * radius
    scale = where(out, radius / sqrt(where(out, square, 1.0)), 1.0)
    slid = [normal, *(scale * x for x in slip)]
    reach = mu * stuck[0]
    sticks = (stuck[0] >= 0.0) & (stuck[1] * stuck[1] + stuck[2] * stuck[2] <= reach * reach)
    return [where(sticks, x, y) for x, y in zip(stuck, slid, strict=True)]


def _three(numbers: Sequence[Scalar]) -> list[list[Scalar]]:
    return [list(numbers[3 * k : 3 * k + 3]) for k in range(3)]


def _combined(rows: list[list[Scalar]], factors: Sequence[Scalar]) -> list[Scalar]:
    return [sum((rows[k][i] * factors[k] for k in range(3)), 0.0) for i in range(3)]


_TOLERANCE = 1e-10
"""m/s, by which contacts may miss their laws."""

_CALLS = 3
"""Calls of sweeps before each attempt of Newton's methods."""

_ATTEMPTS = 4

_ENOUGH = 1e-6
"""m/s, by which laws may be missed without another attempt."""

_HELPS = 0.9
"""Part of what is missed that a round must leave behind to have helped."""

_ROUNDS = 8
"""Of the augmented Lagrangian, at most."""


class Settled(NamedTuple):
    """A solution: velocities [ω, u] of bodies (n, 6), impulses (m, 3) along the rows, what contacts miss (m), m/s."""

    velocity: Array
    impulse: Array
    missed: Array


def settled(rows: Rows, free: Array, impulse: Array, *, polish: bool = True) -> Settled:
    """The impulses that obey the laws, or as nearly as a bounded amount of work brings them.

    Args:
        rows: contacts.
        free: velocities [ω, u] of all bodies without impulses (n, 6).
        impulse: to begin with (m, 3).
        polish: whether more follows after the first sweeps.
    """
    system = _ContactSystem(rows, free, impulse.copy())
    system.sweep(_CALLS)
    seen = []
    for k in range(_ATTEMPTS if polish else 0):
        system.interior(START * 10.0**k)
        system.newton()
        seen.append(system.impulse)
        if system.missed.max() < _ENOUGH:
            break
        system.sweep(_CALLS)
    for found in seen:
        system.take(found)
    return Settled(system.velocity, system.impulse, system.missed)


class _ContactSystem:
    """All contacts, with the velocities and impulses found so far, and the islands that are not settled."""

    def __init__(self, rows: Rows, free: Array, impulse: Array) -> None:
        self.rows, self.free, self.impulse = rows, free, impulse
        self.islands = islands_of(rows.body, len(free))
        self.velocity = pushed(rows, free, impulse)
        self.missed = misses(rows, impulse, self.velocity)

    def _unsettled(self) -> Array:
        """Contacts of islands with one that misses its laws."""
        return np.flatnonzero(~(self._worst(self.missed) < _TOLERANCE)[self.islands])

    def _worst(self, missed: Array) -> Array:
        worst = np.zeros(int(self.islands.max()) + 1)
        np.maximum.at(worst, self.islands, missed)
        return worst

    def sweep(self, calls: int) -> None:
        """Some calls of sweeps over what is not settled."""
        for _ in range(calls):
            going = self._unsettled()
            if not len(going):
                return
            part = self.rows.of(going)
            self.impulse = self.impulse.copy()
            self.velocity, self.impulse[going] = swept(part, self.velocity, self.impulse[going])
            self.missed[going] = misses(part, self.impulse[going], self.velocity)

    def interior(self, start: float) -> None:
        """An interior-point method on what is not settled."""
        going = self._unsettled()
        if not len(going):
            return
        part = self.rows.of(going)
        island = Island(part, self.free)
        way = InteriorPoint(island, np.unique(self.islands[going], return_inverse=True)[1])
        trial = self.impulse.copy()
        trial[going] = way.impulses(
            self.velocity[island.bodies],
            self.impulse[going],
            start * self.missed[going],
            lambda impulse: misses(part, impulse, pushed(part, self.free, impulse)),
        )
        self.take(trial)

    def newton(self) -> None:
        """Rounds of the augmented Lagrangian on what is not settled, as long as they help."""
        going, reached = self._unsettled(), np.inf
        for k in range(_ROUNDS):
            if not len(going) or (k % 2 == 0 and self.missed[going].max() > _HELPS * reached):
                return
            reached = self.missed[going].max() if k % 2 == 0 else reached
            trial = self.impulse.copy()
            island = Island(self.rows.of(going), self.free)
            trial[going] = island.round(self.velocity, self.impulse[going], slip_changes=k % 2 == 1)
            self.take(trial)
            going = going[~(self._worst(self.missed) < _TOLERANCE)[self.islands[going]]]

    def take(self, trial: Array) -> None:
        """Other impulses for the islands whose worst contact then misses its laws by less."""
        missed = misses(self.rows, trial, pushed(self.rows, self.free, trial))
        better = (self._worst(missed) < self._worst(self.missed))[self.islands]
        self.impulse = np.where(better[:, None], trial, self.impulse)
        self.velocity = pushed(self.rows, self.free, self.impulse)
        self.missed = np.where(better, missed, self.missed)


def pushed(rows: Rows, free: Array, impulse: Array) -> Array:
    """Velocities [ω, u] of all bodies (n, 6) with impulses (m, 3)."""
    total = np.zeros((len(free) + 1, 6))
    for side in range(2):
        np.add.at(total, rows.body[:, side], np.einsum("mki,mk->mi", rows.jacobians[:, side], impulse))
    spin = np.einsum("nij,nj->ni", rows.inverse_inertia, total[:, :3])
    return np.asarray(free + np.hstack([spin, rows.inverse_mass[:, None] * total[:, 3:]])[:-1])


def misses(rows: Rows, impulse: Array, velocity: Array) -> Array:
    """By how much contacts miss their laws (m), m/s."""
    w = rows.velocities(velocity)
    w[:, 0] += rows.friction * np.hypot(w[:, 1], w[:, 2])
    trace = np.trace(rows.own, axis1=1, axis2=2)
    wanted = projected(impulse - w / trace[:, None], rows.friction)
    return np.asarray(np.linalg.norm(wanted - impulse, axis=1) * trace)


def islands_of(body: Array, count: int) -> Array:
    """For each contact the number of its island; the world joins nothing."""
    both = body[body[:, 1] != count]
    graph = coo_matrix((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(count, count))
    labels: Array = connected_components(graph, directed=False)[1]
    return labels[body[:, 0]]
