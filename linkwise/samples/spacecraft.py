"""Spacecraft: a satellite whose panels bend."""

from __future__ import annotations

import math

import numpy as np

from linkwise.flexible.body import FlexibleBody
from linkwise.joints import Free, Revolute
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import box
from linkwise.model.model import Model, ModelBuilder


def flexible_satellite(modes: int = 2, damping: float = 0.0) -> Model:
    """A hub of 20 kg, free in space, with two panels of 3 m and 4.5 kg that bend, on hinges with springs; no gravity.

    Bodies ``hub``, ``right`` and ``left``; the panels reach along x to both sides and turn about y, on the joints
    ``right hinge`` and ``left hinge`` with springs of 7 N m/rad. Held at its hinge a panel swings at 0.3 Hz across its
    face and 0.5 Hz in its plane. q begins with the pose of the hub (``root_joint``: w, x, y, z and position, m); each
    panel has its modal coordinates, then the angle of its hinge.

    Args:
        modes: bending modes of each panel, across its face and in its plane.
        damping: ratio ζ of every mode.
    """
    panel = FlexibleBody.beam(
        3.0,
        2e4,
        (40.0, 90.0),
        25.0,
        1.5,
        elements=8,
        modes=(modes, modes),
        axial_modes=0,
        torsion_modes=0,
        damping=damping,
    )
    b = ModelBuilder("flexible_satellite", gravity=(0.0, 0.0, 0.0))
    hub = box((1.0, 0.7, 0.6), rgba=(0.8, 0.72, 0.5))
    b.add_body(
        "hub",
        joint=Free(),
        joint_name="root_joint",
        mass=20.0,
        inertia=np.diag([3.0, 4.0, 5.0]),  # more than that of a uniform box: tanks lie outside
        visuals=hub.named("hub").visuals,
        collisions=hub.named("hub").collisions,
    )
    for name, x, turn in (("right", 0.5, 0.0), ("left", -0.5, math.pi)):
        place = transform(xyz=(x, 0.0, 0.0), rpy=(0.0, 0.0, turn))
        b.add_body(name, "hub", Revolute((0, 1, 0)), place, joint_name=f"{name} hinge", flexible=panel, stiffness=7.0)
    return b.build()
