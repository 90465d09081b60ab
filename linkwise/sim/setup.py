"""Setup of a simulation: a model and all that acts on it, checked, before a state and a duration are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from linkwise.contact.scene import rigid_meeting
from linkwise.errors import InputError
from linkwise.memoized import Memory, once
from linkwise.model.model import Model
from linkwise.sim.checks import check_start
from linkwise.sim.closed_states import OPEN, captures_of, check_switched, closure_flags, start_closed
from linkwise.sim.closing import Closing, as_closing
from linkwise.sim.disturbances import as_loads
from linkwise.sim.elements import Element, as_elements
from linkwise.sim.events import Event, ImpactEvent, as_events, limit_events
from linkwise.sim.frozen_elements import frozen_element, frozen_event
from linkwise.sim.moreau import check_overlap, contact_numbers, touching
from linkwise.sim.motion import JointRules, Motion
from linkwise.sim.plans import Plan, checked_method, is_adaptive, plan_for
from linkwise.sim.states import States, all_single
from linkwise.sim.tableaux import GeneralizedAlpha
from linkwise.sim.tables import RunTables, Table, batch_of


@runtime_checkable
class Frame(Protocol):
    """Frame that moves: it knows how elements act in it, and which it adds."""

    def enter(self, model: Model, elements: Sequence[Element]) -> tuple[Element, ...]:
        """Elements as they act in this frame."""
        ...


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
    closing: Closing
    flags: NDArray[Any]
    """For each closure, 1 if it is in force at the start."""

    @classmethod
    def of(
        cls,
        model: Model,
        method: str | GeneralizedAlpha,
        control: Any,
        f_ext: Any,
        events: Any,
        rules: JointRules | None,
        limits: str | None,
        stabilization: Any,
        released: str | Sequence[str],
        frame: Frame | None = None,
    ) -> Setup:
        """From what users give, see :func:`linkwise.simulate`."""
        if not isinstance(model, Model):
            raise InputError("this is not a model", got=type(model).__name__, allowed="lw.load(...) or builder.build()")
        name = checked_method(method)
        if name == "moreau":
            model = touching(model)
        rules = JointRules() if rules is None else rules
        if not isinstance(rules, JointRules):
            raise InputError("rules are not JointRules", got=repr(rules), allowed="lw.JointRules(...)")
        if limits is not None:
            rules = replace(rules, limits=limits)
        elements = (*as_elements(control), *as_loads(model, f_ext))
        if frame is not None:
            if not isinstance(frame, Frame):
                raise InputError("this is not a frame", got=repr(frame), allowed="an orbit, lw.space.Orbit(...)")
            elements = frame.enter(model, elements)
        chosen = as_events(events)
        check_switched(model, chosen)
        elements = (*elements, *captures_of(chosen))
        _check_contacts(model, name, rules, chosen)
        closing, flags = as_closing(stabilization), closure_flags(model, released)
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

    @property
    def method_name(self) -> str:
        """Of the method."""
        return checked_method(self.method)

    @property
    def is_adaptive(self) -> bool:
        """Whether steps are as long as a tolerance allows."""
        return is_adaptive(self.method_name)

    @property
    def switched(self) -> bool:
        """Whether closures take hold or let go."""
        return not all(self.flags.tolist()) or any(event.switches for event in self.events)

    @property
    def tables(self) -> list[Table]:
        """Those of all elements."""
        return [table for element in self.elements for table in element.tables]

    def states(self, q0: Any, v0: Any, p: Any, x0: Any) -> States:
        """Where a run starts; in float32 if all of it is and the steps are of equal size."""
        single = not self.is_adaptive and all_single(q0, v0, p, x0)
        switches = self.flags if self.switched else np.empty(0)
        if self.method_name == "moreau":
            switches = np.concatenate([np.zeros(contact_numbers(self.model, self.rules).size), switches])
        return States(self.model, self.elements, q0, v0, p, x0, single, switches, batch_of(self.tables, ()))

    def check_limits(self, states: States) -> None:
        """Whether no state starts beyond a joint limit, where these push or stop; by rounding, it is put on those."""
        if self.rules.limits != "ignore":
            motion = limits_of(self.model, self.rules)[0]
            check_start(motion, states.y)
            if self.rules.limits == "stop":
                motion.all_limits.put_on(states.y[:, : motion.nq])

    def check_overlap(self, states: States) -> None:
        """Whether no rigid surfaces overlap by more at the start than steps can part gently."""
        scene = self.model._contact_scene
        if self.method_name == "moreau" and scene is not None and states.count:
            check_overlap(self.model, states.y[:, : self.model.nq], states.p, scene.rules.overlap, states.shape)

    def frozen(self, states: States) -> Setup:
        """The same with the formulas that the functions of elements and events have now."""
        given = self.model, states.p.shape[-1], sum(element.nx + element.nh for element in self.elements)
        elements = tuple(frozen_element(element, *given) for element in self.elements)
        return replace(self, elements=elements, events=tuple(frozen_event(event, *given) for event in self.events))

    def plan(self, states: States, every_step: bool) -> Plan:
        """Plan to be compiled."""
        return plan_for(self, states.p.shape[-1], every_step)

    def close(self, plan: Plan, states: States, t: float, v_given: bool) -> None:
        """Put states on the closures, in place, or refuse those that are far from them."""
        if self.model.closures:
            tol = 1e-5 if states.dtype == np.float32 else OPEN
            started = start_closed(plan.motion, t, states.y, states.p, tol, v_given=v_given)
            states.y = started.astype(states.dtype, copy=False)

    def curves(self, plan: Plan, states: States) -> RunTables:
        """The tables' numbers."""
        return RunTables(plan.motion.curves, self.tables, states.shape, states.dtype)


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
    rigid = None if model._contact_scene is None else rigid_meeting(model)
    if rigid is not None and not any(isinstance(event, ImpactEvent) for event in events):
        raise InputError(
            f"the method {method!r} takes contacts as forces, and rigid surfaces have none",
            got=f"{rigid.name!r}, which is rigid",
            allowed="materials with a stiffness",
            do='method="moreau"; or lw.Material(stiffness=1e5, damping=0.01) for all that touches; or, where bodies '
            "fly and bounce, events=lw.impacts(model)",
        )


def limits_of(model: Model, rules: JointRules) -> tuple[Motion, tuple[Event, ...]]:
    """The model's limits under these rules, and the events of reaching them.

    Kept with the model: they take a mass matrix, and the same events find the same plan again.
    """

    def made() -> tuple[Motion, tuple[Event, ...]]:
        motion = Motion(model, (), rules, 0)
        return motion, tuple(frozen_event(event, model, 0, 0) for event in limit_events(motion))

    return once(Memory.of(model).table("simulation limits"), rules, made)
