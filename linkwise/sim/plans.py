"""The routine that a simulation runs, compiled once and kept with the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.functions.frozen import FrozenFunction
from linkwise.memoized import Memory, cached_property, once
from linkwise.sim.contact_notes import surfaces_note
from linkwise.sim.elements import Element, Function, law, with_states
from linkwise.sim.events import Event, Locator, event_program
from linkwise.sim.explicit import runge_kutta, semi_implicit_euler
from linkwise.sim.frozen_elements import TRACEABLE, FrozenElement
from linkwise.sim.loop import loop, next_stop, one_step, waits_for_python
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.records import AtTimes, EachStep, OnGrid, Records
from linkwise.sim.step_size import EqualSteps, StepSize, ToleratedSteps
from linkwise.sim.tableaux import TABLEAUX, GeneralizedAlpha, Tableau
from linkwise.sim.tables import RunTables
from linkwise.sim.work import CompiledLoop, EvaluationRoutine, StepStatements, Work, settled
from linkwise.spatial.scalar import Flat, NamedNumbers, is_zero
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.sim.setup import Setup

_KEPT = 32  # plans for each model

ALIASES = {
    "rkmk4": "rk4",
    "rk45": "dopri5",
    "semi_implicit_euler": "euler",
    "implicit": "rodas4",
    "symplectic": "variational",
    "generalised_alpha": "generalized_alpha",
}
# Methods that are no tableaux, and whether they adapt their steps.
_OTHERS = {"euler": False, "moreau": False, "variational": False, "generalized_alpha": False, "rodas4": True}


def fixed_methods() -> tuple[str, ...]:
    """Those whose steps are all equal."""
    return tuple(name for name in (*TABLEAUX, *_OTHERS) if not is_adaptive(name))


def adaptive_methods() -> tuple[str, ...]:
    """Those whose steps are as long as the tolerance allows."""
    return tuple(name for name in (*TABLEAUX, *_OTHERS) if is_adaptive(name))


def is_adaptive(name: str) -> bool:
    """Whether a method's steps are as long as the tolerance allows."""
    tableau = TABLEAUX.get(name)
    return _OTHERS[name] if tableau is None else tableau.adaptive


def numbers_of(method: str | GeneralizedAlpha) -> Tableau | GeneralizedAlpha | None:
    """The numbers of a method, by its own name or with numbers of its own."""
    if isinstance(method, GeneralizedAlpha):
        return method
    return GeneralizedAlpha() if method == "generalized_alpha" else TABLEAUX.get(method)


def checked_method(method: str | GeneralizedAlpha) -> str:
    """A method's own name."""
    if isinstance(method, GeneralizedAlpha):
        return "generalized_alpha"
    name = ALIASES.get(str(method), str(method))
    if name not in TABLEAUX and name not in _OTHERS:
        fixed, adaptive = fixed_methods(), adaptive_methods()
        raise InputError(
            "no such method",
            got=repr(method),
            allowed=f"fixed step: {', '.join(fixed)}; adaptive: {', '.join(adaptive)}; also {', '.join(ALIASES)}",
        )
    return name


class RunSamples(NamedTuple):
    """Samples of a run, to be looked at: those and what is derived from them are at ``home``, the rest on the host."""

    t: Array
    """Times (T)."""
    y: Array
    """States (..., T, ny)."""
    p: Array
    """Parameters (..., np)."""
    threads: int
    curves: RunTables
    members: Array
    """Numbers of the states of the batch that they are of (...)."""
    slack: float
    home: Device = PROCESSOR


