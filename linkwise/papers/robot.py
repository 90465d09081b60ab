"""The first thing to see: a robot that moves, in 3-D."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise import samples
from linkwise.mechanism.bodies_and_joints import Named, rows
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.placement import transform
from linkwise.model.model import Model
from linkwise.papers.report_page import ReportPage
from linkwise.sim.actuators import ComputedTorque
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import cos, sin
from linkwise.viz.recording import embedded, motion_html

SWING = 8.0
"""s: the period of the motion."""
_STEEL, _PAINT, _DARK = (0.62, 0.66, 0.72, 1.0), (0.90, 0.47, 0.20, 1.0), (0.20, 0.23, 0.28, 1.0)
_SHAPES: dict[str, list[tuple[Any, tuple[float, ...], tuple[float, float, float], Any]]] = {
    # kind, size, where in the body's frame, colour
    "world": [
        ("cylinder", (0.13, 0.04), (0, 0, -0.28), _DARK),
        ("cylinder", (0.08, 0.28), (0, 0, -0.14), _STEEL),
    ],
    "link1": [("cylinder", (0.07, 0.2), (0, 0, 0.1), _PAINT), ("sphere", (0.075,), (0, 0, 0.2), _PAINT)],
    "link2": [("cylinder", (0.05, 0.14), (0, 0, 0.05), _STEEL), ("box", (0.12, 0.16, 0.1), (0, 0, 0.1), _PAINT)],
    "link3": [("box", (0.05, 0.05, 0.9), (0, 0, -0.05), _STEEL)],
    "link4": [("cylinder", (0.032, 0.2), (0, 0, 0.5), _DARK)],
    "link5": [("sphere", (0.042,), (0, 0, 0), _PAINT), ("cylinder", (0.03, 0.09), (0, 0, 0), _STEEL)],
    "link6": [
        ("cylinder", (0.025, 0.06), (0, 0, 0.05), _DARK),
        ("box", (0.03, 0.12, 0.02), (0, 0, 0.085), _STEEL),
        ("box", (0.022, 0.015, 0.06), (0, 0.045, 0.12), _STEEL),
        ("box", (0.022, 0.015, 0.06), (0, -0.045, 0.12), _STEEL),
    ],
}  # fmt: skip


def dressed_arm() -> Model:
    """The Stanford arm of Saha 1999 table 3 with a housing: the same bodies, to be looked at."""
    model = samples.stanford_arm()
    bodies = Named(replace(body, visuals=_shapes(body.name)) for body in model.bodies)
    return replace(model, bodies=bodies, base_visuals=_shapes("world"))


def _shapes(body: str) -> tuple[Geometry, ...]:
    return tuple(
        Geometry(
            kind,
            size,
            None,
            (1.0, 1.0, 1.0),
            rows(transform(xyz=at)),
            body,
            rgba=rgba,
        )
        for kind, size, at, rgba in _SHAPES[body]
    )


def controlled_motion(duration: float = SWING) -> Trajectory:
    """The arm follows a periodic motion under computed torque, from a start beside it."""
    model = dressed_arm()
    middle = np.array([0.0, 1.35, 0.12, 0.0, 0.0, 0.0])
    reach = np.array([1.2, 0.45, 0.12, 1.5, 0.9, 2.0])
    turns = np.array([1.0, 2.0, 2.0, 1.0, 2.0, 1.0]) * (2.0 * math.pi / SWING)
    phase = np.array([0.0, 0.7, -1.2, 1.5, 0.3, 0.0])

    def wave(t: Any, derivative: int) -> list[Any]:
        """The target, or its first or second derivative, at a time that may be traced."""
        found = []
        for m, r, w, f in zip(middle.tolist(), reach.tolist(), turns.tolist(), phase.tolist(), strict=True):
            angle = t * w + f
            found.append((m + r * sin(angle), r * w * cos(angle), -r * w * w * sin(angle))[derivative])
        return found

    control = ComputedTorque(
        model, lambda t, p: wave(t, 0), lambda t, p: wave(t, 1), lambda t, p: wave(t, 2), kp=40.0, kd=12.0
    )
    start = np.array([float(x) for x in wave(0.0, 0)]) + np.array([0.3, 0.15, 0.05, 0.4, -0.3, 0.5])
    return simulate(model, start, duration=duration, control=control, output_times=np.linspace(0, duration, 241))


def robot_section(page: ReportPage) -> None:
    """The player, and how it came about."""
    motion = controlled_motion()
    page.section("robot", "A robot that moves")
    page.text(
        "The Stanford arm of Saha 1999, table 3, six freedoms with a slide as the third, simulated with a controller "
        "(computed torque) that pulls it onto a periodic motion. Turn it with the mouse or a finger."
    )
    document = motion_html(motion, fps=30.0, closer=1.5)
    # The player asks the reader's system for day or night when it starts, as this page does.
    document = document.replace("{darkMode:false}", '{darkMode:matchMedia("(prefers-color-scheme: dark)").matches}', 1)
    page.figure(
        "",
        embedded(document, 480, "the Stanford arm, moving"),
        f"{motion.t[-1]:g} s of simulation, {motion.steps} steps of {motion.method}. The masses and inertias are the "
        "paper's; the housing is ours.",
    )
    page.code(
        """
import linkwise as lw
from linkwise import samples

model = samples.stanford_arm()
motion = lw.simulate(model, [0, 1.57, 0, 0, 0, 0], duration=3.5)
motion.save_html("motion.html")      # a page like this one; motion.view() plays it at once
"""
    )
