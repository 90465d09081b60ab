"""Commands that make and draw motions: ``inverse`` (RIDIM), ``simulate`` (RFDSIM), ``plot``."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.cli.arguments import configuration, load_model, numbers, per_freedom
from linkwise.cli.delivery import PICTURES, check_targets, deliver, draw
from linkwise.cli.motion_files import FILES, QUANTITIES, check_suffix, in_order, read, trajectory_of
from linkwise.errors import InputError, LinkwiseError, UnknownNameError, require_extra
from linkwise.model.model import Model
from linkwise.papers.arm_figures import cycloidal
from linkwise.sim.actuators import PD, Torque
from linkwise.sim.drives import Drives
from linkwise.sim.elements import Element, Vector, model_force
from linkwise.sim.setup import freedoms_of_base
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.trajectory_files import coordinate_names
from linkwise.spatial.scalar import Scalar, plus

_Law = Callable[[Scalar, Vector, Vector, Vector], Vector]
"""A control as a function of t, q, v and p."""


def run_inverse(options: Namespace) -> None:
    """Compute the forces and deliver them."""
    check_targets(options)
    if (options.motion is None) == (options.to is None):
        raise InputError(
            "inverse needs a motion", allowed="either --motion FILE or --to Q", do="see linkwise inverse --help"
        )
    _check_instants(options)
    model = load_model(options)
    if options.motion is not None:
        t, q, v, vdot = _motion_from_file(model, options.motion)
    else:
        t = np.linspace(0.0, options.duration, options.samples)
        ends = configuration(model, options.start, "--from"), configuration(model, options.to, "--to")
        q, v, vdot = cycloidal(model, *ends, t, options.duration)
    tau = model.inverse_dynamics(q, v, vdot)
    bad = ~np.isfinite(tau).all(axis=-1)
    if bad.any():
        raise LinkwiseError(
            "the joint forces are not finite",
            got=f"at {int(bad.sum())} of {len(t)} instants, the first at {t[int(np.argmax(bad))]:g} s",
            do="see whether the motion is too far, or too fast: its numbers overflow",
        )
    motion = Trajectory(t, q, v, model=model, derived={"vdot": vdot, "tau": tau})
    deliver(options, motion, ("q", "tau"), f"{model.name}: joint forces")


def _check_instants(options: Namespace) -> None:
    if options.samples < 2:
        raise InputError("--samples is too small", got=options.samples, allowed="at least 2")
    if not (np.isfinite(options.duration) and options.duration > 0.0):
        raise InputError("--duration is not a time", got=options.duration, allowed="seconds, more than 0")


def _motion_from_file(model: Model, path: str) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    table = read(path)
    t = table.t
    q, v, vdot = (in_order(model, table, quantity, path) for quantity in ("q", "v", "vdot"))
    if q is None:
        raise InputError(
            f"{path} has no configurations", got=", ".join(table.columns) or "t only", allowed="columns q:joint"
        )
    if v is not None and vdot is not None:
        return t, q, v, vdot
    if any(joint.nq != joint.nv for joint in model.joints):
        raise InputError(
            f"{path} has no velocities or accelerations",
            do="give columns v and vdot: a spline through quaternions would not give them",
        )
    if len(t) < 4 or not (np.diff(t) > 0).all():
        raise InputError(
            f"{path}: velocities cannot be found from these instants",
            got=f"{len(t)} instants",
            allowed="at least four, in increasing order",
        )
    from scipy.interpolate import CubicSpline, make_interp_spline

    if v is not None:
        return t, q, v, np.asarray(CubicSpline(t, v)(t, 1))
    spline = make_interp_spline(t, q, k=5 if len(t) >= 6 else 3)
    return t, q, np.asarray(spline(t, 1)), np.asarray(spline(t, 2))


def run_simulate(options: Namespace) -> None:
    """Simulate and deliver the trajectory."""
    check_targets(options)
    _check_instants(options)
    model = load_model(options)
    q0 = _own_start(model) if options.q0 is None else configuration(model, options.q0, "--q0")
    at_rest = np.zeros(model.nv) if options.q0 is not None else model._start_velocity
    v0 = at_rest if options.v0 is None else per_freedom(model, options.v0, "--v0")
    if model.closures:
        q0 = _assembled(model, q0)
    motion = simulate(
        model,
        q0,
        v0 if v0.any() else None,
        duration=options.duration,
        dt=options.dt,
        method=options.method,
        rtol=options.rtol,
        control=_control(model, options, q0),
        output_times=np.linspace(0.0, options.duration, options.samples),
        limits=options.limits,
        account=True,
    )
    if not model.nv:
        print(f"note: {motion.note}", file=sys.stderr)
    deliver(options, motion, ("q", "v", "tau", "energy"), f"{model.name}: {options.duration:g} s, {options.method}")
    if motion.status == "interrupted":
        raise KeyboardInterrupt  # what was computed has been delivered
    if motion.status in ("failed", "max_steps", "zeno"):
        raise LinkwiseError(
            "the simulation could not reach its end",
            got=f"{len(motion)} instants, the last at {motion.t[-1]:g} s" if len(motion) else "no instants",
            do="try another --method, or a smaller --dt or --rtol",
        )


def _own_start(model: Model) -> FloatArray:
    """The model's own start; said in one line where it is not zero."""
    zero, q = model.neutral(), model.start
    moved = np.flatnonzero(q != zero)
    if len(moved):
        names = [coordinate_names(model)[k] for k in moved]
        shown = ", ".join(f"{name} = {q[k]:.4g}" for name, k in zip(names[:4], moved, strict=False))
        print(f"start: {shown}{', …' if len(names) > 4 else ''}", file=sys.stderr)
    return q


