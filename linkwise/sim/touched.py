"""Contacts of a motion: forces, gaps, sticking and slipping, and how well the laws were obeyed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.scene import Meeting, meetings_of
from linkwise.errors import InputError, message
from linkwise.mechanism.description import Geometry
from linkwise.memoized import cached_property

if TYPE_CHECKING:
    from linkwise.contact.catalogue import ContactPoints
    from linkwise.model.model import Model
    from linkwise.sim.motion import Motion
    from linkwise.sim.trajectory import Trajectory

OPEN, SLIP, STICK = 0, 1, 2
"""Modes of a contact point."""

_FAR = 1e5  # m; points that are not used are farther away
_ON_THE_CONE = 1e-6  # relative: friction that is nearer to its bound than this slips


def doubts(motion: Motion, t: Array, numbers: Any) -> str:
    """A line on what contacts may have missed, from their numbers (..., T, size); empty if nothing.

    Points without room; and surfaces that move farther towards each other in a step than they are thick, so that
    they could pass through each other.
    """
    known = motion.contacts
    assert known is not None
    names = motion.model.contacts.names
    lost = float(np.nan_to_num(numbers[..., known.size - 2]).max(initial=0.0))
    if lost > 0.0:
        return message(
            "some contact points found no room, and had no part in the motion",
            got=f"{lost:.0f} too many at one time; motion.contacts.overflow has when",
            do="use simpler shapes, or several for one body",
        )
    gaps = numbers[..., known.rows : known.rows + known.points]
    if not gaps.size or gaps.shape[-2] < 2:
        return ""
    step = float(np.nan_to_num(numbers[..., known.size - 1]).max())
    thick = np.array([_thickness(m) for m in meetings_of(motion.model) for _ in range(m.points)])
    solid = np.flatnonzero(np.isfinite(thick))
    for point in solid:
        gap = gaps[..., point]
        nearer = (gap[..., :-1] - gap[..., 1:]) * (step / np.diff(t))
        # Unused points are far away; of the others, those count that the next step may bring together.
        passes = (nearer > thick[point]) & (gap[..., 1:] < nearer) & (gap[..., :-1] < _FAR)
        if bool(passes.any()):
            most = float(nearer[passes].max())
            return message(
                f"{names[point]!r}: the step is too long for the speed, so that they may pass through each other",
                got=f"{most:.3g} m nearer in a step of {step:g} s",
                allowed=f"less than their mean thickness, {thick[point]:.3g} m",
                do=f"a shorter dt, {0.5 * step * thick[point] / most:.2g} s say, or thicker shapes",
            )
    return ""


def _thickness(meeting: Meeting) -> float:
    """Of two shapes the mean of their smallest sizes, m; infinite where one of them has no other side."""
    return 0.5 * sum(map(_smallest, (meeting.shape, meeting.other_shape)))


def _smallest(shape: Geometry) -> float:
    size = shape.size
    if shape.kind in ("plane", "heightfield", "terrain"):
        return math.inf
    if shape.kind == "convex":
        return float(np.ptp(np.array(shape.vertices), axis=0).min())
    if shape.kind == "box":
        return min(size)
    return (
        min(2.0 * size[0], size[1])
        if shape.kind == "cylinder"
        else 2.0 * min(size if shape.kind == "ellipsoid" else size[:1])
    )


def surfaces_note(model: Model) -> str:
    """A line on the softness of a file's surfaces where they are taken as rigid."""
    scene = model._contact_scene
    soft = any(
        shape.compliance is not None for meeting in meetings_of(model) for shape in (meeting.shape, meeting.other_shape)
    )
    if scene is None or scene.softness == "file" or not soft:
        return ""
    return 'surfaces are rigid; as soft as the file has them: model.with_contacts(softness="file")'


