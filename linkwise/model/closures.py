"""Closures of a model: how far a state is from closing, the forces that hold it closed, and states that close."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.closed_system import ConstraintForces, Impulse
from linkwise.array_types import Array
from linkwise.errors import ClosureError, InputError, ModelWarning
from linkwise.mechanism.bodies_and_joints import Named
from linkwise.mechanism.closures.instances import ClosureFreedoms
from linkwise.memoized import cached_property
from linkwise.model.assembly import Assembly
from linkwise.model.compiled_methods import ByName, Group
from linkwise.model.configuration_space import ConfigurationSpace, nearest_within
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.model.closed_dynamics import Freedoms


_CLOSED = 1e-12
"""Residual of a configuration that is left as it is."""

OPEN = 1e-6
"""Residual, m or a pure number, above which a closure is open: not by rounding, nor by a file's few digits."""

_TURNS = ("turn ", "tilt ")
"""The first words of equations that together are 2 sin(θ/2) n of a turn."""
_MUCH = 0.1
"""The sine of half an angle from which on a message says it in degrees."""


class Closures(ConfigurationSpace):
    """Closures and couplings. m counts all equations of ``model.closures``, in their order.

    The equations of a closure are those between places (``closure.type.equations``), then those between rates
    (``closure.type.rate_equations``). ``t`` is the time in s, one number for each state; it matters only where a
    closure depends on time, and is zero if left out.

    Forces, accelerations and projections are those of the closed system. What belongs to the tree alone stays so:
    ``mass_matrix``, ``mass_solve``, ``bias_force``, ``inverse_dynamics`` without ``actuated``, ``linearize_inverse``,
    operational inertias and energies say nothing of closures.
    """

    def closure_error(self, q: ArrayLike, *, t: ArrayLike | None = None, **others: Unpack[ByName]) -> Array:
        """e(q, t): the residuals of all equations between places, in m or pure numbers; zero where all is closed.

        The equations ``turn …`` and ``tilt …`` of a closure are the parts of 2 sin(θ/2) n, where frames or axes that
        should agree are turned by θ about n: θ n while it is small, of length 2 at half a turn, and zero nowhere else.
        """
        return self._run("closure_error", q, t=t, others=others)

    def constraint_forces(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        t: ArrayLike | None = None,
        **others: Unpack[ByName],
    ) -> ConstraintForces:
        """Forces that hold the closures while joint forces ``tau`` act: a named tuple ``multipliers, wrenches``.

        ``multipliers`` λ (..., m): 𝓜v̇ + c = τ + J_c*λ. Of an equation named after an axis it is the force (N) along or
        the moment (N m) about that axis of frame a, on b at its origin. ``wrenches`` (..., n_closures, 6) is
        [moment, force] that each closure puts on the body of frame b, at the origin and in the axes of frame b; the
        body of frame a bears the opposite, at the same point. Zero for couplings of joints, which act along joint axes.

        Where constraints are redundant only some sums of forces are determined by rigid bodies: then these are the
        multipliers of least norm, each weighed by how easily its equation moves (λ*Wλ, W the diagonal of J_c𝓜⁻¹J_c*).
        """
        return ConstraintForces._make(self._run("constraint_forces", q, v, tau, f_ext=f_ext, t=t, others=others))

    # States that close.
    @cached_property
    def start(self) -> Array:
        """The configuration (nq) that a simulation or a view begins with where none is given; read-only.

        The one named ``"start"``; else the first that has a name (a keyframe of a file); else a file's own,
        ``"initial"`` (``qpos0`` of MJCF); else :meth:`neutral`. Moved into the joint limits where it lies beyond them,
        and closed. Simulations that are given neither q0 nor v0 begin with its velocity, if it has one:
        ``model.configurations.velocity(name)``, the ``qvel`` of a keyframe.
        """
        chosen = self._start_name
        q = nearest_within(self, self.neutral() if chosen is None else self.configurations[chosen])
        if self.closures and not np.abs(self.closure_error(q)).max(initial=0.0) <= _CLOSED:
            try:
                q = self.assemble(q)
            except ClosureError:  # loops of a file that contradict each other in its last digits are near enough
                if not np.abs(self.closure_error(q)).max() <= OPEN:
                    raise
        q.flags.writeable = False
        return q

    @property
    def _start_velocity(self) -> Array:
        """The velocity (nv) that was given with the configuration that :attr:`start` is; else zero."""
        name = self._start_name
        found = None if name is None else self.configurations.velocity(name)
        return np.zeros(self.nv) if found is None else found

    @property
    def _start_name(self) -> str | None:
        named = [name for name in self.configurations if name != "initial"]
        return next((name for name in ("start", *named, "initial") if name in self.configurations), None)

    def assemble(
        self,
        q: ArrayLike,
        *,
        t: ArrayLike | None = None,
        tol: float = 1e-12,
        limits: str = "respect",
        locked: Sequence[str] = (),
        p: ArrayLike | None = None,
        threads: int | None = None,
    ) -> Array:
        """A configuration (..., nq) that closes, from a guess.

        Near the guess where there is one: a trust region over the loops that share joints, then these one after the
        other, then both from guesses further away. Joints that move as prescribed are where they are due at ``t``. A
        :class:`~linkwise.errors.ClosureError` names the closure that stays open, by how much, and whether it does so by
        itself or because of the others.

        Args:
            q: the guess (..., nq).
            t: time (...).
            tol: the largest residual allowed, m or a pure number.
            limits: ``"respect"`` (joints of loops begin and stay within theirs) or ``"ignore"``.
            locked: names of joints that stay as they are in the guess.
            p: run-time parameters (..., np).
            threads: threads to split a batch over.

        Example:
            >>> from linkwise.samples import four_bar
            >>> model = four_bar(1)
            >>> q = model.assemble([0.3, 0.0, 0.0], locked=[model.joints[0].name])
            >>> float(q[0]), bool(abs(model.closure_error(q)).max() < 1e-12)
            (0.3, True)
        """
        if not tol > 0.0:
            raise InputError("tol of assemble is not a positive number", got=repr(tol), allowed="e.g. 1e-12")
        if limits not in ("respect", "ignore"):
            raise InputError("limits cannot be treated so", got=repr(limits), allowed='"respect" or "ignore"')
        check_on_host("assemble runs", q, t, p)
        guess = np.asarray(self._run("integrate", q, np.zeros(self.nv)), float)  # checked, quaternions made unit
        if not np.isfinite(guess).all():
            raise InputError("the guess to assemble from is not made of finite numbers", got=repr(q)[:80])
        self._check_parameters("assemble", p)
        still = self._places_in_v(locked)
        if not self.closures:
            return guess
        batch = np.broadcast_shapes(
            guess.shape[:-1], () if t is None else np.shape(t), () if p is None else np.shape(p)[:-1]
        )
        start = np.broadcast_to(guess, (*batch, self.nq)).reshape(-1, self.nq)
        times = None if t is None else np.broadcast_to(np.asarray(t, float), batch).reshape(-1)
        values = None if p is None else np.broadcast_to(p, (*batch, np.shape(p)[-1])).reshape(len(start), -1)

        def given(which: Array) -> dict[str, Any]:
            return {
                "t": None if times is None else times[which],
                "p": None if values is None else values[which],
                "threads": threads,
            }

        def residual(x: Array, which: Array) -> Array:
            return self.closure_error(x, **given(which))

        def jacobian(x: Array, which: Array) -> Array:
            of_places: Array = self.constraints.jacobian(x, **given(which))[:, self._place_rows]
            return of_places

        def assembly(lower: Array, upper: Array) -> Assembly:
            return Assembly(self._whole, residual, jacobian, lower, upper, still, tol)

        free = np.full(self.nq, np.inf)
        search = assembly(-free, free) if limits == "ignore" else assembly(self.limits.lower, self.limits.upper)
        found = search.closed(start)
        errors = residual(found, np.arange(len(found)))
        open_ = np.flatnonzero(~(np.abs(errors).max(-1, initial=0.0) <= tol))
        if len(open_):
            self._say_open(int(open_[0]), start, errors, batch, search, assembly(-free, free), tol)
        self._warn_if_rigid(found[:1], None if values is None else values[:1])
        return found.reshape(*batch, self.nq)

    def _say_open(
        self,
        state: int,
        start: Array,
        errors: Array,
        batch: tuple[int, ...],
        search: Assembly,
        wide: Assembly,
        tol: float,
    ) -> None:
        """Raise for a state that was not closed, with the reason: limits, a loop alone, or several together."""
        own = np.zeros_like(errors)
        if len(search.place):
            q = wide.closed(start[[state]])
            if np.abs(wide.residual(q, np.array([state]))).max() <= tol:
                own[state] = errors[state]
                beyond = [
                    f"{self.joints[k].name!r} at {x:.4g} (limits {low:.4g} to {high:.4g})"
                    for x, low, high, place in zip(
                        q[0, search.place], search.low, search.high, search.place, strict=True
                    )
                    for k, joint in enumerate(self.joints)
                    if joint.q_slice.start <= place < joint.q_slice.stop and not low <= x <= high
                ]
                self._refuse(
                    "cannot be closed within the joint limits",
                    own.reshape(*batch, -1),
                    self._place_labels,
                    tol,
                    f'limits="ignore" closes it, with {", ".join(beyond)}',
                )
        alone, left = search.open_alone(start[state], state)
        if len(alone):
            own[state] = left
            self._refuse(
                "cannot be closed, even by itself",
                own.reshape(*batch, -1),
                self._place_labels,
                tol,
                "check the lengths, the axes and the frames of the closure, or give a guess that is nearer",
            )
        own[state] = errors[state]
        self._refuse(
            "cannot be closed from this guess together with the others",
            own.reshape(*batch, -1),
            self._place_labels,
            tol,
            f"tol={2.0 * worst:.0e} takes it as it is, if the lengths of a file have no more digits"
            if (worst := float(np.abs(errors[state]).max())) <= OPEN
            else "give a guess that is nearer, or check the lengths and the frames of the closures",
        )

    # What is behind it.
    @property
    def _labels(self) -> list[tuple[str, str]]:
        """Closure and equation, for each equation."""
        return [(c.name, e) for c in self.closures for e in c.equations]

    @property
    def _place_labels(self) -> list[tuple[str, str]]:
        """Closure and equation, for each equation between places."""
        return [(c.name, e) for c in self.closures for e in c.type.equations]

    @property
    def _place_rows(self) -> list[int]:
        """Numbers of the equations that are between places."""
        return [row for row, is_place in enumerate(self._are_places) if is_place]

    @property
    def _are_places(self) -> list[bool]:
        return [
            is_place
            for c in self.closures
            for is_place in [True] * len(c.type.equations) + [False] * len(c.type.rate_equations)
        ]

    def _refuse(self, what: str, errors: Array, labels: Sequence[tuple[str, str]], tol: float, do: str) -> None:
        """Name the closure that is furthest off, and by how much."""
        size = np.where(np.isfinite(errors), np.abs(errors), np.inf)
        if not size.size or size.max() <= tol:
            return
        *state, equation = (int(i) for i in np.unravel_index(int(np.argmax(size)), size.shape))
        name = labels[equation][0]
        own = [i for i, (closure, _) in enumerate(labels) if closure == name]
        row = errors[tuple(state)]
        listed = ", ".join(f"{labels[i][1]}: {row[i]:.3g}" for i in own) + self._turned(name, row, labels)
        others = sorted({labels[i][0] for i in range(len(labels)) if size[(*state, i)] > tol} - {name})
        where = f" in state {tuple(state)}" if state else ""
        raise ClosureError(
            f"closure {name!r} {what}",
            closure=name,
            residual=float(size.max()),
            got=f"residuals of {float(size.max()):.3g}{where} ({listed})"
            + (f"; also {', '.join(map(repr, others))}" if others else ""),
            allowed=f"residuals up to {tol:g}",
            do=do,
        )

    def _turned(self, name: str, row: Array, labels: Sequence[tuple[str, str]]) -> str:
        """By which angle a closure is turned, in words, where that is much; of residuals between places."""
        if labels != self._place_labels:
            return ""
        turns = [x for x, (closure, e) in zip(row, labels, strict=True) if closure == name and e[:5] in _TURNS]
        half = min(1.0, float(np.linalg.norm(turns)) / 2.0)
        return f": turned by {math.degrees(2.0 * math.asin(half)):.3g}°" if half > _MUCH else ""

    def _warn_if_rigid(self, q: Array, p: Array | None) -> None:
        """Say so where the closures leave nothing that can move, unless motions are prescribed."""
        if self.nv and len(q) and not any(c.type.time_dependent for c in self.closures):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)
                found = self.freedoms(q[0], tol=1e-6, p=None if p is None else p[0])
            if found.count == 0:
                self._say_rigid(found)

    def _say_rigid(self, found: Freedoms) -> None:
        warnings.warn(
            ModelWarning(
                f"closure {found.last!r} removes the last freedom: the mechanism cannot move",
                got=f"nv = {self.nv} freedoms of the tree, {self.nv} independent constraints",
                do="take a closure away, or a type that leaves more free",
            ),
            stacklevel=4,
        )

    # What the rest of the model gives.
    if TYPE_CHECKING:

        def freedoms(
            self, q: ArrayLike, *, t: ArrayLike | None = None, tol: float = 1e-6, p: ArrayLike | None = None
        ) -> Freedoms:
            """Count them."""

        def _places_in_v(self, names: Sequence[str]) -> list[int]:
            """The freedoms of joints."""


