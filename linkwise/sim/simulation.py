"""A simulation that goes on: from piece to piece, with what happens in between decided outside."""

from __future__ import annotations

import math
import warnings
from copy import copy
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_arguments, check_finite, check_positive
from linkwise.errors import InputError, LinkwiseError, SlowControlWarning
from linkwise.functions.function import checked_threads
from linkwise.model.model import Model
from linkwise.sim.events import Occurrence
from linkwise.sim.plans import RunSamples, SimulationPlan
from linkwise.sim.run import Run, RunPieces, is_plain
from linkwise.sim.setup import Options, Setup, checked_tolerances, usual_method
from linkwise.sim.states import States, checked_vector, warn_of_start
from linkwise.sim.step_size import EqualSteps, ToleratedSteps
from linkwise.sim.tableaux import GeneralizedAlpha
from linkwise.sim.tables import check_span
from linkwise.sim.touched import MotionContacts
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.work import Clock
from linkwise.targets.llvm.device import PROCESSOR, device_of

if TYPE_CHECKING:
    from linkwise.targets.c.stand_alone import Simulator


_NEVER = 2**40  # steps between records


class Simulation:
    """A simulation to be advanced piece by piece: for real-time loops, for learning, for what a program decides.

    What a controller remembers, samples that are due, tables and the clock go on from piece to piece as they would in
    one :func:`simulate`. After the first piece nothing is compiled or checked again: a short piece of a robot arm takes
    a few microseconds. Functions are traced when it is made; what changes later of the values that they read makes no
    difference to it, nor to its copies.

    Args:
        model: the mechanism.
        q0: configuration(s) at the start (..., nq); :attr:`Model.start` if not given.
        v0: velocities at the start (..., nv); zero if not given; without q0, that of :attr:`Model.start`.
        dt: the step in s of a fixed-step method, made smaller where it does not divide a piece.
        method: the integrator; adaptive ones go on with the step they had. None: ``"moreau"`` where rigid bodies touch,
            as in :func:`linkwise.simulate`, and ``"rk4"`` elsewhere.
        as_is: take the start, and what :meth:`set` is given, as it is: perhaps within the spring of a joint limit, or
            with closures a little open. Otherwise the one is refused, and the others are closed.
        options: as for :func:`simulate`, by name: ``control`` (commands from outside are parameters:
            ``control=lambda t, q, v, p: p``), ``events`` (one that is terminal ends the simulation), ``p``, ``f_ext``,
            ``t0``, ``x0``, ``rtol``, ``atol``, ``max_step``, ``min_step``, ``max_steps`` (in one piece), ``rules``,
            ``limits``, ``stabilization``, ``released``, ``threads`` and ``frame``.

    >>> from linkwise import samples
    >>> arm = samples.planar_arm()
    >>> sim = Simulation(arm, [0.5, 0.0, 0.0], control=lambda t, q, v, p: p, p=np.zeros(3))
    >>> for _ in range(100):
    ...     sim = sim.advance(0.01, p=arm.gravity_force(sim.q) - 0.5 * sim.v)
    >>> round(sim.t, 9)
    1.0
    """

    def __init__(
        self,
        model: Model,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        *,
        dt: float = 1e-3,
        method: str | GeneralizedAlpha | None = None,
        as_is: bool = False,
        **options: Unpack[Options],
    ) -> None:
        check_arguments(Simulation, options, Options.__annotations__)
        method = usual_method(model, options.get("events"), "rk4") if method is None else method
        self._setup = Setup.of(model, method, options)
        t0, p, x0 = options.get("t0", 0.0), options.get("p"), options.get("x0")
        check_finite(t0=t0)
        check_positive(dt=dt)
        self._tolerances, self._threads = checked_tolerances(options), checked_threads(options.get("threads"))
        self._spans = any(table.outside == "refuse" for table in self._setup.tables)
        self.model, self._dt, self._as_is = self._setup.model, float(dt), bool(as_is)
        self._t = float(t0)
        if device_of([given for given in (q0, v0, p, x0) if given is not None]) is not PROCESSOR:
            raise InputError(
                "a simulation in pieces runs on the processor",
                got="arrays on a device",
                do="pass NumPy arrays, or simulate() or rollout() on the device in one go",
            )
        self._states = States(self._setup.start, q0, v0, p, x0)
        if q0 is not None:
            warn_of_start(model, np.asarray(q0, float))
        if self._states.y.shape[1]:
            self._setup = self._setup.frozen(self._states)
        self._plan = self._planned(self._setup)
        if self._plan is not None and self._plan.note:
            warnings.warn(self._plan.note, SlowControlWarning, stacklevel=2)
        self._place(self._states, q_given=True, v_given=v0 is not None)
        self._run: Run | None = None
        self._pieces: RunPieces | None = None
        self._over = ""  # why it cannot go on
        self._past: list[Occurrence] = []
        self._ended = np.zeros(self._states.count, bool)  # of a batch, by terminal events or events without end
        self._zeno = np.zeros(self._states.count, bool)  # which of them by the latter
        self._seen: dict[str, Array] | None = None

    def __repr__(self) -> str:
        batch = f", batch {self._states.shape}" if self._states.shape else ""
        over = f", over: {self._over}" if self._over else ""
        name = self._setup.method_name
        return f"<Simulation of {self.model.name!r}: {name}, t = {self._t:.9g} s{batch}{over}>"

    def __getstate__(self) -> dict[str, object]:
        """All but what is compiled and what a run knows besides its state."""
        y, past, ended = self._now()
        states = copy(self._states)
        states.y, states.p = y, states.p.copy()
        now = {"_states": states, "_past": past, "_ended": ended}
        return {**vars(self), **now, "_plan": None, "_run": None, "_pieces": None, "_seen": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._plan = self._planned(self._setup)

    def _planned(self, setup: Setup) -> SimulationPlan | None:
        """Plan to be compiled, None where nothing can move; refuses whatever the method cannot do."""
        if not self._states.y.shape[1]:
            return None
        plan = setup.plan(self._states, every_step=False)
        _ = plan.routine  # made when it is first looked at
        return plan

    def _place(self, states: States, q_given: bool, v_given: bool) -> None:
        """Check where states are to be, and close what must be closed, in place."""
        if self._as_is:
            return
        if q_given:  # where the motion led, a joint may lie on its limit, a little within the spring
            self._setup.check_bounds(states)
        if self._plan is not None:
            self._setup.close(self._plan, states, self._t, v_given)

    def _leave(self) -> None:
        """Forget all that a run knows but its state."""
        self._put_back(*self._now())

    def _now(self) -> tuple[Array, list[Occurrence], Array]:
        """Beginning of a run: states, what happened, which have ended."""
        return np.array(self._y), self.events, np.array(self._ended if self._run is None else self._run.ended)

    def _put_back(self, y: Array, past: list[Occurrence], ended: Array) -> None:
        """Go on from there, with another run."""
        self._states.y, self._past, self._ended = y, past, ended
        self._run = self._pieces = self._seen = None

    # How it goes on.
    @property
    def method(self) -> str | GeneralizedAlpha:
        """The integrator; another one goes on from the state."""
        return self._setup.method

    @method.setter
    def method(self, value: str | GeneralizedAlpha) -> None:
        setup = self._setup.with_method(value)
        plan = self._planned(setup)  # what is refused is so before anything has changed
        self._leave()
        before, after = self._touching, 0 if plan is None else plan.motion.touching
        if before != after:  # what contacts leave from step to step is only there in such steps
            y, end = self._states.y, self._states.y.shape[1] - self._switches
            none = np.zeros((len(y), after), y.dtype)
            self._states.y = np.concatenate([y[:, : end - before], none, y[:, end:]], axis=1)
        self._setup, self._plan, self.model = setup, plan, setup.model
        if setup.is_adaptive:
            self._states = self._states.in_double()

    @property
    def dt(self) -> float:
        """The step of fixed-step methods, s."""
        return self._dt

    @dt.setter
    def dt(self, value: float) -> None:
        check_positive(dt=value)
        self._leave()
        self._dt = float(value)

    # The state.
    @property
    def t(self) -> float:
        """The time, s."""
        return self._t

    @property
    def q(self) -> Array:
        """Configurations (..., nq), rad or m; quaternions of length one."""
        return self._part(0, self.model.nq)

    @property
    def v(self) -> Array:
        """Velocities (..., nv), rad/s or m/s."""
        return self._part(self.model.nq, self.model.nq + self.model.nv)

    @property
    def x(self) -> Array:
        """States of actuators and controllers (..., nx)."""
        end = self._y.shape[1] - self._switches - self._touching
        return self._part(self.model.nq + self.model.nv, end)

    @property
    def _switches(self) -> int:
        """Numbers at the end of a state that say which closures hold."""
        return len(self._setup.flags) if self._setup.switched else 0

    @property
    def _touching(self) -> int:
        """Numbers before them that contacts leave from step to step."""
        return 0 if self._plan is None else self._plan.motion.touching

    @property
    def contacts(self) -> MotionContacts:
        """Contacts now, as of a motion with one sample: ``sim.contacts.force[0]``."""
        derived = {name: values[..., None, :] for name, values in self._observed.items() if name.startswith("contact_")}
        q, v = (part[..., None, :] for part in (self.q, self.v))
        now = Trajectory(
            np.array([self._t]), q, v, p=self.p, model=self.model, derived=derived, method=self._setup.method_name
        )
        return now.contacts

    @property
    def p(self) -> Array:
        """Run-time parameters (..., np); what is assigned acts from the next piece on."""
        given = self._states.p
        return given.reshape(*self._states.shape, given.shape[-1]).copy()

    @p.setter
    def p(self, value: ArrayLike) -> None:
        given = self._states.p
        wanted, before = (*self._states.shape, given.shape[-1]), given.tobytes()
        try:
            array = np.asarray(value)
            if array.dtype.kind not in "fiubO":
                raise TypeError
            given.reshape(wanted)[...] = array
        except (TypeError, ValueError):
            got = f"shape {checked_vector('p', value, wanted[-1]).shape}"
            raise InputError("p does not fit the simulation", got=got, allowed=str(wanted)) from None
        if given.tobytes() == before:
            return
        if not self._states.shape and not math.isfinite(sum(given[0].tolist())):  # in a batch only that state fails
            self._check_p(np.frombuffer(before, given.dtype))
        if self._run is not None:
            row = self._run.rows["p"]
            if row is not given:  # with room for tables behind
                row[:, : given.shape[-1]] = given
            changed = (given != np.frombuffer(before, given.dtype).reshape(given.shape)).any(axis=1)
            if "memory" in self._run.rows:  # accelerations under the p of before are no guide
                self._run.rows["memory"][changed, 0] = 0.0
            if "g" in self._run.rows:  # events may read p: what it makes of them is where they begin
                self._run.rows["g"][changed] = 0.0
        self._seen = None

    def _check_p(self, before: Array) -> None:
        """New parameters of a single state are finite; else those of before stay."""
        given = self._states.p[0]
        if not np.isfinite(given[given != before]).all():
            got = np.array2string(given, threshold=20)
            given[:] = before
            raise InputError("p is not made of finite numbers", got=got, allowed="finite numbers")

    def set(self, q: ArrayLike | None = None, v: ArrayLike | None = None, x: ArrayLike | None = None) -> None:
        """Put it elsewhere, at the same time: an environment that begins anew, an estimate that was corrected.

        Args:
            q: configurations (..., nq); as they are if not given.
            v: velocities (..., nv); as they are if not given, at rest if only q is.
            x: states of actuators and controllers (..., nx); as they are if not given.

        What a terminal event had ended goes on again.
        """
        if v is None:
            v = self.v if q is None else np.zeros(self.model.nv)
        place = States(self._setup.start, self.q if q is None else q, v, self.p, self.x if x is None else x)
        if place.shape != self._states.shape:
            raise InputError("the batch has changed", got=str(place.shape), allowed=str(self._states.shape))
        if self._setup.switched:  # closures hold or not as events have left them
            flags = len(self._setup.flags)
            now = self._y[:, -flags:]
            place.y[:, -flags:] = np.where(np.isfinite(now), now, self._setup.flags)
        self._place(place, q_given=q is not None, v_given=True)
        self._leave()
        self._states.y = place.y.astype(self._states.dtype, copy=False)
        self._ended[:] = self._zeno[:] = False
        self._over = ""

    # Motion.
    def advance(self, duration: float, p: ArrayLike | None = None) -> Self:
        """Go on by a piece of so many seconds.

        Args:
            duration: s.
            p: run-time parameters from now on (..., np); as they are if not given.

        Returns:
            Itself.

        A terminal event ends a single simulation before the end of the piece; see :attr:`status`. One that cannot go on
        raises a :class:`LinkwiseError`. In a batch such a state becomes nan, or stays where it was if events without
        end stopped it, and harms no other. After an exception in a function of yours, or Ctrl-C, the simulation stands
        where the piece began.
        """
        if p is not None:
            self.p = p
        self._seen = None
        pieces = self._pieces
        if pieces is not None and not self._over and not self._spans:
            try:
                quick = pieces.advance(self._t, duration)
                if quick:
                    self._t = pieces.end
            except KeyboardInterrupt:  # perhaps after the steps, which are not interrupted
                self._t = pieces.time(self._t)
                raise
            if quick:
                if not self._states.shape and not np.isfinite(self._y).all():
                    self._stop("failed", self._t)
                return self
        check_positive(duration=duration)
        duration = float(duration)
        check_span(self._setup.tables, self._t, duration)
        if self._over:
            raise LinkwiseError(
                "the simulation is over", got=self._over, do="set() it elsewhere, or make another Simulation"
            )
        if self._plan is None:
            self._t += duration
        else:
            self._advance(duration)
        return self

    def _advance(self, duration: float) -> None:
        """A piece with all that may happen in it; one that an error or an interrupt ends has not been."""
        states, t, before = self._states, self._t, self._now()
        try:
            run = self._run_for(t, duration)
            run.go(None, self._threads)
            if run.interrupted:  # of a batch, each state at a time of its own
                raise KeyboardInterrupt
        except BaseException:
            self._put_back(*before)
            raise
        self._t = t + duration
        statuses = run.statuses()
        self._zeno |= statuses == "zeno"
        if states.shape:
            run.y[np.isin(statuses, ("failed", "max_steps"))] = np.nan
        elif statuses[0] != "done":
            happened = statuses[0] in ("event", "zeno")
            self._stop(str(statuses[0]), run.happened.events[-1].t if happened else float(run.times_reached()[0]))
        if is_plain(run):
            self._pieces = RunPieces(run, self._threads)

    def _run_for(self, t: float, duration: float) -> Run:
        """The run, made ready for a piece."""
        setup, states, plan = self._setup, self._states, self._plan
        assert plan is not None
        states.check_clock(t, duration, None if setup.is_adaptive else self.dt, setup.is_adaptive)
        if self._run is not None:
            self._run.resume(t, duration)
            return self._run
        times = np.array([t, t + duration]) if setup.is_adaptive else None
        sizes = ToleratedSteps(None, *self._tolerances) if setup.is_adaptive else EqualSteps(self.dt, _NEVER)
        self._run = Run(plan, states, t, duration, sizes, setup.curves(plan, states), times)
        self._run.leave_out(self._ended)
        return self._run

    def _stop(self, status: str, t: float) -> None:
        """A single simulation has ended within a piece, at a time."""
        run = self._run
        assert run is not None
        self._over, self._t = status, t
        if status == "event":
            return
        raise LinkwiseError(run.ending(0, "the simulation"))

    @property
    def status(self) -> str | Array:
        """``"running"``, ``"event"`` after a terminal one, ``"zeno"`` or ``"failed"``; in a batch an array of them.

        ``"zeno"`` is the end of a motion in which events follow each other without time passing.
        """
        if not self._states.shape:
            return {"": "running", "event": "event", "zeno": "zeno"}.get(self._over, "failed")
        found = np.full(self._states.count, "running", dtype="<U7")
        found[self._ended if self._run is None else self._run.ended] = "event"
        found[self._zeno] = "zeno"
        found[~np.isfinite(self._y).all(axis=1)] = "failed"
        return found.reshape(self._states.shape)

    def simulator(self, bits: int = 64) -> Simulator:
        """The same simulation as a program that runs by itself from where this stands: see :func:`linkwise.emit_c`.

        Args:
            bits: 64 for double; 32 for float, of fixed-step methods.
        """
        from linkwise.sim.simulator import simulator_of

        if self._states.shape or self._plan is None:
            raise InputError(
                "a simulator that runs by itself has one state, which moves",
                got=f"a batch {self._states.shape}" if self._states.shape else "no freedoms",
                do="make a Simulation of one state; in C, each simulator is a struct of its own",
            )
        rtol, atol, max_step, min_step, max_steps = self._tolerances
        h = 0.0 if self._run is None else float(self._run.clock[0, Clock.H])
        start = {"t": self._t, "y": self._y[0], "p": self._states.p[0], "dt": self._dt, "h": h, "rtol": rtol}
        start |= {"atol": atol, "max_step": max_step, "min_step": min_step, "max_steps": max_steps}
        return simulator_of(self._plan, start, self._setup.curves(self._plan, self._states).arrays, bits)

    # What follows from it.
    @property
    def events(self) -> list[Occurrence]:
        """All that happened, in order."""
        return [*self._past, *([] if self._run is None else self._run.happened.events)]

    @property
    def tau(self) -> Array:
        """Forces of actuators on the joints now (..., nv), N m or N."""
        return self._observed["tau"]

    @property
    def vdot(self) -> Array:
        """Accelerations now (..., nv), rad/s² or m/s²."""
        return self._observed["vdot"]

    @property
    def energy(self) -> Any:
        """Kinetic and potential energy and what springs hold, (...), J."""
        found = self._observed["energy"]
        return found if self._states.shape else float(found)

    @property
    def f_ext(self) -> Array | None:
        """Wrenches of elements on bodies now (..., n_bodies, 6): moments, N m, then forces, N, in body frames.

        None if none does.
        """
        found = self._observed.get("f_ext")
        return None if found is None else found.reshape(*self._states.shape, len(self.model.bodies), 6)

    @property
    def _observed(self) -> dict[str, Array]:
        if self._seen is None:
            states, plan = self._states, self._plan
            if plan is None:
                none = np.zeros((*states.shape, 0))
                return {"tau": none, "vdot": none, "energy": np.zeros(states.shape)}
            t = np.array([self._t])
            members = np.arange(states.count)
            curves = self._setup.curves(plan, states)
            slack = 8.0 * float(np.spacing(abs(self._t)))
            found = plan.observe(RunSamples(t, self._y[:, None, :], states.p, self._threads, curves, members, slack))
            self._seen = {name: a[:, 0].reshape((*states.shape, *a.shape[2:])) for name, a in found.items()}
        return self._seen

    @property
    def _y(self) -> Array:
        return self._states.y if self._run is None else self._run.y

    def _part(self, start: int, stop: int) -> Array:
        return self._y[:, start:stop].reshape(*self._states.shape, stop - start).copy()
