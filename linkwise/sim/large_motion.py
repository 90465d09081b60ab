"""The equations of motion of large mechanisms, on arrays: their sweeps run as loops, compiled in constant time.

The counterpart of :class:`linkwise.sim.motion.Motion` for models that roll (:attr:`Model.rolls`): forward dynamics and
poses are the model's own compiled functions; what acts on the joints is traced; sums of vectors are NumPy. Every array
has one leading axis, the states of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.compile import CompiledFunction
from linkwise.sim.limits import is_linear
from linkwise.sim.motion import Flat, Motion
from linkwise.spatial.scalar import Scalar

Array = NDArray[Any]


class LargeMotion:
    """A motion on arrays.

    Args:
        motion: what moves and what acts.
        host: joint forces (count, nv) by Python functions of rows t (count, 1), y (count, ny) and p (count, np).
    """

    def __init__(self, motion: Motion, host: Callable[..., tuple[Array]] | None = None) -> None:
        self.motion, self.host = motion, host

    # States.
    def origin(self, y: Array) -> Array:
        """The z (count, nz) of the chart's own centre."""
        m = self.motion
        return np.concatenate([np.zeros((len(y), m.nv), y.dtype), y[:, m.nq :]], axis=1)

    def from_chart(self, y: Array, z: Array) -> Array:
        """The state (count, ny) at z in the chart around y."""
        m = self.motion
        q = m.model.integrate(y[:, : m.nq], np.ascontiguousarray(z[:, : m.nv]))
        return np.concatenate([q, z[:, m.nv :]], axis=1)

    def chart_rate(self, u: Array, v: Array) -> Array:
        """u̇ (count, nv): v itself, but for joints that turn in more than one direction."""
        out = v.copy()
        for columns, rate in self._turning:
            out[:, columns] = rate(u[:, columns], v[:, columns])
        return out

    @cached_property
    def _turning(self) -> list[tuple[Array, CompiledFunction]]:
        """For each kind of joint with q̇ ≠ v its columns (joints, nv of one), and dexp⁻¹ for one joint."""
        kinds: dict[Any, list[Any]] = {}
        for joint in self.motion._own_joints:
            if not is_linear(joint.type):
                kinds.setdefault(joint.type, []).append(joint)
        found = []
        for kind, joints in kinds.items():
            size = kind.nv

            def text(u: Flat, v: Flat, kind: Any = kind) -> list[Scalar]:
                return self.motion.joint_chart_rate(kind, u, v)

            columns = np.array([range(joint.v_slice.start, joint.v_slice.stop) for joint in joints])
            found.append((columns, CompiledFunction("chart_rate", text, [("u", (size,)), ("v", (size,))])))
        return found

    # Motion.
    @cached_property
    def _forces(self) -> CompiledFunction | None:
        """(t, y, p, joint forces from Python) to all joint forces, those of actuators, ẋ and forces on bodies."""
        m = self.motion
        passive = m.model.damping.any() or m.model.friction.any() or m.has_springs
        acts = m.elements or m.limits or passive or self.host is not None
        if not acts:
            return None

        def text(t: Flat, y: Flat, p: Flat, hosted: Flat) -> dict[str, Any]:
            q, v, x = m.parts(y)
            active, passive = m.joint_forces(t[0], q, v, x, p, hosted if self.host is not None else None)
            losses = m.joint_losses(q, v)
            tau = [a + b + c for a, b, c in zip(active, passive, losses, strict=True)]
            out = {"tau": tau, "active": active, "xdot": m.element_rates(t[0], q, v, x, p)}
            outside = m.body_forces(t[0], q, v, x, p)
            return out if outside is None else {**out, "f_ext": list(outside.reshape(-1))}

        shapes = [("t", ()), ("y", (m.ny,)), ("p", (m.np,)), ("hosted", (m.nv,))]
        return CompiledFunction("forces", text, shapes)

    def acceleration(self, t: Array, y: Array, p: Array) -> tuple[Array, Array, Array, Array | None]:
        """v̇ (count, nv), the actuators' joint forces (count, nv), ẋ (count, nx), forces on bodies; t is (count, 1)."""
        m = self.motion
        q, v = y[:, : m.nq], y[:, m.nq : m.nq + m.nv]
        if self._forces is None:
            none = np.zeros_like(v)
            return m.model.forward_dynamics(q, v, none), none, y[:, :0], None
        hosted = np.zeros_like(v) if self.host is None else self.host(t, y, p)[0].astype(y.dtype)
        found = self._forces.general(t[:, 0], y, p, hosted)
        outside = getattr(found, "f_ext", None)
        f_ext = None if outside is None else outside.reshape(len(y), -1, 6)
        return m.model.forward_dynamics(q, v, found.tau, f_ext), found.active, found.xdot, outside

    def rates(self, y: Array, z: Array, t: Array, p: Array) -> Array:
        """Ż (count, nz) in the chart around y."""
        m = self.motion
        vdot, _, xdot, _ = self.acceleration(t, self.from_chart(y, z), p)
        return np.concatenate([self.chart_rate(z[:, : m.nv], z[:, m.nv : 2 * m.nv]), vdot, xdot], axis=1)

    def energy(self, y: Array, p: Array) -> Array:
        """Kinetic and potential energy and what springs hold (count), in J."""
        m = self.motion
        q, v = np.ascontiguousarray(y[:, : m.nq]), np.ascontiguousarray(y[:, m.nq : m.nq + m.nv])
        kinetic = 0.5 * np.einsum("ni,ni->n", v, m.model.function("mass_product")(q, v))
        poses = m.model.poses(q)
        total = kinetic
        for k, body in enumerate(m.model.bodies):
            for part in body.parts:
                place = np.asarray(part.placement)
                arm = place[:3, :3] @ np.asarray(part.com) + place[:3, 3]
                total = total - part.mass * (poses[:, k, :3, :3] @ arm + poses[:, k, :3, 3]) @ np.asarray(
                    m.model.gravity
                )
        if self._stored is None:
            return np.asarray(total)
        return np.asarray(total + self._stored(y, p))

    @cached_property
    def _stored(self) -> CompiledFunction | None:
        m = self.motion
        if not m.elements and not m.limits and not m.has_springs:
            return None

        def text(y: Flat, p: Flat) -> Scalar:
            q, _, x = m.parts(y)
            return m.stored_energy(q, x, p)

        return CompiledFunction("stored_energy", text, [("y", (m.ny,)), ("p", (m.np,))])

    def observe(self, t: Array, y: Array, p: Array) -> dict[str, Array]:
        """v̇, τ, energy and forces on bodies of samples y (count, ny) at times t (count, 1)."""
        vdot, tau, _, outside = self.acceleration(t, y, p)
        found = {"vdot": vdot, "tau": tau, "energy": self.energy(y, p)}
        return found if outside is None else {**found, "f_ext": outside}
