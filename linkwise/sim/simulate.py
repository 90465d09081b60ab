"""Simulation: from a state and a duration to a trajectory."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_arguments, check_count, check_finite, check_positive
from linkwise.dataclass import dataclass, field
from linkwise.errors import IntegrationWarning, SaturationWarning, SlowControlWarning
from linkwise.functions.function import checked_threads
from linkwise.memoized import Memory
from linkwise.model.model import Model
from linkwise.sim.elements import as_elements
from linkwise.sim.motion import WorkStates
from linkwise.sim.plans import SimulationPlan
from linkwise.sim.progress import Progress, check_progress
from linkwise.sim.run import Run
from linkwise.sim.setup import Options, Setup, checked_times, checked_tolerances, usual_method
from linkwise.sim.states import States, warn_of_start
from linkwise.sim.step_size import EqualSteps, StepSize, ToleratedSteps
from linkwise.sim.tableaux import TABLEAUX, GeneralizedAlpha, Tableau
from linkwise.sim.tables import NO_TABLES, check_span
from linkwise.sim.trajectory import Trajectory
from linkwise.targets import ON_HOST
from linkwise.targets.llvm.device import PROCESSOR, device_of

__all__ = ["simulate"]


def standing_still(
    model: Model, states: States, times: Array | None, t0: float, duration: float, method: str
) -> Trajectory:
    """Samples without numbers, at the output times or at both ends."""
    t = np.array([t0, t0 + duration]) if times is None else times
    shape = (*states.shape, len(t))
    nothing = np.empty((*shape, 0))
    p = states.p.reshape(*states.shape, -1)
    own = p[..., None, : len(model.parameters.nominal)] if len(model.parameters.nominal) else None
    energy = np.broadcast_to(model.potential_energy(np.empty((*states.shape, 1, 0)), p=own), shape)
    zero = np.zeros(states.shape, int)
    return Trajectory(
        t,
        nothing,
        nothing,
        p=p,
        model=model,
        derived={
            "vdot": nothing,
            "tau": nothing,
            "force:control": nothing,
            "energy": np.array(energy),
            "work": np.zeros((*shape, WorkStates.nx)),
        },
        status=np.full(states.shape, "done") if states.shape else "done",
        steps=zero if states.shape else 0,
        rejected=zero if states.shape else 0,
        note="nothing in this model can move: all its links are fixed to the world",
        method=method,
    )


@dataclass(frozen=True, eq=False)
class ReadySimulation:
    """A simulation whose options are checked, with the plans that were made for it: where later calls begin."""

    setup: Setup
    tableau: Tableau | None
    dt: float | None
    save_every: int
    tolerances: tuple[float, float, float, float, int]
    threads: int
    plans: dict[tuple[int, bool], tuple[Setup, SimulationPlan]] = field(default_factory=dict)

    @classmethod
    def of(cls, setup: Setup, duration: float, dt: float | None, save_every: int, options: Options) -> ReadySimulation:
        """From what users give, see :func:`simulate`."""
        check_positive(duration=duration)
        check_count(save_every=save_every)
        if dt is not None:
            check_positive(dt=dt)
        tolerances, threads = checked_tolerances(options), checked_threads(options.get("threads"))
        return cls(setup, TABLEAUX.get(setup.method_name), dt, int(save_every), tolerances, threads)

    def sizes(self) -> StepSize:
        """Sizes of a run's steps."""
        if self.setup.is_adaptive:
            return ToleratedSteps(self.dt, *self.tolerances)
        return EqualSteps(1e-3 if self.dt is None else self.dt, self.save_every)

    def planned(self, states: States, every_step: bool) -> tuple[Setup, SimulationPlan]:
        """The setup with the formulas that functions have now, and its plan."""
        key = states.p.shape[-1], every_step
        if key not in self.plans:
            setup = self.setup.frozen(states)
            self.plans[key] = setup, setup.plan(states, every_step)
        return self.plans[key]


_READY = "_ready_simulations"
_KEPT = 32  # of them for each model


