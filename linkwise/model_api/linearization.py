"""Linearised dynamics of a model: derivatives of first and second order, state space, sensitivities.

The methods of :class:`linkwise.Model` that are about small changes; see :mod:`linkwise.algorithms.linearized_inverse`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.algorithms.linearized_inverse import LinearizedInverse
from linkwise.algorithms.tangent import structure_constants
from linkwise.errors import InputError
from linkwise.model_api.closed_sensitivity import ClosedMotion
from linkwise.model_api.held_motion import held_motion
from linkwise.once import cached_property
from linkwise.spatial.runge_kutta import RK4

if TYPE_CHECKING:
    from linkwise.compiled.function import CompiledFunction

Array = NDArray[Any]


class SecondOrderInverse(NamedTuple):
    """τ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdv[i, j, k]`` is ∂²τ_i/∂q_j∂v_k: how ``dq[i, j]`` changes along the k-th velocity. ``dqdvdot`` is ∂𝓜/∂q with the
    axis of q in the middle. Second derivatives that are zero for every mechanism (∂²τ/∂v∂v̇, ∂²τ/∂v̇²) are left out.
    """

    tau: Any
    dq: Any
    dv: Any
    dvdot: Any
    dqdq: Any
    dqdv: Any
    dvdv: Any
    dqdvdot: Any


class SecondOrderForward(NamedTuple):
    """v̇ (..., nv), its derivatives (..., nv, nv) and second derivatives (..., nv, nv, nv).

    ``dqdtau[i, j, k]`` is ∂²v̇_i/∂q_j∂τ_k: how ``dq[i, j]`` changes along the k-th force. ∂²v̇/∂v∂τ and ∂²v̇/∂τ² are zero.
    """

    vdot: Any
    dq: Any
    dv: Any
    dtau: Any
    dqdq: Any
    dqdv: Any
    dvdv: Any
    dqdtau: Any


class StateSpace(NamedTuple):
    """δẋ = A δx + B δτ, or δx⁺ = A δx + B δτ for a time step; x = [q; v] in the tangent space, 2 nv numbers."""

    A: Any
    B: Any


class Sensitivity(NamedTuple):
    """A trajectory and its derivatives at each of the times t (steps + 1): x = [q; v] in the tangent space.

    ``q`` (steps + 1, ..., nq), ``v`` (steps + 1, ..., nv), ``dx0`` = ∂x(t)/∂x(0) (steps + 1, ..., 2 nv, 2 nv),
    ``dp`` = ∂x(t)/∂p (steps + 1, ..., 2 nv, np).
    """

    t: Any
    q: Any
    v: Any
    dx0: Any
    dp: Any


class Linearization:
    """The linearised dynamics of a model, as methods."""

    nq: int
    nv: int

    def linearize_inverse(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        order: Literal[1, 2] = 1,
        p: ArrayLike | None = None,
        out: tuple[Array, ...] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The derivatives of :meth:`inverse_dynamics`: a named tuple ``tau, dq, dv, dvdot``, the last the mass matrix.

        ``dq[..., i, j]`` is the change of τ_i when joint axis j moves by a small amount: a derivative in the tangent
        space, nv × nv, as in ``integrate(q, dv)``. External forces keep their components in body frames.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            vdot: acceleration (..., nv).
            f_ext: external forces (..., n_bodies, 6) in body frames.
            order: 2 for second derivatives as well, in a :class:`SecondOrderInverse`.
            p: run-time parameters (..., np).
            out: four arrays to fill (order 1 only).
            threads: threads to split a batch over.
        """
        if order == 1:
            return self._run("linearize_inverse", q, v, vdot, f_ext=f_ext, p=p, out=out, threads=threads)
        first, rates = self._second_order("linearize_inverse", order, (q, v, vdot), f_ext, p, out, threads)
        along_q, along_v, along_vdot = rates
        return SecondOrderInverse._make((*first, along_q.dq, along_v.dq, along_v.dv, along_vdot.dq))

    def linearize_forward(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        order: Literal[1, 2] = 1,
        t: ArrayLike | None = None,
        p: ArrayLike | None = None,
        out: tuple[Array, ...] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The derivatives of :meth:`forward_dynamics`: ``vdot, dq, dv, dtau``, the last the inverse of the mass matrix.

        Arguments as in :meth:`linearize_inverse`; of second order, a :class:`SecondOrderForward`.

        Of a model with closures, the derivatives of the constrained accelerations, right at any rank of J_c along
        changes that keep the closures closed (``dq @ N`` with N of :meth:`freedoms`). What a redundant equation would
        say of changes that open it is left out.
        """
        if self.closures:
            self._refuse_closed(order != 1, "linearize_forward of second order")
            closed = self._linearized_closed(q, v, tau, f_ext, t, p, threads)
            if out is None:
                return closed
            for target, value in zip(out, closed, strict=True):
                target[...] = value
            return type(closed)._make(out)
        if order == 1:
            return self._run("linearize_forward", q, v, tau, f_ext=f_ext, p=p, out=out, threads=threads)
        first, rates = self._second_order("linearize_forward", order, (q, v, tau), f_ext, p, out, threads)
        along_q, along_v, along_tau = rates
        return SecondOrderForward._make((*first, along_q.dq, along_v.dq, along_v.dv, along_tau.dq))

    def perturb_inverse(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        dq: ArrayLike,
        dv: ArrayLike,
        dvdot: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """δτ (..., nv) for small changes dq (tangent), dv and dvdot (..., nv each), in O(n), without a matrix."""
        changes = (dq, dv, dvdot)
        result: Array = self._run("perturb_inverse", q, v, vdot, *changes, f_ext=f_ext, p=p, out=out, threads=threads)
        return result

    def perturb_forward(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        dq: ArrayLike,
        dv: ArrayLike,
        dtau: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """δv̇ (..., nv) for small changes dq (tangent), dv and dtau (..., nv each), in O(n), without a mass matrix."""
        if self.closures:
            lin = self._linearized_closed(q, v, tau, f_ext, None, p, threads)
            pairs = ((lin.dq, dq), (lin.dv, dv), (lin.dtau, dtau))
            along = sum(np.einsum("...ij,...j->...i", matrix, np.asarray(x)) for matrix, x in pairs)
            if out is None:
                return np.asarray(along)
            out[...] = along
            return out
        changes = (dq, dv, dtau)
        result: Array = self._run("perturb_forward", q, v, tau, *changes, f_ext=f_ext, p=p, out=out, threads=threads)
        return result

    def state_space(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        dt: float | None = None,
        actuated: Sequence[str] | None = None,
        t: ArrayLike | None = None,
        p: ArrayLike | None = None,
        threads: int | None = None,
    ) -> StateSpace:
        """The model linearised about a state: A (..., 2 nv, 2 nv) and B (..., 2 nv, nv) for x = [q; v] and the input τ.

        Changes of q are in the tangent space (as in :meth:`integrate`). Without ``dt``, of continuous time. With
        ``dt``, of the motion over that time with constant τ (a zero-order hold): the derivative of where the exact
        motion leads. At rest that is the matrix exponential, however long the step.

        Of a model with closures, x = [ξ; w] has the independent freedoms only: δq = N ξ and w = v[independent], with N
        and ``independent`` of :meth:`freedoms` (for ξ, of the equations between places alone). One state that obeys the
        closures; with ``dt``, at rest.

        Args:
            q: configuration (..., nq).
            v: velocity (..., nv).
            tau: joint forces (..., nv).
            dt: time step in s; None for continuous time.
            actuated: names of the joints that have motors: B has their columns alone. All if not given.
            t: time, for closures that depend on it.
            p: run-time parameters (..., np).
            threads: threads to split a batch over.
        """
        if actuated is not None:
            whole = self.state_space(q, v, tau, dt=dt, t=t, p=p, threads=threads)
            return StateSpace(whole.A, whole.B @ self.actuation_matrix(actuated))
        if self.closures:
            return StateSpace(*self._closed_state_space(q, v, tau, t, p, None if dt is None else _checked_dt(dt)))
        q, v, tau = (np.asarray(x, float) for x in (q, v, tau))
        if dt is not None:
            return self._held(q, v, tau, _checked_dt(dt), p, threads)
        lin = self.linearize_forward(q, v, tau, p=p, threads=threads)
        n = self.nv
        A = np.zeros((*lin.vdot.shape[:-1], 2 * n, 2 * n))
        A[..., :n, :n] = -self._ad(v)
        A[..., :n, n:] = np.eye(n)
        A[..., n:, :n] = lin.dq
        A[..., n:, n:] = lin.dv
        return StateSpace(A, np.concatenate([np.zeros_like(lin.dtau), lin.dtau], axis=-2))

    def _held(self, q: Array, v: Array, tau: Array, dt: float, p: Any, threads: int | None) -> StateSpace:
        """The state space of the motion over a time in which τ is held."""
        vdot = self._run("forward_dynamics", q, v, tau, p=p, threads=threads)
        # A state that is not a number must not decide on the steps of the others: a state of rest takes its place.
        known = (np.isfinite(vdot) & np.isfinite(v)).all(axis=-1, keepdims=True)
        q = np.where(known, q, self.neutral())
        v, tau, vdot = (np.where(known, x, 0.0) for x in (v, tau, vdot))

        def rates(q: Array, v: Array) -> tuple[Array, Array]:
            return self.state_space(q, v, tau, p=p, threads=threads)

        def step(q: Array, v: Array, h: float) -> tuple[Array, Array]:
            return self._step(q, v, tau, h, p, threads)[:2]

        change = np.where(known[..., None], held_motion(rates, step, q, v, vdot, dt), np.nan)
        return StateSpace(change[..., : 2 * self.nv], change[..., 2 * self.nv :])

    def sensitivity(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        tau: ArrayLike,
        dt: float,
        *,
        p: ArrayLike | None = None,
        threads: int | None = None,
    ) -> Sensitivity:
        """How a whole trajectory depends on where it starts, on the forces and on run-time parameters (001 §1).

        The linearised model is integrated along the trajectory: each step of the classical Runge–Kutta method is
        differentiated exactly, so the result is the derivative of the trajectory that is returned.

        Of a model with closures (which must not depend on time), the derivative of the motion to the same order. The
        start obeys the closures; a change of it, or of p, is taken to the nearest one that does, in the norm of kinetic
        energy, so that all changes that are returned keep the closures closed.

        Args:
            q0: configuration at the start (..., nq).
            v0: velocity at the start (..., nv).
            tau: joint forces (steps, ..., nv), each held for one step.
            dt: time step in s.
            p: run-time parameters (..., np).
            threads: threads to split a batch over.
        """
        dt = _checked_dt(dt)
        forces = np.asarray(tau, float)
        if forces.ndim < 2 or forces.shape[-1] != self.nv:
            raise InputError(
                "tau of sensitivity has the wrong shape", got=str(forces.shape), allowed=f"(steps, ..., {self.nv})"
            )
        n, n_p = self.nv, self._parameter_count
        batch = np.broadcast_shapes(np.shape(q0)[:-1], np.shape(v0)[:-1], forces.shape[1:-1])
        q = np.broadcast_to(np.asarray(q0, float), (*batch, self.nq))
        v = np.broadcast_to(np.asarray(v0, float), (*batch, n))
        whole = np.zeros((*batch, 2 * n, 2 * n + n_p))
        whole[..., : 2 * n] = np.eye(2 * n)
        motion: ClosedMotion | None = None
        if self.closures:
            motion = ClosedMotion(self, p, threads)  # type: ignore[arg-type]
            self.check_closures(q, v, p=p)
            q, v = motion.closed(q, v)
            whole = motion.closed_change(q, v, whole)
        qs, vs, changes = [q], [v], [whole]
        for force in forces:
            held = np.broadcast_to(force, v.shape)
            if motion is not None:
                q, v, whole = motion.step(q, v, held, dt, whole)
            else:
                q, v, step = self._step(q, v, held, dt, p, threads)
                whole = step[..., : 2 * n] @ whole
                whole[..., 2 * n :] += step[..., 3 * n :]
            qs.append(q)
            vs.append(v)
            changes.append(whole)
        stacked = np.stack(changes)
        t = dt * np.arange(len(qs))
        return Sensitivity(t, np.stack(qs), np.stack(vs), stacked[..., : 2 * n], stacked[..., 2 * n :])

    # One step of the classical Runge–Kutta method in the tangent space at its start (Munthe-Kaas), and its derivative.
    def _step(
        self, q: Array, v: Array, tau: Array, dt: float, p: Any, threads: int | None
    ) -> tuple[Array, Array, Array]:
        """q and v after one step, and their change (..., 2 nv, 3 nv + np) with q, v, τ and p.

        θ is where the step has got to in the tangent space at its start, θ' = v + ½[θ, v] + [θ, [θ, v]]/12 + …
        """
        n = self.nv
        n_p = self._parameter_count
        batch = v.shape[:-1]
        eye = np.eye(3 * n + n_p)
        d_q = np.broadcast_to(eye[:n], (*batch, n, 3 * n + n_p))

        # z = [θ; v] in the first column, its change in the others.
        def parts(z: Array) -> tuple[Array, Array, Array, Array]:
            return z[..., :n, 0], z[..., :n, 1:], z[..., n:, 0], z[..., n:, 1:]

        def rates(z: Array) -> Array:
            theta, d_theta, speed, d_speed = parts(z)
            here, d_here = self._moved(q, d_q, theta, d_theta)
            lin = self.linearize_forward(here, speed, tau, p=p, threads=threads)
            d_vdot = lin.dq @ d_here + lin.dv @ d_speed + lin.dtau @ eye[2 * n : 3 * n]
            if n_p:
                d_vdot[..., 3 * n :] -= lin.dtau @ self._by_parameters(here, speed, lin.vdot, p)
            return joined(*self._tangent_rate(theta, d_theta, speed, d_speed), lin.vdot, d_vdot)

        def joined(theta: Array, d_theta: Array, speed: Array, d_speed: Array) -> Array:
            values = np.concatenate([theta, speed], axis=-1)[..., None]
            return np.concatenate([values, np.concatenate([d_theta, d_speed], axis=-2)], axis=-1)

        start = joined(np.zeros_like(v), np.zeros_like(d_q), v, np.broadcast_to(eye[n : 2 * n], d_q.shape))
        theta, d_theta, speed, d_speed = parts(RK4.step(rates, start, dt))
        there, d_there = self._moved(q, d_q, theta, d_theta)
        return there, speed, np.concatenate([d_there, d_speed], axis=-2)

    def _moved(self, q: Array, d_q: Array, theta: Array, d_theta: Array) -> tuple[Array, Array]:
        """q ⊕ θ and its change: exp(-ad θ) δq + [Σ (-ad θ)^k/(k+1)!] δθ."""
        there = self.integrate(q, theta)
        if not len(self._structure[0]):
            return there, d_q + d_theta
        minus_ad = -self._ad(theta)
        power = np.broadcast_to(np.eye(self.nv), minus_ad.shape)
        turn, chord = power.copy(), power.copy()
        for k in range(1, 30):
            power = power @ minus_ad / k
            turn += power
            chord += power / (k + 1)
            if np.abs(power).max(initial=0.0) < 1e-18:
                break
        return there, turn @ d_q + chord @ d_theta

    def _tangent_rate(self, theta: Array, d_theta: Array, v: Array, d_v: Array) -> tuple[Array, Array]:
        """θ' = v + ½[θ, v] + [θ, [θ, v]]/12, as far as a method of order four can tell, and its change."""
        if not len(self._structure[0]):
            return v, d_v
        ad, ad_v = self._ad(theta), self._ad(v)
        first = np.einsum("...ij,...j->...i", ad, v)
        second = np.einsum("...ij,...j->...i", ad, first)
        by_v = np.eye(self.nv) + ad / 2.0 + ad @ ad / 12.0
        by_theta = -ad_v / 2.0 - (self._ad(first) + ad @ ad_v) / 12.0
        return v + first / 2.0 + second / 12.0, by_v @ d_v + by_theta @ d_theta

    @cached_property
    def _structure(self) -> tuple[Array, Array, Array, Array]:
        """The structure constants of the tangent space: rows i, j, k and the constants."""
        entries = structure_constants(self._trees.fast)
        i, j, k = (np.array([entry[a] for entry in entries], int) for a in range(3))
        return i, j, k, np.array([entry[3] for entry in entries], float)

    def _ad(self, x: Array) -> Array:
        """ad x (..., nv, nv), the matrix of y -> [x, y]; zero unless there are quaternion or planar joints."""
        i, j, k, c = self._structure
        matrix = np.zeros((*x.shape, self.nv))
        for row, a, column, constant in zip(i, j, k, c, strict=True):
            matrix[..., row, column] += constant * x[..., a]
        return matrix

    def _by_parameters(self, q: Array, v: Array, vdot: Array, p: Any) -> Array:
        """∂τ/∂p (..., nv, np)."""
        jacobian = self.function("inverse_dynamics").jacobian("p")
        result: Array = jacobian.general(q, v, vdot, self.nominal_parameters if p is None else p)
        return result

    @property
    def _parameter_count(self) -> int:
        return len(self.nominal_parameters)

    def _second_order(
        self,
        name: str,
        order: object,
        state: tuple[ArrayLike, ArrayLike, ArrayLike],
        f_ext: ArrayLike | None,
        p: ArrayLike | None,
        out: object,
        threads: int | None,
    ) -> tuple[Any, list[Any]]:
        """The first-order result, and its change along every direction of q, v and the third argument."""
        if order != 2:
            raise InputError(f"no such order of {name}", got=repr(order), allowed="1 or 2")
        if out is not None:
            raise InputError(f"{name} of second order takes no out", do="drop the out= argument")
        first = self._run(name, *state, f_ext=f_ext, p=p, threads=threads)
        arrays = [(np.asarray(x), 1) for x in state]
        optional = []
        if f_ext is not None:
            arrays.append((np.asarray(f_ext), 2))
            optional.append("f_ext")
        if self._parameter_count:
            arrays.append((np.asarray(self.nominal_parameters if p is None else p), 1))
        lanes = [np.expand_dims(x, x.ndim - axes) for x, axes in arrays]  # every direction is a state of a batch
        function = self.function(name, *optional)
        rates = []
        for direction, wanted in zip(
            (n for n, _ in function.inputs[:3]), (("dq",), ("dq", "dv"), ("dq",)), strict=True
        ):
            along = _part(function, wanted).jvp(direction)
            result = along.general(*lanes, np.eye(self.nv), threads=threads)
            rates.append(type(result)._make(np.moveaxis(x, -3, -1) for x in result))
        return first, rates

    def _refuse_closed(self, asked: bool, what: str) -> None:
        if asked:
            raise InputError(
                f"{what} is there for models without closures only",
                got=f"closures {', '.join(repr(c.name) for c in self.closures)}",
                do='use model.linearize_forward(q, v, tau), or model.function("forward_dynamics").jacobian("q")',
            )

    # What the rest of the model gives.
    if TYPE_CHECKING:
        closures: Any
        check_closures: Any
        _linearized_closed: Any
        actuation_matrix: Any
        _closed_state_space: Any
        _trees: Any
        nominal_parameters: Any
        _run: Any
        integrate: Any
        neutral: Any

        def function(self, name: str, *optional: str, **static: Any) -> CompiledFunction:
            """The compiled function behind a method."""


def _part(function: CompiledFunction, wanted: Sequence[str]) -> CompiledFunction:
    """A function with some of the outputs of another."""
    from collections import namedtuple

    from linkwise.compiled.function import CompiledFunction

    kind = namedtuple("Part", wanted)  # type: ignore[misc]
    known = function.__dict__.setdefault("_parts", {})
    if tuple(wanted) not in known:

        def text(*flat: Sequence[Any]) -> Any:
            whole = function.text(*flat)
            return kind._make(getattr(whole, name) for name in wanted)

        name = f"{function.name}_{'_'.join(wanted)}"
        known[tuple(wanted)] = CompiledFunction(name, text, function.inputs, "", function.charts)
    part: CompiledFunction = known[tuple(wanted)]
    return part


def _checked_dt(dt: object) -> float:
    if not isinstance(dt, (int, float, np.number)) or not np.isfinite(dt) or dt <= 0.0:
        raise InputError("the time step is not a positive number", got=repr(dt), allowed="seconds, e.g. 0.01")
    return float(dt)


__all__ = [
    "LinearizedForward",
    "LinearizedInverse",
    "SecondOrderForward",
    "SecondOrderInverse",
    "Sensitivity",
    "StateSpace",
]
