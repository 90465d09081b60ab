"""The equations of motion that a simulation integrates: the mechanism's, with everything that acts on it.

Written over any scalar, in terms of the model's public functions, for states in the chart around the start of a step
(:mod:`linkwise.sim.chart`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.mechanism.actuation import JointTransmission
from linkwise.mechanism.bodies_and_joints import Body
from linkwise.mechanism.flexible_link import force_on_body, internal_damping
from linkwise.mechanism.parameters import Values
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.model.passive_forces import CAUSES as PASSIVE
from linkwise.model.passive_forces import PassiveForces, as_joint_forces
from linkwise.model.transmissions import (
    MovingFrames,
    add_forces,
    add_pulled,
    closure_forces,
    joint_forces,
    pushed_by_closures,
    wrenches,
)
from linkwise.sim.acceleration_fields import FieldsAroundBodies
from linkwise.sim.chart import Instant, StateChart
from linkwise.sim.elements import Element, Vector, Wrenches, state_names, with_states
from linkwise.sim.joint_rules import JointRules, Stabilization
from linkwise.sim.limits import (
    AllLimits,
    Limit,
    TransmissionLimit,
    limits_along,
    limits_of_joints,
)
from linkwise.sim.tables import Curve, curves_of
from linkwise.sim.varying import InForce, Varying
from linkwise.spatial.scalar import Flat, Scalar, beyond, either, is_zero, minus, plus, sqrt, where, within
from linkwise.trace.calls import stored

CAUSES = ("control", *PASSIVE, "limits", "closures", "external")
"""Causes of the forces on a mechanism."""


@dataclass(frozen=True)
class ContactNumbers:
    """Numbers that contacts leave from step to step: impulses of rows, gaps of points, residuals, overflow, step."""

    rows: int
    points: int

    RESIDUALS: ClassVar[int] = 3

    @property
    def size(self) -> int:
        """Count of all of them."""
        return self.rows + self.points + self.RESIDUALS + 2

    def parts(self, numbers: Flat) -> dict[str, Flat]:
        """The numbers (..., size) by what they are."""
        ends = (0, self.rows, self.rows + self.points, self.size - 2, self.size - 1, self.size)
        names = ("contact_impulses", "contact_gaps", "contact_residuals", "contact_overflow", "contact_step")
        return {name: numbers[a:b] for name, (a, b) in zip(names, pairwise(ends), strict=True)}


Given = tuple[Scalar, Vector, Vector, Vector, Vector]
"""Arguments of an element's functions: t, q, v, its own states x, and p."""

OnBody = tuple[Body, list[Scalar], list[Scalar]]
"""A body, the wrench (6) on it at its origin, and the forces on its modes besides."""


class WorkStates(Element):
    """The works of all causes, integrated along with a motion; the first of its elements, if it has one."""

    nx = len(CAUSES)
    is_actuator = False

    @property
    def signature(self) -> str:
        """One for all: there is nothing to choose."""
        return "works"


