"""States of a motion, and the chart around one of them in which a step works.

The state is ``y = [q, v, x]``, with x the states of actuators. A step works in the chart around its start:
``z = [u, w, x]``, so every Runge–Kutta method is a Lie-group method (Runge–Kutta–Munthe-Kaas), quaternions keep length
one, and all numbers of z are free. A turn is ``q = q₀ ∘ exp(u)``; the velocity w stays in the axes of the step's start:
what flies fast and tumbles flies straight in them, where in its own axes all its velocity would turn. For joints with
q̇ = v this is the ordinary method.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.configuration import structure_constants
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.sim.limits import is_linear
from linkwise.spatial.scalar import Flat, Scalar, plus


class Instant(NamedTuple):
    """A state of a motion at a time, and the parameters."""

    t: Scalar
    q: Flat
    v: Flat
    x: Flat
    p: Flat


class StateChart:
    """States of a model whose elements have states that flow and others that are kept within a step."""

    model: Model
    nq: int
    nv: int
    flowing: int
    """Numbers at the beginning of x that flow."""

    def parts(self, y: Flat) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """q, v and x of a state y."""
        a, b = self.nq, self.nq + self.nv
        return list(y[:a]), list(y[a:b]), list(y[b:])

    def at(self, t: Scalar, y: Flat, p: Flat) -> Instant:
        """The state y at a time."""
        return Instant(t, *self.parts(y), p)

    def chart_parts(self, z: Flat) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """u, v and the flowing part of x of a chart's state z."""
        return list(z[: self.nv]), list(z[self.nv : 2 * self.nv]), list(z[2 * self.nv :])

    def chart_origin(self, y: Flat) -> list[Scalar]:
        """The z of the chart's own centre."""
        _, v, x = self.parts(y)
        return [0.0] * self.nv + v + x[: self.flowing]

    def kept(self, y: Flat) -> list[Scalar]:
        """The part of x that stays as it is within a step."""
        return list(y[self.nq + self.nv + self.flowing :])

    def from_chart(self, y: Flat, z: Flat) -> list[Scalar]:
        """The state at z in the chart around y."""
        u, w, x = self.chart_parts(z)
        return [*self.carried(self.parts(y)[0], u), *self.in_axes_after(w, u), *x, *self.kept(y)]

    def moved(self, q: Flat, u: Flat) -> list[Scalar]:
        """q ∘ exp(u)."""
        out: list[Scalar] = [0.0] * self.nq
        for joint in self._own_joints:
            out[joint.q_slice] = joint.type.integrate(q[joint.q_slice], u[joint.v_slice])
        return out

    def carried(self, q: Flat, u: Flat) -> list[Scalar]:
        """The q that is reached by a motion u whose velocity is carried along with turning axes."""
        out: list[Scalar] = [0.0] * self.nq
        for joint in self._own_joints:
            out[joint.q_slice] = joint.type.carry(q[joint.q_slice], u[joint.v_slice])
        return out

    def way(self, q0: Flat, q1: Flat) -> list[Scalar]:
        """The u of q1 in the chart around q0; nv numbers."""
        out: list[Scalar] = [0.0] * self.nv
        for joint in self._own_joints:
            out[joint.v_slice] = joint.type.carry_way(q0[joint.q_slice], q1[joint.q_slice])
        return out

    def in_axes_after(self, v: Flat, u: Flat) -> list[Scalar]:
        """Velocities, written in the axes that joints reach with a motion u."""
        out = list(v)
        for joint in self._own_joints:
            out[joint.v_slice] = joint.type.carried(v[joint.v_slice], u[joint.v_slice])
        return out

    def axes_rate(self, v: Flat) -> list[Scalar]:
        """Rates of velocities (nv) because the axes that they are written in turn with the bodies."""
        out: list[Scalar] = [0.0] * self.nv
        for joint in self._own_joints:
            out[joint.v_slice] = joint.type.carry_rate(v[joint.v_slice])
        return out

    def own_acceleration(self, y: Flat, k: Flat) -> list[Scalar]:
        """v̇ from the rates k in the chart around y, at its centre."""
        turning = self.axes_rate(self.parts(y)[1])
        return plus(k[self.nv : 2 * self.nv], turning)

    def chart_rate(self, u: Flat, w: Flat) -> list[Scalar]:
        """u̇ in the chart, dexp⁻¹(u) w of what turns."""
        out: list[Scalar] = [0.0] * self.nv
        for joint in self._own_joints:
            part, kind = joint.v_slice, joint.type
            out[part] = w[part] if is_linear(kind) else kind.carry_way_rate(u[part], w[part])
        return out

    @cached_property
    def _own_joints(self) -> list[JointInstance]:
        return [joint for joint in self.model._independent if joint.nv]

    @cached_property
    def structure_constants(self) -> list[tuple[int, int, int, float]]:
        """Commutators of the directions of the tangent space: [x, y]_i = Σ c x_j y_k by entries (i, j, k, c)."""
        return structure_constants(self.model._trees.fast)
