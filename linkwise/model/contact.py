"""Contacts of a model: steps in time with friction, distances, collisions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import finite_number
from linkwise.errors import InputError
from linkwise.model.compiled_methods import ByName, Group, Methods

if TYPE_CHECKING:
    from linkwise.contact.results import ContactPoints, ContactPush, ContactStep, Impact
    from linkwise.mechanism.contacts import ContactScene


Taken = ParamSpec("Taken")
Result = TypeVar("Result")


def taking(
    other: Callable[Concatenate[Any, Taken], object],
) -> Callable[[Callable[..., Result]], Callable[Concatenate[Any, Taken], Result]]:
    """Decorator of a method that takes what another one takes: people and tools see its signature."""

    def decorated(method: Callable[..., Result]) -> Callable[Concatenate[Any, Taken], Result]:
        shown = inspect.signature(other).replace(return_annotation=method.__annotations__["return"])
        method.__signature__ = shown  # type: ignore[attr-defined]  # functions take any attribute
        return method

    return decorated


class Touching(Methods):
    """Functions of a model whose bodies touch."""

    def _with_hulls(self) -> Self:
        """A copy in which the meshes of all that touches are their convex hulls, read from their files."""
        from linkwise.contact.geometry.hulls import with_hulls
        from linkwise.files.resources import points_of_mesh

        scene = self._contact_scene
        return self if scene is None else with_hulls(self, points_of_mesh, wanted=scene.touches)

    def contact_step(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        impulses: ArrayLike | None = None,
        dt: ArrayLike = 0.002,
        f_ext: ArrayLike | None = None,
        *,
        implicit: ArrayLike | None = None,
        **others: Unpack[ByName],
    ) -> ContactStep:
        """The end of one step in time with contacts and exact Coulomb friction, by Moreau's midpoint rule.

        Args:
            tau: joint forces (..., nv), all of them: damping and springs of the model are not added.
            impulses: those of the step before (..., n), to begin with; zeros if not given.
            dt: the step, s (...).
            f_ext: external forces (..., n_bodies, 6), as for :meth:`forward_dynamics`.
            implicit: (..., nv): dt times what damps a freedom, and dt²/4 times its stiffness, where ``tau`` holds such
                forces and the step is to be stable however stiff they are.

        Returns:
            A named tuple: q, v, impulses (..., n) in N s, gaps (..., points) in m, residuals (..., 3): what Signorini's
            condition (m/s), the friction cones (N s) and maximal dissipation (J) are missed by; overflow (...): points
            that found no room.
        """
        return cast("ContactStep", self._stepped("contact_step", (), others, q, v, tau, impulses, dt, f_ext, implicit))

    def _stepped(
        self,
        name: str,
        by: tuple[str, ...],
        others: ByName,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        impulses: ArrayLike | None,
        dt: ArrayLike,
        f_ext: ArrayLike | None,
        implicit: ArrayLike | None,
    ) -> Any:
        """A function of the arguments of a step, or its Jacobians by some of them."""
        self._check_contacts("contact_step")
        _check_step(dt)
        impulses, dt = self._in_their_precision(impulses, dt, (q, v, tau))
        return self._run(name, q, v, tau, impulses, dt, f_ext=f_ext, implicit=implicit, others=others, by=by)

    def distances(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Distance between the shapes of each pair that may touch (..., pairs), m; negative where they overlap."""
        self._check_contacts("distances")
        return self._run("distances", q, others=others)

    def collides(self, q: ArrayLike, margin: float = 0.0, **others: Unpack[ByName]) -> Array:
        """Whether any two shapes that may touch are nearer to each other than a margin (...), true or false.

        Args:
            q: configuration (..., nq); one that is not made of finite numbers collides.
            margin: m.
        """
        least = finite_number(margin, "the margin of collisions")
        return np.asarray(~(self.distances(q, **others) >= least).all(axis=-1))

    def _in_their_precision(
        self, impulses: ArrayLike | None, dt: ArrayLike, arrays: Sequence[ArrayLike]
    ) -> tuple[ArrayLike, ArrayLike]:
        """Impulses, zeros if not given, and a dt of Python, in single precision if all arrays are."""
        single = all(getattr(array, "dtype", None) == np.float32 for array in arrays)
        if impulses is None:
            from linkwise.contact.scene import rows_of

            impulses = np.zeros(rows_of(self), np.float32 if single else np.float64)
        return impulses, np.asarray(dt, np.float32) if single and not hasattr(dt, "dtype") else dt

    def _check_contacts(self, what: str) -> None:
        if self._contact_scene is None:
            raise InputError(
                f"{what} is for models whose bodies touch",
                got=f"{self.name!r} without contacts",
                do="model.with_contacts(), with the ground of its file"
                if self._base_collisions
                else "model.with_contacts(lw.Ground(), …)",
            )


_STEP = inspect.signature(Touching.contact_step)


def _check_step(dt: object) -> None:
    """Raise InputError for steps that lead nowhere, or back; those on a device, or that are traced, are not seen."""
    possible = True
    if isinstance(dt, (float, int)):  # in a tenth of a µs
        possible = 0.0 < dt < math.inf
    elif isinstance(dt, (list, tuple, np.ndarray, np.number)):
        with suppress(ValueError, TypeError):  # what is no array of numbers is refused as such
            steps = np.asarray(dt)
            possible = bool(((steps > 0.0) & (steps < math.inf)).all())
    if not possible:
        raise InputError("dt of contact_step is not a positive number", got=repr(dt)[:80], allowed="s, above 0")