class Constraints(Group):
    """The equations of all closures and couplings of a model together; see :class:`Closures` for their order."""

    attribute = "constraints"

    def rate(self, q: ArrayLike, v: ArrayLike, *, t: ArrayLike | None = None, **others: Unpack[ByName]) -> Array:
        """ė = J_c v + ∂e/∂t (..., m); for equations between rates, their residual. Zero on a motion that obeys."""
        return self.model._run("closure_rate", q, v, t=t, others=others)

    def jacobian(
        self, q: ArrayLike, *, t: ArrayLike | None = None, v: ArrayLike | None = None, **others: Unpack[ByName]
    ) -> Array:
        """J_c (..., m, nv): the rates of all equations are J_c v, and what their multipliers do to the joints is J_c*λ.

        Args:
            v: velocity (..., nv) at which equations between rates are differentiated that are not linear in them; zero
                if left out.
        """
        return self.model._run("constraint_jacobian", q, t=t, v=v, others=others)

    def bias(self, q: ArrayLike, v: ArrayLike, *, t: ArrayLike | None = None, **others: Unpack[ByName]) -> Array:
        """The part of ë without v̇ (..., m): a motion obeys where J_c v̇ + bias = 0."""
        return self.model._run("constraint_bias", q, v, t=t, others=others)

    def project_velocity(
        self, q: ArrayLike, v: ArrayLike, *, t: ArrayLike | None = None, **others: Unpack[ByName]
    ) -> Array:
        """The velocity (..., nv) nearest to v that obeys all closures: v - 𝓜⁻¹J_c*Λ⁺ė, nearest in kinetic energy.

        Where an equation between rates is not linear in them, one step of Newton's method towards it.
        """
        return self.model._run("project_velocity", q, v, t=t, others=others)

    def project_configuration(self, q: ArrayLike, *, t: ArrayLike | None = None, **others: Unpack[ByName]) -> Array:
        """One step (..., nq) from q towards where all is closed, compiled: q ⊕ -𝓜⁻¹J_c*Λ⁺e.

        For states that are nearly closed, as during simulation: the error after it is about the square of that before.
        :meth:`linkwise.Model.assemble` starts from anywhere.
        """
        return self.model._run("project_configuration", q, t=t, others=others)

    def impulse(self, q: ArrayLike, v: ArrayLike, *, t: ArrayLike | None = None, **others: Unpack[ByName]) -> Impulse:
        """Velocities after closures take hold of a mechanism that moves against them, and impulses: ``v, impulses``.

        ``v`` (..., nv) is the velocity right after, ``impulses`` (..., m) in N s and N m s are the multipliers' time
        integrals, with the signs of :meth:`linkwise.Model.constraint_forces`. The closures catch and do not throw back:
        kinetic energy is lost, ½ of impulse times relative velocity.
        """
        return Impulse._make(self.model._run("impulse", q, v, t=t, others=others))

    def check(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        t: ArrayLike | None = None,
        tol: float = 1e-6,
        p: ArrayLike | None = None,
    ) -> None:
        """Raise :class:`~linkwise.errors.ClosureError` where closures are open, are opening, or contradict each other.

        Places are checked; with ``v``, rates, and whether there are accelerations at all that obey every closure: two
        prescribed motions of one joint may agree in place and rate and yet not go together.

        Args:
            q: configurations (..., nq).
            v: velocities (..., nv).
            t: times (...).
            tol: for residuals and rates; for accelerations, relative to their size.
            p: run-time parameters (..., np).
        """
        self.model._check_parameters("constraints.check", p)
        check_on_host("constraints.check runs", q, v, t, p)
        if not self.model.closures:
            return
        self.model._refuse(
            "is open",
            self.model.closure_error(q, t=t, p=p),
            self.model._place_labels,
            tol,
            "assemble it: model.assemble(q)",
        )
        if v is None:
            return
        rate = self.rate(q, v, t=t, p=p)
        self.model._refuse(
            "is being opened", rate, self.model._labels, tol, "project it: model.constraints.project_velocity(q, v)"
        )
        tau = np.zeros(np.shape(v))
        vdot = self.model._run("forward_dynamics", q, v, tau, t=t, p=p)
        J_c, bias = self.jacobian(q, t=t, v=v, p=p), self.bias(q, v, t=t, p=p)
        acceleration = np.einsum("...ij,...j->...i", J_c, vdot) + bias
        scale = 1.0 + np.abs(bias).max(-1, keepdims=True) + np.abs(vdot).max(-1, keepdims=True)
        self.model._refuse(
            "contradicts another: no accelerations obey both",
            acceleration / scale,
            self.model._labels,
            tol,
            "look for motions that are prescribed twice, or that the closures do not allow",
        )

    def mass_matrix(self, q: ArrayLike, *, t: ArrayLike | None = None, p: ArrayLike | None = None) -> Array:
        """N*𝓜N (f, f): the inertia that the independent freedoms feel, with N of :meth:`linkwise.Model.freedoms`."""
        N = self.model.freedoms(q, t=t, p=p).basis
        M: Array = N.T @ self.model._run("mass_matrix", self.model._one(q), p=p) @ N
        return M

    # The freedoms that closures leave.
    @property
    def freedoms(self) -> Named[ClosureFreedoms]:
        """The freedoms of the closures that leave some as a joint does, in order and by the closures' names."""
        return self.model._closure_freedoms

    def coordinates(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """The coordinates (..., k) of the freedoms that closures leave, of one closure after the other.

        Of a closed configuration: where the joint that closes would be, were it in the tree.
        ``model.constraints.freedoms[name].q_slice`` is a closure's part. An angle is told within half a turn of the
        middle of its limits, of its rest where it has no limits, or of zero.

        Example:
            >>> from linkwise.samples import four_bar
            >>> model = four_bar(1)
            >>> model.constraints.coordinates(model.assemble([0.3, -0.3, 0.3])).round(12).tolist()
            [0.3]
        """
        return self.model._run("closure_coordinates", q, others=others)

    def velocities(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """The velocities (..., k) of those freedoms; ``constraints.freedoms[name].v_slice`` is a closure's part."""
        return self.model._run("closure_velocities", q, v, others=others)

    def efforts(self, q: ArrayLike, along_closures: ArrayLike, **others: Unpack[ByName]) -> Array:
        """The joint forces (..., nv) that forces (..., k) along those freedoms amount to: a motor where a loop closes.

        τ = J*f, where J v are :meth:`velocities`.
        """
        return self.model._run("closure_efforts", q, along_closures, others=others)
