"""Configurations of a model that reach goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from numpy.typing import ArrayLike

from linkwise.model.base import Methods

if TYPE_CHECKING:
    from linkwise.kinematics.goals import Goal
    from linkwise.kinematics.problem_solver import Reached
    from linkwise.model.model import Model


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
