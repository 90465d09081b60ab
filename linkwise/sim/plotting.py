"""Trajectories as figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import InputError, UnknownNameError, require_extra

if TYPE_CHECKING:
    from linkwise.sim.trajectory import Trajectory

Curves = list[tuple[str, Any]]
_UNITS = {
    "q": "q [rad, m]",
    "v": "v [rad/s, m/s]",
    "vdot": "v̇ [rad/s², m/s²]",
    "tau": "τ [N m, N]",
    "x": "x",
    "active": "active",
    "energy": "energy [J]",
    "closure_error": "closure error [m, 1]",
    "modes": "η",
    "deflection": "deflection [m]",
}


_BY_THE_WHOLE = ("energy", "closure_error", "modes", "deflection")
"""Quantities that are not of single joints."""


def _is_of(column: str, joint: str) -> bool:
    """Whether a column is that of a joint, or one of several of it."""
    return column == joint or column.startswith(f"{joint}[")


def plot(
    run: Trajectory,
    what: Sequence[str],
    joints: Sequence[str] | None = None,
    nodes: Sequence[tuple[str, str | int]] | None = None,
) -> Any:
    """A matplotlib figure with a panel for each quantity; as :meth:`Trajectory.plot` says."""
    what = (what,) if isinstance(what, str) else tuple(what)
    for name in what:
        if name not in _UNITS:
            raise UnknownNameError("quantity to draw", name, list(_UNITS))
    by_joint = [name for name in what if name not in _BY_THE_WHOLE]
    if joints is not None and by_joint:
        known = list(dict.fromkeys(column for name in by_joint for column in run.columns[name]))
        for joint in [joints] if isinstance(joints, str) else joints:
            if not any(_is_of(column, joint) for column in known):
                raise UnknownNameError("joint to draw", joint, known)
    require_extra("matplotlib", "viz")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        len(what), 1, sharex=True, squeeze=False, figsize=(8.0, 2.2 * len(what) + 0.6), layout="constrained"
    )
    for axis, name in zip(axes[:, 0], what, strict=True):
        curves = _curves(run, name, joints, nodes)
        for n, (label, values) in enumerate(curves):
            lines = axis.plot(run.t, values.reshape(-1, len(run.t)).T, color=f"C{n % 10}", lw=1.0)
            lines[0].set_label(label)
        axis.set_ylabel(_UNITS[name])
        if 1 < len(curves) <= 12:
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)
        axis.grid(alpha=0.3)
    axes[-1, 0].set_xlabel("t [s]")
    return figure


def _curves(
    run: Trajectory, name: str, joints: Sequence[str] | None, nodes: Sequence[tuple[str, str | int]] | None
) -> Curves:
    """Labels and values (..., T) of one panel."""
    if name == "energy":
        return [(name, run.energy)]
    if name == "closure_error":
        return [(name, np.abs(run.closure_error).max(axis=-1, initial=0.0))]
    if name == "modes":
        bodies = _flexible(run, name)
        return [(f"{b.name} {k + 1}", run.q[..., b.q_slice.start + k]) for b in bodies for k in range(b.modes)]
    if name == "deflection":
        return _deflections(run, nodes)
    columns = run.columns[name]
    chosen = [joints] if isinstance(joints, str) else joints
    shown = [k for k, column in enumerate(columns) if chosen is None or any(_is_of(column, j) for j in chosen)]
    if not shown and len(columns):
        raise InputError(f"no column of {name} has such a name", got=str(chosen), allowed=str(columns))
    return [(columns[k], getattr(run, name)[..., k]) for k in shown]


def _deflections(run: Trajectory, nodes: Sequence[tuple[str, str | int]] | None) -> Curves:
    """Each direction in which a node moves at all."""
    if nodes is None:
        nodes = [(body.name, body.flexible.nodes[-1].key) for body in _flexible(run, "deflection")]
    curves: Curves = []
    for body, node in nodes:
        moved = run.deflection(body, node)
        directions = [k for k in range(3) if np.abs(moved[..., k]).any()]
        curves += [(f"{body}:{node} {'xyz'[k]}", moved[..., k]) for k in directions]
    return curves


def _flexible(run: Trajectory, what: str) -> list[Any]:
    found = [body for body in run._with_model(what).bodies if body.modes]
    if not found:
        raise InputError(f"there is no {what} to draw", got="a model without flexible bodies")
    return found
