"""Impulses of a pile: sweeps over its contacts, then Newton's method on velocities with sparse matrices.

A contact of the bodies a and b has three rows along its normal and two tangents, w = J_a v_a - J_b v_b. Signorini's
condition and Coulomb's law together say (De Saxcé and Feng 1998)

    λ = P(λ - ρ(w + μ|w_t| n)),    M(v - v_free) = J*λ,

with the projection P on the cone |λ_t| ≤ μ λ_n and any ρ > 0. Newton's method solves the second equation for v with the
first in it, the λ on the right as they were; each such round brings these nearer to those sought (an augmented
Lagrangian). The matrices have blocks for neighbours alone. Bodies that do not hang together by contacts are islands;
those that are settled are left alone.

In a sweep, compiled, each contact in turn obeys its laws, all others as they are (Gauss–Seidel): it gets the impulse
that makes it stick, if the cone holds it; else first the normal's, then the tangents', projected onto the disk of μ
times it. Where nothing changes any more all laws hold exactly. A sweep upwards is followed by one downwards. The table
of contacts is data, so one compiled program serves every pile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csc_matrix
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from linkwise.array_types import Array
from linkwise.contact.elimination import eliminated
from linkwise.contact.geometry.points import tangents
from linkwise.memoized import cached_property
from linkwise.sim.work import program
from linkwise.spatial.scalar import Scalar, dot, maximum, sqrt, where
from linkwise.spatial.vectors import Vec
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.block import ArraySpec, Block
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


@dataclass(frozen=True, eq=False)
class Rows:
    """Contacts as solvers see them; m contacts of n bodies, and the world as the last.

    Args:
        body: numbers of both bodies (m, 2).
        frame: normal and tangents (m, 3, 3).
        arms: moments about both mass centres of unit impulses along them (m, 2, 3, 3), m.
        bias: what velocities are counted from (m, 3), m/s.
        friction: coefficients (m).
        height: against gravity (m): sweeps go up and down.
        mass: (n), kg.
        inertia: in the world's axes (n, 3, 3), kg m².
    """

    body: Array
    frame: Array
    arms: Array
    bias: Array
    friction: Array
    height: Array
    mass: Array
    inertia: Array

    def of(self, some: Array) -> Rows:
        """Some of the contacts."""
        own = ("body", "frame", "arms", "bias", "friction", "height")
        return replace(self, **{name: getattr(self, name)[some] for name in own})

    @cached_property
    def inverse_mass(self) -> Array:
        """(n + 1), 1/kg; zero for the world."""
        return np.append(1.0 / self.mass, 0.0)

    @cached_property
    def inverse_inertia(self) -> Array:
        """(n + 1, 3, 3), likewise."""
        return np.concatenate([np.linalg.inv(self.inertia), np.zeros((1, 3, 3))])

    @cached_property
    def jacobians(self) -> Array:
        """Rows of both bodies, those of the second with their sign (m, 2, 3, 6), for velocities [ω, u]."""
        signs = np.array([1.0, -1.0])[:, None, None]
        lin = np.broadcast_to(self.frame[:, None], self.arms.shape)
        return np.asarray(np.concatenate([self.arms, lin], axis=3) * signs)

    def velocities(self, velocity: Array) -> Array:
        """Velocities of contacts along the rows, counted from their bias (m, 3), from those of bodies (n, 6)."""
        known = np.concatenate([velocity, np.zeros((1, 6))])
        return np.asarray(np.einsum("mski,msi->mk", self.jacobians, known[self.body]) + self.bias)

    @cached_property
    def own(self) -> Array:
        """Each contact's own Delassus matrix (m, 3, 3), 1/kg."""
        turning = np.einsum("mski,msij,mslj->mkl", self.arms, self.inverse_inertia[self.body], self.arms, optimize=True)
        return np.asarray(turning + self.inverse_mass[self.body].sum(axis=1)[:, None, None] * np.eye(3))


def frames(normal: Array) -> Array:
    """Normals with two tangents, as rows (m, 3, 3)."""
    first, second = tangents(Vec(*normal.T))
    return np.stack([normal, np.stack(list(first), axis=1), np.stack(list(second), axis=1)], axis=1)


