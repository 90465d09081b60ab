"""Jain 1993, Jain and Rodriguez: linearised dynamics, six algorithms and what they cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise import samples
from linkwise.algorithms.catalogue import Trees
from linkwise.array_types import Array
from linkwise.classics.linearized import LINEARIZED
from linkwise.functions.counting import linearized_counts
from linkwise.model.model import Model
from linkwise.papers.algorithms import chain_model
from linkwise.papers.animation import animation, skeleton
from linkwise.papers.drawings import line_figure
from linkwise.papers.report_page import Checks, ReportPage, mathml, power
from linkwise.papers.unified import identity_table
from linkwise.sim.simulate import simulate

CITED = "A. Jain and G. Rodriguez, <i>Linearization of manipulator dynamics using spatial operators</i> (1993)"


def differences(function: Callable[[Array], Array], x: Array, h: float = 2e-3) -> Array:
    """The Jacobian of a function by central differences of fourth order: of nothing but its values."""
    steps = h * np.eye(len(x))
    f = {k: np.stack([function(x + k * step) for step in steps], axis=-1) for k in (-2, -1, 1, 2)}
    return np.asarray((8.0 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12.0 * h))


def algorithm_errors() -> dict[int, float]:
    """The error of each of the six algorithms against differences of the dynamics, relative, on a chain of 6 hinges."""
    model = chain_model(6)
    q, v, tau, dq, dv, dx = np.random.default_rng(3).normal(size=(6, 6))
    vdot = model.forward_dynamics(q, v, tau)
    inverse = [
        differences(lambda x: model.inverse_dynamics(q, v, x), vdot),
        differences(lambda x: model.inverse_dynamics(q, x, vdot), v),
        differences(lambda x: model.inverse_dynamics(x, v, vdot), q),
    ]
    forward = [
        differences(lambda x: model.forward_dynamics(q, v, x), tau),
        -differences(lambda x: model.forward_dynamics(q, x, tau), v),
        -differences(lambda x: model.forward_dynamics(x, v, tau), q),
    ]
    delta_tau = inverse[2] @ dq + inverse[1] @ dv + inverse[0] @ dx
    delta_vdot = -forward[2] @ dq - forward[1] @ dv + forward[0] @ dx
    expected = {1: [delta_tau], 2: inverse, 3: [delta_vdot], 4: forward, 5: [delta_vdot], 6: forward}
    tree, errors = Trees(model).in_body_frames, {}
    for algorithm in LINEARIZED:
        changes = [x.tolist() for x in (dq, dv, dx)] if algorithm.changes else []
        result = algorithm.function(tree, q.tolist(), v.tolist(), vdot.tolist(), *changes)
        arrays = result if isinstance(result, tuple) else (result,)
        errors[algorithm.number] = max(
            float(np.abs(np.array(a, float) - b).max() / np.abs(b).max())
            for a, b in zip(arrays, expected[algorithm.number], strict=True)
        )
    return errors


def linearization_section(page: ReportPage) -> None:
    """Write the section of Jain 1993, everything in it that is numbered."""
    page.section("Jain 1993", "Linearised dynamics", CITED)
    page.text(
        f"How joint forces change with a small change of the motion ({mathml('A_D')}, {mathml('B_D')}: the linearised "
        f"inverse model), and how accelerations do ({mathml('A_C')}, {mathml('B_C')}: the forward one). The paper "
        f"finds both in closed form by operators and gives six algorithms: the changed vector in {mathml('O(n)')}, the "
        f"matrices in {mathml('O(n²)')}, and for comparison the conventional ways in {mathml('O(n³)')}."
    )
    page.part("Algorithms 1 to 6, and their printed costs")
    errors = algorithm_errors()
    rows: list[list[str | bool]] = []
    for algorithm, row in zip(LINEARIZED, linearized_counts(6), strict=True):
        own = "–" if row.own is None else f"{row.own[0]} / {row.own[1]}"
        rows.append(
            [
                str(row.number), f"{row.what}, O({algorithm.order})", f"{algorithm.M} ;\n{algorithm.A}",
                f"{row.printed[0]:.0f} / {row.printed[1]:.0f}", f"{row.counted[0]} / {row.counted[1]}", own,
                power(errors[row.number]), errors[row.number] < 1e-6,
            ]
        )  # fmt: skip
    page.table(
        ["algorithm", "gives", "printed, M ; A", "printed, n = 6", "counted, n = 6", "ours", "error", ""],
        rows,
        "Counted: the algorithm as printed, traced on a generic chain of six hinges. Ours: what "
        "<code>linearize_inverse</code>, <code>linearize_forward</code> and their vector forms run. Error: against "
        "central differences of the nonlinear dynamics, relative; the differences themselves are good to some 1e−9.",
    )
    page.text(_why_counts_differ())
    page.part("Lemmas 4.2 to 4.5")
    identity_table(page, "Jain 1993", [chain_model(6)], "The lemmas that are identities, on the chain of six links.")
    _prediction(page)


def _why_counts_differ() -> str:
    """Why printed counts and ours are not the same, with the figures of today's count."""
    counts = {n: {row.number: row for row in linearized_counts(n)} for n in (12, 13)}
    each = {number: counts[13][number].counted[0] - row.counted[0] for number, row in counts[12].items()}
    printed = counts[13][5].printed[0] - counts[12][5].printed[0]
    return (
        "<b>Where printed and counted disagree.</b> The algorithms begin with referring every link to one point: axes, "
        "their rates, velocities, accelerations, inertias and forces. The printed count of algorithm 5 seems to leave "
        f"this first step out: a further link takes {each[5]:.0f} multiplications as counted (from 12 to 13 links), of "
        f"which the first step alone has some 250, and {printed:.0f} as printed. Algorithms 2, 4 and 6 end below what "
        "is printed, since a traced program shares what its steps have in common."
    )