class EquationsOfMotion(StateChart):
    """A model, the elements that act on it, the rules for its joints, and how its closures are kept.

    The states x: first those of the elements that flow, then those that are held between samples, then what contacts
    leave from step to step (:class:`ContactNumbers`), and last, where closures are switched, their numbers, 1 in force
    and 0 released. What is held, left and switched has no place in the chart: it does not change within a step.

    Attributes:
        projects: whether states are put back on the closures.
        ny, nz: numbers in the state y, and in the chart's state z.
        np, n_given: numbers in the parameters p, and those of them that the caller gave: rows of tables are behind.
        works: numbers at the beginning of x that are works and no element's.
        own_x: where a state y has the elements' own states: between works, and contacts and switches.
        curves: the places of all tables in p.
        samplers: the elements with held states.
        stops: whether steps must end at certain times: samples, or those of tables.
    """

    after_step: Callable[[Flat, Flat, Scalar, Flat], tuple[Flat, Flat]] | None = None
    """``(q, v, t, p) -> (q, v)``, over any scalar: moves the end of each step, say onto a constraint. None: nothing."""

    def __init__(
        self,
        model: Model,
        elements: Sequence[Element],
        rules: JointRules,
        n_parameters: int,
        closing: Stabilization | None = None,
        switched: bool = False,
        passes_smooth: bool = True,
        contacts: ContactNumbers | None = None,
    ) -> None:
        self.passes_smooth = passes_smooth
        sizes = [element.nx + element.nh + sum(table.size for table in element.tables) for element in elements]
        self.varying = Varying(model, elements, sizes, n_parameters)
        model = self.varying.model
        self.model, self.elements, self.rules = model, tuple(elements), rules
        self.nq, self.nv = model.nq, model.nv
        self.passive = PassiveForces(model, rules, in_steps=contacts is not None)
        self.closing = closing if model.closures else None
        self.projects = self.closing is not None and self.closing.projects
        self.switches = len(model.closures) if switched else 0
        self.contacts = contacts
        self.touching = 0 if contacts is None else contacts.size
        self.flowing = sum(element.nx for element in elements)
        self.nx = self.flowing + sum(element.nh for element in elements) + self.touching + self.switches
        self.ny, self.nz = self.nq + self.nv + self.nx, 2 * self.nv + self.flowing
        self.works = WorkStates.nx if self.elements and isinstance(self.elements[0], WorkStates) else 0
        self.own_x = slice(self.nq + self.nv + self.works, self.ny - self.switches - self.touching)
        self._curves = curves_of(self.elements, n_parameters)
        self.curves = [curve for own in self._curves for curve in own]
        self.n_given, self.np = n_parameters, n_parameters + sum(curve.width for curve in self.curves)
        self.samplers = [element for element in self.elements if element.nh]
        self.stops = bool(self.samplers or self.curves)

    @cached_property
    def state_names(self) -> list[str]:
        """Names of the elements' own states, in their order in x."""
        return state_names([element for element in self.elements if not isinstance(element, WorkStates)])

    def passes(self, curve: Curve) -> bool:
        """Whether steps pass over the times of a table."""
        return curve.is_smooth and self.passes_smooth

    def stored(self, values: Flat) -> Flat:
        """The same values; of a large mechanism, in memory, so that a sum over them is all that is written out."""
        return stored(values) if self.model._rolls else values

    # Forces.
    def places(self, k: int) -> tuple[slice, slice]:
        """Places in x of the flowing and the held states of the k-th element."""
        before = self.elements[:k]
        a, b = sum(e.nx for e in before), self.flowing + sum(e.nh for e in before)
        return slice(a, a + self.elements[k].nx), slice(b, b + self.elements[k].nh)

    def own_states(self, k: int, x: Flat, t: Scalar = None, p: Flat = ()) -> Array:
        """States that the k-th element is given as its x; without a time, without the values of tables."""
        flowing, held = self.places(k)
        values = [] if t is None else [value for curve in self._curves[k] for value in curve.value(t, p)]
        own: Array = objects([*x[flowing], *x[held], *values])
        return own

    def _asked(self, at: Instant) -> list[tuple[Element, Given]]:
        """Each element, with the arguments that its functions take: t, q, v, its own states, p."""
        states = [self.own_states(k, at.x, at.t, at.p) for k in range(len(self.elements))]
        q, v, p = objects(at.q), objects(at.v), self.given(at.p, at.x)
        return [(element, (at.t, q, v, own, p)) for element, own in zip(self.elements, states, strict=True)]

    def sampled(self, t: Scalar, y: Flat, p: Flat, slack: Scalar, *, in_python: bool) -> list[Scalar]:
        """The state after the samples that are due; those of one kind, traced or by Python functions on numbers."""
        q, v, x = self.parts(y)
        for k, element in enumerate(self.elements):
            if not element.nh or element.in_python != in_python:
                continue
            own = self.own_states(k, x, t, p)
            due = element.next_sample(own) <= t + slack
            arguments = [objects(q), objects(v), own, self.given(p, x)]
            if in_python:
                if not due:
                    continue
                arguments = [np.array(each, float) for each in arguments]
                arguments[3] = with_states(arguments[3], np.array(self.all_states(x), float))
            held, place = element.sample(t, *arguments), self.places(k)[1]
            x[place] = either(due, held, x[place])
        return [*q, *v, *x]

    def given(self, p: Flat, x: Flat) -> Array:
        """The part of p that the caller gave, as elements and events read it, with the states of all elements."""
        return with_states(objects(p[: self.n_given]), self.all_states(x))

    def all_states(self, x: Flat) -> Array:
        """States of all elements in the order of ``Trajectory.x``, from those of a run."""
        states: Array = objects(x[self.works : self.nx - self.switches - self.touching])
        return states

    def joint_forces(self, at: Instant, hosted: Flat | None = None) -> tuple[list[Scalar], list[Scalar]]:
        """Forces of actuators, within their limits, and of passive elements; nv numbers each.

        ``hosted`` are joint forces found elsewhere, by functions that could not be traced; they count as actuators'.
        """
        active, passive = self._unlimited_forces(at, hosted)
        if self.rules.effort:
            limits = (float(limit) for limit in self.model.limits.effort)
            active = [within(force, -limit, limit) for force, limit in zip(active, limits, strict=True)]
        for total, acts in ((active, True), (passive, False)):
            along = self._along_closures(at, [e.is_actuator is acts for e in self.elements])
            for i, value in enumerate(pushed_by_closures(self.moving(at), along) if along else ()):
                total[i] = total[i] + value
        return active, passive

    def clipped(self, at: Instant, hosted: Flat | None = None) -> dict[str, Scalar]:
        """By the names of joints and actuators that a limit may hold back: 1 where it does, else 0."""
        found: dict[str, Scalar] = {}
        if self.rules.effort and (self.elements or hosted is not None):
            active = self._unlimited_forces(at, hosted)[0]
            for i, (force, limit) in enumerate(zip(active, self.model.limits.effort.tolist(), strict=True)):
                flag = beyond(force, -limit, limit)
                if not is_zero(flag):
                    found[f"{self.model.freedom_names[i]!r} (at {limit:.4g})"] = flag
        for element, given in self._asked(at):
            for name, flag in (element.clipped(*given) or {}).items():
                if not is_zero(flag):
                    found[repr(name)] = flag
        return found

    def _unlimited_forces(self, at: Instant, hosted: Flat | None) -> tuple[list[Scalar], list[Scalar]]:
        """The same as :meth:`joint_forces` before the limits of joints."""
        active: list[Scalar] = [0.0] * self.nv if hosted is None else list(hosted)
        passive: list[Scalar] = [0.0] * self.nv
        for element, given in self._asked(at):
            force = element.force(*given)
            if force is None:
                continue
            total = active if element.is_actuator else passive
            for i, value in enumerate(self.checked_force(force, element)):
                total[i] = total[i] + value
        for body, _, on_modes in self._wrenches(at):
            for i, value in enumerate(on_modes, body.v_slice.start):
                passive[i] = passive[i] + value
        return active, passive

    def without_value(self, at: Instant) -> str:
        """First element whose forces, fields or rates are not numbers in a state of numbers, and why; empty if none."""

        def is_number(element: Element, given: Given) -> bool:
            field = element.acceleration(*given)
            if callable(field):
                field = field(self.model.center_of_mass(np.array(at.q, float)))
            elif field is not None and len(field) == 2:
                field = field[0]
            values = [field, element.force(*given), element.rate(*given), *(element.wrench(*given) or {}).values()]
            return all(np.isfinite(np.array(value, float)).all() for value in values if value is not None)

        for element, given in self._asked(at):
            try:
                with np.errstate(all="ignore"):
                    known = is_number(element, given)
            except (ArithmeticError, ValueError):  # numbers of Python: division by zero, roots of negative ones
                known = False
            if not known:
                why = element.trouble(*given)
                return f"{element!r} is not a number" + (f": {why}" if why else "")
        return ""

    def _along_closures(self, at: Instant, chosen: Sequence[bool]) -> dict[str, list[Scalar]]:
        """Forces of some elements along the freedoms of closures, by name; of actuators, within limits."""
        found: dict[str, list[Scalar]] = {}
        if not self.model._closure_freedoms:
            return found
        for (element, given), taken in zip(self._asked(at), chosen, strict=True):
            for name, forces in ((element.closure_force(*given) if taken else None) or {}).items():
                add_forces(found, name, forces)
        if self.rules.effort and any(e.is_actuator and taken for e, taken in zip(self.elements, chosen, strict=True)):
            for name, forces in found.items():
                limits = self.model._closure_freedoms[name].closure.limits
                if limits:
                    pairs = zip(forces, limits, strict=True)
                    found[name] = [within(f, -float(limit.effort), float(limit.effort)) for f, limit in pairs]
        return found

    def checked_force(self, force: Vector, element: Element) -> list[Scalar]:
        """Force that an element or function returned, as nv numbers."""
        values = list(np.asarray(force, dtype=object).reshape(-1))
        if force is None or len(values) != self.nv:
            raise InputError(
                f"the joint forces of {element!r} have the wrong length",
                got="None" if force is None else f"{len(values)} numbers",
                allowed=f"nv = {self.nv}: one for each freedom",
            )
        return [float(value) if isinstance(value, (int, np.floating, np.integer)) else value for value in values]

    def joint_losses(self, at: Instant) -> list[Scalar]:
        """Damping, dry friction, springs, compliant contacts and the springs of limits; nv numbers."""
        out = self.passive.summed(self._at_joints(at))
        return plus(out, self.limit_forces(at))

    def _at_joints(self, at: Instant) -> dict[str, list[Scalar]]:
        return self.passive.at_joints(at.q, at.v, self.model_parameters(at.p), self.closure_flags(at.x))

    def limit_forces(self, at: Instant) -> list[Scalar]:
        """Joint forces of the springs of the limits of joints, of closures and of tendons over these; nv numbers."""
        out: list[Scalar] = [0.0] * self.nv
        places = self.moving(at)
        if self.rules.limits == "spring":
            for limit in self.limits:
                for i, force in limit.force(at.q, at.v, self.rules.limit_loss).items():
                    out[i] = out[i] + force
        along: dict[str, list[Scalar]] = {}
        for end in self.limits_along:
            if isinstance(end.way, JointTransmission):
                push = end.push(places, self.rules.limit_loss)
                joint_forces(self.model, end.way, push, out)
                closure_forces(self.model, end.way, push, along)
        if along:
            out = plus(out, pushed_by_closures(places, along))
        return out

    def damping(self) -> list[float]:
        """The dampers of all freedoms, N m s/rad or N s/m (nv)."""
        total = [0.0] * self.nv
        for joint in self.model.joints if self.rules.damping else ():
            m = joint.mimic.multiplier if joint.mimic else 1.0
            for k, d in enumerate(joint.damping):
                total[joint.v_slice.start + k] += float(d) * m * m
        return total

    def limit_wrenches(self, at: Instant) -> dict[str, list[Scalar]]:
        """Wrenches on bodies by the limits of tendons through space: for each, by name, [moment, force] (6)."""
        found: dict[str, list[Scalar]] = {}
        places = MovingFrames(self.model, at.q, at.v, self.model_parameters(at.p))
        for limit in self.limits_along:
            if not isinstance(limit.way, JointTransmission):
                add_pulled(found, wrenches(places, limit.way), limit.push(places, self.rules.limit_loss))
        return found

    @cached_property
    def limits_along(self) -> list[TransmissionLimit]:
        """Those of tendons and of closures' freedoms that act: as springs, also where joints stop hard."""
        return [] if self.rules.limits == "ignore" else limits_along(self.model, self.rules.limit_time)

    @cached_property
    def limits(self) -> list[Limit]:
        """The finite position limits of joints, those that follow others included."""
        return limits_of_joints(self.model, self.rules.limit_time)

    @cached_property
    def all_limits(self) -> AllLimits:
        """The same, to look at numbers."""
        return AllLimits(self.limits, self.nq)

    def body_forces(self, at: Instant) -> Array | None:
        """External forces (n_bodies, 6) in body frames, or None."""
        total: Array | None = None
        for body, wrench, _ in self._wrenches(at):
            if total is None:
                total = np.zeros((len(self.model.bodies), 6), object) + 0.0
            total[body.index] += np.asarray(wrench, dtype=object)
        return total

    def _wrenches(self, at: Instant) -> Iterator[OnBody]:
        """Wrenches of elements on bodies: the body, six numbers at its origin, and the forces on its modes besides."""
        for element, given in self._asked(at):
            yield from self._on_bodies(at.q, element, element.wrench(*given))
        yield from self._in_fields(at, self.elements)
        passive = self.passive.on_bodies(at.q, at.v, self.model_parameters(at.p)).values()
        for on in (*passive, self.limit_wrenches(at)):
            yield from ((self.model.bodies[name], wrench, []) for name, wrench in on.items())

    def acceleration_field(self, at: Instant, elements: Sequence[Element] | None = None) -> Array | None:
        """Fields of acceleration by elements, all if not given: (n_bodies, 12) around bodies' origins; None for none.

        In each row the acceleration (3) at the origin, then its gradient (9), in the body's axes.
        """
        fields = [
            (element, field)
            for element, given in self._asked(at)
            if elements is None or element in elements
            if (field := element.acceleration(*given)) is not None
        ]
        return self._around_bodies.field(at.q, fields, self.model_parameters(at.p)) if fields else None

    def _in_fields(self, at: Instant, elements: Sequence[Element]) -> Iterator[OnBody]:
        """Wrenches of fields of acceleration on bodies, as :meth:`_wrenches`."""
        field = self.acceleration_field(at, elements)
        if field is None:
            return
        own = self.model_parameters(at.p)
        wrenches = self.model._run("field_wrenches", objects(at.q), field, p=own)
        flexible = any(body.flexible is not None for body in self.model.bodies)
        modal = self.model._run("field_on_modes", objects(at.q), field, p=own) if flexible else np.zeros(self.nv)
        for body, wrench in zip(self.model.bodies, wrenches, strict=True):
            yield body, list(wrench), list(modal[body.v_slice]) if body.flexible is not None else []

    @cached_property
    def _around_bodies(self) -> FieldsAroundBodies:
        return FieldsAroundBodies(self.model)

    def _on_bodies(self, q: Flat, element: Element, wrenches: Wrenches | None) -> Iterator[OnBody]:
        for place, wrench in (wrenches or {}).items():
            name, node = place if isinstance(place, tuple) else (place, None)
            frame = self.model.frame(name, node)
            if frame.body < 0:
                raise InputError(f"{element!r} pushes what cannot move", got=repr(place), allowed="a body or frame")
            body = self.model.bodies[frame.body]
            yield (body, *force_on_body(body, frame, q, list(wrench)))

    def forces_by_cause(self, at: Instant, hosted: Flat | None = None) -> dict[str, list[Scalar]]:
        """Joint forces (nv) that all that acts amounts to, by their cause; those of closures are not among them.

        Forces on bodies count as the joint forces J*f. Springs that are elements exert what they do at rest, and their
        dampers the rest.
        """
        own = self.model_parameters(at.p)
        active, _ = self.joint_forces(at, hosted)
        found: dict[str, list[Scalar]] = {"control": list(active), **self._at_joints(at)}
        found["limits"] = self.limit_forces(at)
        found["external"] = [0.0] * self.nv
        on_bodies: dict[str, list[tuple[str, Flat]]] = {
            cause: list(on.items()) for cause, on in self.passive.on_bodies(at.q, at.v, own).items()
        }
        if at_limits := self.limit_wrenches(at):
            on_bodies["limits"] = list(at_limits.items())

        def add(element: Element, cause: str, factor: float, given: Given) -> None:
            force = None if cause == "control" else element.force(*given)  # of controls, clipped, it is in the sum
            for i, value in enumerate([] if force is None else self.checked_force(force, element)):
                found[cause][i] = found[cause][i] + value * factor
            along = None if cause == "control" else element.closure_force(*given)
            for i, value in enumerate(pushed_by_closures(self.moving(at), along) if along else ()):
                found[cause][i] = found[cause][i] + value * factor
            of_wrenches = self._on_bodies(at.q, element, element.wrench(*given))
            in_fields = self._in_fields(at._replace(v=given[2]), [element])
            for body, wrench, on_modes in (*of_wrenches, *in_fields):
                on_bodies.setdefault(cause, []).append((body.name, [value * factor for value in wrench]))
                for i, value in enumerate(on_modes, body.v_slice.start):
                    found[cause][i] = found[cause][i] + value * factor

        still = objects([0.0] * self.nv)
        for element, given in self._asked(at):
            if element.cause == "springs":
                at_rest = (*given[:2], still, *given[3:])
                for cause, factor, state in (
                    ("springs", 1.0, at_rest),
                    ("damping", 1.0, given),
                    ("damping", -1.0, at_rest),
                ):
                    add(element, cause, factor, state)
            else:
                add(element, element.cause, 1.0, given)
        for cause, on in on_bodies.items():
            pushed = as_joint_forces(self.model, at.q, on, own)
            assert pushed is not None
            found[cause] = plus(found[cause], pushed)
        return found

    # Motion.
    def all_forces(
        self, at: Instant, hosted: Flat | None = None, impulsive: Mapping[str, Flat] | None = None
    ) -> tuple[list[Scalar], list[Scalar]]:
        """Joint forces of all that acts but closures and forces on bodies, and those of actuators among them; nv each.

        ``impulsive`` are those of :meth:`impulsive_forces`.
        """
        active, passive = self.joint_forces(at, hosted)
        losses = self.joint_losses(at)
        for more in (impulsive or {}).values():
            losses = plus(losses, more)
        return [a + b + c for a, b, c in zip(active, passive, losses, strict=True)], active

    def acceleration(
        self, at: Instant, hosted: Flat | None = None, impulsive: Mapping[str, Flat] | None = None
    ) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ and the actuators' joint forces; ``impulsive`` are those of :meth:`impulsive_forces`."""
        tau, active = self.all_forces(at, hosted, impulsive)
        given = self.closure_inputs(at.t, at.x, at.p)
        if self.closing and self.closing.rate:
            given["closing_rate"] = self.closing.rate
        outside = self.body_forces(at)
        slow, turning = list(at.v), self.axes_rate(at.v)
        for i in self._drifts:
            slow[i] = 0.0
        vdot = self.model._run("forward_dynamics", objects(at.q), objects(slow), objects(tau), f_ext=outside, **given)
        return [a + turning[i] if i in self._drifts else a for i, a in enumerate(vdot)], list(active)

    @cached_property
    def _drifts(self) -> set[int]:
        """Freedoms along which nothing but the axes that velocities are written in tells how fast all moves.

        Those of bodies that fly free: at 8 km/s, inertia forces of the axes' turning would cost four digits of ω̇. An
        armature, which belongs to the axes, tells it.
        """
        if self.model.closures:
            return set()
        found: set[int] = set()
        for body, joint in zip(self.model.bodies, self.model.joints, strict=True):
            flies = body.parent < 0 and joint.type.flies and joint.mimic is None
            if flies and not any(joint.armature) and f"{body.name}.armature" not in self.model._parameter_names:
                found |= {joint.v_slice.start + k for k in (3, 4, 5)}
        return found

    # Closures.
    @cached_property
    def is_timed(self) -> bool:
        """Whether closures depend on the time."""
        return any(closure.type.time_dependent for closure in self.model.closures)

    def moving(self, at: Instant) -> MovingFrames:
        """Frames and joints in a state, with the closures that are in force."""
        return MovingFrames(self.model, at.q, at.v, self.model_parameters(at.p), self.closure_flags(at.x))

    def closure_flags(self, x: Flat) -> Flat | None:
        """1 for each closure in force and 0 for those released; None where none is switched."""
        return x[self.nx - self.switches :] if self.switches else None

    def closure_inputs(self, t: Scalar, x: Flat, p: Flat) -> dict[str, Any]:
        """Inputs of functions of closures besides the state: the time, which of them are in force, and p."""
        given: dict[str, Any] = {"p": self.model_parameters(p)}
        if self.is_timed:
            given["t"] = objects([t]).reshape(())
        if self.switches:
            given["active"] = objects(self.closure_flags(x) or ())
        return given

    def closer(self, t: Scalar, y: Flat, p: Flat) -> list[Scalar]:
        """One step of Newton's method from y towards where all closures in force are closed."""
        at = self.in_force(self.at(t, y, p))
        closer = self.model._run("project_configuration", objects(at.q), **self.closure_inputs(t, at.x, at.p))
        return [*closer, *at.v, *at.x]

    def obeying(self, t: Scalar, y: Flat, p: Flat) -> list[Scalar]:
        """The state with the nearest velocity that obeys all closures in force."""
        at = self.in_force(self.at(t, y, p))
        given = self.closure_inputs(t, at.x, at.p)
        return [*at.q, *self.model._run("project_velocity", objects(at.q), objects(at.v), **given), *at.x]

    def model_parameters(self, p: Flat) -> Any:
        """The part of p that is the model's, or None; of what varies, the nominal values where no state is known."""
        if not self.model._parameter_names:
            return None
        return objects(p.own if isinstance(p, InForce) else self.varying.nominal(p))

    def in_force(self, at: Instant) -> Instant:
        """The same, with the parameters of the model as elements make them in this state."""
        if not self.varying.elements or isinstance(at.p, InForce):
            return at
        q, v, given = objects(at.q), objects(at.v), self.given(at.p, at.x)
        found = [
            (self.elements[k], self.elements[k].parameters(at.t, q, v, self.own_states(k, at.x, at.t, at.p), given))
            for k in self.varying.elements
        ]
        return at._replace(p=InForce(at.p, self.varying.values(at.p, found)))

    def rotor_inertias(self, p: Flat) -> list[Scalar]:
        """Rotor inertia at each freedom, that of the joints which follow it included; nv numbers."""
        values = Values(self.model, self.model_parameters(p))
        total: list[Scalar] = [0.0] * self.nv
        for body, joint in zip(self.model.bodies, self.model.joints, strict=True):
            square = joint.mimic.multiplier**2 if joint.mimic else 1.0
            for k, J in enumerate(values.armature(body, joint.armature)):
                i = joint.v_slice.start + k
                total[i] = total[i] + J * square
        return total

    def impulsive_forces(self, model: Model, at: Instant) -> dict[str, list[Scalar]]:
        """Mean joint forces (nv) of the last step, by cause, that the impulses of a model in steps amount to at q."""
        if self.contacts is None:
            return {}
        end = self.nx - self.switches
        numbers = self.contacts.parts(at.x[end - self.touching : end])
        impulses, h = numbers["contact_impulses"], numbers["contact_step"][0]
        push: Any = model._run("contact_push", objects(at.q), objects(impulses), p=self.model_parameters(at.p))
        rate = where(h > 0.0, 1.0 / where(h > 0.0, h, 1.0), 0.0)
        return {cause: [rate * x for x in own] for cause, own in push._asdict().items()}

    def explained_forces(
        self, at: Instant, vdot: Flat, hosted: Flat | None = None, impulsive: Mapping[str, Flat] | None = None
    ) -> dict[str, list[Scalar]]:
        """Those of :meth:`forces_by_cause`, those of impulses and, of closures, what else the accelerations need."""
        found = self.forces_by_cause(at, hosted)
        for cause, more in (impulsive or {}).items():
            found[cause] = plus(found[cause], more)
        if self.model.closures:
            own = self.model_parameters(at.p)
            needed = self.model._run("inverse_dynamics", objects(at.q), objects(at.v), objects(vdot), p=own)
            found["closures"] = [a - sum(parts) for a, *parts in zip(needed, *found.values(), strict=True)]
        return found

    def _powers(self, at: Instant, hosted: Flat | None) -> list[Scalar]:
        """Of each cause; damping with that inside flexible bodies."""
        vdot = self.acceleration(at, hosted)[0]
        return self.powers(at.q, at.v, at.p, self.explained_forces(at, vdot, hosted))

    def powers(self, q: Flat, v: Flat, p: Flat, forces: Mapping[str, Flat]) -> list[Scalar]:
        """Of joint forces by cause at velocities v, in the order of CAUSES; damping with that in flexible bodies."""
        powers = {
            cause: sum((f * rate for f, rate in zip(own, v, strict=True)), 0.0 * v[0]) for cause, own in forces.items()
        }
        values = Values(self.model, self.model_parameters(p))
        for body in self.model.bodies:
            if body.flexible is not None:
                rates, loss = v[body.v_slice], values.elasticity(body)[1]
                for f, rate in zip(internal_damping(body.flexible, rates, loss), rates, strict=True):
                    powers["damping"] = powers["damping"] + f * rate
        return [powers.get(cause, 0.0 * v[0]) for cause in CAUSES]

    def element_rates(self, at: Instant, hosted: Flat | None = None, *, accounted: bool = True) -> list[Scalar]:
        """Ẋ of the states that flow; of works, which come first, only where they are accounted for by rates."""
        out: list[Scalar] = self._powers(at, hosted) if self.works and accounted else []
        for element, given in self._asked(at):
            if element.nx and not isinstance(element, WorkStates):
                out.extend(element.rate(*given))
        return out

    def closure_push(self, t: Scalar, q: Flat, x: Flat, p: Flat, multipliers: Flat) -> list[Scalar]:
        """J_c*λ (nv)."""
        return list(
            self.model._run("constraint_push", objects(q), objects(multipliers), **self.closure_inputs(t, x, p))
        )

    def closure_gap(self, t: Scalar, q: Flat, x: Flat, p: Flat) -> list[Scalar]:
        """e of the closures in force."""
        return list(self.model._run("closure_error", objects(q), **self.closure_inputs(t, x, p)))

    def correction(self, t: Scalar, q: Flat, x: Flat, p: Flat, rates: Flat) -> list[Scalar]:
        """The least impulses of the closures that change ė by these amounts."""
        return list(self.model._run("correction", objects(q), objects(rates), **self.closure_inputs(t, x, p)))

    def lasting_error(self, t: Scalar, y: Flat, p: Flat, error: Flat, rtol: Scalar) -> list[Scalar]:
        """Of an error in the chart around y, what stays when y is put back on the closures.

        That is its part along them, and of the part across them what is of second order, the square: across by √rtol,
        it would be as large as the tolerance. Without that, motions that are prescribed altogether would have no error
        whatever the step.
        """
        if not self.projects:
            return list(error)
        at = self.in_force(self.at(t, y, p))
        given = self.closure_inputs(t, at.x, at.p)
        u, v, own = self.chart_parts(error)
        little, lasting = sqrt(rtol), []
        for part in (u, v):
            along = self.model._run("tangent_part", objects(at.q), objects(part), **given)
            lasting += [a + little * (x - a) for a, x in zip(along, part, strict=True)]
        return [*lasting, *own]

    def rates(self, y: Flat, z: Flat, t: Scalar, p: Flat, hosted: Flat | None = None) -> list[Scalar]:
        """Ż in the chart around y."""
        u, w, _ = self.chart_parts(z)
        here = self.from_chart(y, z)
        if self.projects:
            here = self.allowed(t, here, p)
            w = self.in_axes_after(self.parts(here)[1], [-x for x in u])
        vdot, xdot = self.own_rates(t, here, p, hosted)
        still = minus(vdot, self.axes_rate(self.parts(here)[1]))
        return [*self.chart_rate(u, w), *self.in_axes_after(still, [-x for x in u]), *xdot]

    def allowed(self, t: Scalar, y: Flat, p: Flat) -> list[Scalar]:
        """The state on the closures: where stages leave them, constraints that are redundant contradict each other."""
        return self.obeying(t, self.closer(t, y, p), p)

    def own_rates(self, t: Scalar, y: Flat, p: Flat, hosted: Flat | None = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ and ẋ of a state."""
        at = self.in_force(self.at(t, y, p))
        return self.acceleration(at, hosted)[0], self.element_rates(at, hosted)

    def energy(self, at: Instant) -> Scalar:
        """Kinetic and potential energy and what springs hold, in J."""
        model, q, own = self.model, objects(at.q), self.model_parameters(at.p)
        kinetic = model.kinetic_energy(q, objects(at.v), p=own)
        return kinetic + model.potential_energy(q, p=own) + self.stored_energy(at)

    def stored_energy(self, at: Instant) -> Scalar:
        """Energy in elements, the springs of joints and those of limits, in J."""
        total: Scalar = 0.0
        q, p, own = objects(at.q), self.given(at.p, at.x), self.model_parameters(at.p)
        for k, element in enumerate(self.elements):
            states = self.own_states(k, at.x)
            total = total + element.energy(q, states, p)
            potential = element.potential(q, states, p)
            if potential is not None:
                around = self._around_bodies.potential(at.q, [potential], own)
                total = total + self.model._run("field_energy", q, around, p=own)
        total = total + self.passive.energy(at.q, own, self.closure_flags(at.x))
        if self.rules.limits == "spring":
            for limit in self.limits:
                total = total + limit.energy(at.q)
        places = MovingFrames(self.model, at.q, (), own, self.closure_flags(at.x))
        for end in self.limits_along:
            total = total + end.energy(places)
        return total
