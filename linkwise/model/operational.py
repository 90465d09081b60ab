"""Dynamics felt at a place (operational space), and regressors, which are linear in the inertias."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.model.base import ByName, Group, Methods


class Operational(Group):
    """Inertia felt at a place: dynamics in operational space."""

    attribute = "operational"

    def inertia(self, q: ArrayLike, body: str, *, node: str | int | None = None, **others: Unpack[ByName]) -> Array:
        """Λ = (J𝓜⁻¹J*)⁻¹ (..., 6, 6): the inertia felt at the origin of a body or frame, in world axes.

        Rows and columns: rotations, then translations, so kg m², kg m and kg. Not finite where some direction cannot be
        moved (fewer than six freedoms, singular configurations): :meth:`admittance` always exists.

        Args:
            q: configuration (..., nq).
            body: name of a body or frame.
            node: of a flexible body, by name or number.
            p: run-time parameters (..., np).
            out: array to fill.
            threads: threads to split a batch over.
        """
        return self.model._run_at("operational_inertia", body, q, node=node, others=others)

    def admittance(self, q: ArrayLike, body: str, *, node: str | int | None = None, **others: Unpack[ByName]) -> Array:
        """Λ⁻¹ = J𝓜⁻¹J* (..., 6, 6): how a unit force at a place accelerates it; see :meth:`inertia`."""
        return self.model._run_at("operational_admittance", body, q, node=node, others=others)


class Identification(Methods):
    """Dynamics as linear functions of the inertias."""

    def regressor(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Y (..., nv, 10 n_bodies): inverse dynamics is Y π with π = :attr:`inertial_parameters` (armature aside).

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            vdot: acceleration (..., nv).
            p: run-time parameters (..., np).
            out: array to fill.
            threads: threads to split a batch over.
        """
        return self._run("regressor", q, v, vdot, others=others)
