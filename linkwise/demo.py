"""The worked examples of 002 §6 as a report: ``make demo``, ``linkwise demo`` or ``python -m linkwise.demo``.

Inverse dynamics along the cycloidal motion (RIDIM) and free fall (RFDSIM), of the planar arm and the Stanford arm.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise import __version__, models
from linkwise.model_api.model import Model
from linkwise.report.figures import line_figure, panel_figure
from linkwise.report.motions import cycloidal
from linkwise.report.page import Page
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory

Array = NDArray[Any]
Checks = list[tuple[bool, str]]

DURATION = 10.0  # s, of the cycloidal motion
FALL = 3.5  # s


class Forces(NamedTuple):
    """Joint forces over a motion."""

    t: Array
    q: Array
    v: Array
    vdot: Array
    tau: Array


def forces(model: Model, start: Array, end: Array, samples: int = 401) -> Forces:
    """The joint forces of the cycloidal motion between two configurations."""
    t = np.linspace(0.0, DURATION, samples)
    q, v, vdot = cycloidal(model, start, end, t, DURATION)
    return Forces(t, q, v, vdot, model.inverse_dynamics(q, v, vdot))


def force_table() -> str:
    """The joint forces of the Stanford arm over its cycloidal motion, second by second, as text."""
    motion = forces(models.stanford_arm(), STANFORD_START, STANFORD_END, samples=11)
    lines = ["Stanford arm, joint forces of the cycloidal motion (N m; N for the slide, joint 3)"]
    lines.append("  t, s" + "".join(f"{f'joint {k + 1}':>10}" for k in range(6)))
    lines += [f"{t:6.1f}" + "".join(f"{x:10.4f}" for x in tau) for t, tau in zip(motion.t, motion.tau, strict=True)]
    return "\n".join(lines)


def free_fall(model: Model, start: Array, samples: int = 701) -> Trajectory:
    """The motion from rest under gravity alone."""
    return simulate(model, start, duration=FALL, output_times=np.linspace(0.0, FALL, samples), rtol=1e-11)


def make_report(path: str | Path = "linkwise_demo.html") -> Path:
    """Compute both examples and write the page; returns where it is."""
    began = perf_counter()
    page = Page(
        "Two arms, as in the paper",
        "The worked examples of Saha, <i>Dynamics of serial multibody systems using the decoupled natural "
        "orthogonal complement matrices</i> (1999), §6, computed by linkwise: the joint forces of a prescribed motion "
        "(inverse dynamics, the paper's program RIDIM), and free fall (forward dynamics, its program RFDSIM).",
    )
    page.text(
        f"Every joint moves from rest to rest in T = {DURATION:g} s along "
        "θ(t) = θ(0) + (θ(T) − θ(0)) [t/T − sin(2πt/T)/2π]. Each number below was computed just now, on this machine."
    )
    planar, stanford = models.planar_arm(), models.stanford_arm()
    _planar_section(page, planar)
    _stanford_section(page, stanford)
    _cost_section(page, [planar, stanford])
    page.heading("The same in your own hands")
    page.code(
        """
