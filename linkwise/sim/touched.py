"""Contacts of a motion: forces, gaps, sticking and slipping, and how well the laws were obeyed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.features import Features
from linkwise.contact.geometry.points import FAR, UNUSED_GAP
from linkwise.contact.scene import (
    Meeting,
    kept_points,
    meetings_of,
    numbers_of,
    pair_places,
    points_of,
    rigid_meeting,
)
from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.parameters import Values
from linkwise.memoized import cached_property

if TYPE_CHECKING:
    from linkwise.contact.results import ContactForces, ContactPoints
    from linkwise.model.model import Model
    from linkwise.sim.contact_switches import ContactSwitch
    from linkwise.sim.trajectory import Trajectory

OPEN, SLIP, STICK = 0, 1, 2
"""Modes of a contact point."""

_ON_THE_CONE = 1e-6  # relative: friction that is nearer to its bound than this slips
_NO_FORCE = 1e-8  # N for each kg of the model: what is less is none


def point_numbers(model: Model, rows: Array, points: int) -> Array:
    """Numbers of contact points (..., n) beside impulses (..., rows): of a crowd they are behind these."""
    if kept_points(model) is not None:
        return np.asarray(rows)[..., rows.shape[-1] - points :]
    return np.broadcast_to(np.array(numbers_of(model)), (*rows.shape[:-1], points))


def contacts_of(motion: Trajectory) -> MotionContacts | None:
    """Contacts of a motion; None where it has none, or a method let bodies strike each other that are rigid."""
    if "contact_bodies" in motion._values:
        from linkwise.sim.piles.pile_run import PileMotionContacts

        return PileMotionContacts(motion)
    if "contact_impulses" in motion._values:
        _check_same_scene(motion)
        return MotionContacts(motion)
    model = motion.model
    if model is None or model._contact_scene is None or motion.method == "moreau":
        return None
    return None if rigid_meeting(model) else IntegratedContacts(motion)


def _check_same_scene(motion: Trajectory) -> None:
    """Raise InputError where a motion was read from a file, for a model with other contacts."""
    model, points = motion._with_model("contacts"), motion._value("contact_gaps").shape[-1]
    own = points_of(model)
    if own != points:
        raise InputError(
            "the contacts of this motion are not those of its model",
            got=f"{points} contact points; {own} of {model.name!r}",
            do="read it with the model that was simulated: model.with_contacts(…), or --ground in the shell",
        )


class MotionContacts:
    """Contacts of a motion that was simulated with ``method="moreau"``, sample by sample; n contact points.

    Forces are the mean ones of the step that led to a sample; zero at the first.
    """

    def __init__(self, motion: Trajectory) -> None:
        self.motion, self.model = motion.on_host(), motion._with_model("contacts")

    def __repr__(self) -> str:
        return f"<contacts of {self.motion!r}: {len(self._pairs)} pairs, {self.gap.shape[-1]} points>"

    @property
    def names(self) -> tuple[str, ...]:
        """Of each point, what touches what; of a scene with many points, see :attr:`pair`."""
        return self.model.contacts.names

    @cached_property
    def pair(self) -> Array:
        """Of each point the place of its pair in ``model.contacts.pairs`` (..., T, n), which has names; -1 for none."""
        return np.asarray(pair_places(self._numbers))

    @cached_property
    def _numbers(self) -> Array:
        """Numbers of the points (..., T, n)."""
        return point_numbers(self.model, self._along_rows, self.gap.shape[-1])

    @cached_property
    def _pairs(self) -> tuple[Meeting, ...]:
        return meetings_of(self.model)

    @property
    def gap(self) -> Array:
        """Distance between the surfaces (..., T, n), m."""
        return np.asarray(self.motion._value("contact_gaps"))

    @property
    def residual(self) -> Array:
        """Residuals of Signorini's condition (m/s), friction cones (N s) and dissipation (J), (..., T, 3)."""
        return np.asarray(self.motion._value("contact_residuals"))

    @property
    def overflow(self) -> Array:
        """Points that found no room (..., T)."""
        return np.asarray(self.motion._value("contact_overflow"))[..., 0]

    @property
    def count(self) -> Array:
        """Points that press (..., T)."""
        return np.asarray(self.presses.sum(axis=-1))

    @property
    def presses(self) -> Array:
        """Whether each point presses (..., T, n): harder than with the last digits that solvers leave."""
        least = _NO_FORCE * self.model.mass * self.step[..., None]
        return np.asarray(self._pushes[..., 0] > least)

    @property
    def deepest(self) -> Array:
        """The least gap of all points (..., T), m; where nothing is near, that of points that are not used."""
        return np.asarray(self.gap.min(axis=-1, initial=UNUSED_GAP))

    @property
    def impulse(self) -> Array:
        """Normal and tangential impulses of each point (..., T, n, 3), N s, along its normal and tangents."""
        return self._pushes

    @property
    def _pushes(self) -> Array:
        """Impulses of each point along its normal and tangents (..., T, n, 3), N s."""
        return self._rows[..., :3]

    @cached_property
    def _rows(self) -> Array:
        """Impulses of each point (..., T, n, 6): along normal and tangents, N s, and about them, N m s."""
        rows = self._along_rows
        if kept_points(self.model) is not None:
            features, (*batch, count) = Features.of(self._pairs), self.gap.shape
            there = [True, True, True, features.torsion, *[features.rolling] * 2]
            crowd = np.zeros((*batch, count, 6))
            crowd[..., there] = rows[..., : count * features.rows].reshape(*batch, count, features.rows)
            return crowd
        found, start = [], 0
        for meeting in self._pairs:
            m = meeting.material
            scales = (1.0, 1.0) if m.is_isotropic else m.coefficients
            there = [True, *[max(m.coefficients) > 0.0] * 2, m.torsion > 0.0, *[m.rolling > 0.0] * 2]
            for _ in range(meeting.points):
                own = np.zeros((*rows.shape[:-1], 6))
                own[..., there] = rows[..., start : start + sum(there)]
                own[..., 1:3] *= scales
                found.append(own)
                start += sum(there)
        return np.stack(found, axis=-2)

    @property
    def _along_rows(self) -> Array:
        """Impulses of all rows as a step has them (..., T, rows), N s and N m s."""
        return np.asarray(self.motion._value("contact_impulses"))

    @property
    def step(self) -> Array:
        """The size of the step before each sample, s (..., T); of one that went in parts, of the last of them."""
        steps = np.asarray(self.motion._value("contact_step"))[..., 0]
        return np.where(steps > 0.0, steps, steps.max(initial=0.0))

    @cached_property
    def places(self) -> ContactPoints:
        """The points: gap, point, normal, tangents, at every sample."""
        return self._places_at(np.asarray(self.motion.q, float))

    @cached_property
    def _pushed_at(self) -> tuple[Array, ContactPoints]:
        """The configurations at which forces acted, those in the middles of steps, and the points where they did."""
        middle = self._middles
        places = self._places_at(middle)
        rigid = np.array([meeting.material.is_rigid for meeting in self._pairs])[self.pair]
        off = np.where(rigid, 0.5 * np.asarray(places.gap) - self._shifts(np.asarray(places.gap)), 0.0)
        return middle, places._replace(point=places.point - off[..., None] * np.asarray(places.normal))

    def _shifts(self, gap: Array) -> Array:
        """How far from second surfaces rigid ones push: see :func:`linkwise.contact.touching.shifts`."""
        first, second = self._sides[..., 0], self._sides[..., 1]
        both, shifts = (first + 1) * (len(self.model.bodies) + 1) + second, np.zeros_like(gap)
        for each in np.unique(both):
            nearest = np.fmin(np.where(both == each, gap, np.inf), FAR).min(axis=-1, keepdims=True)
            shifts = np.where(both == each, nearest * np.where(second < 0, 1.0, 0.5), shifts)
        return shifts

    @property
    def _middles(self) -> Array:
        """Configurations in the middle of the step before each sample (..., T, nq).

        Where that began at the last sample, as it found it; else from its end backwards, which is the same but where
        surfaces met within it.
        """
        q, v, h = np.asarray(self.motion.q, float), np.asarray(self.motion.v, float), self.step[..., None]
        middle = np.array(self.model._run("step_way", q, -0.5 * h * v))
        from_start = self.model._run("step_way", q[..., :-1, :], 0.5 * h[..., 1:, :] * v[..., :-1, :])
        is_next = np.abs(np.diff(np.asarray(self.motion.t, float))[:, None] - h[..., 1:, :]) < 1e-6 * h[..., 1:, :]
        middle[..., 1:, :] = np.where(is_next, from_start, middle[..., 1:, :])
        return middle

    def _places_at(self, q: Array) -> ContactPoints:
        """The points of all samples at configurations."""
        scene, p = self.model._contact_scene, self.motion.model_parameters
        if kept_points(self.model) is None or scene is None:
            return self.model.contacts.points(q, p=p)
        # Those kept at the end of a step may be others than in its middle: look among twice as many.
        more = replace(
            self.model, _contact_scene=replace(scene, rules=replace(scene.rules, points=2 * self.gap.shape[-1]))
        )
        found = more.contacts.points(q, p=p)
        same = (self._numbers[..., :, None] == np.asarray(found.number)[..., None, :]) & (
            self._numbers[..., None] > 0.0
        )
        place, known = same.argmax(axis=-1), same.any(axis=-1)

        def of(values: Array) -> Array:
            values = np.asarray(values)
            ends = (1,) * (values.ndim - place.ndim)
            taken = np.take_along_axis(values, place.reshape(*place.shape, *ends), axis=place.ndim - 1)
            return np.where(known.reshape(*known.shape, *ends), taken, np.nan)

        return type(found)(*(of(values) for values in found))

    @property
    def points(self) -> Array:
        """Positions of the points in the world (..., T, n, 3), m."""
        return np.asarray(self.places.point)

    @cached_property
    def force(self) -> Array:
        """Force on the first body of each point, in the world's axes (..., T, n, 3), N."""
        return self._in_world(self._pushes)

    @cached_property
    def moment(self) -> Array:
        """Moment on the first body of each point (..., T, n, 3), N m, in the world's axes, of torsion and rolling."""
        return self._in_world(self._rows[..., 3:])

    def _in_world(self, along: Array) -> Array:
        """Means over the step of impulses along, or about, normals and tangents (..., T, n, 3), in the world's axes."""
        places = self._pushed_at[1]
        axes = np.concatenate([np.asarray(places.normal)[..., None, :], np.asarray(places.tangents)], axis=-2)
        mean = along / self.step[..., None, None]
        # Points that are not used are nowhere, and have no axes.
        return np.where(mean.any(axis=-1, keepdims=True), np.einsum("...i,...ij->...j", mean, axes), 0.0)

    @cached_property
    def wrenches(self) -> Array:
        """[moment, force] on bodies (..., T, n_bodies, 6), at their origins in their axes, N m and N."""
        q, _ = self._pushed_at
        X = np.asarray(self.model.poses(q, p=self.motion.model_parameters))
        found = np.zeros((*X.shape[:-2], 6))
        for body in np.unique(self._sides[self._sides >= 0]):
            first, second = np.moveaxis(self._sides == body, -1, 0)
            found[..., body, :] = self._wrench(X[..., body, :, :], first, second)
        return found

    def wrench_on(self, body: str) -> Array:
        """[moment, force] on a body, or a link or shape that is part of it (..., T, 6), N m and N.

        They are at the origin and in the axes of the body or link, of a shape in those of its body.
        """
        first, second = self._is(body, 0), self._is(body, 1)
        if body not in self.model.bodies.names and all(frame.name != body for frame in self.model.frames):
            carriers = ((pair.body, pair.other) for pair in self._pairs)
            both = zip(carriers, (pair.surfaces for pair in self._pairs), strict=True)
            body = next(on.name for two in both for on, names in zip(*two, strict=True) if on and body in names)
        q, _ = self._pushed_at
        X = self.model.pose(q, body, p=self.motion.model_parameters)
        return self._wrench(np.asarray(X), first, second)

    def _wrench(self, X: Array, first: Array, second: Array) -> Array:
        """[moment, force] (..., T, 6) in frames (..., T, 4, 4), on first surfaces of some points, second of others."""
        _, places = self._pushed_at
        points = np.where(self._pushes[..., :1] != 0.0, places.point, 0.0)
        sign, force = (first.astype(float) - second)[..., None], self.force
        moment = np.cross(points - X[..., None, :3, 3], force) + self.moment
        sums = ((sign * each).sum(axis=-2) for each in (moment, force))
        return np.concatenate([np.einsum("...ji,...j->...i", X[..., :3, :3], each) for each in sums], axis=-1)

    @property
    def bodies(self) -> Array:
        """Of each point the numbers of its two bodies, -1 for what is fixed to the world and of points not used.

        (n, 2); of a scene with many points, whose places are taken by different ones, (..., T, n, 2).
        """
        return (
            self._sides if kept_points(self.model) is not None else self._sides.reshape(-1, *self._sides.shape[-2:])[0]
        )

    @cached_property
    def _sides(self) -> Array:
        """Of each point the numbers of its two bodies (..., T, n, 2)."""
        two = np.array([(m.body.index, -1 if m.other is None else m.other.index) for m in self._pairs])
        return np.asarray(np.where(self.pair[..., None] >= 0, two[self.pair], -1))

    def force_on(self, body: str, by: str | None = None) -> Array:
        """Forces on a body in the world's axes (..., T, 3), N: of all that it touches, or of one other body.

        Args:
            body: its name, or that of a link or a shape that is part of it.
            by: name of the other, or of a ground; ``"ground"`` for all that is fixed to the world.
        """
        counts = np.zeros(self._pushes.shape[:-1])
        for side, sign in ((0, 1.0), (1, -1.0)):
            counts += sign * (self._is(body, side) if by is None else self._is(body, side) & self._is(by, 1 - side))
        return np.asarray((counts[..., None] * self.force).sum(axis=-2))

    def _is(self, name: str, side: int) -> Array:
        """Whether the first or second surface of each point answers to a name (..., T, n)."""
        known = dict.fromkeys(["ground", *self.model.bodies.names])
        known |= dict.fromkeys(name for pair in self._pairs for names in pair.surfaces for name in names)
        if name not in known:
            raise UnknownNameError("body or shape", name, list(known))
        answers = np.array([name in pair.surfaces[side] for pair in self._pairs])
        return np.asarray(answers[self.pair] & (self.pair >= 0))

    def pressing(self, body: str, within: Callable[[Array], Array] | None = None) -> Array:
        """The sum of the normal forces on a body (..., T), N.

        Args:
            body: its name, or that of a link or a shape that is part of it.
            within: which of some points (..., 3) of the world count; all if not given.
        """
        counts = (self._is(body, 0) | self._is(body, 1)) & (self._pushes[..., 0] != 0.0)
        if within is not None:
            inside = [within(self.points[..., k, :]) for k in range(counts.shape[-1])]
            counts = counts & np.stack([np.asarray(each, bool) for each in inside], axis=-1)
        return np.asarray(np.where(counts, self._pushes[..., 0] / self.step[..., None], 0.0).sum(axis=-1))

    @cached_property
    def slip(self) -> Array:
        """Velocities of first surfaces past second ones at the points (..., T, n, 3), m/s, in the world's axes."""
        from linkwise.sim.contact_switches import slip_velocities

        return slip_velocities(self)

    def switches(self) -> list[ContactSwitch]:
        """Instants at which points touch, slip, stick or part, of a motion of one state, in their order.

        They lie between steps, and are exact where forces and speeds change evenly, else to the second order of the
        step; a motion of which only some steps are kept tells them to within its samples.
        """
        from linkwise.sim.contact_switches import switches

        return switches(self)

    def name_of(self, sample: int, point: int) -> str:
        """Names of the two that touch at a point of a motion of one state, as in ``box on ground``."""
        return self._pairs[int(self.pair[sample, point])].name

    @cached_property
    def friction(self) -> Array:
        """Coefficients of friction of each point, along its two tangents (..., T, n, 2)."""
        p = self.motion.model_parameters
        factor = Values(self.model, None if p is None else list(np.moveaxis(p, -1, 0))).friction()
        nominal = np.array([m.material.coefficients for m in self._pairs])[self.pair]
        return np.asarray(nominal * np.asarray(factor)[..., None, None])

    @cached_property
    def mode(self) -> Array:
        """Whether each point is open (0), slips (1) or sticks (2), at every sample (..., T, n)."""
        limits = self.friction
        normal, tangential = self._pushes[..., 0], self._pushes[..., 1:]
        safe = np.where(limits > 0.0, limits, 1.0)
        used = np.linalg.norm(np.where(limits > 0.0, tangential / safe, 0.0), axis=-1)
        slips = (used >= normal * (1.0 - _ON_THE_CONE)) | (limits.max(axis=-1) == 0.0)
        return np.where(self.presses, np.where(slips, SLIP, STICK), OPEN)


