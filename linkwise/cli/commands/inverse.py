"""``linkwise inverse``: the joint forces that a motion takes (RIDIM)."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.cli.arguments import configuration, load_model
from linkwise.cli.delivery import check_targets, deliver
from linkwise.cli.motion_files import in_order, read
from linkwise.errors import InputError, LinkwiseError
from linkwise.model.model import Model
from linkwise.papers.arm_figures import cycloidal
from linkwise.sim.trajectory import Trajectory


def run(options: Namespace) -> None:
    """Compute the forces and deliver them."""
    check_targets(options)
    if (options.motion is None) == (options.to is None):
        raise InputError(
            "inverse needs a motion", allowed="either --motion FILE or --to Q", do="see linkwise inverse --help"
        )
    if options.samples < 2:
        raise InputError("--samples is too small", got=options.samples, allowed="at least 2")
    if not (np.isfinite(options.duration) and options.duration > 0.0):
        raise InputError("--duration is not a time", got=options.duration, allowed="seconds, more than 0")
    model = load_model(options)
    if options.motion is not None:
        t, q, v, vdot = _from_file(model, options.motion)
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


def _from_file(model: Model, path: str) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
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
