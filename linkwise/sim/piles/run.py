"""Simulation of a pile: Moreau's midpoint rule, in which all contacts obey Signorini's and Coulomb's laws at the end.

Contacts are those in the middle of a step. The velocities at its end may close a gap and no more, and a body moves half
a step with those of its start and half a step with those of its end; where surfaces meet, all that hang together with
them go on with the latter as far as is needed, so that gaps stay closed. Bodies turn by Euler's equations with the
midpoint rule, which keeps their energy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.contact.step import part_of_mean
from linkwise.dataclass import dataclass, field, replace
from linkwise.errors import InputError, UnknownNameError
from linkwise.model.model import Model
from linkwise.sim.checks import check_count, check_finite, check_positive
from linkwise.sim.piles.bodies import Bodies, States, is_pile, rotations, turned, turned_on
from linkwise.sim.piles.islands import Rows, frames
from linkwise.sim.piles.neighbours import Neighbours, PileContacts
from linkwise.sim.piles.solver import islands_of, settled
from linkwise.sim.progress import Progress, check_progress
from linkwise.sim.setup import States as StartingStates
from linkwise.sim.trajectory import Trajectory

__all__ = ["Pile", "is_pile", "simulate_pile"]


@dataclass(frozen=True)
class Touched:
    """Contacts of a step.

    Args:
        contacts: points of its middle, with their gaps at its start.
        impulse: in the world's axes (m, 3), N s.
        missed: by how much laws are missed (m), m/s.
    """

    contacts: PileContacts
    impulse: Array
    missed: Array


class PileMotionContacts:
    """Contacts of a pile, sample by sample; their number changes. Forces are the means of the step before a sample."""

    def __init__(self, names: Sequence[str], t: Array, h: float, touched: Sequence[Touched | None]) -> None:
        self.names, self.t, self.h, self.touched = tuple(names), t, h, touched

    def __repr__(self) -> str:
        return f"<Contacts of {len(self.names)} bodies at {len(self.t)} times, {int(self.count[-1])} at the last>"

    @property
    def count(self) -> Array:
        """Points that press at each sample (T)."""
        return np.array([0 if one is None else int(np.any(one.impulse != 0.0, axis=1).sum()) for one in self.touched])

    @property
    def residual(self) -> Array:
        """By how much Signorini's condition and Coulomb's law are missed at most (T), m/s."""
        return np.array([0.0 if one is None else float(one.missed.max(initial=0.0)) for one in self.touched])

    @property
    def deepest(self) -> Array:
        """The least gap of all points before each sample's step (T), m; infinite where nothing is near."""
        return np.array([np.inf if one is None else one.contacts.gap.min(initial=np.inf) for one in self.touched])

    @property
    def overflow(self) -> Array:
        """Points for which there was no room (T)."""
        return np.array([0 if one is None else one.contacts.overflow for one in self.touched])

    def force(self, body: str, on: str | None = None) -> Array:
        """Forces on a body in the world's axes (T, 3), N: of all that it touches, or of one other body.

        Args:
            body: its name.
            on: name of the other; ``"ground"`` for what is fixed.
        """
        first, other = self._number(body), None if on is None else self._number(on)
        return np.array([np.zeros(3) if one is None else self._sum(one, first, other) for one in self.touched])

    def _sum(self, one: Touched, body: int, other: int | None) -> Array:
        total = np.zeros(3)
        for side, sign in ((0, 1.0), (1, -1.0)):
            own = one.contacts.body[:, side] == body
            if other is not None:
                own &= one.contacts.body[:, 1 - side] == other
            total += sign * one.impulse[own].sum(axis=0)
        return np.asarray(total / self.h)

    def _number(self, name: str) -> int:
        known = (*self.names, "ground")
        if name not in known:
            raise UnknownNameError("body", name, known)
        return known.index(name)


_REACH = 0.01
"""Of a body's radius: surfaces that are so near are looked at, whatever their speed."""

_ALLOWED = 1e-4
"""Of a body's size: what overlaps by more is parted."""

_SAME_PLACE = 0.05
"""Of a body's radius: a contact point that moved less on its pair of shapes begins with its last impulse."""


