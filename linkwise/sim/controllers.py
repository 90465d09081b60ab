"""Controllers with memory: states that flow, states that change at samples, and outputs that are held and delayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.checks import check_not_negative, check_positive
from linkwise.errors import InputError
from linkwise.functions.frozen import frozen_alike
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.model.model import Model, checked_model
from linkwise.sim.actuators import Tracking
from linkwise.sim.elements import Element, Target, Vector, checked_numbers, per_joint, vector, with_states
from linkwise.sim.elements import law as asked
from linkwise.sim.measuring import Measured, in_loop, readings
from linkwise.sim.sensors import Encoder
from linkwise.spatial.scalar import Scalar, plus, where

_MOST_PARAMETERS = 1000  # of a law on trial, which is not told how many there will be

_ADVICE = (
    "keep what changes in state=, draw noise beforehand (lw.Table.noise), or pass python=True with a rate: then it is "
    "called once for each sample"
)


class Controller(Element):
    """A control law with states of its own, continuous or sampled.

    Without a rate the law is ``law(t, q, v, x, p) -> (tau, xdot)``, and its states are integrated with the motion. With
    a rate it is ``law(t, q, v, x, p) -> (tau, x_next)``: it is asked at the start and then every 1/rate seconds, and
    tau is held in between. Every step of the integrator ends at a sample.

    Args:
        model: the mechanism.
        law: traced into the kernel, as every control.
        state: x at the start, any number of values.
        rate: samples a second, Hz; None for a law in continuous time.
        delay: s from a sample to the moment its output acts; before the first one arrives nothing does.
        python: True calls the law in Python, once for each sample, on arrays of floats; all else stays compiled. None
            does so only if it cannot be traced. Needs a rate.

    >>> def law(t, q, v, x, p):            # an integrator
    ...     return [-2.0 * x[0]], [q[0]]
    >>> from linkwise import samples
    >>> arm = samples.planar_arm(1)
    >>> Controller(arm, law, state=[0.0]).nx, Controller(arm, law, state=[0.0], rate=100.0).period
    (1, 0.01)
    """

    def __init__(
        self,
        model: Model,
        law: Callable[..., tuple[Vector, Vector]],
        *,
        state: Sequence[float] = (),
        rate: float | None = None,
        delay: float = 0.0,
        python: bool | None = None,
    ) -> None:
        if not callable(law):
            raise InputError("the law cannot be called", got=repr(law), allowed="law(t, q, v, x, p) -> (tau, change)")
        self.model, self.law = model, law
        self.start = checked_numbers(state, len(np.atleast_1d(state)), "state")
        if rate is None:
            if delay or python:
                raise InputError(
                    "only sampled controllers can be delayed, or called in Python",
                    got=f"rate=None, delay={delay!r}, python={python!r}",
                    do="give a rate, in Hz",
                )
        else:
            check_positive(rate=rate)
        check_not_negative(delay=delay)
        self.period = None if rate is None else 1.0 / float(rate)
        whole, rest = (0, 0.0) if self.period is None else divmod(float(delay), self.period)
        if self.period is not None and rest > (1.0 - 1e-9) * self.period:  # rounding
            whole, rest = whole + 1, 0.0
        self.late = rest if self.period is not None and rest > 1e-9 * self.period else 0.0
        self.pending = int(whole) + 1 if whole or self.late else 0  # outputs that are on their way
        n = len(self.start)
        if self.period is None:
            self.nx = n
        else:
            self.nh = 3 + n + model.nv * (1 + self.pending)
        self.in_python = bool(python)
        if not python:
            tables = sum(table.size for table in self.tables)
            sizes = {"t": None, "q": model.nq, "v": model.nv, "x": n + tables, "p": _MOST_PARAMETERS}
            _, reason = frozen_alike(self._checked_law, self._name(), sizes, _ADVICE, whose=self._watched)
            if reason and (python is False or self.period is None):
                raise InputError(
                    f"{self._name()} cannot be traced",
                    got=reason,
                    allowed="lw.math.where instead of `if`, NumPy or lw.math.sin instead of math.sin",
                    do="rewrite it, or give a rate and python=True",
                )
            self.in_python = bool(reason)

    @property
    def _watched(self) -> Any:
        """The caller's own function, in which effects are looked for."""
        return self.law

    def _name(self) -> str:
        return f"the law {getattr(self.law, '__name__', repr(self.law))}"

    def _checked_law(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """tau (nv) and the change of the states."""
        if getattr(p, "states", None) is None:  # tried out, before it is known what else there is
            p = with_states(p, p)
        result: object = self.law(t, q, v, x, p)
        if not isinstance(result, tuple) or len(result) != 2:
            raise InputError(
                f"{self._name()} does not return a pair",
                got=type(result).__name__,
                allowed="(tau, xdot), or (tau, x_next) with a rate",
            )
        tau = vector(result[0], self.model.nv, f"tau of {self._name()}")
        return tau, vector(result[1], len(self.start), f"the states that {self._name()} returns")

    def initial(self) -> Sequence[float]:
        """The states given; nothing has been sampled."""
        if self.period is None:
            return [float(value) for value in self.start]
        return [0.0, 0.0, 0.0, *self.start.tolist(), *([0.0] * (self.model.nv * (1 + self.pending)))]

    # Held: when the first sample was, how many there were, whether an output waits for its delay; the states; the
    # output that acts; those on their way.
    def _held(self, x: Vector) -> tuple[Scalar, Scalar, Scalar, list[Scalar], list[Scalar], list[Scalar]]:
        n, nv = len(self.start), self.model.nv
        values = list(x[: self.nh])
        return values[0], values[1], values[2], values[3 : 3 + n], values[3 + n : 3 + n + nv], values[3 + n + nv :]

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Force that the law gives, or the one that is held."""
        return self._checked_law(t, q, v, x, p)[0] if self.period is None else self._held(x)[4]

    def rate(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Rates of the states of a continuous law."""
        return self._checked_law(t, q, v, x, p)[1]

    def next_sample(self, x: Vector) -> Scalar:
        """The next sample, or the moment at which an output arrives."""
        assert self.period is not None
        first, count, waiting, *_ = self._held(x)
        sample = first + count * self.period
        due = where(waiting > 0.5, sample - (self.period - self.late), sample) if self.late else sample
        return where(count < 0.5, -1e300, due)

    def sample(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Ask the law, or let a late output act."""
        first, count, waiting, state, acting, queue = self._held(x)
        nv = self.model.nv
        if self.late:
            released = [first, count, 0.0, *state, *queue[:nv], *queue]
            if self.in_python and waiting > 0.5:
                return released
        values = [*state, *x[self.nh :]]
        known = np.array(values, float) if self.in_python else scalar_array(values)
        tau, after = self._checked_law(t, q, v, known, p)
        line = [*queue[nv:], *tau]
        now = tau if not self.pending else acting if self.late else line[:nv]
        begun = where(count < 0.5, t, first)
        taken = [begun, count + 1.0, 1.0 if self.late else 0.0, *after, *now, *(line if self.pending else [])]
        if not self.late or self.in_python:
            return taken
        return [where(waiting > 0.5, a, b) for a, b in zip(released, taken, strict=True)]


class Sampled(Controller):
    """A control that is asked at a rate, its output held in between (a zero-order hold).

    Args:
        model: the mechanism.
        control: ``control(t, q, v, p) -> tau`` (nv), or ``(t, q, v, p, x)`` with the states of all elements, in the
            order of ``Trajectory.x``; or an element without states such as :class:`PD`.
        rate: samples a second, Hz; the first sample is at the start.
        delay: s from a sample to the moment its output acts.
        python: as in :class:`Controller`.
        sensors: what the control knows of the motion: :class:`~linkwise.sim.measuring.Measured` or
            :class:`~linkwise.Encoder` each. It then is ``control(t, z, p) -> tau``, z being all readings, one after the
            other, with their noise, steps, rates and delays.
    """

    def __init__(
        self,
        model: Model,
        control: Element | Callable[..., Vector],
        rate: float,
        *,
        delay: float = 0.0,
        python: bool | None = None,
        sensors: Sequence[Measured | Encoder] = (),
    ) -> None:
        state: list[float] = []
        if sensors:
            if not callable(control) or python:
                raise InputError(
                    "a control with sensors is a function that can be traced",
                    got=f"{control!r}, python={python!r}",
                    allowed="control(t, z, p) -> tau, z being the readings",
                )
            check_positive(rate=rate)
            measuring = [in_loop(sensor, model, float(rate)) for sensor in sensors]
            self.sensors, self.tables = tuple(sensors), tuple(each.sensor.drawn for each in measuring)
            state, python = [0.0] * sum(each.size for each in measuring), False

            def law(t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[Vector, Vector]:
                z, after = readings(measuring, t, q, v, p, x[: len(state)], x[len(state) :])
                return control(t, z, p), after

        elif isinstance(control, Element):
            if control.nx or control.nh:
                raise InputError(
                    "only elements without states can be sampled",
                    got=repr(control),
                    do="lw.Controller(model, law, state=..., rate=...)",
                )
            element, self.tables = control, control.tables

            def law(t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[Vector, Vector]:
                return element.force(t, q, v, x, p), ()

        elif callable(control):

            def law(t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[Vector, Vector]:
                return asked(control, t, q, v, p), ()

        else:
            raise InputError("control is neither a function nor an element", got=repr(control))
        self.control = control
        super().__init__(model, law, state=state, rate=rate, delay=delay, python=python)

    @property
    def _watched(self) -> Any:
        return self.control

    def _name(self) -> str:
        return f"the control {getattr(self.control, '__name__', repr(self.control))}"


class PID(Controller, Tracking):
    """A PD law with an integral: τ = kp e + ki ∫e dt + kd (v_d - v), e = q_d ⊖ q, with g(q) added if wanted.

    Args:
        model: the mechanism.
        q: target configuration (nq), a function (t, p) of it, or a :class:`Table` (for continuous time).
        v: target velocity (nv), likewise.
        kp: N m/rad or N/m, one for each freedom or one for all joints, as of :class:`PD`.
        ki: N m/(rad s) or N/(m s).
        kd: N m s/rad or N s/m.
        limit: largest force of the integral, N m or N: it stops growing there (anti-windup).
        gravity: whether to add g(q), as :class:`PD` does.
        rate: samples a second, Hz; None for continuous time.
        delay: s, of a sampled one.
    """

    def __init__(
        self,
        model: Model,
        q: Target,
        v: Target = 0.0,
        *,
        kp: ArrayLike = 100.0,
        ki: ArrayLike = 10.0,
        kd: ArrayLike = 10.0,
        limit: float = np.inf,
        gravity: bool = False,
        rate: float | None = None,
        delay: float = 0.0,
    ) -> None:
        self._track(checked_model(model), q, v, per_joint(model, kp, "kp"), per_joint(model, kd, "kd"))
        if self.tables and rate is not None:
            raise InputError("a sampled PID follows numbers or functions", got="a table", do="drop the rate")
        self.ki = per_joint(model, ki, "ki")
        check_not_negative(limit=limit, or_infinite=True)
        self.limit, self.gravity = float(limit), bool(gravity)
        self.step = None if rate is None else 1.0 / float(rate)
        super().__init__(model, self._law, state=[0.0] * model.nv, rate=rate, delay=delay, python=False)

    def _law(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[list[Scalar], list[Scalar]]:
        model = self.model
        e, rate = self._errors(t, q, v, x, p)
        tau, change = [], []
        for k in range(model.nv):
            ki, integral = float(self.ki[k]), x[k]
            full = self.limit / abs(ki) if ki else np.inf
            if self.step is None:
                stays = (integral * e[k] > 0.0) & (abs(integral) >= full) if np.isfinite(full) else False
                change.append(where(stays, 0.0, e[k]))
            else:
                integral = integral + e[k] * self.step
                if np.isfinite(full):
                    integral = where(integral > full, full, where(integral < -full, -full, integral))
                change.append(integral)
            tau.append(float(self.kp[k]) * e[k] + ki * integral + float(self.kd[k]) * rate[k])
        if self.gravity:
            tau = plus(tau, self._gravity(t, q, x, p))
        return tau, change