linkwise inverse stanford_arm --from 0,1.5708,0,0,0,0 --to 1.0472,1.0472,0.1,1.0472,1.0472,1.0472 --plot forces.png
linkwise simulate stanford_arm --q0 0,1.5708,0,0,0,0 --duration 3.5 --plot fall.png
"""
    )
    page.footer(f"linkwise {__version__}. Computed, compiled and drawn in {perf_counter() - began:.1f} s.")
    return page.save(path)


# The planar arm.
def _planar_section(page: Page, model: Model) -> None:
    start, end = np.zeros(3), np.full(3, np.pi)
    motion, fall = forces(model, start, end), free_fall(model, start)
    page.heading("A planar arm of three links")
    page.text(
        "It moves in the X–Y plane, with gravity along −Y. The paper does not print its link data; here each link is a "
        f"uniform rod of {_length(model):g} m and {model.bodies[0].mass:g} kg, which gives the first torque the size "
        "it has in the figure."
    )
    page.beside(
        "Figure 5: joint torques of the cycloidal motion, θ from 0 to π in all joints",
        line_figure(motion.t, [(f"τ{k + 1}", motion.tau[:, k]) for k in range(3)], y_label="torque (N m)"),
        "Joint torques. In the paper's figure the axis runs from −2 to 5 N m.",
        [
            "The joint torques obtained from RIDIM are plotted in Fig. 5 […]. The plots are also verified with the "
            "plots obtained from the explicit expressions."
        ],
        planar_force_checks(model, motion),
    )
    page.beside(
        "Figure 6: free fall from θ = 0",
        line_figure(fall.t, [(f"θ{k + 1}", fall.q[:, k]) for k in range(3)], y_label="joint angle (rad)"),
        "Joint angles. The arm starts stretched out along X, at rest.",
        [
            "Note from Fig. 4 that due to gravity the first joint angle, θ1, will increase initially in the negative "
            "direction, as evident from Fig. 6.",
            "Moreover, the system under gravity behaves as a triple pendulum.",
        ],
        planar_fall_checks(model, fall),
    )


def planar_force_checks(model: Model, motion: Forces) -> Checks:
    """What the text says of figure 5, and what we can say beyond."""
    error = np.abs(explicit_planar_torques(model, motion) - motion.tau).max()
    first = motion.tau[:, 0]
    return [
        (bool(error < 1e-12), f"The explicit expressions for the three torques agree to {error:.0e} N m."),
        (
            bool(first.max() < 5.0 and first.min() > -2.0),
            f"τ1 runs from {_minus(first.min())} to {_minus(first.max())} N m, inside the figure's axis; it starts at "
            f"{first[0]:.2f} N m, the moment of the weight of the stretched arm.",
        ),
        (
            bool(np.allclose(motion.tau[-1], model.gravity_force(motion.q[-1]))),
            "At both ends the arm rests, and only gravity is left.",
        ),
    ]


def planar_fall_checks(model: Model, fall: Trajectory) -> Checks:
    """What the text says of figure 6, and what we can say beyond."""
    early = fall.q[(fall.t > 0.0) & (fall.t < 0.3), 0]
    drift = np.abs(fall.energy - fall.energy[0]).max()
    down = np.flatnonzero(fall.q[:, 0] < -np.pi / 2)
    return [
        (bool((early < 0.0).all()), "θ1 first turns in the negative direction."),
        (
            bool(len(down)),
            f"It swings through the vertical at {fall.t[down[0]]:.2f} s and to {_minus(fall.q[:, 0].min())} rad on the "
            "other side, while the outer links whip about it: a triple pendulum.",
        ),
        (bool(drift < 1e-9), f"Energy stays constant to {drift:.0e} J over {FALL:g} s."),
    ]


def _minus(value: float) -> str:
    """Two digits, with a typographer's minus sign."""
    return f"{value:.2f}".replace("-", "−")


def _length(model: Model) -> float:
    return float(model.bodies[1].placement[0][3])


def explicit_planar_torques(model: Model, motion: Forces) -> Array:
    """The three torques from the accelerations of the mass centres, by Newton's law: no recursion, no frames."""
    l, m, g = _length(model), model.bodies[0].mass, -model.gravity[1]
    moment = model.bodies[0].parts[0].inertia[2]
    angle, rate, second = (np.cumsum(x, axis=1) for x in (motion.q, motion.v, motion.vdot))
    along = np.stack([np.cos(angle), np.sin(angle)], axis=-1)  # (T, link, xy)
    across = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    pull = second[..., None] * across - (rate**2)[..., None] * along  # acceleration of a point 1 m out, from each link

    def before(x: Array) -> Array:  # the sum over the inner links
        return np.asarray(np.cumsum(x, axis=1) - x)

    joint, center = l * before(along), l * before(along) + 0.5 * l * along
    force = m * (l * before(pull) + 0.5 * l * pull + np.array([0.0, g]))
    tau = np.zeros_like(motion.tau)
    for k in range(3):
        arm = center[:, k:] - joint[:, k : k + 1]
        tau[:, k] = np.sum(
            arm[..., 0] * force[:, k:, 1] - arm[..., 1] * force[:, k:, 0] + moment * second[:, k:], axis=1
        )
    return tau


# The Stanford arm.
STANFORD_START = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
STANFORD_END = np.array([np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3])
_JOINTS = ("θ1", "θ2", "b3", "θ4", "θ5", "θ6")


def _stanford_section(page: Page, model: Model) -> None:
    motion, fall = forces(model, STANFORD_START, STANFORD_END), free_fall(model, STANFORD_START)
    page.heading("The Stanford arm")
    page.text(
        "Six freedoms, the third joint prismatic; Denavit–Hartenberg parameters, masses and inertias of the paper's "
        "table 3, gravity along −Z. The motion goes to 60° in every revolute joint and to b3 = 0.1 m; θ2 starts at "
        "90°, where the slide is level, all others at zero."
    )
    titles = [f"({'abcdef'[k]}) joint {k + 1}" for k in range(6)]
    units = ["N m", "N m", "N", "N m", "N m", "N m"]
    page.above(
        "Figure 8: joint forces of the cycloidal motion",
        panel_figure(motion.t, [(titles[k], units[k], motion.tau[:, k]) for k in range(6)]),
        "Joint torques, and the force of the slide (c).",
        ["The joint torques are calculated from RIDIM and plotted in Figs. 8(a)–(f), which exactly match with those "
         "reported in Cyril (1988) for the same arm."],
        stanford_force_checks(model, motion),
    )  # fmt: skip
    turned = np.where(np.arange(6) == 2, 1.0, 180.0 / np.pi)
    page.above(
        "Figure 9: free fall",
        panel_figure(
            fall.t,
            [(f"{titles[k]}, {_JOINTS[k]}", "m" if k == 2 else "degrees", fall.q[:, k] * turned[k]) for k in range(6)],
        ),
        f"Joint motions from rest over {FALL:g} s. Nothing holds the slide: it runs out as far as it falls.",
        ["Interpretations similar to the planar manipulator, as given in Section 6.1, can be provided for the Stanford "
         "arm also. For example, the motion of joint 3 should sharply increase once the joint 2 turns more than 90 "
         "deg, which are evident from Figs. 9(c) and (b), respectively."],
        stanford_fall_checks(model, fall),
    )  # fmt: skip