@dataclass(eq=False)
class SimulationPlan:
    """Everything that is compiled for one way of simulating one model."""

    motion: EquationsOfMotion
    method: str
    every_step: bool
    events: tuple[Event, ...]
    numbers: Tableau | GeneralizedAlpha | None = None
    """The method's, if it is an explicit Runge–Kutta method or the generalized-α method."""
    hosted: tuple[Function, ...] = ()
    """Controls that run in Python, since they cannot be traced."""
    why_hosted: str = ""
    """Reason why each of them could not be traced."""
    kernels: dict[tuple[np.dtype[Any], bool, str], CompiledLoop] = field(default_factory=dict)
    """The compiled loop by precision, whether it is for few states, and the name of a home: see :meth:`Run.kernel`."""
    _evaluations: dict[tuple[str, str], EvaluationRoutine] = field(default_factory=dict)

    @cached_property
    def is_adaptive(self) -> bool:
        """Whether steps are as long as the tolerance allows."""
        return is_adaptive(self.method)

    @cached_property
    def sizes(self) -> type[StepSize]:
        """The lengths of steps."""
        return ToleratedSteps if self.is_adaptive else EqualSteps

    @cached_property
    def records(self) -> type[Records]:
        """Kind of records that a run makes."""
        return OnGrid if not self.is_adaptive else EachStep if self.every_step else AtTimes

    @cached_property
    def note(self) -> str:
        """Note for the user, if there is anything to know."""
        if not self.hosted:
            return ""
        return (
            "control runs in Python, once for each evaluation and each state, since it cannot be traced: "
            f"{self.why_hosted}; lw.Sampled(model, control, rate) calls it once for each sample"
        )

    @cached_property
    def surfaces(self) -> str:
        """Note on the surfaces of the model's file, if there is anything to know."""
        return surfaces_note(self.motion.model, bool(self.motion.touching))

    def check_home(self, home: Device) -> None:
        """Refuse a home whose kernels cannot call the Python functions that this needs."""
        if self.hosted and not home.calls_python:
            raise InputError(
                "a control that runs in Python cannot be called from a GPU",
                got=self.why_hosted,
                allowed=TRACEABLE,
                do="rewrite it; or lw.Sampled(model, control, rate, python=True), which asks Python between the steps; "
                "or pass NumPy arrays",
            )

    def work(self) -> tuple[Work, StepStatements]:
        """A routine that is to be written, and the step that it makes again and again."""
        work = Work(self.motion, host=self.host_forces if self.hosted else None)
        step = settled(work, self._step(work))
        if not self.motion.projects:
            return work, step
        from linkwise.sim.closed_steps import on_manifold

        return work, on_manifold(work, step)

    def _step(self, work: Work) -> StepStatements:
        if isinstance(self.numbers, Tableau):
            return runge_kutta(work, self.numbers)
        if self.method == "euler":
            return semi_implicit_euler(work)
        if isinstance(self.numbers, GeneralizedAlpha):
            from linkwise.sim.generalized_alpha import generalized_alpha

            return generalized_alpha(work, self.numbers)
        if self.method == "variational":
            from linkwise.sim.variational import variational

            return variational(work)
        if self.method == "moreau":
            from linkwise.sim.moreau import moreau

            return moreau(work)
        from linkwise.sim.rosenbrock import rosenbrock

        return rosenbrock(work)

    @cached_property
    def routine(self) -> Program:
        """The whole loop."""
        events = event_program(self.motion, self.events) if self.events else None
        return loop(*self.work(), self.sizes, self.records, events)

    def trace_all(self) -> None:
        """Trace everything now: functions that call those of a large model are asked again for each part."""
        _ = self.routine, self._observing, self.clipping
        if self.events:
            _ = self.locator
        if self.motion.samplers:
            _ = self._settler
        if self.motion.stops:
            _ = self._stopper

    @cached_property
    def is_compiled(self) -> bool:
        """Whether no Python function is called on the way."""
        return self.routine.is_compilable

    @cached_property
    def operations(self) -> int | None:
        """Operations of a pass, where they are all in its own code."""
        return self.routine.operations if self.is_compiled and not self.motion.model._rolls else None

    def _routine(self, name: str, text: Callable[..., NamedNumbers], *inputs: str) -> Program:
        """A text of single numbers, states y, parameters p and joint forces from Python, ``hosted``, by their names."""
        sizes = {"y": self.motion.ny, "p": self.motion.np, "hosted": self.motion.nv}
        return Work(self.motion).routine(program(name, text, {each: sizes.get(each, 1) for each in inputs}))

    @cached_property
    def locator(self) -> Locator:
        """Locator of events inside a step."""
        work, step = self.work()
        values = event_program(self.motion, self.events)
        now = Work(self.motion).routine(values)
        return Locator(EvaluationRoutine(one_step(work, step, values)), EvaluationRoutine(now), self.events)

    @cached_property
    def _settler(self) -> EvaluationRoutine:
        """(t, y, p, slack) to the state after the samples that are due, those by Python functions left out."""

        def text(t: Flat, y: Flat, p: Flat, slack: Flat) -> NamedNumbers:
            return {"y_after": self.motion.sampled(t[0], y, p, slack[0], in_python=False)}

        return EvaluationRoutine(self._routine("sample", text, "t", "y", "p", "slack"))

    def sampled(self, t: Array, y: Array, p: Array, slack: float, python_only: bool = False) -> Array:
        """States (n, ny) after the samples that are due at times (n), with the rows of tables in p (n, np)."""
        m, after = self.motion, np.array(y, float)
        if not python_only:
            rows = {"t": t[:, None], "y": after, "p": p, "slack": np.full((len(y), 1), slack)}
            after = self._settler(rows)["y_after"]
        if waits_for_python(m):
            for k in range(len(y)):
                row = m.sampled(float(t[k]), after[k].tolist(), p[k].tolist(), slack, in_python=True)
                after[k] = np.array(row, float)
        return after

    @cached_property
    def _stopper(self) -> EvaluationRoutine:
        """(y, p, after) to the next stop."""

        def text(y: Flat, p: Flat, after: Flat) -> NamedNumbers:
            return {"stop": next_stop(self.motion, y, p, after[0])}

        return EvaluationRoutine(self._routine("stop", text, "y", "p", "after"))

    def next_stop(self, y: Array, p: Array, after: float) -> float:
        """Latest time at which a step from a state (ny) must end, after a time, with the rows of tables in p (np)."""
        if not self.motion.stops:
            return math.inf
        return float(self._stopper({"y": y[None], "p": p[None], "after": np.array([[after]])})["stop"][0, 0])

    def host_forces(self, t: Array, y: Array, p: Array) -> tuple[Array]:
        """Joint forces of the functions that could not be traced, state by state."""
        m = self.motion
        tau = np.zeros((len(y), m.nv))
        for k in range(len(y)):
            q, v, x = (np.array(part, float) for part in m.parts(y[k]))
            given = with_states(np.array(p[k, : m.n_given], float), np.array(m.all_states(x.tolist()), float))
            for element in self.hosted:
                tau[k] += m.checked_force(law(element.function, float(t[k, 0]), q, v, given), element)
        return (tau,)

    @cached_property
    def _observing(self) -> Program:
        """(t, y, p, joint forces from Python) to v̇, τ, energy, forces by cause and, where there are some, on bodies."""
        from linkwise.sim.moreau import stepping

        m = self.motion

        def text(t: Flat, y: Flat, p: Flat, hosted: Flat) -> NamedNumbers:
            at, x = m.in_force(m.at(t[0], y, p)), m.parts(y)[2]
            impulsive = m.impulsive_forces(stepping(m.model, m.rules), at) if m.contacts is not None else {}
            vdot, tau = m.acceleration(at, hosted if self.hosted else None, impulsive)
            found = {"vdot": vdot, "tau": tau, "energy": m.energy(at)}
            forces = m.explained_forces(at, vdot, hosted if self.hosted else None, impulsive)
            acting = {cause: own for cause, own in forces.items() if cause == "control" or not all(map(is_zero, own))}
            found |= {f"force:{cause}": own for cause, own in acting.items()}
            if m.works:
                found["work"] = x[: m.works]
            if m.switches:
                found["active"] = x[m.nx - m.switches :]
            if m.contacts is not None:
                found |= m.contacts.parts(x[m.nx - m.switches - m.touching : m.nx - m.switches])
            field = m.acceleration_field(at)
            if field is not None:
                found["field"] = list(field.reshape(-1))
            outside = m.body_forces(at)
            return found if outside is None else {**found, "f_ext": list(outside.reshape(-1))}

        return self._routine("observe", text, "t", "y", "p", "hosted")

    @cached_property
    def clipping(self) -> tuple[tuple[str, ...], Program | None]:
        """Names of what limits may hold back, and the program that tells whether they do; None where there is none."""
        m = self.motion
        names: list[str] = []

        def text(t: Flat, y: Flat, p: Flat, hosted: Flat) -> NamedNumbers:
            found = m.clipped(m.at(t[0], y, p), hosted if self.hosted else None)
            names.extend(found)
            return {"clipped": list(found.values())}

        limited = bool(np.isfinite(m.model.limits.effort).any() or m.model.actuators)
        if not limited and not any(map(_has_limits, m.elements)):
            return (), None
        routine = self._routine("clip", text, "t", "y", "p", "hosted")
        return tuple(names), routine if names else None

    def clipped(self, samples: RunSamples) -> dict[str, Array]:
        """For each name of what a limit holds back anywhere, where it does (..., T)."""
        names, routine = self.clipping
        if routine is None:
            return {}
        flags = self._evaluated("clipped", routine, samples)["clipped"]
        return {name: flags[..., k] > 0.5 for k, name in enumerate(names) if flags[..., k].any()}

    def observe(self, samples: RunSamples) -> dict[str, Array]:
        """Derived quantities of samples, at their home."""
        home, made = samples.home, self._evaluated("observed", self._observing, samples)
        return {name: home.as_callers_library(a[..., 0] if name == "energy" else a) for name, a in made.items()}

    def _evaluated(self, what: str, routine: Program, samples: RunSamples) -> dict[str, Array]:
        """Results of a routine at samples."""
        t, y, p, threads, curves, members, slack, home = samples
        m, shape = self.motion, y.shape[:-1]
        count = math.prod(shape)

        def flat(xp: ModuleType, values: Array, size: int) -> Array:
            whole: Array = xp.ascontiguousarray(xp.broadcast_to(values, (*shape, size)), dtype=np.float64)
            return whole.reshape(count, size)

        with home.entered():
            evaluation = once(self._evaluations, (what, home.name), lambda: EvaluationRoutine(routine, home))
            rows = {"t": flat(home.xp, home.to_device(t[..., None]), 1), "y": flat(home.xp, y, m.ny)}
            if self.motion.curves:
                whose = np.broadcast_to(members[..., None], shape).reshape(count)
                given, times = flat(np, p[..., None, :], m.n_given), flat(np, t[..., None], 1)
                rows["p"] = home.to_device(np.ascontiguousarray(curves.filled(given, times[:, 0] + slack, whose)))
            else:
                rows["p"] = flat(home.xp, home.to_device(p[..., None, :]), m.n_given)
            rows["hosted"] = self.host_forces(*rows.values())[0] if self.hosted else home.xp.zeros((count, m.nv))
            made = evaluation(rows, threads=threads)
            return {name: values.reshape(*shape, values.shape[-1]) for name, values in made.items()}