_LISTED = 4


class Contacts(Group):
    """Contacts of a model's bodies, and what comes of them: ``model.contacts.points(q)``."""

    attribute = "contacts"

    def __repr__(self) -> str:
        """Counts of the pairs that may touch and of their points, and the first pairs."""
        from linkwise.contact.scene import points_of

        try:
            names, points = list(dict.fromkeys(self.pairs)), points_of(self.model)
        except InputError as error:  # which simulations raise
            return f"<contacts of {self.model.name!r}: {error.what}>"
        first = ", ".join(map(repr, names[:_LISTED])) + (", …" if len(names) > _LISTED else "")
        return f"<contacts of {self.model.name!r}: {len(self.pairs)} pairs, {points} points{': ' * bool(first)}{first}>"

    @property
    def scene(self) -> ContactScene | None:
        """The scene of contacts that was given to ``with_contacts``; None for nothing."""
        return self.model._contact_scene

    def points(self, q: ArrayLike, **others: Unpack[ByName]) -> ContactPoints:
        """Points where bodies touch or are nearest: gap (..., n), point and normal (..., n, 3), tangents (…, 2, 3).

        Of a scene with many points the nearest are given, ``ContactRules.points`` of them, in the order of their gaps;
        ``number`` says which they are.
        """
        self.model._check_contacts("contact_points")
        return cast("ContactPoints", self.model._run("contact_points", q, others=others))

    @property
    def names(self) -> tuple[str, ...]:
        """Of every contact point, what touches what; of a scene with many points only that it is one of the nearest."""
        from linkwise.contact.scene import kept_points, meetings_of

        kept = kept_points(self.model)
        if kept is not None:
            return tuple(f"nearest point {k + 1}" for k in range(kept))
        return tuple(meeting.name for meeting in meetings_of(self.model) for _ in range(meeting.points))

    @property
    def pairs(self) -> tuple[str, ...]:
        """Of every pair of shapes that may touch, what touches what, in the order of :meth:`Model.distances`."""
        from linkwise.contact.scene import meetings_of

        return tuple(meeting.name for meeting in meetings_of(self.model))

    @property
    def rows(self) -> int:
        """Number of impulses that a step takes and gives: the size of that input of functions with a step in them."""
        from linkwise.contact.scene import rows_of

        self.model._check_contacts("rows")
        return rows_of(self.model)

    @taking(Touching.contact_step)
    def linearize_step(self, *given: Any, **named: Any) -> Any:
        """The derivatives of :meth:`Model.contact_step`, which takes the same, at its solution: ``dq, dv, dtau``.

        Each is (..., 2 nv, nv): of the configuration at the end (nv rows, a displacement in its tangent space), then of
        the velocity there. With x = (q, v) it is x⁺ = A x + B τ, A = [dq, dv] and B = dtau. Contacts that are about to
        part, stick or slip have the derivatives of one side; ``ContactRules(backward="smooth")`` blends both.
        """
        step = _STEP.bind(self.model, *given, **named)
        step.apply_defaults()
        _, *state, p, out, threads = step.arguments.values()
        others: ByName = {"p": p, "out": out, "threads": threads}
        return self.model._stepped("contact_change", ("q", "v", "tau"), others, *state)

    def force(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Any:
        """Joint forces (..., nv) of compliant contacts, N m or N; rigid ones exert none here.

        Springs and dampers at the points (:class:`Material`), friction made smooth below
        :attr:`ContactRules.friction_speed`.
        """
        self.model._check_contacts("contact_force")
        return self.model._run("contact_force", q, v, others=others)

    def energy(self, q: ArrayLike, **others: Unpack[ByName]) -> Any:
        """The energy (...) that compliant contacts store, J."""
        self.model._check_contacts("contact_energy")
        return self.model._run("contact_energy", q, others=others)

    def surface_speed(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """A bound on the speeds of all points of shapes for contact (...), m/s: none of them is faster."""
        self.model._check_contacts("surface_speed")
        return self.model._run("surface_speed", q, v, others=others)

    def push(self, q: ArrayLike, impulses: ArrayLike, **others: Unpack[ByName]) -> ContactPush:
        """Joint impulses J*λ that impulses of a step amount to, by what they come from.

        Args:
            impulses: of every row (..., n), as :meth:`Model.contact_step` has them, N s.

        Returns:
            A named tuple: contact, limits, friction (..., nv), N m s or N s.
        """
        self.model._check_contacts("contact_push")
        return cast("ContactPush", self.model._run("contact_push", q, impulses, others=others))

    def impact(self, q: ArrayLike, v: ArrayLike, t: ArrayLike | None = None, **others: Unpack[ByName]) -> Impact:
        """Velocities after an impact of all rigid surfaces that touch, by the laws of their materials.

        Args:
            q: configuration (..., nq); surfaces nearer than 1e-7 m touch.
            v: velocity before (..., nv).
            t: time (...), s, for closures that change with it.

        Returns:
            A named tuple: v (..., nv) after the impact, impulses (..., n) of all rows of all points, N s.
        """
        self.model._check_contacts("impact")
        found: Any = self.model._run("impact", q, v, t=t, others=others)
        given: Impact = found
        return given
