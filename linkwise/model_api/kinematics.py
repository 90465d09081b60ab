"""Where the bodies of a model are, and how they move."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from linkwise.model_api.base import Methods

Array = NDArray[Any]


class Kinematics(Methods):
    """Poses, velocities, Jacobians."""

    def pose(
        self,
        q: ArrayLike,
        body: str,
        *,
        node: str | int | None = None,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """4×4 pose (..., 4, 4) of a body or frame in the world, or of a ``node`` of a flexible body."""
        return self._run("pose", q, p=p, out=out, threads=threads, **self._at(body, node))

    def poses(
        self, q: ArrayLike, *, p: ArrayLike | None = None, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """4×4 poses (..., n_bodies, 4, 4) of all moving bodies, in the order of ``model.bodies``."""
        return self._run("poses", q, p=p, out=out, threads=threads)

    def velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        body: str,
        *,
        node: str | int | None = None,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """[ω; v] (..., 6) of a body, frame or node: world axes, at its origin."""
        return self._run("velocity", q, v, p=p, out=out, threads=threads, **self._at(body, node))

    def jacobian(
        self,
        q: ArrayLike,
        body: str,
        point: ArrayLike | None = None,
        *,
        node: str | int | None = None,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """J (..., 6, nv) with J v = [ω; v] of a body or frame, in world axes.

        At its origin, or at ``point`` (..., 3) given in its frame.
        """
        return self._run("jacobian", q, point=point, p=p, out=out, threads=threads, **self._at(body, node))

    def jacobian_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        body: str,
        point: ArrayLike | None = None,
        *,
        node: str | int | None = None,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """dJ/dt (..., 6, nv) along the motion, of :meth:`jacobian`."""
        return self._run("jacobian_rate", q, v, point=point, p=p, out=out, threads=threads, **self._at(body, node))

    def configuration_rate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """q̇ (..., nq) from v; the two differ for planar, spherical and free joints."""
        return self._run("configuration_rate", q, v, p=p, out=out, threads=threads)
