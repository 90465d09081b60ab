"""Fields that act on bodies where they are: compensation of gravity, and a fluid."""

from __future__ import annotations

import math
from collections.abc import Iterator

from linkwise.files.description import Written
from linkwise.files.mjcf.compiled import Compiled
from linkwise.files.mjcf.tree import Places
from linkwise.mechanism.fields import Field, FluidBox, FluidEllipsoid, GravityCompensation

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
