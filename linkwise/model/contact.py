"""Contacts of a model: steps in time with friction, distances, collisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.model.base import ByName, Methods

if TYPE_CHECKING:
    from linkwise.contact.catalogue import ContactPoints
    from linkwise.contact.step import ContactStep


class Contacts(Methods):
    """Functions of a model whose bodies touch."""

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
            q: configuration (..., nq).
            v: velocity (..., nv).
            tau: joint forces (..., nv), all of them: damping and springs of the model are not added.
            impulses: those of the step before (..., n), to begin with; zeros if not given.
            dt: the step, s (...).
            f_ext: external forces (..., n_bodies, 6), as for :meth:`forward_dynamics`.
            implicit: (..., nv): dt times what damps a freedom, and dt²/4 times its stiffness, where ``tau`` holds such
                forces and the step is to be stable however stiff they are.
            others: ``p``, ``out``, ``threads``.

        Returns:
            A named tuple: q, v, impulses (..., n) in N s, gaps (..., points) in m, residuals (..., 3): what Signorini's
            condition (m/s), the friction cones (N s) and maximal dissipation (J) are missed by; overflow (...): points
            that found no room.
        """
        self._check_contacts("contact_step")
        if impulses is None:
            impulses = np.zeros(self.function("contact_step").inputs[3][1])
        given: Any = self._run(
            "contact_step", q, v, tau, impulses, dt, f_ext=f_ext, implicit=implicit, others=others
        )
        return given

    def contact_points(self, q: ArrayLike, **others: Unpack[ByName]) -> ContactPoints:
        """Where bodies touch or come nearest: gap (..., n), point and normal (..., n, 3), tangents (..., n, 2, 3).

        Args:
            q: configuration (..., nq).
            others: ``p``, ``out``, ``threads``.
        """
        self._check_contacts("contact_points")
        given: Any = self._run("contact_points", q, others=others)
        return given

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Of every contact point, what touches what."""
        from linkwise.contact.scene import meetings_of

        return tuple(meeting.name for meeting in meetings_of(self) for _ in range(meeting.points))

    def _check_contacts(self, what: str) -> None:
        if self.contacts is None:
            raise InputError(
                f"{what} is for models whose bodies touch",
                got=f"{self.name!r} without contacts",
                do="model.with_contacts(lw.Ground(), …)",
            )
