"""Small mechanisms with known motion."""

import numpy as np

import linkwise as lw


def pendulum():
    """The simple pendulum of IFToMM A01: 1 kg at 1 m, gravity along -y; q = π is the start (-1, 0)."""
    b = lw.ModelBuilder("pendulum", gravity=(0, -9.81, 0))
    b.add_body("mass", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, com=(1, 0, 0))
    return b.build()


def double_pendulum():
    b = lw.ModelBuilder("double_pendulum", gravity=(0, -9.81, 0))
    b.add_body("upper", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, com=(1, 0, 0))
    b.add_body("lower", "upper", lw.Revolute(axis=(0, 0, 1)), lw.transform(xyz=(1, 0, 0)), mass=0.7, com=(0.8, 0, 0))
    return b.build()


def top(joint=None):
    """A free asymmetric body without gravity."""
    b = lw.ModelBuilder("top", gravity=(0, 0, 0))
    b.add_body("body", joint=joint or lw.Free(), mass=2.0, inertia=np.diag([1.0, 2.0, 3.0]))
    return b.build()


def satellite():
    """A hub with two panels on springs (references: 750 kg, two panels of 100 kg); the springs are an element."""
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=750.0, inertia=np.diag([900.0, 800.0, 600.0]))
    for name, side in (("left", -1.0), ("right", 1.0)):
        b.add_body(
            name,
            "hub",
            lw.Revolute(axis=(0, 1, 0)),
            lw.transform(xyz=(0.5 * side, 1.0, 0.0)),
            mass=100.0,
            com=(1.5 * side, 0, 0),
            inertia=np.diag([100.0, 50.0, 50.0]),
        )
    return b.build()


def slider(**joint):
    """A mass on a rail, no gravity along it."""
    b = lw.ModelBuilder("slider", gravity=(0, 0, 0))
    b.add_body("block", joint=lw.Prismatic(axis=(1, 0, 0)), mass=2.0, inertia=np.eye(3), **joint)
    return b.build()


def mixed():
    """A free base, a ball joint, a hinge and a slider: charts of every kind in one chain."""
    b = lw.ModelBuilder("mixed")
    I = np.diag([0.3, 0.4, 0.5])
    b.add_body("base", joint=lw.Free(), mass=3.0, com=(0.1, 0, 0.05), inertia=I)
    b.add_body("ball", "base", lw.Spherical(), lw.transform(xyz=(0.3, 0, 0)), mass=1.0, com=(0, 0.2, 0), inertia=I)
    b.add_body(
        "hinge",
        "ball",
        lw.Revolute(axis=(1, 1, 0)),
        lw.transform(xyz=(0, 0.4, 0)),
        mass=0.5,
        com=(0, 0, 0.2),
        inertia=I,
    )
    b.add_body("plate", "base", lw.Planar(), lw.transform(xyz=(-0.3, 0, 0)), mass=0.6, com=(0.1, 0.1, 0), inertia=I)
    b.add_body("rod", "hinge", lw.Prismatic(axis=(0, 0, 1)), lw.transform(), mass=0.4, com=(0, 0, 0.1), inertia=I)
    return b.build()
