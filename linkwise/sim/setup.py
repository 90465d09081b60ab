"""Setup of a simulation: a model and all that acts on it, checked."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypedDict, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_count, is_real
from linkwise.contact.scene import kept_points, rigid_meeting
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError, InputWarning, message
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.contacts import ContactRules
from linkwise.memoized import Memory, cached_property, once
from linkwise.model.closures import OPEN
from linkwise.model.model import Model, checked_model
from linkwise.model.passive_forces import refuse_rigid_contacts
from linkwise.sim.closed_states import captures_of, check_switched, closure_flags, start_closed
from linkwise.sim.disturbances import as_loads
from linkwise.sim.elements import Element, as_elements
from linkwise.sim.events import Event, ImpactEvent, as_events, limit_events
from linkwise.sim.frozen_elements import frozen_element, frozen_event
from linkwise.sim.joint_rules import Baumgarte, JointRules, Stabilization, as_closing
from linkwise.sim.moreau import check_overlap, contact_numbers, touching
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.plans import SimulationPlan, checked_method, is_adaptive, plan_for
from linkwise.sim.states import Start, States, check_start
from linkwise.sim.tableaux import GeneralizedAlpha
from linkwise.sim.tables import NO_TABLES, RunTables, Table, batch_of


@runtime_checkable
class MovingFrame(Protocol):
    """Frame that moves: it knows how elements act in it, and which it adds."""

    def enter(self, model: Model, elements: Sequence[Element]) -> tuple[Element, ...]:
        """Elements as they act in this frame."""
        ...


class Options(TypedDict, total=False):
    """Options of every simulation, by name: see :func:`linkwise.simulate`."""

    control: object
    events: object
    p: ArrayLike | None
    f_ext: object
    t0: float
    x0: ArrayLike | None
    rtol: float
    atol: float | None
    max_step: float
    min_step: float
    max_steps: int
    rules: JointRules | None
    limits: str | None
    stabilization: str | Baumgarte | None
    released: str | Sequence[str]
    threads: int | None
    frame: MovingFrame | None


_ACTING = ("control", "events", "f_ext", "frame")
"""Options whose functions may be others at every call."""
_RULING = ("rules", "limits", "stabilization", "released")
"""Options that a setup without these depends on besides."""
_KEPT = 32  # setups for each model
_LEAST_RTOL = 1e-14


def checked_tolerances(options: Options) -> tuple[float, float, float, float, int]:
    """Relative and absolute tolerance, longest and shortest step, and most steps of an adaptive method."""
    rtol, atol = options.get("rtol", 1e-9), options.get("atol")
    max_step, min_step = options.get("max_step", math.inf), options.get("min_step", 0.0)
    max_steps = options.get("max_steps", 1_000_000)
    check_count(max_steps=max_steps)
    if not is_real(rtol) or not _LEAST_RTOL <= rtol < 1.0:
        raise InputError(
            "rtol is not a tolerance that can be kept",
            got=repr(rtol),
            allowed=f"{_LEAST_RTOL:g} <= rtol < 1: float64 has 16 digits",
        )
    atol = rtol / 100.0 if atol is None else atol
    if not is_real(atol) or not 0.0 <= atol < math.inf:
        raise InputError("atol is not a tolerance", got=repr(atol), allowed="numbers >= 0")
    if not is_real(max_step) or not max_step > 0.0:
        raise InputError("max_step is not positive", got=repr(max_step), allowed="seconds, or inf")
    if not is_real(min_step) or not 0.0 <= min_step < max_step:
        raise InputError("min_step is out of range", got=repr(min_step), allowed="0 <= min_step < max_step, s")
    return rtol, float(atol), max_step, min_step, int(max_steps)


def checked_times(times: ArrayLike | None, t0: float, duration: float) -> Array | None:
    """Output times (T), increasing and inside the simulation, or None."""
    if times is None:
        return None
    try:
        array = np.array(times, float)
    except (TypeError, ValueError):
        array = np.empty(0)
    slack = 1e-9 * max(1.0, duration)
    inside = array.size and array.ndim == 1 and np.isfinite(array).all()
    if not inside or (np.diff(array) <= 0).any() or array[0] < t0 - slack or array[-1] > t0 + duration + slack:
        raise InputError(
            "output_times do not fit the simulation",
            got=repr(times)[:80],
            allowed=f"(T,), increasing, from {t0:g} to {t0 + duration:g} s",
            do="np.linspace(t0, t0 + duration, n), or np.unique of the times you have",
        )
    return np.asarray(np.clip(array, t0, t0 + duration))


def _is_key(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Setup:
    """A model, a method, and all that acts."""

    model: Model
    method: str | GeneralizedAlpha
    """By its own name."""
    elements: tuple[Element, ...]
    events: tuple[Event, ...]
    """Those of joint limits that stop a run included."""
    rules: JointRules
    closing: Stabilization
    flags: Array
    """For each closure, 1 if it is in force at the start."""

    @classmethod
    def of(cls, model: Model, method: str | GeneralizedAlpha, options: Options) -> Setup:
        """From what users give, see :func:`linkwise.simulate`."""
        checked_model(model)
        if method != "moreau":
            _warn_of_ground(model, method)
        if any(options.get(each) is not None for each in _ACTING):
            return cls._made(model, method, options)
        chosen = (method, *(item for item in options.items() if item[0] in _RULING))
        made = partial(cls._made, model, method, options)
        return Memory.of(model).recent("simulation setups", chosen, made, _KEPT) if _is_key(chosen) else made()

    @classmethod
    def _made(cls, model: Model, method: str | GeneralizedAlpha, options: Options) -> Setup:
        name = checked_method(method)
        if name == "moreau":
            model = touching(model)
        rules, limits, frame = options.get("rules"), options.get("limits"), options.get("frame")
        rules = JointRules() if rules is None else rules
        if not isinstance(rules, JointRules):
            raise InputError(
                "rules are not JointRules",
                got=repr(rules),
                allowed="lw.JointRules(...)",
                do="model.with_contacts(…, rules=…)" if isinstance(rules, ContactRules) else None,
            )
        if limits is not None:
            rules = replace(rules, limits=limits)
        elements = (*as_elements(options.get("control")), *as_loads(model, options.get("f_ext")))
        if frame is not None:
            if not isinstance(frame, MovingFrame):
                raise InputError("this is not a frame", got=repr(frame), allowed="an orbit, lw.space.Orbit(...)")
            elements = frame.enter(model, elements)
        chosen = as_events(options.get("events"))
        check_switched(model, chosen)
        elements = (*elements, *captures_of(chosen))
        _check_contacts(model, name, rules, chosen)
        closing = as_closing(options.get("stabilization", "projection"))
        flags = closure_flags(model, options.get("released", ()))
        if rules.limits == "stop":
            chosen = (*chosen, *limits_of(model, rules)[1])
        own = method if isinstance(method, GeneralizedAlpha) else name
        return cls(model, own, elements, chosen, rules, closing, flags)

    def with_method(self, method: str | GeneralizedAlpha) -> Setup:
        """The same by another method."""
        name = checked_method(method)
        model = touching(self.model) if name == "moreau" else self.model
        _check_contacts(model, name, self.rules, self.events)
        return replace(self, model=model, method=method if isinstance(method, GeneralizedAlpha) else name)

    @cached_property
    def is_asked_anew(self) -> bool:
        """Whether every call has something to look at again: functions that may be others, or a warning to give."""
        return bool(self.elements or self.events) or (self.method_name != "moreau" and _falls_through(self.model))

    @cached_property
    def method_name(self) -> str:
        """Of the method."""
        return checked_method(self.method)

    @cached_property
    def is_adaptive(self) -> bool:
        """Whether steps are as long as a tolerance allows."""
        return is_adaptive(self.method_name)

    @cached_property
    def switched(self) -> bool:
        """Whether closures take hold or let go."""
        return not all(self.flags.tolist()) or any(event.switches for event in self.events)

    @cached_property
    def tables(self) -> list[Table]:
        """Those of all elements."""
        return [table for element in self.elements for table in element.tables]

    @cached_property
    def start(self) -> Start:
        """Start of all its runs; in float32 only where steps are of equal size."""
        switches = self.flags if self.switched else np.empty(0)
        if self.method_name == "moreau":
            switches = np.concatenate([np.zeros(contact_numbers(self.model, self.rules).size), switches])
        batch = batch_of(self.tables, ()) if self.tables else ()
        return Start.of(self.model, self.elements, switches, batch, not self.is_adaptive)

    @cached_property
    def _limited(self) -> EquationsOfMotion | None:
        """The motion whose joint limits push or stop; None where there are none."""
        motion = None if self.rules.limits == "ignore" else limits_of(self.model, self.rules)[0]
        return motion if motion is not None and motion.limits else None

    @cached_property
    def is_bounded(self) -> bool:
        """Whether joint limits or rigid surfaces say where states can start."""
        return self._limited is not None or self.method_name == "moreau"

    def check_bounds(self, states: States) -> None:
        """Refuse states that start beyond a joint limit or where rigid surfaces overlap by more than steps can part.

        What is beyond a limit that stops by rounding is put on it.
        """
        motion = self._limited
        if motion is not None:
            check_start(motion, states.y)
            if self.rules.limits == "stop":
                motion.all_limits.put_on(states.y[:, : motion.nq])
        scene = self.model._contact_scene
        if self.method_name == "moreau" and scene is not None and states.count:
            given = states.y[:, : self.model.nq], states.p, scene.rules.overlap, states.shape
            gaps, numbers = check_overlap(self.model, *given)
            left = contact_numbers(self.model, self.rules)
            first = states.y.shape[1] - (self.flags.size if self.switched else 0) - left.size + left.rows
            states.y[:, first : first + left.points] = gaps
            if kept_points(self.model) is not None:  # which are behind the impulses
                states.y[:, first - left.points : first] = numbers

    def frozen(self, states: States) -> Setup:
        """The same with the formulas that the functions of elements and events have now."""
        if not self.elements and not self.events:
            return self
        given = self.model, states.p.shape[-1], sum(element.nx + element.nh for element in self.elements)
        elements = tuple(frozen_element(element, *given) for element in self.elements)
        return replace(self, elements=elements, events=tuple(frozen_event(event, *given) for event in self.events))

    def plan(self, states: States, every_step: bool) -> SimulationPlan:
        """Plan to be compiled."""
        return plan_for(self, states.p.shape[-1], every_step)

    def close(self, plan: SimulationPlan, states: States, t: float, v_given: bool) -> None:
        """Put states on the closures, in place, or refuse those that are far from them."""
        if self.model.closures:
            tol = 1e-5 if states.dtype == np.float32 else OPEN
            started = start_closed(plan.motion, t, states.y, states.p, tol, v_given=v_given)
            states.y = started.astype(states.dtype, copy=False)

    def curves(self, plan: SimulationPlan, states: States) -> RunTables:
        """The tables' numbers."""
        return RunTables(plan.motion.curves, self.tables, states.shape, states.dtype) if self.tables else NO_TABLES


