"""Mechanisms with flexible bodies for tests."""

import numpy as np

import linkwise as lw
from tests.flexible.textbook import beam


def small_beam(**options):
    """A soft beam of 2 m with bending both ways, one axial mode and one of torsion."""
    chosen = {"elements": 6, "modes": (2, 1), "axial_modes": 1, "torsion_modes": 1, "rotary_inertia": (0.01, 0.02)}
    return lw.FlexibleBody.beam(2.0, 2e3, (150.0, 90.0), 60.0, 1.2, **{**chosen, **options})


def arm():
    """A flexible beam on a hinge, another on its tip, a load on the second's tip, and a mass welded half way."""
    b = lw.ModelBuilder("flexible arm")
    link = small_beam(damping=0.02)
    b.add_body("one", joint=lw.Revolute(axis=(0, 1, 0.2)), placement=lw.transform(xyz=(0, 0, 0.3)), flexible=link)
    b.add_body(
        "two",
        parent="one",
        at="tip",
        joint=lw.Revolute(axis=(0, 1, 0)),
        placement=lw.transform(xyz=(0.05, 0, 0.02), rpy=(0.3, 0.1, -0.4)),
        joint_frame=lw.transform(xyz=(0.01, 0.03, 0), rpy=(0.1, 0, 0.2)),
        flexible=link,
    )
    b.add_body(
        "load",
        parent="two",
        at="tip",
        joint=lw.Prismatic(axis=(0, 0.6, 0.8)),
        placement=lw.transform(xyz=(0.1, 0, 0), rpy=(0, 0.2, 0.5)),
        mass=0.7,
        com=(0.1, 0.2, 0.05),
        inertia=np.diag([0.1, 0.2, 0.25]),
    )
    b.add_body("lump", parent="one", at=3, placement=lw.transform(xyz=(0, 0, 0.1)), mass=0.4, com=(0, 0.1, 0))
    b.add_body("hub", parent="two", mass=0.3, com=(0.02, 0.01, 0), inertia=np.diag([0.01, 0.02, 0.02]))
    return b.build()


def tree():
    """Rigid and flexible bodies with several children, on the root, on nodes and on welded bodies; one beam welded."""
    boom = small_beam(elements=4, modes=(1, 1), axial_modes=0, torsion_modes=0)
    b = lw.ModelBuilder("flexible tree", gravity=(0.5, -1.0, -9.0))
    b.add_body("base", joint=lw.Revolute(axis=(1, 0, 0)), mass=2.0, com=(0.1, 0, 0.1), inertia=np.diag([0.2, 0.3, 0.1]))
    place = lw.transform(xyz=(0.2, 0.1, 0), rpy=(0.2, 0.3, 0.4))
    b.add_body("boom", parent="base", joint=lw.Revolute(axis=(0, 0, 1)), placement=place, flexible=boom)
    b.add_body("plate", parent="boom", at="tip", placement=lw.transform(xyz=(0.1, 0, 0)), mass=0.5, com=(0.1, 0.1, 0))
    b.add_body("arm", parent="plate", joint=lw.Revolute(axis=(0, 1, 0)), placement=place, mass=0.6, com=(0, 0.3, 0.1))
    b.add_body("side", parent="boom", at=2, placement=place, flexible=boom)
    b.add_body("tip", parent="side", at="tip", joint=lw.Prismatic(axis=(1, 0, 0)), mass=0.3)
    b.add_body("back", parent="boom", joint=lw.Revolute(axis=(0, 1, 0)), placement=place, mass=0.6, com=(0, 0.3, 0.1))
    return b.build()


def panels():
    """Two bodies known by consistent mass matrices, whose sections turn: a beam from arrays, and one in nodal form."""
    b = lw.ModelBuilder("panels")
    matrices = beam(n=4, L=3.0, EA=2e4, EI_y=40.0, EI_z=90.0, GJ=25.0, mu=1.5, rho_p=0.05)
    reduced = lw.FlexibleBody.from_arrays(*matrices, root=0, keep=(4,), modes=5)
    matrices = beam(n=1, L=1.0, EA=2e3, EI_y=40.0, EI_z=90.0, GJ=25.0, mu=1.5, rho_p=0.05)
    nodal = lw.FlexibleBody.from_arrays(*matrices, root=0, keep=(1,), boundary="nodal")
    b.add_body("one", joint=lw.Revolute(axis=(0.6, 0, 0.8)), flexible=reduced)
    b.add_body("two", parent="one", at=4, joint=lw.Revolute(axis=(0, 1, 0)), flexible=nodal)
    return b.build()


def state(model, seed=0, speed=1.0):
    """A bent configuration and a motion."""
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng), speed * rng.normal(size=model.nv)