@dataclass
class Pile:
    """Many free bodies in motion.

    Args:
        model: whose bodies all are free.
        q: configuration (nq).
        v: velocity (nv).
    """

    model: Model
    q: Array
    v: Array
    touched: Touched | None = field(default=None, init=False)
    """Contacts of the last step."""

    def __post_init__(self) -> None:
        scene = self.model._contact_scene
        assert scene is not None
        self.rules = scene.rules
        self.bodies = Bodies.of(self.model)
        self.neighbours = Neighbours(self.bodies, scene, self.model._contact_excludes)
        self.states = States.of(self.bodies, np.asarray(self.q, float), np.asarray(self.v, float))
        shapes = self.bodies.shapes
        self.radius = np.full(len(self.bodies.names), 1e-3)
        moving = self.neighbours.moving
        out = np.linalg.norm(shapes.p[moving], axis=1) + shapes.radius[moving]
        np.maximum.at(self.radius, shapes.body[moving], out)
        self.size = np.full(len(self.bodies.names), np.inf)
        np.minimum.at(self.size, shapes.body[moving], shapes.radius[moving])

    def sample(self) -> tuple[Array, Array, float, Touched | None]:
        """Configuration and velocity of the model, its energy in J, and the contacts of the last step."""
        return (*self.states.coordinates(self.bodies), self.energy, self.touched)

    @property
    def energy(self) -> float:
        """Kinetic and potential energy, J."""
        s, b = self.states, self.bodies
        turning = np.sum(s.spin * turned(b.inertia, s.spin))
        falling = np.sum(b.mass * (0.5 * np.sum(s.speed * s.speed, axis=1) - s.place @ b.gravity))
        return float(0.5 * turning + falling)

    def contacts(self, states: States, h: float) -> PileContacts:
        """Contacts that a step of h may close."""
        g = float(np.linalg.norm(self.bodies.gravity))
        speed = np.linalg.norm(states.speed, axis=1) + np.linalg.norm(states.spin, axis=1) * self.radius
        reach = _REACH * np.minimum(self.size, self.radius) + h * (speed + h * g)
        return self.neighbours.at(states.turn, states.place, reach)

    def advance(self, h: float) -> None:
        """One step of h."""
        s = self.states
        middle = replace(s, turn=turned_on(s.turn, 0.5 * h * s.spin), place=s.place + 0.5 * h * s.speed)
        found = self.contacts(middle, h)
        R = rotations(middle.turn)
        before = np.hstack([turned(R, s.spin), s.speed])
        free = np.hstack([turned(R, _spun(self.bodies.inertia, s.spin, h)), s.speed + h * self.bodies.gravity])
        after, moved, parted = free, 0.5 * h * free, np.zeros((len(R), 6))
        self.touched = Touched(found, np.zeros((0, 3)), np.zeros(0))
        if len(found.gap):
            rows, gap, approach = self._rows(found, middle, R, before, h)
            solution = settled(rows, free, self._last(found, rows.frame))
            force = np.einsum("mkj,mk->mj", rows.frame, solution.impulse)
            self.touched = Touched(replace(found, gap=gap), force, solution.missed)
            after = solution.velocity
            leaving = _leaving(after, found, rows.arms, rows.frame)
            part = self._part(found, gap, approach, leaving, h)[:, None]
            moved = h * ((1.0 - 0.5 * part) * after - 0.5 * (1.0 - part) * before)
            parted = self._parted(found, gap, rows, h)
        back = R.swapaxes(1, 2)
        self.states = States(
            turned_on(middle.turn, turned(back, moved[:, :3] + parted[:, :3])),
            middle.place + moved[:, 3:] + parted[:, 3:],
            turned(back, after[:, :3]),
            after[:, 3:],
        )

    def _part(self, found: PileContacts, gap: Array, before: Array, after: Array, h: float) -> Array:
        """That part of the step (n) which bodies may go with the mean velocity, as in steps of mechanisms."""
        part = np.asarray(part_of_mean(gap, h, before, after))
        count = len(self.bodies.names)
        islands = islands_of(found.body, count)
        least = np.ones(int(islands.max()) + 1)
        np.minimum.at(least, islands, part)
        whole = np.ones(count + 1)
        for side in range(2):
            np.minimum.at(whole, found.body[:, side], least[islands])
        return whole[:-1]

    def _rows(
        self, found: PileContacts, middle: States, R: Array, before: Array, h: float
    ) -> tuple[Rows, Array, Array]:
        """Rows of contacts, their gaps at the start (m), m, and the speeds with which these open there (m), m/s."""
        bodies = self.bodies
        place = np.concatenate([middle.place, np.zeros((1, 3))])
        frame = frames(found.normal)
        moments = np.cross((found.point[:, None] - place[found.body])[:, :, None], frame[:, None])
        approach = _leaving(before, found, moments, frame)
        gap = found.gap - 0.5 * h * approach
        e, threshold = found.restitution.T
        bounces = (gap + h * approach < 0.0) & (approach < -threshold) & (e > 0.0)
        bias = -np.einsum("mki,mi->mk", frame, found.surface)
        closing = np.maximum(gap, 0.0) / h
        bias[:, 0] += np.where(bounces, np.minimum(closing, e * approach), closing)
        inertia = R @ bodies.inertia @ R.swapaxes(1, 2)
        height = -found.point @ bodies.gravity
        return Rows(found.body, frame, moments, bias, found.friction, height, bodies.mass, inertia), gap, approach

    def _parted(self, found: PileContacts, gap: Array, rows: Rows, h: float) -> Array:
        """The least turns and shifts (n, 6) that part what overlaps, in rad and m: no velocity comes from it."""
        shift = np.zeros((len(self.bodies.names), 6))
        deep = gap < -_ALLOWED * self.size[found.body[:, 0]]
        if not deep.any():
            return shift
        near = np.asarray(np.isin(found.body, found.body[deep]).any(axis=1))
        bias = np.zeros((len(deep), 3))
        bias[:, 0] = np.maximum(gap + 0.5 * _ALLOWED * self.size[found.body[:, 0]], -self.rules.recovery * h)
        smooth = replace(rows, bias=bias, friction=np.zeros(len(deep))).of(near)
        return settled(smooth, shift, np.zeros((int(near.sum()), 3)), polish=False).velocity

    def _last(self, found: PileContacts, frame: Array) -> Array:
        """Impulses of the last step for contacts at nearly the same place (m, 3), along the rows."""
        first = np.zeros((len(found.gap), 3))
        if self.touched is None or not len(self.touched.impulse):
            return first
        last = self.touched.contacts
        order = np.argsort(last.pair, kind="stable")
        start = np.searchsorted(last.pair[order], found.pair)
        best = np.full(len(first), np.inf)
        chosen = np.zeros(len(first), int)
        for k in range(8):  # no pair has more points
            at = np.minimum(start + k, len(order) - 1)
            old = order[at]
            same = last.pair[old] == found.pair
            away = np.where(same, np.linalg.norm(last.point[old] - found.point, axis=1), np.inf)
            better = away < best
            best, chosen = np.where(better, away, best), np.where(better, old, chosen)
        known = best < _SAME_PLACE * self.size[found.body[:, 0]]
        first[known] = np.einsum("mki,mi->mk", frame[known], self.touched.impulse[chosen[known]])
        first[:, 0] = np.maximum(first[:, 0], 0.0)
        return first