def stanford_force_checks(model: Model, motion: Forces) -> Checks:
    """What can be said of figure 8 without Cyril's thesis at hand."""
    from linkwise import classics

    some = range(0, len(motion.t), 40)
    inverse = [a for a in classics.ALGORITHMS.of_kind("inverse") if a.name.startswith(("denoc", "newton"))]
    error = max(
        np.abs(classics.run(a.name, model, motion.q[i], motion.v[i], motion.vdot[i]) - motion.tau[i]).max()
        for a in inverse
        for i in some
    )
    lost = np.abs(model.forward_dynamics(motion.q, motion.v, motion.tau) - motion.vdot).max()
    weight = 9.81 * sum(body.mass for body in model.bodies[2:])
    slide = weight * np.cos(motion.q[-1, 1])
    return [
        (
            bool(error < 1e-10),
            f"{len(inverse)} classical algorithms, the paper's own DeNOC among them, give the same forces to "
            f"{error:.0e} N m.",
        ),
        (bool(lost < 1e-10), f"Forward dynamics of these forces returns the accelerations to {lost:.0e} rad/s²."),
        (
            bool(abs(motion.tau[-1, 2] + slide) < 1e-9),
            f"At the end the slide, 30° below level, needs {_minus(motion.tau[-1, 2])} N: the weight of links 3 to 6 "
            f"along it, {weight:.2f} N · cos 60°.",
        ),
    ]


def stanford_fall_checks(model: Model, fall: Trajectory) -> Checks:
    """What the text says of figure 9, and what we can say beyond."""
    turned = np.degrees(fall.q[0, 1] - fall.q[:, 1])
    slide = fall.q[:, 2]
    a, b = (int(np.argmax(turned > degrees)) for degrees in (45.0, 85.0))
    drift = np.abs(fall.energy - fall.energy[0]).max()
    pull = fall.vdot[-1, 2]
    return [
        (
            bool(slide[a] < 0.2 and slide[-1] > 10.0),
            f"The slide has moved {slide[a] * 100:.0f} cm when joint 2 has turned by 45° ({fall.t[a]:.2f} s), "
            f"{slide[b]:.1f} m at 85° ({fall.t[b]:.2f} s), and {slide[-1]:.0f} m at the end.",
        ),
        (
            bool(abs(pull - 9.81) < 0.1),
            f"Once joint 2 has turned by 90° the slide hangs straight down and falls freely: b3 accelerates with "
            f"{pull:.2f} m/s².",
        ),
        (bool(drift < 1e-9), f"Energy stays constant to {drift:.0e} J over {FALL:g} s."),
    ]


# What it costs.
def _cost_section(page: Page, arms: Sequence[Model]) -> None:
    page.heading("What it costs")
    page.text(
        "Both programs are straight-line code made for the arm at hand: constants folded, structural zeros gone. "
        "The paper's formulas for a general arm of six revolute joints give 676 multiplications and 527 additions for "
        "inverse dynamics (120n − 44, 97n − 55), 871 and 797 for forward dynamics (201n − 335, 193n − 361)."
    )
    rows = []
    for model in arms:
        for name in ("inverse_dynamics", "forward_dynamics"):
            counts = model.function(name).counts
            rows.append(
                [
                    f"{model.name}, {name.replace('_', ' ')}",
                    str(counts.M),
                    str(counts.A),
                    f"{_ns_per_state(model, name):.0f}",
                ]
            )
    page.table(["", "multiplications, divisions", "additions, subtractions", "ns per state, batch, one core"], rows)


def _ns_per_state(model: Model, name: str, states: int = 8192) -> float:
    rng = np.random.default_rng(0)
    q, v, x = (rng.uniform(-1.0, 1.0, (states, model.nv)) for _ in range(3))
    out = np.empty_like(x)
    function = getattr(model, name)
    function(q, v, x, out=out)
    best = np.inf
    for _ in range(50):
        start = perf_counter()
        function(q, v, x, out=out)
        best = min(best, perf_counter() - start)
    return float(best / states * 1e9)


def main() -> int:
    """Write the report and say where it is."""
    path = make_report(sys.argv[1] if len(sys.argv) > 1 else "linkwise_demo.html")
    print(force_table())
    print(f"The report is {path.resolve()}: open it in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
