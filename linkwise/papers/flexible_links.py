"""Rodriguez 1989 §4, Rodriguez, Jain and Kreutz: flexible links."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from linkwise import samples
from linkwise.array_types import Array
from linkwise.flexible.body import FlexibleBody
from linkwise.joints import Revolute
from linkwise.model.model import Model, ModelBuilder
from linkwise.papers.animation import Line, animation, boxes, skeleton
from linkwise.papers.drawings import line_figure
from linkwise.papers.report_page import Checks, ReportPage
from linkwise.papers.unified import rule_errors
from linkwise.sim.elements import Vector
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import Scalar, cos, where

# Simo and Vu-Quoc's beam; the deflection and the extension as recomputed by two independent methods.
LENGTH, EA, EI, MASS_PER_LENGTH, ROTARY = 10.0, 2.8e7, 1.4e4, 1.2, 6e-4
DEFLECTION, EXTENSION = -0.574, 5.143e-4
SPIN_UP = 15.0
"""s: after that the base turns steadily with 6 rad/s."""


def bending_part(page: ReportPage) -> None:
    """The equations of Rodriguez 1989 about flexible links, and two mechanisms with them."""
    _chain(page)
    _spin_up(page)
    _satellite(page)


# Equations 4.1 to 4.3.
def cantilever_errors() -> list[float]:
    """First three frequencies of the clamped beam in the model against the roots of cos β cosh β = −1, relative."""
    beam = FlexibleBody.beam(LENGTH, EA, (EI, EI), 1e4, MASS_PER_LENGTH, modes=(5, 0), axial_modes=0)
    builder = ModelBuilder("cantilever", gravity=(0.0, 0.0, 0.0))
    builder.add_body("beam", flexible=beam)
    model = builder.build()
    lin = model.linearize_forward(model.neutral(), np.zeros(model.nv), np.zeros(model.nv))
    found = np.sqrt(np.sort(np.linalg.eigvals(-np.asarray(lin.dq)).real))[:3]
    roots = [brentq(lambda b: np.cos(b) * np.cosh(b) + 1.0, low, low + 2.0) for low in (1.0, 4.0, 7.0)]
    exact = np.square(roots) * np.sqrt(EI / (MASS_PER_LENGTH * LENGTH**4))
    return [float(abs(a / b - 1.0)) for a, b in zip(found, exact, strict=True)]


def _chain(page: ReportPage) -> None:
    model = samples.flexible_arm()
    rng = np.random.default_rng(0)
    q = np.asarray(model.neutral()) + 0.02 * rng.normal(size=model.nq)
    ops = model.operators(q, np.zeros(model.nv))
    factored = np.asarray(ops.mass_matrix.dense())
    mass = np.asarray(model.mass_matrix(q))
    error = float(np.abs(factored - mass).max() / np.abs(mass).max())
    worst = max(rule_errors([model]).values())
    bent = max(cantilever_errors())
    page.part("Equations 4.1 to 4.3 and the mass matrix of section 4: links that bend")
    page.text(
        "A link comes from a finite-element model. Its modes of deformation are freedoms before those of its hinge, "
        "and the same operators, of larger blocks, factor the mass matrix, so the O(n) recursions stay as they are."
    )
    page.found(
        [
            (
                error < 1e-10,
                f"For an arm of two flexible tubes ({model.nv} freedoms) the factored mass matrix is the one computed "
                f"by composite bodies to {error:.0e}.",
            ),
            (worst < 1e-8, f"All identities of the rigid chains hold for it too, to {worst:.0e}."),
            (bent < 1e-3, f"A clamped beam has the first three frequencies of the textbook to {bent:.0e}."),
        ]
    )


# A beam that is spun up.
ROTOR = 1e12  # kg m²


def turntable(stiffening: bool = True) -> Model:
    """A beam along x on a hinge about z, with so heavy a rotor that the beam cannot hold it back; no gravity."""
    beam = FlexibleBody.beam(
        LENGTH, EA, (EI, EI), 1e4, MASS_PER_LENGTH, modes=(5, 0), axial_modes=2, rotary_inertia=ROTARY,
        stiffening=stiffening,
    )  # fmt: skip
    builder = ModelBuilder("turntable", gravity=(0.0, 0.0, 0.0))
    builder.add_body("beam", joint=Revolute(axis=(0, 0, 1)), flexible=beam, armature=ROTOR)
    return builder.build()


def spin_up(duration: float = 20.0, pictures: int = 501) -> tuple[Trajectory, Array]:
    """The motion, and the tip's displacement in the turning frame (T, 3)."""
    model = turntable()
    hinge = model.joints[0].v_slice.start

    def drive(t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
        rate = where(t < SPIN_UP, 0.4 * (1.0 - cos(t * (2 * np.pi / SPIN_UP))), 0.0 * t)
        return [ROTOR * rate if i == hinge else 0.0 for i in range(model.nv)]

    t = np.linspace(0.0, duration, pictures)
    motion = simulate(model, model.neutral(), duration=duration, control=drive, output_times=t, rtol=1e-8)
    root, tip = (np.asarray(model.pose(motion.q, "beam", node=node)) for node in ("root", "tip"))
    return motion, np.asarray((np.linalg.inv(root) @ tip)[:, :3, 3] - np.array([LENGTH, 0.0, 0.0]))


def spin_up_checks(t: Array, deflection: Array) -> Checks:
    """Against values that two other computations agree on."""
    lowest = int(deflection[:, 1].argmin())
    late = t > SPIN_UP
    stretch = float(deflection[late, 0].mean())
    least = float(deflection[lowest, 1])
    return [
        (
            abs(least / DEFLECTION - 1.0) < 0.01,
            f"The tip lags by {abs(least):.4f} m at most, at {t[lowest]:.2f} s; tabulated: {abs(DEFLECTION):.3f} m "
            "near 6.76 s.",
        ),
        (
            abs(stretch / EXTENSION - 1.0) < 0.02,
            f"Spun up, the beam is longer by {stretch * 1e3:.4f} mm; ρAΩ²L³/3EA is {EXTENSION * 1e3:.4f} mm.",
        ),
    ]


def _spin_up(page: ReportPage) -> None:
    motion, deflection = spin_up()
    model = turntable()
    some = slice(0, 401, 2)  # 16 s
    straight = np.asarray(model.pose(motion.q[some], "beam"))
    rigid = Line(
        np.stack([straight[:, :3, 3], straight[:, :3, 3] + LENGTH * straight[:, :3, 0]], axis=1), -1, 2.0, dots=False
    )
    page.panels(
        "A beam that is spun up",
        [
            (
                animation(
                    motion.t[some], [rigid, *skeleton(model, motion.q[some], 0, 4.0)],
                    "a beam is turned faster and faster, bends back and straightens", view="xy", speed=2.0,
                ),
                "Seen from above, at twice its speed; grey: where a rigid beam would be.",
            ),
            (
                line_figure(motion.t, [("across", deflection[:, 1])], y_label="tip, in the turning frame (m)"),
                "The tip's deflection. Without the stiffening by the centrifugal force it would grow without bound.",
            ),
        ],
        ["A link of any finite-element model can be a member of the chain. (The beam and its data are Simo and "
         "Vu-Quoc's, a test that this paper does not have.)"],
        spin_up_checks(motion.t, deflection),
    )  # fmt: skip


# A satellite.
def satellite_motion(duration: float = 12.0, pictures: int = 241) -> Trajectory:
    """Motion of a satellite that tumbles, while its panels swing on their springs and bend."""
    model = samples.flexible_satellite()
    v = np.zeros(model.nv)
    v[model.joints[0].v_slice] = [0.35, 0.15, 0.3, 0.0, 0.0, 0.0]
    v[model.joints["right hinge"].v_slice] = 0.5
    t = np.linspace(0.0, duration, pictures)
    return simulate(model, model.neutral(), v, duration=duration, output_times=t, rtol=1e-10)


def satellite_checks(motion: Trajectory) -> Checks:
    """Checks that energy and momentum stay, as nothing outside acts."""
    model = samples.flexible_satellite()
    energy = float(np.abs(motion.energy - motion.energy[0]).max() / motion.energy[0])
    momentum = np.asarray(model.momentum(motion.q, motion.v))
    turn = float(np.abs(momentum - momentum[0])[:, :3].max() / np.linalg.norm(momentum[0, :3]))
    return [
        (energy < 1e-7, f"Energy, with that of springs and bending, stays constant to {energy:.0e}, relative."),
        (turn < 1e-7, f"Angular momentum stays constant to {turn:.0e}."),
    ]


def _satellite(page: ReportPage) -> None:
    motion = satellite_motion()
    model = samples.flexible_satellite()
    lines = [
        *boxes(model, motion.q, "hub", (1.0, 0.7, 0.6), (0.0, 0.0, 0.0), -2),
        *(line for line in skeleton(model, motion.q, 0, 5.0) if not line.dots),
    ]
    page.beside(
        "A satellite with flexible panels",
        animation(motion.t, lines, "a satellite tumbles, its panels swing and bend", view=(-65.0, 25.0), speed=1.0),
        f"A hub and two panels of 3 m on springs, {model.nv} freedoms, tumbling freely for {motion.t[-1]:g} s.",
        ["A free base is a joint with six freedoms like any other; large spacecraft are what the formulation is for."],
        satellite_checks(motion),
    )