def _assembled(model: Model, q: FloatArray) -> FloatArray:
    """A configuration near q that closes; said in one line where that is another one."""
    closed = model.assemble(q)
    moved = float(np.abs(model.difference(q, closed)).max(initial=0.0))
    if moved > 1e-9:
        print(f"assembled: closing the loops moved joints by up to {moved:.3g} rad or m", file=sys.stderr)
    return closed


def _control(model: Model, options: Namespace, q0: FloatArray) -> Element | _Law | None:
    if options.hold:
        return HoldControl(model, q0)
    if options.u is not None:
        return _driven(model, options.u)
    if options.tau is None:
        return None
    if Path(options.tau).suffix in FILES:
        table = read(options.tau, bare="tau")
        tau = in_order(model, table, "tau", options.tau)
        if tau is None:
            raise InputError(f"{options.tau} has no joint forces", allowed="columns tau:joint")
        if table.t[-1] < options.duration or table.t[0] > 0.0:
            print(
                f"note: {options.tau} is from {table.t[0]:g} s to {table.t[-1]:g} s; before and after, its first and "
                f"last forces are held, until {options.duration:g} s",
                file=sys.stderr,
            )
        return Torque(table.t, tau, options.tau_kind)
    constant = per_freedom(model, options.tau, "--tau")
    return lambda t, q, v, p: constant


def _driven(model: Model, text: str) -> Drives:
    """The model's actuators under controls as they were typed."""
    if "=" not in text:
        values = numbers(text, len(model.actuators) if "," in text else 1, "--u")
        return Drives(model, values if "," in text else float(values[0]))
    named = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        named[name.strip()] = float(numbers(value, 1, f"--u {name}")[0])
    return Drives(model, named)


class HoldControl(PD):
    """PD control around a configuration, of all joints but those that leave the base free.

    Critically damped, with gravity compensated: of 10 rad/s for the inertia of the links beyond each joint; where the
    base is free, these may bear the rest of the robot, so of 30 rad/s for the heavier of both.
    """

    def __init__(self, model: Model, q0: FloatArray) -> None:
        M, base = model.mass_matrix(q0), freedoms_of_base(model)
        inertia = M.diagonal().copy()
        for joint in model.joints if base else ():
            J = model.jacobian(q0, model.bodies[joint.index].name)
            for i in set(range(model.nv)[joint.v_slice]) - set(base):
                rates = np.zeros(model.nv)  # at which this link stands still, and the rest of the robot turns
                rates[i], rates[base] = 1.0, -np.linalg.lstsq(J[:, base], J[:, i], rcond=None)[0]
                inertia[i] = max(inertia[i], rates @ M @ rates)
        self.held = np.ones(model.nv)
        self.held[base] = 0.0
        rate = 30.0 if base else 10.0
        super().__init__(model, q0, kp=rate**2 * inertia * self.held, kd=2.0 * rate * inertia * self.held)

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Towards the configuration, and against the weight of the links."""
        weight = model_force(self.model, "gravity_force", p, q)
        return plus(self._towards(t, q, v, x, p), [c * w for c, w in zip(self.held.tolist(), weight, strict=True)])


_WITHOUT_WINDOWS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")


def run_plot(options: Namespace) -> None:
    """Draw to a file, or open a window."""
    check_suffix(options.output, PICTURES, "--output")
    require_extra("matplotlib", "viz")
    table = read(options.file)
    present = [quantity for quantity in QUANTITIES if quantity in table.columns]
    if not present:
        raise InputError(f"{options.file} has nothing to draw besides t", allowed=", ".join(QUANTITIES))
    what = present if options.what is None else options.what.split(",")
    for quantity in what:
        if quantity not in present:
            raise UnknownNameError(f"quantity in {options.file}", quantity, present)
    joints = None if options.joints is None else options.joints.split(",")
    motion = trajectory_of(table, options.file)
    if options.output is not None:
        draw(motion, options.output, tuple(what), options.file, joints)
        print(options.output)
        return
    pyplot = require_extra("matplotlib.pyplot", "viz")
    if pyplot.get_backend().lower() in _WITHOUT_WINDOWS:
        raise LinkwiseError(
            "there is no display to open a window on",
            got=f"matplotlib draws with {pyplot.get_backend()!r}",
            do="write a file: -o motion.png",
        )
    motion.plot(what=what, joints=joints).suptitle(options.file)
    pyplot.show()