_STIFFNESS = 1e4
"""The ρ of a contact times the trace of its own Delassus matrix: the more, the fewer rounds."""

_LARGE = 30
"""Bodies of an island beyond which sweeps have to do: Newton's matrices would take seconds."""

_FIRST_CALLS, _MORE_CALLS = 3, 40
"""Calls of sweeps before Newton's method, and after it."""

_HELPS, _STALE = 0.9, 8
"""Part of what is missed that a call or round must leave behind to have helped; calls in a row that need not."""

_ROUNDS, _NEWTON = 8, 20
"""Rounds of the augmented Lagrangian at most, and Newton steps in each."""

_HALVINGS = 12


class Settled(NamedTuple):
    """A solution: velocities [ω, u] of bodies (n, 6), impulses (m, 3) along the rows, what contacts miss (m), m/s."""

    velocity: Array
    impulse: Array
    missed: Array


def settled(rows: Rows, free: Array, impulse: Array, tolerance: float = 1e-10, *, polish: bool = True) -> Settled:
    """The impulses that obey the laws to a tolerance, or as nearly as a bounded amount of work brings them.

    Args:
        rows: contacts.
        free: velocities [ω, u] of all bodies without impulses (n, 6).
        impulse: to begin with (m, 3).
        tolerance: m/s, by which contacts may miss their laws.
        polish: whether more follows after the first sweeps.
    """
    system = _System(rows, free, impulse.copy())
    system.sweep(_FIRST_CALLS, tolerance)
    if polish:
        system.newton(tolerance)
        system.sweep(_MORE_CALLS, tolerance)
    return Settled(system.velocity, system.impulse, system.missed)


class _System:
    """All contacts, with the velocities and impulses found so far, and the islands that are not settled."""

    def __init__(self, rows: Rows, free: Array, impulse: Array) -> None:
        self.rows, self.free, self.impulse = rows, free, impulse
        self.islands = _islands(rows.body, len(free))
        bodies = self.islands[np.unique(rows.body[:, 0], return_index=True)[1]]
        self.bodies = np.bincount(bodies, minlength=int(self.islands.max()) + 1)
        self.velocity = pushed(rows, free, impulse)
        self.missed = misses(rows, impulse, self.velocity)

    def _unsettled(self, tolerance: float) -> Array:
        """Contacts of islands with one that misses its laws by more."""
        return np.flatnonzero(~(self._worst(self.missed) < tolerance)[self.islands])

    def _worst(self, missed: Array) -> Array:
        worst = np.zeros(len(self.bodies))
        np.maximum.at(worst, self.islands, missed)
        return worst

    def sweep(self, calls: int, tolerance: float) -> None:
        """Some calls of sweeps over what is not settled."""
        best, stale = np.inf, 0
        for _ in range(calls):
            going = self._unsettled(tolerance)
            if not len(going) or stale == _STALE:
                return
            part = self.rows.of(going)
            self.velocity, self.impulse[going] = swept(part, self.velocity, self.impulse[going])
            self.missed[going] = misses(part, self.impulse[going], self.velocity)
            now = float(self.missed[going].max())
            best, stale = (now, 0) if now < _HELPS * best else (best, stale + 1)

    def newton(self, tolerance: float) -> None:
        """Newton's method on what is not settled, as long as it helps; not on large islands."""
        going = self._unsettled(tolerance)
        going = going[self.bodies[self.islands[going]] <= _LARGE]
        reached = np.inf
        for k in range(_ROUNDS):
            if not len(going) or (k % 2 == 0 and self.missed[going].max() > _HELPS * reached):
                return
            reached = self.missed[going].max() if k % 2 == 0 else reached
            trial = self.impulse.copy()
            island = _Island(self.rows.of(going), self.free)
            trial[going] = island.round(self.velocity, self.impulse[going], slip_changes=k % 2 == 1)
            velocity = pushed(self.rows, self.free, trial)
            missed = misses(self.rows, trial, velocity)
            better = (self._worst(missed) < self._worst(self.missed))[self.islands]
            self.impulse = np.where(better[:, None], trial, self.impulse)
            self.velocity = pushed(self.rows, self.free, self.impulse)
            self.missed = np.where(better, missed, self.missed)
            going = going[~(self._worst(self.missed) < tolerance)[self.islands[going]]]


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


