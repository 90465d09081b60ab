"""Trajectories, the results of simulations: states over time, and everything that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.closed_system import ConstraintForces
from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError
from linkwise.memoized import cached_property
from linkwise.sim.motion import CAUSES
from linkwise.sim.trajectory_outputs import Outputs
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.sim.events import Occurrence
    from linkwise.sim.touched import MotionContacts

Values = Mapping[str, Array]


class Jumps:
    """Jumps of states of a batch that actions moved, and ends by terminal events, in the order of time for each state.

    Args:
        t: times (n), s.
        state: which state of the batch, counted flat (n).
        states: by name (``q``, ``v``, ``x``) both sides, (n, 2, size): before and after.
        derived: the same for what follows from the states, or a function that finds it.
    """

    def __init__(self, t: Array, state: Array, states: Values, derived: Values | Callable[[], Values]) -> None:
        self.t, self.state, self._states, self._derived = t, state, states, derived

    def __len__(self) -> int:
        return len(self.t)

    @cached_property
    def sides(self) -> dict[str, Array]:
        """By name, (n, 2, ...)."""
        return {**self._states, **(self._derived() if callable(self._derived) else self._derived)}

    def of(self, chosen: Array) -> Jumps:
        """Those of some states, which are counted anew in the order in which they are chosen."""
        kept, numbers = [], []
        for number, state in enumerate(np.ravel(chosen)):
            found = np.flatnonzero(self.state == state)
            kept.append(found)
            numbers.append(np.full(len(found), number))
        index = np.concatenate([np.empty(0, int), *kept])
        sides = {name: values[index] for name, values in self.sides.items()}
        return Jumps(self.t[index], np.concatenate([np.empty(0, int), *numbers]), sides, {})

    def __getstate__(self) -> dict[str, object]:
        """For pickle: everything is computed first."""
        return {"t": self.t, "state": self.state, "_states": self.sides, "_derived": {}}

    def arrays(self) -> dict[str, Array]:
        """All of it under names for a file."""
        return {f"jump_{name}": values for name, values in {"t": self.t, "state": self.state, **self.sides}.items()}

    @classmethod
    def from_arrays(cls, arrays: Values) -> Jumps | None:
        """Jumps read back from the arrays that :meth:`arrays` made, found among others; None if there is none."""
        own = {name.removeprefix("jump_"): a for name, a in arrays.items() if name.startswith("jump_")}
        return cls(own.pop("t"), own.pop("state"), own, {}) if own else None


_ROUNDING = 1e-9  # of the largest energy, below which a work is not worth a word


class Forces(NamedTuple):
    """Joint forces (..., T, nv) by their cause, N m or N; forces on bodies as the joint forces J*f."""

    control: Array
    """Of actuators and controls, after their limits."""
    springs: Array
    """Of the springs of joints, across joints and along tendons."""
    damping: Array
    """Of dampers; that inside flexible bodies is part of their inertia forces."""
    friction: Array
    """Of dry friction, smoothed; with ``method="moreau"`` exact, the mean of the step before."""
    compensation: Array
    """Of what holds masses against gravity."""
    fluid: Array
    """Of a fluid around the bodies."""
    contact: Array
    """Of contacts: of compliant ones that were integrated as forces; with ``method="moreau"`` of all, J*λ/h of the step
    before."""
    limits: Array
    """Of the springs at joint limits, or of rigid ends."""
    closures: Array
    """Of closed loops, J_c*λ."""
    external: Array
    """Of forces and disturbances from outside."""

    @property
    def total(self) -> Array:
        """Their sum: what :meth:`Model.inverse_dynamics` of the motion needs."""
        return sum(self[1:], self[0])


class EnergyAccount(NamedTuple):
    """Energy gained since the first sample and the work of each cause, (..., T) in J; works add up to gains."""

    kinetic: Array
    """Gain of kinetic energy."""
    potential: Array
    """Gain of potential energy, in gravity and in the bending of flexible bodies."""
    work: dict[str, Array]
    """By their cause, as in :class:`Forces`. Damping has that inside flexible bodies too."""
    events: Array
    """Gain at events: by their actions, and by closures that took hold."""

    @property
    def unexplained(self) -> Array:
        """Part of the gains that the works do not explain: the error of the integration."""
        return self.kinetic + self.potential - self.events - sum(self.work.values())

    def __str__(self) -> str:
        """The last sample in one line, of one motion; the largest of a batch."""

        def last(values: Array) -> str:
            ends = np.ravel(np.asarray(values, float)[..., -1:])
            return f"{ends[np.argmax(np.abs(ends))] if len(ends) else 0.0:.3g} J"

        gains = {"kinetic": self.kinetic, "potential": self.potential}
        acted = {**{f"work of {cause}": work for cause, work in self.work.items()}, "events": self.events}
        size = max(float(np.nanmax(np.abs(values), initial=0.0)) for values in (*gains.values(), *acted.values()))
        told = {name: values for name, values in acted.items() if np.any(np.abs(values) > _ROUNDING * size)}
        listed = {**gains, **told, "unexplained": self.unexplained}
        return "energy gained: " + ", ".join(f"{name} {last(values)}" for name, values in listed.items())


Observe = Callable[[], Mapping[str, Array]]


class Trajectory(Outputs):
    """States of one mechanism over time; T samples, any leading batch axes.

    Where the action of an event moved a single state that is sampled at every step, two samples have the same time: the
    state before and the state after. Samples at given times, and those of a batch, do not show it; :meth:`at` knows it
    all the same.

    The arrays of a simulation on a GPU stay there: q, v, x, p and what follows from them are arrays of the library that
    the start was given in. Times, status, events and counts are on the host. :meth:`on_host` copies everything there;
    what writes, draws or shows a motion does so by itself.

    Attributes:
        t: times (T), s.
        q: configurations (..., T, nq).
        v: velocities (..., T, nv); where a trajectory is made without them, by differences along the tangent.
        x: states of actuators (..., T, nx).
        vdot: accelerations (..., T, nv).
        tau: joint forces of the actuators, after their limits (..., T, nv), in N m or N. Damping, friction, springs and
            joint limits are not in it: see :meth:`forces`.
        energy: kinetic, potential and spring energy (..., T), in J.
        closure_error: residuals of all closures (..., T, ·); zero where one is released.
        active: which closures are in force (..., T, n_closures).
        p: run-time parameters of the run (..., np), the model's first; None if not known: then the nominal ones count.
        events: what happened, in the order of time for each state.
        status: ``"done"``, ``"event"`` (a terminal one), ``"failed"``, ``"max_steps"``, ``"zeno"`` (events that follow
            each other without time passing) or ``"interrupted"``; for a batch an array of them. Samples after the end
            of a state are NaN.
        steps, rejected: how many steps were made and how many were rejected, for each state.
        note: why something ran slower than it could, or ended early, and which actuators were at their limits; or
            empty.
        reasons: for each state that did not reach its end, by its index in the batch, what stopped it.
        method: the integrator's name.
        home: where the arrays are: the host, or a GPU.
    """

    home: Device = PROCESSOR

    def __init__(
        self,
        t: ArrayLike,
        q: ArrayLike,
        v: ArrayLike | None = None,
        x: ArrayLike | None = None,
        *,
        p: ArrayLike | None = None,
        model: Model | None = None,
        jumps: Jumps | None = None,
        derived: Mapping[str, Array] | Observe | None = None,
        events: Sequence[Occurrence] = (),
        status: str | Array = "done",
        steps: int | Array = 0,
        rejected: int | Array = 0,
        note: str = "",
        reasons: Mapping[tuple[int, ...], str] | None = None,
        method: str = "",
        columns: Mapping[str, Sequence[str]] | None = None,
        storage: Array | None = None,
        home: Device = PROCESSOR,
    ) -> None:
        kept: Callable[[Any], Array] = np.asarray if home is PROCESSOR else lambda array: cast(Array, array)
        self.t, self.q = np.asarray(t), kept(q)
        self.v = kept(v) if v is not None else self._differences(model)
        self.x = np.empty((*self.q.shape[:-1], 0)) if x is None else kept(x)
        self.p = None if p is None else kept(p)
        self.home = home
        self.model, self.jumps = model, jumps
        self.events = list(events)
        self.status, self.steps, self.rejected = status, steps, rejected
        self.note, self.method = note, method
        self.reasons = dict(reasons or {})
        self._derived = derived if derived is not None else {}
        self._columns = columns
        self.storage = storage

    def _differences(self, model: Model | None) -> Array:
        """Velocities (..., T, nv) by differences of the samples."""
        from linkwise.sim.resample import velocities

        return self._from_host(velocities(model, self.t, self.home.to_host(self.q)))

    def __getstate__(self) -> dict[str, object]:
        """For pickle and other processes: what follows from the states is computed first; the memory is not shared."""
        here = self.on_host()
        return {**here.__dict__, "_derived": dict(here._values), "storage": None}

    # Elsewhere than on the host.
    def on_host(self) -> Trajectory:
        """The same motion with all its arrays in NumPy; itself, if they are."""
        return self if self.home is PROCESSOR else self._moved(self.home.to_host, PROCESSOR)

    def _at_home(self, home: Device) -> Trajectory:
        """The same motion, now on the host, with its arrays where a run keeps them."""
        return (
            self
            if home is PROCESSOR
            else self._moved(lambda array: home.as_callers_library(home.to_device(array)), home)
        )

    def _moved(self, move: Callable[[Array], Array], home: Device) -> Trajectory:
        def moved(array: Array) -> Array:
            with (home if self.home is PROCESSOR else self.home).entered():
                return move(array)

        def derived() -> dict[str, Array]:
            return {name: moved(values) for name, values in self._values.items()}

        p = None if self.p is None else moved(self.p)
        return self.with_samples(self.t, moved(self.q), moved(self.v), moved(self.x), derived, p=p, home=home)

    # What follows from the states, computed when first asked for.
    @cached_property
    def _values(self) -> Mapping[str, Array]:
        return self._derived() if callable(self._derived) else self._derived

    def _value(self, name: str) -> Array:
        values = self._values
        if name not in values:
            raise LinkwiseError(
                f"this trajectory has no {name}",
                got=f"only {', '.join(['t', 'q', 'v', *values])}",
                do=f'give it where the trajectory is made: derived={{"{name}": …}}',
            )
        return values[name]

    @property
    def vdot(self) -> Array:
        """Accelerations (..., T, nv)."""
        return self._value("vdot")

    @property
    def tau(self) -> Array:
        """Joint forces of the actuators, after their limits (..., T, nv), in N m or N."""
        return self._value("tau")

    @property
    def energy(self) -> Array:
        """Kinetic, potential and spring energy (..., T), in J."""
        return self._value("energy")

    @property
    def f_ext(self) -> Array | None:
        """Forces of elements on bodies (..., T, n_bodies, 6) in N m and N, in body frames; None if there are none."""
        flat = self._values.get("f_ext")
        return None if flat is None else flat.reshape(*flat.shape[:-1], -1, 6)

    @property
    def active(self) -> Array:
        """Flags of closures in force (..., T, n_closures): 1, or 0 where one is released."""
        closures = self._with_model("active").closures
        known = self._values.get("active")
        if known is not None:
            return known
        return self._from_host(np.ones((*self.q.shape[:-1], len(closures))))

    @cached_property
    def contacts(self) -> MotionContacts:
        """Forces, gaps, modes and residuals of contacts; by other methods than "moreau", of surfaces that give way."""
        from linkwise.sim.touched import contacts_of

        found = contacts_of(self)
        if found is None:
            model = self._with_model("contacts")
            raise InputError(
                "this motion has no contacts",
                got=f"method={self.method!r} and the model {model.name!r}",
                do='lw.simulate(model.with_contacts(lw.Ground()), …, method="moreau")',
            )
        return found

    @cached_property
    def closure_error(self) -> Array:
        """Residuals of all closures at the samples (..., T, ·), see :meth:`Model.closure_error`; zero where released.

        Of each closure as many as it has equations between places.
        """
        if self.home is not PROCESSOR:
            return self._from_host(self.on_host().closure_error)
        model = self._with_model("closure_error")
        counts = [len(closure.type.equations) for closure in model.closures]
        if not sum(counts):
            return np.zeros((*self.q.shape[:-1], 0))
        q = np.asarray(self.q, float)
        error = model.closure_error(q, t=np.broadcast_to(self.t, q.shape[:-1]).astype(float), p=self.model_parameters)
        return error * np.repeat(self.active > 0.5, counts, axis=-1)

    @cached_property
    def poses(self) -> Array:
        """4×4 poses of all bodies (..., T, n_bodies, 4, 4) in the world."""
        return self._with_model("poses").poses(self.q, p=self.model_parameters)

    def pose(self, body: str) -> Array:
        """4×4 pose of one body or frame (..., T, 4, 4) in the world."""
        return self._with_model("pose").pose(self.q, body, p=self.model_parameters)

    def deflection(self, body: str, node: str | int) -> Array:
        """Displacement of a node of a flexible body from its place at rest (..., T, 3), in the body's root axes, m."""
        if self.home is not PROCESSOR:
            return self._from_host(self.on_host().deflection(body, node))
        model, p = self._with_model("deflection"), self.model_parameters
        at_rest = model.frame(body, node).node  # says what is wrong with a name
        root, there = model.pose(self.q, body, p=p), model.pose(self.q, body, node=node, p=p)
        apart = there[..., :3, 3] - root[..., :3, 3]
        seen: Array = np.einsum("...ji,...j->...i", root[..., :3, :3], apart)
        flexible = model.bodies[body].flexible
        assert flexible is not None  # it has nodes
        return seen - flexible.nodes[at_rest].position

    @property
    def model_parameters(self) -> Array | None:
        """The model's own run-time parameters (..., 1, np), as its functions take them for all samples, or None."""
        size = len(self._with_model("p").parameters.nominal)
        return None if self.p is None or not size else self.p[..., None, :size]

    # Explanations by forces and energy.
    def forces(self) -> Forces:
        """Joint forces at the samples by their cause, as :class:`Forces` lists them.

        Those that were integrated; their sum is ``model.inverse_dynamics(q, v, vdot)``.
        """
        control, values = self._value("force:control"), self._values
        none = control * 0.0
        return Forces(*(values.get(f"force:{cause}", none) for cause in CAUSES))

    def constraint_forces(self) -> ConstraintForces:
        """Forces that hold the closures at the samples: multipliers (..., T, m) and wrenches (..., T, n_closures, 6).

        As :meth:`Model.constraint_forces`, with all the forces that acted; zero for closures that are released.
        """
        if self.home is not PROCESSOR:
            return ConstraintForces(*(self._from_host(part) for part in self.on_host().constraint_forces()))
        model: Model = self._with_model("constraint_forces")
        forces, known = self.forces(), self._values
        q, v, tau = (np.asarray(part, float) for part in (self.q, self.v, forces.total - forces.closures))
        t = np.broadcast_to(self.t, q.shape[:-1]).astype(float)
        given: dict[str, Any] = {"t": t, "p": self.model_parameters, "active": known.get("active")}
        found: Any = model._run("constraint_forces", q, v, tau, **given)
        return ConstraintForces._make(found)

    def energy_account(self) -> EnergyAccount:
        """Sources and sinks of energy: gains since the first sample, and the work of each cause until then.

        Of a motion that was simulated with ``account=True``, which integrates the works along with the motion.
        """
        if "work" not in self._values:
            raise LinkwiseError(
                "this trajectory has no account of its energy", do="lw.simulate(…, account=True) integrates the works"
            )
        if self.home is not PROCESSOR:
            here = self.on_host().energy_account()
            works = {cause: self._from_host(work) for cause, work in here.work.items()}
            kinetic, potential, events = (self._from_host(a) for a in (here.kinetic, here.potential, here.events))
            return EnergyAccount(kinetic, potential, works, events)
        model: Model = self._with_model("energy_account")
        p, work = self.model_parameters, np.asarray(self._value("work"), float)
        q, v = np.asarray(self.q, float), np.asarray(self.v, float)
        kinetic, potential = np.asarray(model.kinetic_energy(q, v, p=p)), np.asarray(model.potential_energy(q, p=p))
        kinetic, potential = (energy - energy[..., :1] for energy in (kinetic, potential))
        done = np.moveaxis(work - work[..., :1, :], -1, 0)
        return EnergyAccount(kinetic, potential, dict(zip(CAUSES, done, strict=True)), self._at_events(model))

    def _at_events(self, model: Model) -> Array:
        """The gain of energy at events until each sample (..., T)."""
        found = np.zeros(self.q.shape[:-1])
        if self.jumps is None:
            return found
        flat, speeds = found.reshape(-1, len(self.t)), self.v.reshape(-1, *self.v.shape[-2:])
        p = self.model_parameters
        for time, state, q, v in zip(
            self.jumps.t, self.jumps.state, self.jumps.sides["q"], self.jumps.sides["v"], strict=True
        ):
            own = None if p is None else p.reshape(-1, p.shape[-1])[state]
            before, after = np.asarray(model.kinetic_energy(q, v, p=own)) + np.asarray(model.potential_energy(q, p=own))
            # Of two samples at the time of an event, the first is before it.
            later = (self.t > time) | ((self.t == time) & ~(speeds[state] == v[0]).all(axis=-1))
            flat[state] += np.where(later, after - before, 0.0)
        return found

    def _from_host(self, array: Array) -> Array:
        """An array of the host where the others are."""
        with self.home.entered():
            return cast(Array, self.home.as_callers_library(self.home.to_device(array)))

    def _with_model(self, what: str) -> Model:
        if self.model is None:
            raise LinkwiseError(
                f"{what} needs the model, which a file does not hold", do="give it to Trajectory.load(path, model=…)"
            )
        return self.model

    # Shapes.
    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading axes: () for one state."""
        return self.q.shape[:-2]

    def __len__(self) -> int:
        """Samples."""
        return len(self.t)

    def __getitem__(self, index: Any) -> Trajectory:
        """One state of a batch, or some of them; a single one is cut where it ends."""
        if not self.batch_shape:
            raise InputError("this trajectory is not a batch", got=f"index {index!r}", do="take samples from traj.q")
        from linkwise.sim.resample import chosen_states

        return chosen_states(self, index)

    def with_samples(
        self,
        t: Array,
        q: Array,
        v: Array,
        x: Array,
        derived: Mapping[str, Array] | Observe,
        *,
        p: Array | None = None,
        home: Device | None = None,
    ) -> Trajectory:
        """The same motion with other samples; elsewhere, with p there, if a home is given."""
        about = ("model", "jumps", "events", "status", "steps", "rejected", "note", "reasons", "method")
        same = {name: getattr(self, name) for name in about} | {"columns": self._columns, "derived": derived}
        if home is None:
            return Trajectory(t, q, v, x, p=self.p, home=self.home, **same)
        return Trajectory(t, q, v, x, p=p, home=home, **same)

    def picked(self, k: Array, t: Array) -> Trajectory:
        """Some of the samples, by index, labelled with the times t; for arrays of the host."""

        def derived() -> dict[str, Array]:
            return {n: a[..., k] if n == "energy" else a[..., k, :] for n, a in self._values.items()}

        return self.with_samples(t, self.q[..., k, :], self.v[..., k, :], self.x[..., k, :], derived)

    def __repr__(self) -> str:
        span = f"{self.t[0]:g} … {self.t[-1]:g} s" if len(self.t) else "empty"
        batch = f", batch {self.batch_shape}" if self.batch_shape else ""
        state = self.status if isinstance(self.status, str) else ", ".join(sorted(set(np.ravel(self.status).tolist())))
        return f"<Trajectory: {len(self.t)} samples, {span}{batch}, {state}>"

    # Resampling.
    @property
    def end(self) -> float:
        """The last time at which the motion is known, s: that of the last sample, or of an event after it."""
        last = [] if self.jumps is None else [float(self.jumps.t.max(initial=-math.inf))]
        return max([float(self.t[-1]) if len(self.t) else -math.inf, *last])

    def values(self) -> dict[str, Array]:
        """Everything with a time axis but t, by name."""
        return {"q": self.q, "v": self.v, "x": self.x, **self._values}

    def at(self, t: ArrayLike) -> Trajectory:
        """The motion at other times (n), between the samples.

        Joints with q̇ = v follow the fifth-degree polynomial through q, v and v̇ of the neighbouring samples, quaternion
        joints a third-degree one in the chart around the sample before; v is of third degree. For full precision ask
        ``simulate`` for the times you need.

        The states before and after an event's action bound what is interpolated: nothing is drawn across a bounce. At
        the very time of the event the state is the one after. Where the samples are closed, so is what is between them.
        It is found on the host, wherever the arrays are.
        """
        if self.home is not PROCESSOR:
            return self.on_host().at(t)._at_home(self.home)
        from linkwise.sim.resample import resampled

        times = np.atleast_1d(np.asarray(t, float))
        slack = 1e-9 * max(1.0, self.end - self.t[0] if len(self.t) else 0.0)
        if (
            not len(self.t)
            or not np.isfinite(times).all()
            or times.min(initial=np.inf) < self.t[0] - slack
            or times.max(initial=-np.inf) > self.end + slack
        ):
            raise InputError(
                "these times are outside the trajectory",
                got=f"{times.min():g} … {times.max():g} s" if len(times) else "no times",
                allowed=f"{self.t[0]:g} … {self.end:g} s" if len(self.t) else "none: it has no samples",
            )
        self._value("vdot")  # what is between samples follows from it
        return resampled(self, self._with_model("at"), times)

    # Tables and files.
    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """A name for each number of q, v, x, vdot, tau."""
        from linkwise.sim.trajectory_files import column_names

        return {**column_names(self), **{name: list(names) for name, names in (self._columns or {}).items()}}

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Trajectory:
        """Read what :meth:`save` wrote. ``model`` is needed for poses, resampling and contacts.

        It is the one that was simulated; of a file with a floor as it was loaded, or with its contacts.
        """
        from linkwise.sim.moreau import touching
        from linkwise.sim.trajectory_files import read

        found = cls(**read(Path(path)), model=model)
        if model is not None and not {"contact_gaps", "contact_bodies"}.isdisjoint(found._values):
            found.model = touching(model)
        return found
