"""``linkwise plot``: draw a motion that was saved."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from linkwise.cli.delivery import PICTURES, draw
from linkwise.cli.motion_files import QUANTITIES, MotionTable, check_suffix, read
from linkwise.errors import InputError, LinkwiseError, UnknownNameError, require_extra
from linkwise.sim.trajectory import Trajectory

_WITHOUT_WINDOWS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")


def run(options: Namespace) -> None:
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
    motion = _trajectory(table)
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


def _trajectory(table: MotionTable) -> Trajectory:
    empty = np.empty((len(table.t), 0))
    values = {quantity: array for quantity, (_, array) in table.columns.items()}
    if "energy" in values:
        values["energy"] = values["energy"][:, 0]
    q, v = values.pop("q", empty), values.pop("v", empty)
    columns = {quantity: names for quantity, (names, _) in table.columns.items()}
    return Trajectory(table.t, q, v, derived=values, columns=columns)
