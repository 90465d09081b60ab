"""A light arm whose links bend."""

from __future__ import annotations

from linkwise.flexible.body import FlexibleBody
from linkwise.joints import Revolute
from linkwise.mechanism.placement import transform
from linkwise.model.model import Model, ModelBuilder


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