def usual_method(model: object, events: object, otherwise: str) -> str:
    """The method where none is named: "moreau" for rigid bodies that touch, the other one elsewhere.

    So a model with rigid contacts, unless impacts are events, and one with a body that would fall through the ground of
    its file.
    """
    if not isinstance(model, Model):
        return otherwise
    if model._contact_scene is None:
        return "moreau" if _falls_through(model) else otherwise
    impacts = any(isinstance(event, ImpactEvent) for event in as_events(events))
    return otherwise if impacts or rigid_meeting(model) is None else "moreau"


def _falls_through(model: Model) -> bool:
    """Whether the model has no contacts, its file has a ground, and something is free to fall."""
    if model._contact_scene is not None or not model._base_collisions:
        return False
    return any(_is_free_to_fall(model, joint) for joint in model.joints)


def freedoms_of_base(model: Model) -> list[int]:
    """Freedoms by which bodies that are free to fall move in the world; none of what is fixed to it.

    Those of a joint that flies, or of the slides and hinges that planar walkers have before the first body with mass.
    """
    start: dict[int, int] = {}  # of bodies up to the first with mass, the one that is joined to the world
    for body in model.bodies:
        if body.parent < 0:
            start[body.index] = body.index
        elif body.parent in start and not model.bodies[body.parent].mass:
            start[body.index] = start[body.parent]
    falling = {start[k] for k in start if _is_free_to_fall(model, model.joints[k])}
    return [i for k, first in start.items() if first in falling for i in range(model.nv)[model.joints[k].v_slice]]