class IntegratedContacts(MotionContacts):
    """Contacts of surfaces that give way, of a motion by a method that integrates their forces: those of each sample.

    There are no steps that impulses and residuals could be of. A point slips where its slip is faster than
    :attr:`~linkwise.ContactRules.friction_speed`, and friction is 71 % of its bound or more.
    """

    def __init__(self, motion: Trajectory) -> None:
        super().__init__(motion)
        scene = self.model._contact_scene
        assert scene is not None
        if kept_points(self.model) is not None:  # these methods take all points, not the nearest alone
            rules = replace(scene.rules, solver="dual")
            self.model = replace(self.model, _contact_scene=replace(scene, rules=rules))

    @cached_property
    def _pushed_at(self) -> tuple[Array, ContactPoints]:
        """The samples themselves, and the points there."""
        return np.asarray(self.motion.q, float), self.places

    @cached_property
    def _forces(self) -> ContactForces:
        given = np.asarray(self.motion.q, float), np.asarray(self.motion.v, float)
        return cast("ContactForces", self.model._run("contact_forces", *given, p=self.motion.model_parameters))

    @property
    def _along_rows(self) -> Array:
        """Forces along all rows (..., T, rows), N and N m: impulses of a second."""
        return np.asarray(self._forces.forces)

    @property
    def step(self) -> Array:
        """One second, which forces are the impulses of, at each sample (..., T)."""
        return np.ones(self._along_rows.shape[:-1])

    @property
    def gap(self) -> Array:
        """Distance between the surfaces (..., T, n), m."""
        return np.asarray(self.places.gap)

    @property
    def overflow(self) -> Array:
        """Points that found no room (..., T)."""
        return np.asarray(self._forces.overflow)

    @cached_property
    def mode(self) -> Array:
        """Whether each point is open (0), slips (1) or sticks (2), at every sample (..., T, n)."""
        scene, normals = self.model._contact_scene, np.asarray(self.places.normal)
        assert scene is not None
        along = self.slip - (self.slip * normals).sum(axis=-1, keepdims=True) * normals
        slips = np.linalg.norm(along, axis=-1) > scene.rules.friction_speed
        return np.where(self.presses, np.where(slips, SLIP, STICK), OPEN)

    @property
    def impulse(self) -> Array:
        """Refused: forces are in :attr:`force`."""
        raise self._of_steps("impulses")

    @property
    def residual(self) -> Array:
        """Refused: forces follow from depths and speeds, and obey their laws."""
        raise self._of_steps("residuals")

    def switches(self) -> list[ContactSwitch]:
        """Refused: see :attr:`mode`, or take events."""
        raise self._of_steps("switches")

    def _of_steps(self, what: str) -> InputError:
        return InputError(
            f'{what} of contacts are those of steps with method="moreau"',
            got=f"method={self.motion.method!r}, which integrates forces",
            allowed="force, moment, gap, mode, points, slip, wrenches, presses, count, deepest, overflow, force_on",
        )
