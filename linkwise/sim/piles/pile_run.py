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
from linkwise.checks import check_count, check_finite, check_positive
from linkwise.contact.geometry.points import FAR, UNUSED_GAP
from linkwise.contact.results import ContactPoints
from linkwise.contact.step import part_of_mean
from linkwise.dataclass import dataclass, field, replace
from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.sim.piles.free_bodies import Bodies, BodyStates, is_pile, rotations, turned, turned_on
from linkwise.sim.piles.island_solver import islands_of, settled
from linkwise.sim.piles.islands import Rows, frames
from linkwise.sim.piles.neighbours import Neighbours, PileContacts
from linkwise.sim.progress import Progress, check_progress
from linkwise.sim.states import Start, States
from linkwise.sim.touched import MotionContacts
from linkwise.sim.trajectory import Trajectory

__all__ = ["Pile", "is_pile", "simulate_pile"]


@dataclass(frozen=True)
class Touched:
    """Contacts of a step.

    Args:
        contacts: points of its middle, with their gaps at its start.
        impulse: in the world's axes (m, 3), N s.
        missed: by how much laws are missed (m), m/s.
        bodies: their number, which stands for what is fixed.
    """

    contacts: PileContacts
    impulse: Array
    missed: Array
    bodies: int


class PileMotionContacts(MotionContacts):
    """Contacts of a pile, sample by sample. Their number changes: there are as many places as contacts at most.

    Unlike those of mechanisms they are kept as they were in the middle of the step before a sample.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """None: places of points are taken by different ones, of which :attr:`bodies` has the two bodies."""
        return ()

    @property
    def pair(self) -> Array:
        """Of each point 0, or -1 for a place that is not used (T, n)."""
        return np.asarray(np.where(self._sides[..., 0] >= 0, 0, -1))

    @property
    def bodies(self) -> Array:
        """Of each point the numbers of its two bodies (T, n, 2), -1 for what is fixed, and of places not used."""
        return self._sides

    @property
    def _sides(self) -> Array:
        return self._of("contact_bodies", 2).astype(int)

    def _is(self, name: str, side: int) -> Array:
        number = -1 if name == "ground" else self.model.bodies[name].index
        return np.asarray((self._sides[..., side] == number) & (self._sides[..., 0] >= 0))

    @property
    def _rows(self) -> Array:
        impulses = self._of("contact_impulses", 3)
        return np.concatenate([impulses, np.zeros_like(impulses)], axis=-1)

    @cached_property
    def places(self) -> ContactPoints:
        """The points: gap, point, normal, tangents, at every sample."""
        normal = self._of("contact_normals", 3)
        axes = frames(normal.reshape(-1, 3)).reshape(*normal.shape, 3)
        return ContactPoints(self.gap, self._of("contact_points", 3), normal, axes[..., 1:, :], self.pair + 1)

    @property
    def _pushed_at(self) -> tuple[Array, ContactPoints]:
        """Configurations in the middle of steps, and the points, which were kept there."""
        return self._middles, self.places

    @property
    def friction(self) -> Array:
        """Coefficients of friction of each point, along its two tangents (T, n, 2)."""
        return np.repeat(self._of("contact_friction", 1), 2, axis=-1)

    def name_of(self, sample: int, point: int) -> str:
        """Names of the two that touch at a point."""
        first, second = self._sides[sample, point]
        names = [*(body.name for body in self.model.bodies), "ground"]
        return f"{names[first]} on {names[second]}"

    def _of(self, name: str, size: int) -> Array:
        values = np.asarray(self.motion._value(name))
        return values.reshape(*values.shape[:-1], -1, size)


def _recorded(touched: Sequence[Touched | None], h: float) -> dict[str, Array]:
    """Contacts of all samples by the names that a trajectory has for them, each in the first places of its sample."""
    most = max(0 if one is None else len(one.impulse) for one in touched)
    widths = {"bodies": 2, "impulses": 3, "gaps": 1, "points": 3, "normals": 3, "friction": 1}
    found = {name: np.zeros((len(touched), most, width)) for name, width in widths.items()}
    found["bodies"][:], found["gaps"][:], found["normals"][..., 2] = -1.0, UNUSED_GAP, 1.0
    misses, lost = np.zeros((2, len(touched), 1))
    for k, one in enumerate(touched):
        if one is None:
            continue
        own, places = one.contacts, slice(len(one.impulse))
        misses[k], lost[k] = one.missed.max(initial=0.0), own.overflow
        found["bodies"][k, places] = np.where(own.body < one.bodies, own.body, -1)
        found["impulses"][k, places] = np.einsum("mkj,mj->mk", frames(own.normal), one.impulse)
        for name, values in (("gaps", own.gap), ("friction", own.friction)):
            found[name][k, places, 0] = values
        found["points"][k, places], found["normals"][k, places] = own.point, own.normal
    flat = {name: values.reshape(len(touched), -1) for name, values in found.items()}
    more = {"residuals": misses, "overflow": lost, "step": np.full((len(touched), 1), h)}
    return {f"contact_{name}": values for name, values in (flat | more).items()}


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
        self.states = BodyStates.of(self.bodies, np.asarray(self.q, float), np.asarray(self.v, float))
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

    def contacts(self, states: BodyStates, h: float) -> PileContacts:
        """Contacts that a step of h may close."""
        g = float(np.linalg.norm(self.bodies.gravity))
        speed = np.linalg.norm(states.speed, axis=1) + np.linalg.norm(states.spin, axis=1) * self.radius
        reach = _REACH * np.minimum(self.size, self.radius) + h * (speed + h * g)
        return self.neighbours.at(states.turn, states.place, reach)

    def advance(self, h: float) -> None:
        """One step of h."""
        s = self.states
        middle = replace(s, turn=turned_on(s.turn, 0.5 * h * s.spin), place=s.place + 0.5 * h * s.speed)
        found = _gripped(self.contacts(middle, h), len(self.bodies.names))
        R = rotations(middle.turn)
        before = np.hstack([turned(R, s.spin), s.speed])
        free = np.hstack([turned(R, _spun(self.bodies.inertia, s.spin, h)), s.speed + h * self.bodies.gravity])
        after, moved, parted = free, 0.5 * h * free, np.zeros((len(R), 6))
        touched = Touched(found, np.zeros((0, 3)), np.zeros(0), len(R))
        if len(found.gap):
            rows, gap, approach = self._rows(found, middle, R, before, h)
            solution = settled(rows, free, self._last(found, rows.frame))
            force = np.einsum("mkj,mk->mj", rows.frame, solution.impulse)
            touched = Touched(replace(found, gap=gap), force, solution.missed, len(R))
            after = solution.velocity
            leaving = _leaving(after, found, rows.arms, rows.frame)
            part = self._part(found, gap, approach, leaving, h)[:, None]
            moved = h * ((1.0 - 0.5 * part) * after - 0.5 * (1.0 - part) * before)
            parted = self._parted(found, gap, rows, h)
        back = R.swapaxes(1, 2)
        self.touched = touched
        self.states = BodyStates(
            turned_on(middle.turn, turned(back, moved[:, :3] + parted[:, :3])),
            middle.place + moved[:, 3:] + parted[:, 3:],
            turned(back, after[:, :3]),
            after[:, 3:],
        )

    def _part(self, found: PileContacts, gap: Array, before: Array, after: Array, h: float) -> Array:
        """That part of the step (n) which bodies may go with the mean velocity, as in steps of mechanisms.

        Small overlaps stay, and are as good as gaps of zero: else rounding would say of each of their steps how far.
        """
        part = np.asarray(part_of_mean(np.maximum(gap, 0.0), h, before, after))
        count = len(self.bodies.names)
        islands = islands_of(found.body, count)
        least = np.ones(int(islands.max()) + 1)
        np.minimum.at(least, islands, part)
        whole = np.ones(count + 1)
        for side in range(2):
            np.minimum.at(whole, found.body[:, side], least[islands])
        return whole[:-1]

    def _rows(
        self, found: PileContacts, middle: BodyStates, R: Array, before: Array, h: float
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


def _gripped(found: PileContacts, ground: int) -> PileContacts:
    """The same contacts, at the points where forces act: see :func:`linkwise.contact.touching.shifts`."""
    pair, nearest = found.body @ [ground + 1, 1], np.full(len(found.gap), FAR)
    _, which = np.unique(pair, return_inverse=True)
    np.minimum.at(nearest, which, found.gap)
    shift = nearest[which] * np.where(found.body[:, 1] < ground, 0.5, 1.0) - 0.5 * found.gap
    return replace(found, point=found.point + shift[:, None] * found.normal)


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
    start = States(Start.of(model), q0, v0, None, None).y[0]
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
    return Trajectory(
        times,
        np.array(q),
        np.array(v),
        model=model,
        derived={"energy": np.array(energy), "tau": np.zeros((len(times), model.nv)), **_recorded(touched, h)},
        status=status,
        steps=done,
        method="moreau",
    )


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
