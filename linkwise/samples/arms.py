"""Arms: the two of Saha 1999 §6, one of seven joints, and one that bends."""

from __future__ import annotations

import math

import numpy as np

from linkwise.checks import check_count
from linkwise.flexible.body import FlexibleBody
from linkwise.joints import Prismatic, Revolute
from linkwise.mechanism.description import JointLimits
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import capsule, cylinder
from linkwise.model.model import Model, ModelBuilder

_Y, _Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def planar_arm(n: int = 3, length: float = 0.5, mass: float = 0.2) -> Model:
    """A planar arm of uniform rods on hinges: it moves in the X–Y plane, with gravity along -Y (Saha 1999 §6.1).

    The paper does not print its link data. The defaults are chosen so that the first torque of its figure 5 starts
    where the figure has it, a little under 5 N m.

    Args:
        n: number of links.
        length: of each, m.
        mass: of each, kg.
    """
    check_count(n=n)
    builder = ModelBuilder("planar_arm", gravity=(0.0, -9.81, 0.0))
    parent = "world"
    moment = mass * length**2 / 12.0
    for i in range(1, n + 1):
        name = f"link{i}"
        builder.add_body(
            name,
            parent=parent,
            joint=Revolute(axis=(0.0, 0.0, 1.0)),
            joint_name=f"joint{i}",
            placement=transform(xyz=(0.0 if i == 1 else length, 0.0, 0.0)),
            mass=mass,
            com=(length / 2.0, 0.0, 0.0),
            inertia=np.diag([0.0, moment, moment]),
        )
        parent = name
    builder.add_frame("tip", parent, transform(xyz=(length, 0.0, 0.0)))
    return builder.build()


# Saha 1999 table 3: a m, b m, α deg, revolute?, mass kg, r m (mass centre to next joint) and inertia kg m² in frame i
# + 1
_STANFORD: tuple[tuple[float, float, float, bool, float, tuple[float, ...], tuple[float, ...]], ...] = (
    (0.0, 0.2, -90.0, True, 9.0, (0.0, -0.1, 0.0), (0.01, 0.02, 0.01)),
    (0.0, 0.1, -90.0, True, 6.0, (0.0, 0.0, 0.0), (0.05, 0.06, 0.01)),
    (0.0, 0.0, 0.0, False, 4.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.01)),
    (0.0, 0.6, 90.0, True, 1.0, (0.0, -0.1, 0.0), (0.001, 0.001, 0.0005)),
    (0.0, 0.0, -90.0, True, 0.6, (0.0, 0.0, 0.0), (0.0005, 0.0005, 0.0002)),
    (0.0, 0.0, 0.0, True, 0.5, (0.0, 0.0, 0.0), (0.003, 0.001, 0.002)),
)


def stanford_arm() -> Model:
    """The Stanford arm of Saha 1999 table 3: five revolute joints, the third prismatic; gravity along -Z.

    Frames are Denavit and Hartenberg's as in the paper's appendix A: frame i + 1 is fixed to link i, and follows frame
    i by Rz(θ) Tz(b) Tx(a) Rx(α). Here the frame of body i is frame i moved by its joint; q = (θ1, θ2, b3, θ4, θ5, θ6).
    """
    builder = ModelBuilder("stanford_arm")
    parent, placement = "world", np.eye(4)
    for i, (a, b, alpha, is_revolute, mass, r, inertia) in enumerate(_STANFORD, 1):
        next_frame = transform(xyz=(a, 0.0, b)) @ transform(rpy=(math.radians(alpha), 0.0, 0.0))
        R = next_frame[:3, :3]
        axis = (0.0, 0.0, 1.0)
        builder.add_body(
            f"link{i}",
            parent=parent,
            joint=Revolute(axis=axis) if is_revolute else Prismatic(axis=axis),
            joint_name=f"joint{i}",
            placement=placement,
            mass=mass,
            com=next_frame[:3, 3] - R @ np.array(r),
            inertia=R @ np.diag(inertia) @ R.T,
        )
        parent, placement = f"link{i}", next_frame
    builder.add_frame("hand", parent, placement)
    return builder.build()


