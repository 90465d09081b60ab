"""A compliant connection between two frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.mechanism.checks import checked_pose
from linkwise.model.model import Model
from linkwise.sim.elements import Element, Vector, checked_numbers, own_parameters
from linkwise.spatial.scalar import Scalar

End = tuple[str, Array, str | int | None]
"""A body, a placement (4, 4) on it, and the node that this starts from."""


class Bushing(Element):
    """Springs and dampers along and about the axes of a frame a, which pull a frame b towards it.

    With R and d the rotation and the position of b seen from a, the springs stretch by d and by θ = 2 tan(φ/2) n, φ
    being the angle and n the axis of R: for small turns the rotation vector, and smooth up to a half turn. The energy
    is ½d*K d + ½θ*K_r θ, and what acts on b acts on a in the opposite sense, so that momenta are kept.

    Args:
        model: the mechanism.
        body_a: name of a body or frame, or "world".
        body_b: likewise; the two must move against each other.
        stiffness: along x, y, z of a, N/m; one number for all.
        turning_stiffness: about x, y, z of a, N m/rad.
        damping: along x, y, z, N s/m.
        turning_damping: about x, y, z, N m s/rad.
        placement_a: 4×4 pose of frame a on its body; the body's own frame if not given.
        placement_b: likewise of frame b.
        node_a: of a flexible body a, the node that ``placement_a`` starts from, by name or number; else its root.
        node_b: likewise of body b.
    """

    is_actuator = False
    cause = "springs"

    def __init__(
        self,
        model: Model,
        body_a: str,
        body_b: str,
        stiffness: float | Sequence[float] = 0.0,
        turning_stiffness: float | Sequence[float] = 0.0,
        damping: float | Sequence[float] = 0.0,
        turning_damping: float | Sequence[float] = 0.0,
        *,
        placement_a: ArrayLike | None = None,
        placement_b: ArrayLike | None = None,
        node_a: str | int | None = None,
        node_b: str | int | None = None,
    ) -> None:
        self.model = model
        places = [(body_a, placement_a, node_a), (body_b, placement_b, node_b)]
        frames = [model.frame(body, node) for body, _, node in places]
        if len({(frame.body, frame.node) for frame in frames}) == 1:
            raise InputError(
                "a bushing is between two places of one rigid body",
                got=f"{body_a!r} and {body_b!r}",
                allowed="bodies that can move against each other",
            )
        self.ends = [
            (body, np.array(checked_pose(np.eye(4) if X is None else X, f"the placement of {body!r}")), node)
            for body, X, node in places
        ]
        given = (
            ("stiffness", stiffness),
            ("turning_stiffness", turning_stiffness),
            ("damping", damping),
            ("turning_damping", turning_damping),
        )
        numbers = [checked_numbers(values, 3, f"the {what} of a bushing", one_for_all=True) for what, values in given]
        for (what, _), each in zip(given, numbers, strict=True):
            if (each < 0.0).any():
                raise InputError(f"the {what} of a bushing is negative", got=str(each), allowed="numbers >= 0")
        self.k, self.k_turning, self.c, self.c_turning = numbers

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """The joint forces that the pull on both frames amounts to."""
        own = own_parameters(self.model, p)
        (X_a, J_a), (X_b, J_b) = (self._moving(end, q, own) for end in self.ends)
        R_a, d, theta = self._stretch(X_a, X_b)
        V_a, V_b = J_a @ v, J_b @ v
        arm = X_b[:3, 3] - X_a[:3, 3]
        omega = R_a.T @ (V_b[:3] - V_a[:3])
        d_dot = R_a.T @ (V_b[3:] - V_a[3:] - np.cross(V_a[:3], arm))
        half = 0.5 * theta
        theta_dot = omega - np.cross(half, omega) + half * (half @ omega)
        pull = R_a @ (-(self.k * d) - self.c * d_dot)
        along = -(self.k_turning * theta) - self.c_turning * theta_dot
        couple = R_a @ (along + np.cross(half, along) + half * (half @ along))
        total: Vector = J_b.T @ np.concatenate([couple, pull])
        return total - J_a.T @ np.concatenate([couple + np.cross(arm, pull), pull])

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """½d*K d + ½θ*K_r θ."""
        own = own_parameters(self.model, p)
        _, d, theta = self._stretch(*(self._pose(end, q, own) for end in self.ends))
        return 0.5 * (d @ (self.k * d) + theta @ (self.k_turning * theta))

    def _pose(self, end: End, q: Vector, p: Array | None) -> Array:
        body, placement, node = end
        if body == "world":
            return placement.astype(object)
        return self.model.pose(q, body, node=node, p=p) @ placement

    def _moving(self, end: End, q: Vector, p: Array | None) -> tuple[Array, Array]:
        """The pose of a frame, and its Jacobian at its origin in world axes."""
        body, placement, node = end
        X = self._pose(end, q, p)
        if body == "world":
            return X, np.zeros((6, self.model.nv), object) + 0.0
        point = placement[:3, 3].astype(object)
        return X, self.model.jacobian(q, body, point, node=node, p=p)

    @staticmethod
    def _stretch(X_a: Array, X_b: Array) -> tuple[Array, Array, Array]:
        """R_a, d and θ."""
        R_a = X_a[:3, :3]
        R, d = R_a.T @ X_b[:3, :3], R_a.T @ (X_b[:3, 3] - X_a[:3, 3])
        skew = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        return R_a, d, skew * (2.0 / (1.0 + (R[0, 0] + R[1, 1] + R[2, 2])))