def _known(model: Model, key: object) -> ReadySimulation | None:
    """The simulation with these options, if there was one; found without a detour, beside the model's functions."""
    known: dict[object, ReadySimulation] = getattr(model, "__dict__", {}).get(_READY, {})
    try:
        ready = known.get(key)
    except TypeError:  # an option has no hash
        return None
    # Of a method of one's own the numbers may have changed.
    return ready if ready is not None and ready.tableau is TABLEAUX.get(ready.setup.method_name) else None


def _keep(model: Model, key: Hashable, ready: ReadySimulation) -> None:
    """Let it be known to later calls."""
    memory = Memory.of(model)
    known = vars(model)[_READY] = memory.table(_READY)
    try:
        hash(key)
    except TypeError:  # an option has none
        return
    known.pop(key, None)  # of a method whose numbers have changed
    memory.recent(_READY, key, lambda: ready, _KEPT)


_BATCH_SAMPLES = 101  # for a batch that asks for no output times
_OF_PILES = ("rtol", "atol", "max_step", "min_step", "max_steps", "stabilization", "released", "threads", "frame")
"""Options that a pile takes, or that make no difference to one."""


def simulate(
    model: Model,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    duration: float = 10.0,
    dt: float | None = None,
    method: str | GeneralizedAlpha | None = None,
    *,
    output_times: ArrayLike | None = None,
    save_every: int = 1,
    progress: bool | Callable[[float], None] | None = None,
    out: Trajectory | None = None,
    account: bool = False,
    **options: Unpack[Options],
) -> Trajectory:
    """Simulate a mechanism from one state, or from a batch of them, in one compiled kernel.

    With ``method="moreau"`` bodies touch: see :meth:`Model.with_contacts`. It is the method of models with rigid
    contacts and of those whose file has a floor that something could fall through, unless another is named; the file's
    shapes and their friction count, and surfaces are rigid. Other models go by ``"dop853"``. Nine free bodies and more,
    one state of them with nothing but gravity, are a pile: each looks at its neighbours alone, so that there can be
    thousands.

    Damping, dry friction, joint limits and effort limits of the model act; see :class:`JointRules`.

    Methods. Fixed step: ``"euler"`` (semi-implicit), ``"rk4"``, ``"variational"`` (symplectic: its energy error stays
    bounded forever), ``"generalized_alpha"`` (implicit, for stiff structures, with numerical damping that
    :class:`GeneralizedAlpha` chooses). Adaptive: ``"dop853"`` and ``"dopri5"`` (Dormand and Prince, 8(5,3) and 5(4)),
    ``"rk56"`` (Verner), ``"cash_karp"``, and ``"rodas4"`` for stiff springs, dampers and friction (linearly implicit,
    L-stable, with exact derivatives). All methods work in a chart around each step's start (Munthe-Kaas), so
    quaternions stay of length one.

    Models of many bodies (``model._rolls``) run the same way, with their sweeps as loops inside the kernel: no long
    compilation, and time in proportion to the bodies. Only ``"rodas4"`` needs a matrix, and time with their square.

    Models with closures move on their manifold, also where constraints are redundant and through singular
    configurations. q0 must be closed (:meth:`Model.assemble`; what is open by rounding is closed), and v0 is projected
    where it moves against closures, with a warning. See ``stabilization``, and ``attach`` and ``release`` of
    :class:`Event`.

    Fixed steps run in float32, at twice the speed, if q0, v0, p and x0 are all float32.

    Where q0, v0, p or x0 are arrays on a GPU (CuPy, PyTorch, JAX), the whole loop runs there, one state per thread,
    and the samples stay there; see :class:`Trajectory`. Controls that run in Python at every evaluation are refused.
    Events are noticed in the kernel; where one happens, and what its action does, is found on the host.

    Args:
        model: the mechanism.
        q0: configuration(s) at the start (..., nq); :attr:`Model.start` if not given.
        v0: velocities at the start (..., nv); zero if not given; without q0, that of :attr:`Model.start`.
        duration: s.
        dt: the step in s of a fixed-step method (made a little smaller where it does not divide the duration; 1e-3 if
            not given); the first step tried by an adaptive one.
        method: the integrator, by name or as :class:`GeneralizedAlpha`; None: ``"moreau"`` or ``"dop853"``, see above.
        rtol: relative tolerance of an adaptive method.
        atol: absolute tolerance, SI units; rtol/100 if not given.
        control: ``control(t, q, v) -> tau`` (nv) or ``control(t, q, v, p)``, an element such as :class:`PD`, or a list
            of these. It is traced at each call and becomes part of the kernel: what else it reads is a constant.
            What changes often is better in p: other constants are compiled anew. A function that cannot be traced
            (it branches on values, calls other libraries) is called in Python, which is some thousand times slower: a
            warning and ``Trajectory.note`` say why; :class:`Sampled` calls it at a rate. Controls with states, samples,
            delays and tables: :class:`Controller`, :class:`Sampled`, :class:`PID`, :class:`Torque`.
        output_times: times (T) of the samples, increasing, from t0 to t0 + duration. If not given: every
            ``save_every``-th step of a fixed-step method, every step of an adaptive one, 101 evenly spaced samples
            for a batch with an adaptive one.
        events: :class:`Event` objects or functions ``(t, q, v, p) -> number`` whose sign changes are found.
        p: run-time parameters (..., np): those of the model first, then whatever control and events want to know.
        progress: a bar on stderr for long runs; None: only on a terminal. A function is called with the fraction done.
        f_ext: forces from outside, [moment, force] in N m and N at the bodies' origins in their own axes:
            (n_bodies, 6), with leading axes for a batch; a :class:`Table` of 6 n_bodies numbers; a function
            ``(t, q, v, p)``; or ``{body: wrench}`` with any of these for single bodies. See also :class:`BodyForce`
            and :class:`Disturbance`, which go with ``control``. At the origin of a flexible body none of them reaches
            its modes; what an element's ``wrench`` puts on nodes does.
        t0: time at the start, s.
        x0: states of the actuators at the start (..., nx); their own choice if not given.
        save_every: steps between samples of a fixed-step method.
        rules: what the model's damping, friction and limits do.
        limits: short for ``rules=JointRules(limits=...)``: ``"spring"`` (a stiff spring at each joint limit, the
            default), ``"rigid"`` (exact, with ``method="moreau"`` alone), ``"stop"`` (reaching one ends the
            simulation), ``"ignore"``.
        stabilization: what keeps closures closed (their accelerations obey in any case): ``"projection"`` puts places
            and velocities back after each step, to rounding; ``"baumgarte"`` or :class:`Baumgarte` is feedback that
            lets them stay open a little; None leaves them to the integrator.
        released: names of closures that do not hold at the start; events can attach them.
        max_step: largest step of an adaptive method, s.
        min_step: smallest step of an adaptive method, s; a run that needs smaller ones ends as ``"failed"``. 0: where
            rounding makes steps useless (1e-15 s).
        max_steps: steps that an adaptive method may try for each state; then the run ends as ``"max_steps"``.
        out: an earlier result with the same batch, times and model, whose memory is used again (the earlier one
            is then no longer valid). Saves the allocation of memory where many runs are large.
        threads: threads to split a batch over.
        account: whether to integrate the work of each cause along with the motion, for
            :meth:`Trajectory.energy_account`.
        frame: an orbit, :class:`linkwise.space.Orbit`: the world falls along it, so that q and v are those beside the
            orbit, in inertial axes, to the last digit. Its gravity acts by itself.

    Returns:
        The motion. Ctrl-C ends a run early and returns what was computed so far, with the status ``"interrupted"``.
        A run that cannot reach its end returns what there is, with the status ``"failed"``, ``"max_steps"``, or
        ``"zeno"`` where events follow each other ever faster, until no time passes between them; an
        :class:`IntegrationWarning` and ``Trajectory.note`` say at which time, and what to do. Of actuators that were
        at their limits at samples, a :class:`~linkwise.errors.SaturationWarning` and the note say which, and how long
        (on the host).
    """
    if "t0" in options:
        check_finite(t0=options["t0"])
    t0, p, x0 = options.pop("t0", 0.0), options.pop("p", None), options.pop("x0", None)
    chosen = method, duration, dt, save_every, *options.values()
    key = chosen, tuple(options), tuple(map(type, chosen))  # 1 and True are equal, but one of them is no duration
    ready = None if account else _known(model, key)
    if ready is None:
        check_arguments(simulate, options, Options.__annotations__)
        method = usual_method(model, options.get("events"), "dop853") if method is None else method
        named: Mapping[str, object] = {**options, "p": p, "x0": x0, "times": output_times, "out": out}
        plain = not account and all(value is None for name, value in named.items() if name not in _OF_PILES)
        stays = method != "moreau" or plain
        if method == "moreau" and plain:
            from linkwise.sim.piles.pile_run import is_pile, simulate_pile

            stays = not is_pile(model)
            if not stays and all(given is None or np.ndim(given) == 1 for given in (q0, v0)):
                return simulate_pile(model, q0, v0, duration, dt, t0, save_every, progress)
        if account and getattr(model, "nv", None):  # whether it is a model is looked at below
            options["control"] = (WorkStates(), *as_elements(options.get("control")))
            x0 = None if x0 is None else np.concatenate([np.zeros((*np.shape(x0)[:-1], WorkStates.nx)), x0], axis=-1)
        ready = ReadySimulation.of(Setup.of(model, method, options), duration, dt, save_every, options)
        if stays and not ready.setup.is_asked_anew:
            _keep(model, key, ready)
    given = [each for each in (q0, v0, p, x0) if each is not None]
    home = PROCESSOR if all(type(each) in ON_HOST for each in given) else device_of(given)
    if home is not PROCESSOR:
        with home.entered():
            q0, v0, p, x0 = (None if each is None else home.to_host(each) for each in (q0, v0, p, x0))
    setup, adaptive = ready.setup, ready.setup.is_adaptive
    if setup.tables:
        check_span(setup.tables, t0, duration)
    states = States(setup.start, q0, v0, p, x0)
    if q0 is not None:
        warn_of_start(model, np.asarray(q0, float))
    states.check_clock(t0, duration, 1e-3 if dt is None and not adaptive else dt, adaptive)
    if progress is not None:
        check_progress(progress)
    if setup.is_bounded:
        setup.check_bounds(states)
    times = None if output_times is None else checked_times(output_times, t0, duration)
    if not states.y.shape[1]:
        return standing_still(model, states, times, t0, duration, setup.method_name)._at_home(home)
    every_step = adaptive and times is None and not states.shape
    if adaptive and times is None and states.shape:
        times = t0 + duration * np.arange(_BATCH_SAMPLES) / (_BATCH_SAMPLES - 1.0)
        times[-1] = t0 + duration
    setup, plan = ready.planned(states, every_step)
    if plan.hosted:
        plan.check_home(home)
        warnings.warn(plan.note, SlowControlWarning, stacklevel=2)
    if model.closures:
        setup.close(plan, states, t0, v_given=v0 is not None)
    curves = setup.curves(plan, states) if setup.tables else NO_TABLES
    watched = sys.stderr.isatty() if progress is None else progress is not False
    bar = Progress(progress, model.name) if watched else None
    with home.entered():
        try:
            run = Run(plan, states, t0, duration, ready.sizes(), curves, times, out, home)
            run.go(bar, ready.threads)
        finally:
            if bar is not None:
                bar.close()
        result = run.trajectory(ready.threads)
    if run.trouble:
        warnings.warn(run.trouble, IntegrationWarning, stacklevel=2)
    if run.saturation:
        warnings.warn(run.saturation, SaturationWarning, stacklevel=2)
    return result
