"""The switches and options of the format, one line each: used here, without effect here, or left out and said.

Without effect is what is about contact, about the softness of MuJoCo's constraints (here they hold exactly) and about
how MuJoCo goes from one time to the next. The attributes of ``<compiler>`` are resolved by MuJoCo's own compiler, but
for the folders of files (`linkwise.files.mjcf.document`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linkwise.files.mjcf.compiled import Compiled

USED, NOTHING = "used", "nothing"
_SLEEP = "that bodies at rest fall asleep"

FLAGS = {
    "constraint": USED,  # and all that is within it: `linkwise.files.mjcf.compiled.WITHIN`
    "equality": USED,
    "frictionloss": USED,
    "limit": USED,
    "contact": NOTHING,  # never simulated
    "spring": USED,
    "damper": USED,  # with springs off too, nothing passive acts: no fluid, no gravity compensation
    "gravity": USED,
    "clampctrl": USED,
    "warmstart": NOTHING,  # solver
    "filterparent": NOTHING,  # contact
    "actuation": USED,
    "refsafe": NOTHING,  # softness
    "sensor": USED,
    "midphase": NOTHING,  # contact
    "eulerdamp": NOTHING,  # steps
    "autoreset": NOTHING,  # steps
    "nativeccd": NOTHING,  # contact
    "island": NOTHING,  # solver
    "multiccd": NOTHING,  # contact
    "override": NOTHING,  # contact
    "energy": NOTHING,  # computed here on demand
    "fwdinv": NOTHING,  # a check of MuJoCo's own
    "invdiscrete": NOTHING,  # steps
    "sleep": _SLEEP,
    "diagexact": NOTHING,  # softness
    "ipc": NOTHING,  # contact
    "speculative": NOTHING,  # contact
}
"""Of ``<flag>``: what a setting unlike the usual one does here, or the sentence that says it is left out."""

OPTIONS = {
    "timestep": NOTHING,  # steps
    "integrator": NOTHING,  # steps
    "gravity": USED,
    "magnetic": USED,
    "density": USED,
    "viscosity": USED,
    "wind": USED,
    "disableactuator": USED,  # actuatorgroupdisable
    "disableflags": USED,
    "enableflags": USED,
    "impratio": NOTHING,  # contact
    "cone": NOTHING,  # contact
    "o_margin": NOTHING,  # contact
    "o_solref": NOTHING,  # contact
    "o_solimp": NOTHING,  # contact
    "o_friction": NOTHING,  # contact
    "ccd_iterations": NOTHING,  # contact
    "ccd_tolerance": NOTHING,  # contact
    "sdf_iterations": NOTHING,  # contact
    "sdf_initpoints": NOTHING,  # contact
    "jacobian": NOTHING,  # solver
    "solver": NOTHING,  # solver
    "iterations": NOTHING,  # solver
    "tolerance": NOTHING,  # solver
    "ls_iterations": NOTHING,  # solver
    "ls_tolerance": NOTHING,  # solver
    "noslip_iterations": NOTHING,  # solver
    "noslip_tolerance": NOTHING,  # solver
    "sleep_tolerance": NOTHING,  # acts by the flag "sleep"
}
"""Of ``<option>``, likewise, by the names that MuJoCo's compiled model has."""


def forces_left_out(source: Compiled) -> Iterator[str]:
    """Sentences about the switches and options that change the motion in MuJoCo and not here."""
    option, usual = source.model.opt, source.mj.MjOption()
    for kind, prefix, bits in (
        ("mjtDisableBit", "mjDSBL_", int(option.disableflags)),
        ("mjtEnableBit", "mjENBL_", int(option.enableflags)),
    ):
        for name, bit in getattr(source.mj, kind).__members__.items():
            if name.startswith(prefix) and bits & int(bit):
                flag = name.removeprefix(prefix).lower()
                yield FLAGS.get(flag, f"the flag {flag!r}, which is not known here")
    for name in dir(option):
        if not name.startswith("_") and not np.array_equal(getattr(option, name), getattr(usual, name)):
            yield OPTIONS.get(name, f"the option {name!r}, which is not known here")