def _islands(body: Array, count: int) -> Array:
    """For each contact the number of its island; the world joins nothing."""
    both = body[body[:, 1] != count]
    graph = coo_matrix((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(count, count))
    labels: Array = connected_components(graph, directed=False)[1]
    return labels[body[:, 0]]


class _Island:
    """Bodies that hang together by contacts, or several such."""

    slip: Array | None = None
    """The μ|w_t| of contacts (m), m/s, where it is held."""

    def __init__(self, rows: Rows, free: Array) -> None:
        self.rows = rows
        self.bodies = np.unique(rows.body[rows.body < len(free)])
        number = np.full(len(free) + 1, len(self.bodies))
        number[self.bodies] = np.arange(len(self.bodies))
        self.body = number[rows.body]
        self.free = free[self.bodies]
        self.J = rows.jacobians
        self.trace = np.trace(rows.own, axis1=1, axis2=2)
        self.rho = _STIFFNESS / self.trace
        self.mass = np.zeros((len(self.bodies), 6, 6))
        self.mass[:, :3, :3] = rows.inertia[self.bodies]
        self.mass[:, 3:, 3:] = np.eye(3) * rows.mass[self.bodies][:, None, None]
        self.inverse = np.linalg.inv(self.mass)
        self._pattern()

    def _pattern(self) -> None:
        """Where the Hessian's blocks of pairs of bodies lie; contacts of one pair share theirs."""
        n = len(self.bodies)
        code, self.pair = np.unique(self.body[:, 0] * (n + 1) + self.body[:, 1], return_inverse=True)
        first, second = code // (n + 1), code % (n + 1)
        self.between = np.flatnonzero(second < n)
        self.first, self.second = first, second
        block = np.arange(6)
        diagonal, i, j = np.arange(n), first[self.between], second[self.between]
        rows = np.concatenate([diagonal, i, j])[:, None, None] * 6 + block[None, :, None]
        columns = np.concatenate([diagonal, j, i])[:, None, None] * 6 + block[None, None, :]
        shape = (len(rows), 6, 6)
        self.at = np.broadcast_to(rows, shape).ravel(), np.broadcast_to(columns, shape).ravel()

    def round(self, velocity: Array, impulse: Array, *, slip_changes: bool) -> Array:
        """Impulses (m, 3) after one round from these.

        With μ|w_t| as it is at the start the solution is the minimum of a convex function, which is always found, and
        exact where nothing slips; where that changes on the way, convergence is faster, if it converges.
        """
        v = velocity[self.bodies]
        w = self._velocities(v)
        self.slip = None if slip_changes else self.rows.friction * np.hypot(w[:, 1], w[:, 2])
        for _ in range(_NEWTON):
            reached, rest = self._rest(impulse, v)
            size = np.abs(self._momentum(v)).max() + np.abs(reached).max(initial=0.0) + 1e-300
            if np.abs(rest).max() < 1e-13 * size:
                break
            step = self._newton(impulse, v, rest)
            length = self._length(impulse, v, step, rest)
            v = v + length * step
            if length < 1e-3:
                break
        return self._rest(impulse, v)[0]

    def _velocities(self, v: Array) -> Array:
        """Velocities of contacts, counted from their bias (m, 3)."""
        known = np.concatenate([v, np.zeros((1, 6))])
        return np.asarray(np.einsum("mski,msi->mk", self.J, known[self.body]) + self.rows.bias)

    def _asked(self, impulse: Array, w: Array) -> Array:
        """The λ - ρ(w + μ|w_t| n)."""
        slip = self.rows.friction * np.hypot(w[:, 1], w[:, 2]) if self.slip is None else self.slip
        return np.asarray(impulse - self.rho[:, None] * np.hstack([w[:, :1] + slip[:, None], w[:, 1:]]))

    def _rest(self, impulse: Array, v: Array) -> tuple[Array, Array]:
        """The impulses for some velocities, and the momentum that they do not account for (n, 6)."""
        reached = projected(self._asked(impulse, self._velocities(v)), self.rows.friction)
        total = np.zeros((len(self.bodies) + 1, 6))
        for side in range(2):
            np.add.at(total, self.body[:, side], np.einsum("mki,mk->mi", self.J[:, side], reached))
        return reached, self._momentum(v) - total[:-1]

    def _momentum(self, v: Array) -> Array:
        return np.asarray(np.einsum("nij,nj->ni", self.mass, v - self.free))

    def _newton(self, impulse: Array, v: Array, rest: Array) -> Array:
        w = self._velocities(v)
        slopes = self.rho[:, None, None] * projection_slopes(self._asked(impulse, w), self.rows.friction)
        if self.slip is None:
            along = w[:, 1:] / np.maximum(np.hypot(w[:, 1], w[:, 2]), 1e-300)[:, None]
            slopes[:, :, 1:] += slopes[:, :, :1] * (self.rows.friction[:, None] * along)[:, None, :]
        count, n = len(self.first), len(self.bodies)
        both = np.zeros((2, 2, count, 6, 6))
        for a in range(2):
            pushed = np.einsum("mki,mkl->mil", self.J[:, a], slopes)
            for b in range(2):
                np.add.at(both[a, b], self.pair, pushed @ self.J[:, b])
        diagonal = np.concatenate([self.mass, np.zeros((1, 6, 6))])
        np.add.at(diagonal, self.first, both[0, 0])
        np.add.at(diagonal, self.second, both[1, 1])
        values = np.concatenate([diagonal[:-1], both[0, 1][self.between], both[1, 0][self.between]]).ravel()
        H = csc_matrix((values, self.at), shape=(6 * n, 6 * n))
        factors = splu(H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01)
        return np.asarray(-factors.solve(rest.ravel())).reshape(n, 6)

    def _length(self, impulse: Array, v: Array, step: Array, rest: Array) -> float:
        """How far to go along a step, so that the function is lower, or less momentum is unaccounted for."""

        def value(at: Array) -> float:
            reached, missing = self._rest(impulse, at)
            if self.slip is None:
                return float(np.sum(missing * np.einsum("nij,nj->ni", self.inverse, missing)))
            own = float(np.sum((at - self.free) * self._momentum(at)))
            return 0.5 * (own + float(np.sum(np.sum(reached * reached, axis=1) / self.rho)))

        start, length = value(v), 1.0
        slope = -2.0 * start if self.slip is None else float(np.sum(rest * step))
        for _ in range(_HALVINGS):
            if value(v + length * step) <= start + 1e-4 * length * slope + 1e-14 * abs(start):
                return length
            length *= 0.5
        return length


def projected(x: Array, mu: Array) -> Array:
    """The nearest to x (m, 3) in the cones |x_t| ≤ μ x_n."""
    length = np.hypot(x[:, 1], x[:, 2])
    inside, nothing = length <= mu * x[:, 0], mu * length <= -x[:, 0]
    normal = (x[:, 0] + mu * length) / (1.0 + mu * mu)
    along = x[:, 1:] * (mu * normal / np.where(length > 0.0, length, 1.0))[:, None]
    found = np.where(inside[:, None], x, np.hstack([normal[:, None], along]))
    found[nothing] = 0.0
    return np.asarray(found)


def projection_slopes(x: Array, mu: Array) -> Array:
    """Derivatives of :func:`projected` (m, 3, 3)."""
    length = np.hypot(x[:, 1], x[:, 2])
    inside, nothing = length <= mu * x[:, 0], mu * length <= -x[:, 0]
    safe = np.where(length > 0.0, length, 1.0)
    t = x[:, 1:] / safe[:, None]
    # On the cone's surface: along the generator, and around the axis as far as the radius there.
    generator = np.hstack([np.ones((len(x), 1)), mu[:, None] * t])
    around = mu * (x[:, 0] + mu * length) / ((1.0 + mu * mu) * safe)
    slopes = generator[:, :, None] * generator[:, None, :] / (1.0 + mu * mu)[:, None, None]
    across = np.stack([-t[:, 1], t[:, 0]], axis=1)
    slopes[:, 1:, 1:] += around[:, None, None] * across[:, :, None] * across[:, None, :]
    slopes[inside] = np.eye(3)
    slopes[nothing] = 0.0
    return np.asarray(slopes)
