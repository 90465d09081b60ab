"""``linkwise simulate``: the motion that joint forces cause (RFDSIM)."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.cli.arguments import configuration, load_model, numbers, per_freedom, q_names
from linkwise.cli.delivery import check_targets, deliver
from linkwise.cli.motion_files import FILES, in_order, read
from linkwise.errors import InputError, LinkwiseError
from linkwise.model.model import Model
from linkwise.sim.actuators import Torque
from linkwise.sim.drives import Drives
from linkwise.sim.simulate import simulate


def run(options: Namespace) -> None:
    """Simulate and deliver the trajectory."""
    check_targets(options)
    if options.samples < 2:
        raise InputError("--samples is too small", got=options.samples, allowed="at least 2")
    if not (np.isfinite(options.duration) and options.duration > 0.0):
        raise InputError("--duration is not a time", got=options.duration, allowed="seconds, more than 0")
    model = load_model(options)
    q0 = _own_start(model) if options.q0 is None else configuration(model, options.q0, "--q0")
    v0 = per_freedom(model, options.v0, "--v0")
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
        names = [q_names(model)[k] for k in moved]
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


def _control(model: Model, options: Namespace, q0: FloatArray) -> Any:
    if options.hold:
        return holding(model, q0)
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


def holding(model: Model, q0: FloatArray) -> Callable[..., Any]:
    """PD control around a configuration, of ten rad/s and critical damping at each joint's own inertia there."""
    inertia = np.diag(model.mass_matrix(q0))
    stiffness, damping = 100.0 * inertia, 20.0 * inertia

    def control(t: Any, q: Any, v: Any, p: Any) -> Any:
        return model.gravity_force(q) - stiffness * model.difference(q0, q) - damping * v

    return control