def _leaving(velocity: Array, found: PileContacts, moments: Array, frame: Array) -> Array:
    """Speeds with which surfaces part (m), m/s, from velocities [ω, u] of bodies (n, 6)."""
    known = np.concatenate([velocity, np.zeros((1, 6))])[found.body]
    along = known[..., 3:] @ frame[:, 0, :, None] + np.sum(known[..., :3] * moments[:, :, 0], axis=2)[..., None]
    return np.asarray(along[:, 0, 0] - along[:, 1, 0] - np.sum(found.surface * found.normal, axis=1))


def _spun(inertia: Array, spin: Array, h: float) -> Array:
    """Angular velocities after a free turn by h: Euler's equations by the midpoint rule, which keeps energy."""
    new = spin
    for _ in range(4):
        mean = 0.5 * (spin + new)
        new = spin - h * np.linalg.solve(inertia, np.cross(mean, turned(inertia, mean))[..., None])[..., 0]
    return new


def simulate_pile(
    model: Model,
    q0: ArrayLike | None,
    v0: ArrayLike | None,
    duration: float,
    dt: float | None,
    t0: float,
    save_every: int,
    progress: bool | Callable[[float], None] | None,
) -> Trajectory:
    """The motion of a pile; see :func:`linkwise.sim.simulate.simulate` for the arguments."""
    check_positive(duration=duration)
    check_finite(t0=t0)
    check_count(save_every=save_every)
    check_progress(progress)
    step = 1e-3 if dt is None else dt
    check_positive(dt=step)
    start = StartingStates(model, (), model.start if q0 is None else q0, v0, None, None, False).y[0]
    pile = Pile(model, start[: model.nq], start[model.nq : model.nq + model.nv])
    check_overlap(pile, pile.rules.overlap)
    count = max(1, math.ceil(duration / step - 1e-9))
    h = duration / count
    samples, times, status, done = [pile.sample()], [t0], "done", 0
    bar = Progress(progress, model.name)
    try:
        for k in range(1, count + 1):
            pile.advance(h)
            done = k
            if k % save_every == 0 or k == count:
                samples.append(pile.sample())
                times.append(t0 + k * h)
            bar.update(k / count)
    except KeyboardInterrupt:
        status = "interrupted"
    finally:
        bar.close()
    q, v, energy, touched = (list(each) for each in zip(*samples, strict=True))
    motion = Trajectory(
        times,
        np.array(q),
        np.array(v),
        model=model,
        derived={"energy": np.array(energy), "tau": np.zeros((len(times), model.nv))},
        status=status,
        steps=done,
        method="moreau",
    )
    motion.__dict__["contacts"] = PileMotionContacts(pile.bodies.names, np.array(times), h, touched)
    return motion


def check_overlap(pile: Pile, most: float) -> None:
    """Raise InputError where surfaces overlap by more than so many metres."""
    found = pile.contacts(pile.states, 0.0)
    depth = -found.gap
    if len(depth) and depth.max() > most:
        worst = int(depth.argmax())
        names = (*pile.bodies.names, "ground")
        a, b = (names[k] for k in found.body[worst])
        raise InputError(
            f"{a!r} on {b!r}: surfaces overlap at the start",
            got=f"{depth[worst]:.3g} m",
            allowed=f"at most {most:g} m, which steps part at ContactRules.recovery",
            do="move the bodies apart; or exclude=[…] the pair; or rules=lw.ContactRules(overlap=…) of with_contacts",
        )
