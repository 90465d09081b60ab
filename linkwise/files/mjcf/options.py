"""The switches and options of the format, one line each: used here, without effect here, or left out and said.

Without effect is what is about contact, about the softness of MuJoCo's constraints (here they hold exactly) and about
how MuJoCo goes from one time to the next. The attributes of ``<compiler>`` are resolved by MuJoCo's own compiler, but
for the folders of files (`linkwise.files.mjcf.document`).

Two of them are fields that act on bodies where they are: compensation of gravity, and a fluid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from linkwise.files.file_description import Written
from linkwise.files.mjcf.compiled import Compiled
from linkwise.files.mjcf.joints_and_places import Places
from linkwise.mechanism.fields import Field, FluidBox, FluidEllipsoid, GravityCompensation

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


_LEAST = 1e-15  # what MuJoCo takes for nothing


def read_fields(places: Places) -> Iterator[Written[Field]]:
    """Those of the bodies that can move; none where the file switches springs and dampers off, as in MuJoCo."""
    source, names = places.source, places.names
    if source.is_passive_off:
        return
    m = source.model
    weighs = bool(m.opt.gravity.any()) and not source.is_off("gravity")
    wet = m.opt.density > 0.0 or m.opt.viscosity > 0.0
    for body in range(1, m.nbody):
        if m.body_weldid[body] == 0:
            continue
        at = source.at("body", body)
        if weighs and m.body_gravcomp[body]:
            held = float(m.body_mass[body] * m.body_gravcomp[body])
            name = f"{names.bodies[body]}.compensation"
            yield Written(GravityCompensation(name, places.mass_centre(body), held), *at)
        if wet and m.body_mass[body] >= _LEAST:
            for field in _fluid(places, body):
                yield Written(field, *at)


def _fluid(places: Places, body: int) -> Iterator[Field]:
    """Ellipsoids at the shapes that ask for it; a box for the body where none does."""
    source, names = places.source, places.names
    m = source.model
    x, y, z = m.opt.wind.tolist()
    density, viscosity = float(m.opt.density), float(m.opt.viscosity)
    first, count = int(m.body_geomadr[body]), int(m.body_geomnum[body])
    shapes = [geom for geom in range(first, first + count) if m.geom_fluid[geom, 0] > 0.0]
    for geom in shapes:
        share, *numbers = m.geom_fluid[geom].tolist()
        blunt, slender, angular, kutta, magnus, m_x, m_y, m_z, i_x, i_y, i_z = numbers
        yield FluidEllipsoid(
            f"{source.name('geom', geom)}.fluid",
            places.shape(geom),
            _semi_axes(source, geom),
            density * share,
            viscosity * share,
            (x, y, z),
            (blunt, slender, angular),
            (kutta, magnus),
            (m_x, m_y, m_z),
            (i_x, i_y, i_z),
        )
    if not shapes:
        a, b, c = m.body_inertia[body].tolist()
        mass = float(m.body_mass[body])
        e_x, e_y, e_z = (math.sqrt(6.0 * max(_LEAST, moment) / mass) for moment in (b + c - a, a + c - b, a + b - c))
        frame = places.mass_centre(body)
        yield FluidBox(f"{names.bodies[body]}.fluid", frame, (e_x, e_y, e_z), density, viscosity, (x, y, z))


def _semi_axes(source: Compiled, geom: int) -> tuple[float, float, float]:
    """Of the ellipsoid that stands for a shape."""
    a, b, c = source.model.geom_size[geom].tolist()
    kind = source.word("mjtGeom", source.model.geom_type[geom])
    if kind == "sphere":
        return a, a, a
    if kind in ("capsule", "cylinder"):
        return a, a, b + a if kind == "capsule" else b
    return a, b, c
