"""Rodriguez 1989 §2 and 3, Rodriguez, Jain and Kreutz: trees and closed loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from linkwise import samples
from linkwise.array_types import Array
from linkwise.joints import Spherical
from linkwise.mechanism.closures import ClosureInstance
from linkwise.model.model import Model
from linkwise.papers.algorithms import chain_model
from linkwise.papers.animation import Line, animation, skeleton
from linkwise.papers.drawings import line_figure
from linkwise.papers.report_page import Checks, ReportPage, power
from linkwise.papers.unified import branched_model, identity_table
from linkwise.sim.actuators import JointSprings
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory

TABULATED = np.array([0.328458111542, 0.944518538178])
"""Tabulated result of the benchmark with N = 2: the upper end of the first rod at t = 10 s (IFToMM A02)."""


def loops_part(page: ReportPage) -> None:
    """The equations of Rodriguez 1989 about trees and loops, and mechanisms with loops."""
    page.part("Lemmas 1 to 5 and the equations of sections 2, 3 and the appendix")
    identity_table(
        page, "Rodriguez 1989",
        [chain_model(6), branched_model(), samples.four_bar(1, closure=Spherical()), samples.stewart_platform()],
        "Both sides of every identity as whole matrices, on a chain, a tree, a four-bar linkage and a Stewart "
        "platform; largest difference, relative. Lemma 5 and eq. A.3 hold for chains as printed.",
    )  # fmt: skip
    _steps(page)
    _stewart(page)
    _four_bars(page)


def step_rows(model: Model, q: Array, v: Array, tau: Array) -> tuple[list[tuple[str, str, float]], float]:
    """Steps A to F on one state: the name, what is computed, its error against dense matrices; and that of the sum."""
    ops = model.operators(q, v)
    A, J, mobility = ops.A, ops.J(), ops.mass_matrix.inv()
    dense = {"M": np.asarray(ops.mass_matrix.dense()), "AJ": np.asarray((A @ J).dense()), "A": np.asarray(A.dense())}
    known = np.asarray(tau - ops.C.value)
    free = mobility @ (ops.vector(tau) - ops.C)
    free_dense = np.linalg.solve(dense["M"], known)
    at_points = A @ J @ free
    admittance = np.asarray((A @ ops.Lambda @ A.T).dense())
    expected = dense["AJ"] @ np.linalg.solve(dense["M"], dense["AJ"].T)
    f = np.linalg.lstsq(admittance, np.asarray(at_points.value - ops.U.value), rcond=1e-12)[0]
    correction = -np.asarray(mobility @ (J.T @ A.T @ f))
    total = np.asarray(free.value) + correction
    system = np.block([[dense["M"], dense["AJ"].T], [dense["AJ"], np.zeros((len(f), len(f)))]])
    whole = np.linalg.lstsq(system, np.concatenate([known, ops.U.value]), rcond=1e-12)[0]
    compiled = model.forward_dynamics(q, v, tau)

    def off(x: ArrayLike, y: ArrayLike) -> float:
        return float(np.abs(np.asarray(x) - np.asarray(y)).max() / max(1e-300, np.abs(np.asarray(y)).max()))

    rows = [
        ("A", "accelerations of the tree, its loops cut open", off(free.value, free_dense)),
        ("B", "those of the points of closure", off(at_points.value, dense["AJ"] @ free_dense)),
        ("C", "Λ = B*ΩB, how the points yield to forces", off(admittance, expected)),
        ("D", "the forces that close the loops", off(dense["AJ"].T @ f, dense["AJ"].T @ whole[len(known) :])),
        ("E", "what these forces change", off(correction, -np.linalg.solve(dense["M"], dense["AJ"].T @ f))),
        ("F", "the sum of A and E", off(total, whole[: len(known)])),
    ]
    return rows, off(total, compiled)


def _steps(page: ReportPage) -> None:
    model = samples.stewart_platform()
    rng = np.random.default_rng(7)
    q = model.assemble(model.integrate(model.neutral(), 0.15 * rng.normal(size=model.nv)))
    v, tau = model.constraints.project_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    rows, total = step_rows(model, q, v, tau)
    page.part("Steps A to F: forward dynamics with closed loops")
    page.table(
        ["step", "what it computes", "error", ""],
        [[step, what, power(error), error < 1e-8] for step, what, error in rows],
        "The paper's steps as operator expressions, each a sweep over the links, on the Stewart platform (24 joint "
        "freedoms, 18 equations), against dense matrices of the full system.",
        words=True,
    )
    page.found([(total < 1e-8, f"The compiled forward dynamics gives the same accelerations to {total:.0e}.")])


# A platform on six legs.
def platform_motion() -> Trajectory:
    """The Stewart platform hanging in springs on its slides, let go from a turned and lifted pose."""
    model = samples.stewart_platform()
    slides = [k for k, joint in enumerate(model.joints) if joint.name.startswith("slide")]
    stiffness = np.zeros(model.nv)
    damping = np.zeros(model.nv)
    for k in slides:
        stiffness[model.joints[k].v_slice], damping[model.joints[k].v_slice] = 900.0, 3.0
    plate = model.joints["plate_pose"].v_slice
    push = np.zeros(model.nv)
    push[plate] = [0.25, -0.2, 0.7, 0.1, 0.12, 0.12]
    q = model.assemble(model.integrate(model.neutral(), push))
    springs = JointSprings(model, stiffness=stiffness, damping=damping)
    return simulate(model, q, duration=4.0, control=springs, output_times=np.linspace(0.0, 4.0, 121), rtol=1e-8)


def _stewart(page: ReportPage) -> None:
    motion = platform_motion()
    model = samples.stewart_platform()
    open_by = float(np.abs(motion.closure_error).max())
    freedoms = model.freedoms(motion.q[-1]).count
    closures = (closure for closure in model.closures if isinstance(closure, ClosureInstance))
    balls = [np.asarray(closure.placement_b)[:3, 3] for closure in closures]
    X = np.asarray(model.pose(motion.q, "plate"))
    rim = np.stack([X[:, :3, :3] @ ball + X[:, :3, 3] for ball in [*balls, balls[0]]], axis=1)
    tubes = [
        Line(
            np.stack([np.broadcast_to(foot, (len(motion.t), 3)), rim[:, i]], axis=1), 0, 3.0
        )
        for i, foot in enumerate(np.asarray(model.pose(motion.q[0], f"tube{k}"))[:3, 3] for k in range(1, 7))
    ]  # fmt: skip
    low = np.array([line.points[0, 0] for line in tubes])
    ground = Line(np.vstack([low, low[:1]]), -1, 2.0, dots=False)
    page.beside(
        "A Stewart platform",
        animation(
            motion.t, [ground, *tubes, Line(rim, 1, 4.0)],
            "a plate on six legs sways and comes to rest", view=(-50.0, 22.0),
        ),
        "Springs and dampers in the six slides; the plate is let go turned and lifted.",
        ["Closed systems are a tree and constraints on points of it; the cost is O(n) for the tree and O(n_E³) for the "
         "constraints."],
        [
            (open_by < 1e-9, f"Six ball joints, 18 equations, stay closed to {open_by:.0e} m over {motion.t[-1]:g} s."),
            (freedoms == 6, f"{model.nv} joint freedoms and 18 equations leave {freedoms}."),
        ],
    )  # fmt: skip


# The N-four-bar mechanism.
def four_bar_motion() -> tuple[Trajectory, Array]:
    """The mechanism, N = 2, swinging through the place where freedoms come and go; and its exact angle."""
    model = samples.four_bar(2)
    v = np.array([1.0 if joint.name.startswith("foot") else -1.0 for joint in model.joints])
    t = np.linspace(0.0, 10.0, 301)
    motion = simulate(model, model.neutral(), v, duration=10.0, output_times=t, rtol=1e-10)
    pull = 3 * (3 * 2 + 1) / (2 * (4 * 2 + 1)) * 9.81  # N = 2
    exact = solve_ivp(
        lambda t, y: [y[1], pull * np.sin(y[0])], (0.0, 10.0), [0.0, 1.0], method="DOP853", t_eval=t,
        rtol=1e-13, atol=1e-13,
    )  # fmt: skip
    return motion, np.asarray(exact.y[0])


def _four_bars(page: ReportPage) -> None:
    motion, exact = four_bar_motion()
    model = samples.four_bar(2)
    angle = motion.q[:, 0]
    shown = motion.t <= 4.0
    ground = Line(np.array([[0.0, 0, 0], [2.0, 0, 0]]), -1, 2.0, dots=False)
    page.panels(
        "The N-four-bar mechanism through its singular configuration, N = 2",
        [
            (
                animation(
                    motion.t[shown], [ground, *skeleton(model, motion.q[shown])],
                    "three rods and two couplers turn over", view="xz",
                ),
                "Upright, it starts with 1 m/s at its upper end; lying flat it could fold in three ways.",
            ),
            (
                line_figure(motion.t, [("simulated", angle)], [("exact", exact)], y_label="angle of the rods (rad)"),
                "The rods' angle over 10 s, simulated with redundant hinges, and from the exact equation of motion.",
            ),
        ],
        ["At singular configurations the constraints lose rank and the number of freedoms changes; the paper asks for "
         "a reformulation there."],
        four_bar_checks(model, motion, exact),
    )  # fmt: skip


def four_bar_checks(model: Model, motion: Trajectory, exact: Array) -> Checks:
    """Against the exact equation, the published end point, and the loops themselves."""
    error = float(np.abs(motion.q[:, 0] - exact).max())
    end = np.asarray(motion.pose("rod0"))[-1, [0, 2], 2]
    off = float(np.abs(end - TABULATED).max())
    open_by = float(np.abs(motion.closure_error).max())
    flat = model.assemble(np.array([np.pi / 2 if j.name.startswith("foot") else -np.pi / 2 for j in model.joints]))
    freedoms = model.freedoms(model.neutral()).count, model.freedoms(flat).count
    return [
        (error < 1e-6, f"The angle is that of the exact equation to {error:.0e} rad over 10 s."),
        (
            off < 1e-6,
            f"At 10 s the first rod's end is at ({end[0]:.8f}, {end[1]:.8f}) m; tabulated: ({TABULATED[0]:.8f}, "
            f"{TABULATED[1]:.8f}).",
        ),
        (
            freedoms == (1, 3),
            f"One freedom upright, {freedoms[1]} lying flat, and no reformulation: least-norm forces.",
        ),
        (open_by < 1e-9, f"Both loops stay closed to {open_by:.0e} m."),
    ]
