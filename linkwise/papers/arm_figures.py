"""The two arms of Saha 1999 §6: joint forces along a motion, free fall, and what can be said of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise import samples
from linkwise.array_types import Array
from linkwise.classics.registry import ALGORITHMS, run
from linkwise.model.model import Model
from linkwise.papers.report_page import Checks
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory


def cycloidal(
    model: Model, start: ArrayLike, end: ArrayLike, t: ArrayLike, duration: float
) -> tuple[Array, Array, Array]:
    """The motion from rest to rest of Saha 1999 eq. 38 and 39: q (..., nq), v and v̇ (..., nv) at the times t (...).

    θ(t) = θ(0) + (θ(T) - θ(0)) [t/T - sin(2πt/T)/2π], along the straight line of every joint (a constant direction of
    turning, for joints with quaternions). Before 0 and after T it rests.
    """
    phase = np.clip(np.asarray(t, float) / duration, 0.0, 1.0)[..., None]
    turn = 2.0 * np.pi * phase
    way = model.difference(start, end)
    q = model.integrate(np.asarray(start, float), (phase - np.sin(turn) / (2.0 * np.pi)) * way)
    v = (1.0 - np.cos(turn)) / duration * way
    vdot = 2.0 * np.pi * np.sin(turn) / duration**2 * way
    return q, v, vdot


DURATION = 10.0  # s, of the cycloidal motion
FALL = 3.5  # s
STANFORD_START = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
STANFORD_END = np.array([np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3])


class ForceCurves(NamedTuple):
    """Joint forces over a motion."""

    t: Array
    q: Array
    v: Array
    vdot: Array
    tau: Array


def forces(model: Model, start: Array, end: Array, samples: int = 401) -> ForceCurves:
    """The joint forces of the cycloidal motion between two configurations."""
    t = np.linspace(0.0, DURATION, samples)
    q, v, vdot = cycloidal(model, start, end, t, DURATION)
    return ForceCurves(t, q, v, vdot, model.inverse_dynamics(q, v, vdot))


def free_fall(model: Model, start: Array) -> Trajectory:
    """The motion from rest under gravity alone."""
    return simulate(model, start, duration=FALL, output_times=np.linspace(0.0, FALL, 701), rtol=1e-11)


def force_table() -> str:
    """The joint forces of the Stanford arm over its cycloidal motion, second by second, as text."""
    motion = forces(samples.stanford_arm(), STANFORD_START, STANFORD_END, samples=11)
    lines = ["Stanford arm, joint forces of the cycloidal motion (N m; N for the slide, joint 3)"]
    lines.append("  t, s" + "".join(f"{f'joint {k + 1}':>10}" for k in range(6)))
    lines += [f"{t:6.1f}" + "".join(f"{x:10.4f}" for x in tau) for t, tau in zip(motion.t, motion.tau, strict=True)]
    return "\n".join(lines)


# The planar arm.
def planar_force_checks(model: Model, motion: ForceCurves) -> Checks:
    """Checks of the text on figure 5, and what we can say beyond."""
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


def planar_fall_checks(fall: Trajectory) -> Checks:
    """Checks of the text on figure 6, and what we can say beyond."""
    early = fall.q[(fall.t > 0.0) & (fall.t < 0.3), 0]
    drift = np.abs(fall.energy - fall.energy[0]).max()
    down = np.flatnonzero(fall.q[:, 0] < -np.pi / 2)
    swing = f"at {fall.t[down[0]]:.2f} s" if len(down) else "never"
    return [
        (bool((early < 0.0).all()), "θ1 first turns in the negative direction."),
        (
            bool(len(down)),
            f"It swings through the vertical {swing} and to {_minus(fall.q[:, 0].min())} rad on the other side, while "
            "the outer links whip about it: a triple pendulum.",
        ),
        (bool(drift < 1e-9), f"Energy stays constant to {drift:.0e} J over {FALL:g} s."),
    ]


def length_of(model: Model) -> float:
    """Length of the links of the planar arm, m."""
    return float(model.bodies[1].placement[0][3])


def explicit_planar_torques(model: Model, motion: ForceCurves) -> Array:
    """The three torques from the accelerations of the mass centres, by Newton's law: no recursion, no frames."""
    l, m, g = length_of(model), model.bodies[0].mass, -model.gravity[1]
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
def stanford_force_checks(model: Model, motion: ForceCurves) -> Checks:
    """Checks of figure 8, as far as it goes without Cyril's thesis at hand."""
    some = range(0, len(motion.t), 40)
    inverse = [a for a in ALGORITHMS.of_kind("inverse") if a.name.startswith(("denoc", "newton"))]
    error = max(
        np.abs(run(a.name, model, motion.q[i], motion.v[i], motion.vdot[i]) - motion.tau[i]).max()
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


def stanford_fall_checks(fall: Trajectory) -> Checks:
    """Checks of the text on figure 9, and what we can say beyond."""
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


def _minus(value: float) -> str:
    """Two digits, with a typographer's minus sign."""
    return f"{value:.2f}".replace("-", "−")
