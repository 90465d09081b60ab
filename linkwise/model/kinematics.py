"""Poses and motions of a model's bodies, and configurations that bring them where they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Unpack, cast

from numpy.typing import ArrayLike

from linkwise.algorithms.kinematics import Reference
from linkwise.array_types import Array
from linkwise.model.compiled_methods import ByName, Methods

if TYPE_CHECKING:
    from linkwise.kinematics.goals import Goal
    from linkwise.kinematics.problem_solver import Reached
    from linkwise.model.model import Model


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
            reference: ``"mixed"``: world axes, at its origin. ``"local"``: its own axes, at its origin. ``"world"``:
                world axes, of the point of the body that is at the world's origin.
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
            reference: ``"mixed"``: [ω'; a], a being the acceleration of its origin, in world axes. ``"local"``: how
                the numbers of its velocity in its own axes change (not what an accelerometer there feels: these axes
                turn). ``"world"``: that of the velocity at the world's origin. The latter two are the spatial
                accelerations of Featherstone and Pinocchio.

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
        """J (..., 6, nv) with J v = [ω; v] of a body or frame, at its origin or at another point of it."""
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


class InverseKinematics(Methods):
    """Inverse kinematics."""

    def inverse_kinematics(
        self,
        goals: str | Goal | Sequence[Goal],
        target: ArrayLike | None = None,
        *,
        q0: ArrayLike | None = None,
        rest: ArrayLike | None = None,
        joints: Sequence[str] | None = None,
        locked: Sequence[str] = (),
        limits: Literal["respect", "ignore"] = "respect",
        tol: float | tuple[float, float] = 1e-6,
        starts: int = 100,
        iterations: int = 100,
        seed: int = 0,
        threads: int | None = None,
    ) -> Reached:
        """A configuration that reaches goals, for one target or any batch of them.

        Damped least squares within the joint limits, in compiled code; where a start gets stuck, others follow. Every
        target tries the same starts in the same order, so its result does not depend on the batch or the threads.

        Args:
            goals: the name of a body or frame that is to reach ``target``; or goals, all to be met at once:
                :class:`linkwise.Reach`, :class:`linkwise.Aim`, :class:`linkwise.Balance`.
            target: (..., 4, 4) pose or (..., 3) position in the world, with a name only.
            q0: (..., nq), the first start: the present configuration, say. The middle of the limits if left out.
                Freedoms that do not matter stay as they are there.
            rest: (nq) or (..., nq), a configuration to stay near as far as the goals leave freedom.
            joints: names of the joints that may move; all if left out. Flexible bodies stay as they are in ``q0``.
            locked: names of joints that may not move.
            limits: ``"ignore"`` lets joints go beyond their position limits.
            tol: how near is good enough, m and rad; or one for each.
            starts: how many random starts to try where the first one fails; 0 for none.
            iterations: steps for each start, at most.
            seed: of the random starts.
            threads: how many to split a batch over.

        Returns:
            q, converged, position_error, angle_error, iterations, start; see :class:`Reached`. Where nothing
            converged, q is the best that was found.

        Closures of the model are kept closed, at time 0 if they depend on it. Run-time parameters are at their nominal
        values.

        Example:
            >>> from linkwise.samples import stanford_arm
            >>> arm = stanford_arm()
            >>> found = arm.inverse_kinematics("link6", position := (0.3, 0.2, 0.4))
            >>> bool(found.converged), bool(abs(arm.pose(found.q, "link6")[:3, 3] - position).max() < 1e-6)
            (True, True)
        """
        from linkwise.model.reaching import reach

        how = (q0, rest, joints, locked, limits, tol, starts, iterations, seed, threads)
        return reach(cast("Model", self), goals, target, *how)