class MotionContacts:
    """Contacts of a motion that was simulated with ``method="moreau"``, sample by sample; n contact points.

    Forces are the mean ones of the step that led to a sample; zero at the first.
    """

    def __init__(self, motion: Trajectory) -> None:
        model = motion.model
        if model is None or model._contact_scene is None or "contact_impulses" not in motion._values:
            raise InputError(
                "this motion has no contacts",
                got=f"method={motion.method!r}" + ("" if model is None else f" and the model {model.name!r}"),
                do='lw.simulate(model.with_contacts(lw.Ground()), …, method="moreau")',
            )
        self.motion, self.model = motion.on_host(), model

    @property
    def names(self) -> tuple[str, ...]:
        """Of each point, what touches what."""
        return self.model.contacts.names

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

    @cached_property
    def impulse(self) -> Array:
        """Normal and tangential impulses of each point (..., T, n, 3), N s, along its normal and tangents."""
        return self._rows[..., :3]

    @cached_property
    def _rows(self) -> Array:
        """Impulses of each point (..., T, n, 6): along normal and tangents, N s, and about them, N m s."""
        rows = np.asarray(self.motion._value("contact_impulses"))
        found, start = [], 0
        for meeting in meetings_of(self.model):
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
    def step(self) -> float:
        """The size of the steps, s."""
        return float(np.asarray(self.motion._value("contact_step")).max())

    @cached_property
    def places(self) -> ContactPoints:
        """Where the points are: gap, point, normal, tangents, at every sample."""
        return self.model.contacts.points(np.asarray(self.motion.q, float), p=self.motion.model_parameters)

    @property
    def points(self) -> Array:
        """Positions of the points in the world (..., T, n, 3), m."""
        return np.asarray(self.places.point)

    @cached_property
    def force(self) -> Array:
        """Force on the first body of each point, in the world's axes (..., T, n, 3), N."""
        places, own = self.places, self.impulse / self.step
        along = own[..., 1:, None] * np.asarray(places.tangents)
        return np.asarray(own[..., :1] * np.asarray(places.normal) + along.sum(axis=-2))

    @cached_property
    def moment(self) -> Array:
        """Moment on the first body of each point (..., T, n, 3), N m, in the world's axes, of torsion and rolling."""
        places, own = self.places, self._rows[..., 3:] / self.step
        about = own[..., 1:, None] * np.asarray(places.tangents)
        return np.asarray(own[..., :1] * np.asarray(places.normal) + about.sum(axis=-2))

    @cached_property
    def wrenches(self) -> Array:
        """[moment, force] on bodies (..., T, n_bodies, 6), at their origins in their axes, N m and N."""
        X = np.asarray(self.model.poses(np.asarray(self.motion.q, float), p=self.motion.model_parameters))
        found = np.zeros((*X.shape[:-2], 6))
        for point, (first, second) in enumerate(self.bodies):
            for body, sign in ((first, 1.0), (second, -1.0)):
                if body >= 0:
                    arm = self.points[..., point, :] - X[..., body, :3, 3]
                    force, turn = sign * self.force[..., point, :], sign * self.moment[..., point, :]
                    both = (np.cross(arm, force) + turn, force)
                    own = [np.einsum("...ji,...j->...i", X[..., body, :3, :3], each) for each in both]
                    found[..., body, :] += np.concatenate(own, axis=-1)
        return found

    @property
    def bodies(self) -> tuple[tuple[int, int], ...]:
        """Of each point the numbers of its two bodies; -1 for what is fixed to the world."""
        return tuple(
            (meeting.body.index, -1 if meeting.other is None else meeting.other.index)
            for meeting in meetings_of(self.model)
            for _ in range(meeting.points)
        )

    def pressing(self, body: str, within: Callable[[Array], Array] | None = None) -> Array:
        """The sum of the normal forces on a body (..., T), N.

        Args:
            body: its name.
            within: which of some points (..., 3) of the world count; all if not given.
        """
        index = self.model.bodies[body].index
        found = np.zeros(self.motion.q.shape[:-1])
        for point, two in enumerate(self.bodies):
            if index in two:
                own = self.impulse[..., point, 0] / self.step
                found += own if within is None else np.where(within(self.points[..., point, :]), own, 0.0)
        return found

    @cached_property
    def mode(self) -> Array:
        """Whether each point is open (0), slips (1) or sticks (2), at every sample (..., T, n)."""
        limits = np.array([m.material.coefficients for m in meetings_of(self.model) for _ in range(m.points)])
        normal, tangential = self.impulse[..., 0], self.impulse[..., 1:]
        safe = np.where(limits > 0.0, limits, 1.0)
        used = np.linalg.norm(np.where(limits > 0.0, tangential / safe, 0.0), axis=-1)
        slips = (used >= normal * (1.0 - _ON_THE_CONE)) | (limits.max(axis=-1) == 0.0)
        return np.where(normal > 0.0, np.where(slips, SLIP, STICK), OPEN)