def plan_for(setup: Setup, n_parameters: int, every_step: bool) -> SimulationPlan:
    """The plan for these choices, made or found: the same formulas and elements give the same plan."""
    parts = tuple(element.signature for element in setup.elements)
    happening = tuple(event.signature for event in setup.events)
    method = setup.method_name, numbers_of(setup.method)
    key = (parts, setup.rules, n_parameters, *method, every_step, happening, setup.closing, setup.switched)
    made = partial(_made, setup, n_parameters, every_step)
    return Memory.of(setup.model).recent("simulation plans", key, made, most=_KEPT)


def _made(setup: Setup, n_parameters: int, every_step: bool) -> SimulationPlan:
    model, elements, rules, method, events = setup.model, setup.elements, setup.rules, setup.method_name, setup.events
    hosted = [element for element in elements if isinstance(element, Function) and element.why_hosted]
    traced = [element for element in elements if element not in hosted]
    reasons = [f"{getattr(e.function, '__name__', repr(e.function))}: {e.why_hosted}" for e in hosted]
    if hosted and method in ("rodas4", "variational", "generalized_alpha", "moreau"):
        raise InputError(
            f"the method {method!r} needs a control that can be traced",
            got="; ".join(reasons),
            allowed=TRACEABLE,
            do="rewrite the control; lw.Sampled(model, control, rate=1/dt, python=True) calls it once for each step"
            + ("" if method == "moreau" else "; explicit methods call it at each evaluation"),
        )
    contacts = None
    if method == "moreau":
        from linkwise.sim.moreau import contact_numbers

        contacts = contact_numbers(model, rules)
    smooth = method != "variational"
    motion = EquationsOfMotion(model, traced, rules, n_parameters, setup.closing, setup.switched, smooth, contacts)
    numbers = numbers_of(setup.method)
    plan = SimulationPlan(motion, method, every_step, events, numbers, tuple(hosted), "; ".join(reasons))
    if not all(formula.runs for formula in _formulas(traced, events)):
        plan.trace_all()
    return plan


def _has_limits(element: Element) -> bool:
    """Whether limits of its own may hold an element back."""
    if isinstance(element, FrozenElement):
        return "clipped" in element.formulas
    return type(element).clipped is not Element.clipped


def _formulas(elements: Sequence[Element], events: Sequence[Event]) -> Iterator[FrozenFunction]:
    """All that were frozen."""
    for element in elements:
        if isinstance(element, FrozenElement):
            yield from element.formulas.values()
    yield from (event.function for event in events if isinstance(event.function, FrozenFunction))
