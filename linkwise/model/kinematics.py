"""Where the bodies of a model are, and how they move."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from linkwise.algorithms.kinematics import Reference
from linkwise.array_types import Array
from linkwise.model.base import ByName, Methods


class Kinematics(Methods):
    """Poses, velocities, accelerations, Jacobians."""

    def pose(self, q: ArrayLike, body: str, *, node: str | int | None = None, **others: Unpack[ByName]) -> Array:
        """4×4 pose (..., 4, 4) of a body or frame in the world, or of a ``node`` of a flexible body."""
        return self._run_at("pose", body, q, node=node, others=others)

    def poses(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """4×4 poses (..., n_bodies, 4, 4) of all moving bodies, in the order of ``model.bodies``."""
        return self._run("poses", q, others=others)

    def velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        body: str,
        *,
        node: str | int | None = None,
        reference: Reference = "mixed",
        **others: Unpack[ByName],
    ) -> Array:
        """[ω; v] (..., 6) of a body, frame or node.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            body: name of a body or frame.
            node: of a flexible body, by name or number.
            reference: ``"mixed"``: world axes, at its origin. ``"local"``: its own axes, at its origin. ``"world"``:
                world axes, of the point of the body that is at the world's origin.
            p: run-time parameters (..., np).
            out: array to fill.
            threads: how many to split a batch over.
        """
        return self._run_at("velocity", body, q, v, node=node, reference=reference, others=others)

    def acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        body: str,
        *,
        node: str | int | None = None,
        reference: Reference = "mixed",
        **others: Unpack[ByName],
    ) -> Array:
        """The rate (..., 6) of the six numbers of :meth:`velocity`; equal to J v̇ + J̇ v. Gravity is no part of it.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            vdot: acceleration (..., nv).
            body: name of a body or frame.
            node: of a flexible body, by name or number.
            reference: ``"mixed"``: [ω'; a], a being the acceleration of its origin, in world axes. ``"local"``: how
                the numbers of its velocity in its own axes change (not what an accelerometer there feels: these axes
                turn). ``"world"``: that of the velocity at the world's origin. The latter two are the spatial
                accelerations of Featherstone and Pinocchio.
            p: run-time parameters (..., np).
            out: array to fill.
            threads: how many to split a batch over.

        Example:
            >>> from linkwise.samples import planar_arm
            >>> arm = planar_arm(1, length=0.5)
            >>> arm.acceleration([0.0], [2.0], [0.0], "link1")[3:].tolist()  # the joint is at its origin
            [0.0, 0.0, 0.0]
        """
        return self._run_at("acceleration", body, q, v, vdot, node=node, reference=reference, others=others)

    def jacobian(
        self,
        q: ArrayLike,
        body: str,
        point: ArrayLike | None = None,
        *,
        node: str | int | None = None,
        reference: Reference = "mixed",
        **others: Unpack[ByName],
    ) -> Array:
        """J (..., 6, nv) with J v = [ω; v] of a body or frame, at its origin or at another point of it.

        Args:
            q: configuration (..., nq).
            body: name of a body or frame.
            point: (..., 3) in its frame, m; its origin if not given.
            node: of a flexible body, by name or number.
            reference: how the six numbers are written: ``"mixed"``, ``"local"`` or ``"world"``, as in :meth:`velocity`.
            p: run-time parameters (..., np).
            out: array to fill.
            threads: threads to split a batch over.
        """
        return self._run_at("jacobian", body, q, node=node, reference=reference, point=point, others=others)

    def jacobian_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        body: str,
        point: ArrayLike | None = None,
        *,
        node: str | int | None = None,
        reference: Reference = "mixed",
        **others: Unpack[ByName],
    ) -> Array:
        """dJ/dt (..., 6, nv) of :meth:`jacobian` along a motion with velocity v (..., nv); the arguments are its."""
        return self._run_at("jacobian_rate", body, q, v, node=node, reference=reference, point=point, others=others)

    def configuration_rate(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """q̇ (..., nq) from v; the two differ for planar, spherical and free joints."""
        return self._run("configuration_rate", q, v, others=others)