def _prediction(page: ReportPage) -> None:
    """The linearised model at work: it foretells where a fall goes that starts a little beside another."""
    model = samples.planar_arm()
    start, off, duration, pictures = np.array([0.4, -0.3, 0.5]), np.array([0.02, -0.01, 0.015]), 1.5, 91
    t = np.linspace(0.0, duration, pictures)
    nominal, beside = (simulate(model, q, duration=duration, output_times=t, rtol=1e-10) for q in (start, start + off))
    steps = 6 * (pictures - 1)
    along = model.sensitivity(start, np.zeros(3), np.zeros((steps, 3)), duration / steps)
    told = along.dx0[::6, :3, :3] @ off
    true = beside.q - nominal.q
    told_q = nominal.q + told
    moving = [*skeleton(model, nominal.q, -1, 3.0), *skeleton(model, beside.q, 0), *skeleton(model, told_q, 1, 2.0)]
    page.panels(
        "The linearised forward model at work",
        [
            (
                animation(
                    t, moving, "a falling arm, one beside it, and where the linear model says that one is", view="xy",
                    speed=0.5,
                ),
                "Half speed. Grey: a fall. Blue: one that starts a degree beside it. Orange: the grey one and what the "
                "linearised model adds.",
            ),
            (
                line_figure(
                    t,
                    [(f"δθ{k + 1}", true[:, k]) for k in range(3)],
                    [("foretold", told[:, k]) for k in range(3)],
                    y_label="difference (rad)",
                ),
                "The difference of the two falls, and what the linear model says of it (dashed).",
            ),
        ],
        ["Along a motion, the linearised forward model gives the change of the accelerations for small changes of "
         "positions, velocities and forces."],
        _prediction_checks(model, start, off, told, true),
    )  # fmt: skip


def _prediction_checks(model: Model, start: Array, off: Array, told: Array, true: Array) -> Checks:
    """A linear model errs with the square of the change: halve it, and a quarter is left."""
    t = np.linspace(0.0, 0.5, 31)
    nominal = simulate(model, start, duration=0.5, output_times=t, rtol=1e-12)
    left = []
    for part in (1.0, 0.5):
        beside = simulate(model, start + part * off, duration=0.5, output_times=t, rtol=1e-12)
        left.append(float(np.abs(beside.q - nominal.q - part * told[: len(t)]).max()))
    ratio = left[0] / left[1]
    early = float(np.abs(told - true)[: len(t)].max() / np.abs(true[: len(t)]).max())
    return [
        (early < 0.1, f"Over the first half second it is right to {100 * early:.1f} % of the largest difference."),
        (
            3.0 < ratio < 5.0,
            f"With half the change its error falls by a factor of {ratio:.1f}: what is left out is of second order.",
        ),
    ]