def seven_joint_arm() -> Model:
    """An arm of seven hinges, 18.4 kg above its base, that reaches 0.93 m from its shoulder; gravity along -z.

    Dimensions and masses are our own. The joints ``joint1`` … ``joint7`` turn about z and y in turn (z, y, z, y, z, y,
    z), with the axes of 1 to 3 meeting in the shoulder, 0.35 m above the ground, and those of 5 to 7 in the wrist.
    Upright at zero. The frame ``tool`` is the flange, with z out of it. The configuration ``home`` has the tool point
    down in front of the base.
    """
    b = ModelBuilder("seven_joint_arm")
    dark, light, accent = (0.22, 0.24, 0.28), (0.86, 0.88, 0.9), (0.95, 0.55, 0.15)
    b.add_body("base", shape=cylinder(0.09, 0.15, mass=4.0, placement=(0, 0, 0.075), rgba=dark))
    upper, fore, hand = 0.42, 0.39, 0.12
    # axis, where the joint is above the one before, range and effort, shape as (radius, from, to, mass, colour)
    rows = (
        (_Z, 0.35, 2.95, 180.0, (0.075, -0.16, -0.05, 3.6, light)),
        (_Y, 0.0, 2.0, 180.0, (0.07, 0.0, 0.17, 3.8, accent)),
        (_Z, 0.0, 2.95, 110.0, (0.06, 0.24, upper - 0.05, 3.4, light)),
        (_Y, upper, 2.1, 110.0, (0.06, 0.0, 0.14, 3.0, accent)),
        (_Z, 0.0, 2.95, 70.0, (0.05, 0.2, fore - 0.05, 2.2, light)),
        (_Y, fore, 2.1, 40.0, (0.05, 0.0, 0.03, 1.8, accent)),
        (_Z, 0.0, 3.05, 40.0, (0.035, 0.07, hand, 0.6, dark)),
    )
    parent = "world"
    for i, (axis, above, turns, effort, (radius, low, high, mass, rgba)) in enumerate(rows, 1):
        b.add_body(
            f"link{i}",
            parent,
            Revolute(axis),
            transform(xyz=(0.0, 0.0, above)),
            joint_name=f"joint{i}",
            limits=JointLimits(-turns, turns, velocity=2.5 if i < 5 else 4.0, effort=effort),
            armature=1e-3 * effort,
            damping=0.5,
            shape=capsule(radius, ends=((0, 0, low), (0, 0, high)), mass=mass, rgba=rgba),
        )
        parent = f"link{i}"
    b.add_frame("tool", parent, transform(xyz=(0.0, 0.0, hand)))
    b.add_configuration("home", [0.0, 0.35, 0.0, 1.65, 0.0, math.pi - 2.0, 0.0])
    return b.build()


def flexible_arm(modes: int = 2, payload: float = 1.0, damping: float = 0.01) -> Model:
    """Two aluminium tubes of 1 m on hinges about y, one on the other's tip, and a load at the end; gravity along -z.

    Bodies ``upper`` and ``lower``, joints ``shoulder`` and ``elbow``; the load is the frame ``payload``.

    Args:
        modes: bending modes of each tube, in the plane of motion and across it.
        payload: kg.
        damping: ratio ζ of every mode.
    """
    tube = FlexibleBody.beam(
        length=1.0,
        EA=4.0e6,
        EI=(300.0, 300.0),
        GJ=230.0,
        mass_per_length=0.155,
        elements=8,
        modes=(modes, modes),
        axial_modes=0,
        torsion_modes=0,
        damping=damping,
    )
    b = ModelBuilder("flexible_arm")
    hinge = Revolute(axis=(0.0, 1.0, 0.0))
    place = transform(xyz=(0.0, 0.0, 0.5))
    b.add_body("upper", joint=hinge, joint_name="shoulder", placement=place, flexible=tube, armature=0.05)
    b.add_body("lower", parent="upper", at="tip", joint=hinge, joint_name="elbow", flexible=tube, armature=0.02)
    b.add_body("payload", parent="lower", at="tip", mass=payload)
    return b.build()