def _is_free_to_fall(model: Model, joint: JointInstance) -> bool:
    return joint.type.flies or _slides_down(model, joint)


def _slides_down(model: Model, joint: JointInstance) -> bool:
    """Whether a joint is a slide without an end along gravity, as planar walkers have between them and the world."""
    axis, body = joint.type.axis, model.bodies[joint.index]
    if axis is None or not joint.type.slides(0) or any(math.isfinite(end.lower) for end in joint.limits):
        return False
    along = np.array(axis)
    while True:
        along = np.array(body.placement)[:3, :3] @ along
        if body.parent < 0:
            break
        body = model.bodies[body.parent]
        along = np.array(body.joint_frame)[:3, :3] @ along
    down = np.array(model.gravity)
    return bool(abs(along @ down) > 0.1 * np.linalg.norm(down))


def _warn_of_ground(model: Model, method: str | GeneralizedAlpha) -> None:
    """Warn of a body that would fall through the ground of its file."""
    if _falls_through(model):
        told = message(
            f"nothing touches the ground of {model.name!r} by this method",
            got=f"method={method!r}",
            do='method="moreau", or none, takes contacts of the file as they are',
        )
        warnings.warn(told, InputWarning, stacklevel=4)


def _check_contacts(model: Model, method: str, rules: JointRules, events: Sequence[Event]) -> None:
    """Refuse what only steps with contact can do."""
    if method == "moreau":
        return
    if rules.limits == "rigid":
        raise InputError(
            'limits="rigid" is for method="moreau"',
            got=f"method={method!r}",
            do='limits="spring", or method="moreau" for a model whose bodies touch',
        )
    if not any(isinstance(event, ImpactEvent) for event in events):
        do = 'method="moreau"; or, where bodies fly and bounce, events=lw.impacts(model)'
        refuse_rigid_contacts(model, f"the method {method!r}", do)


def limits_of(model: Model, rules: JointRules) -> tuple[EquationsOfMotion, tuple[Event, ...]]:
    """The model's limits under these rules, and the events of reaching them.

    Kept with the model: they take a mass matrix, and the same events find the same plan again.
    """

    def made() -> tuple[EquationsOfMotion, tuple[Event, ...]]:
        motion = EquationsOfMotion(model, (), rules, 0)
        return motion, tuple(frozen_event(event, model, 0, 0) for event in limit_events(motion))

    return once(Memory.of(model).table("simulation limits"), rules, made)
