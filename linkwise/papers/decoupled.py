"""Saha 1999, Saha: the decoupled natural orthogonal complement, its two programs and its two arms."""

from __future__ import annotations

import numpy as np

from linkwise import samples
from linkwise.functions.counting import PUBLISHED, Frames, count
from linkwise.papers.algorithms import algorithm_table
from linkwise.papers.animation import animation, path, skeleton
from linkwise.papers.arm_figures import (
    DURATION,
    FALL,
    STANFORD_END,
    STANFORD_START,
    forces,
    free_fall,
    length_of,
    planar_fall_checks,
    planar_force_checks,
    stanford_fall_checks,
    stanford_force_checks,
)
from linkwise.papers.drawings import line_figure
from linkwise.papers.report_page import ReportPage

CITED = (
    "S. K. Saha, <i>Dynamics of serial multibody systems using the decoupled natural orthogonal complement "
    "matrices</i> (1999)"
)
_PANEL = (3.5, 2.3)
_PRINTED = {
    # Saha 1999 table 1 at n = 6; table 2 at n = 6 and 12
    "inverse": {
        "Hollerbach 1980": "2195 / 1719", "Luh, Walker, Paul 1980": "852 / 834", "Walker, Orin 1982": "800 / 595",
        "Saha 1999 (RIDIM)": "676 / 527", "Khalil et al. 1986": "538 / 478", "Angeles et al. 1989": "521 / 435",
        "Balafoutis et al. 1988": "489 / 421",
    },
    "forward": {
        "Saha 1999 (RFDSIM)": "871 / 797\n2077 / 1955", "Featherstone 1983": "996 / 871\n2190 / 1915",
        "Walker, Orin 1982": "633 / 480\n2357 / 1716",
    },
}  # fmt: skip


_OWN_INVERSE: tuple[tuple[str, str, Frames], ...] = (
    ("linkwise, inertias of each link", "linkwise_inverse", "dh"),
    ("linkwise, as it runs", "linkwise_inverse", "regrouped"),
)
_OWN_FORWARD: tuple[tuple[str, str, Frames], ...] = (
    ("linkwise, bias force given", "linkwise_solve", "regrouped"),
    ("linkwise, as it runs", "linkwise_forward", "regrouped"),
)
_MISPRINT = " The paper prints 480 additions for Walker and Orin at n = 6 where their formula gives 475."


def decoupled_section(page: ReportPage) -> None:
    """Write the section of Saha 1999, everything in it that is numbered."""
    page.section("Saha 1999", "Two complements, two arms", CITED)
    page.text(
        "The paper splits the matrix that maps joint rates to body twists into two factors, one block triangular and "
        "one block diagonal; recursive O(n) programs for both directions follow: RIDIM (inverse dynamics) and RFDSIM "
        "(forward dynamics and simulation)."
    )
    page.part("The algorithms of sections 3 to 5 and appendix B")
    algorithm_table(page, "Saha 1999")
    _cost_tables(page)
    _planar(page)
    _stanford(page)


# Tables 1 and 2.
def _cost_tables(page: ReportPage) -> None:
    for number, kind, sizes, mine in (
        (1, "inverse", (6,), _OWN_INVERSE),
        (2, "forward", (6, 12), _OWN_FORWARD),
    ):
        page.part(f"Table {number}: what {kind} dynamics costs")
        rows: list[list[str | bool]] = []
        for p in PUBLISHED:
            if p.kind == kind:
                formula = "\n".join(f"{p.M(n):.0f} / {p.A(n):.0f}" for n in sizes)
                remark = f" ({p.remark})" if p.remark else ""
                rows.append([p.name + remark, f"{p.M} ;\n{p.A}", _PRINTED[kind][p.name], formula])
        first = len(rows)
        for label, name, frames in mine:
            rows.append([label, "counted", "", "\n".join(_counted(name, n, frames) for n in sizes)])
        at = " and ".join(f"{n}" for n in sizes)
        page.table(
            ["", "formula, M ; A", f"printed, n = {at}", f"formula or count, n = {at}"], rows,
            "M / A for an arm of n revolute joints; the last rows are the library's, counted on a generic chain."
            + (_MISPRINT if number == 2 else ""),
            ours=range(first, len(rows)),
        )  # fmt: skip
    inverse, forward = count("linkwise_inverse", 6, "regrouped"), count("linkwise_forward", 6, "regrouped")
    page.found(
        [
            (
                inverse.M < 489 and inverse.A < 421,
                f"Inverse dynamics takes {inverse.M} / {inverse.A} for n = 6, less than the best printed row "
                "(489 / 421).",
            ),
            (
                forward.M < 996 and forward.A < 871,
                f"Forward dynamics takes {forward.M} / {forward.A} with the bias force, less than the only printed row "
                "that includes it (Featherstone: 996 / 871).",
            ),
        ]
    )


def _counted(name: str, n: int, frames: Frames) -> str:
    counts = count(name, n, frames)
    return f"{counts.M} / {counts.A}"


# Figures 4 to 6.
def _planar(page: ReportPage) -> None:
    model = samples.planar_arm()
    start, end = np.zeros(3), np.full(3, np.pi)
    motion, fall = forces(model, start, end), free_fall(model, start)
    page.part("Section 6.1 and figure 4: a planar arm of three links")
    page.text(
        "It moves in the X–Y plane, with gravity along −Y. The paper does not print its link data; here each link is a "
        f"uniform rod of {length_of(model):g} m and {model.bodies[0].mass:g} kg, which gives the first torque the size "
        f"it has in the figure. Every joint moves from rest to rest in T = {DURATION:g} s along "
        "θ(t) = θ(0) + (θ(T) − θ(0)) [t/T − sin(2πt/T)/2π]."
    )
    page.panels(
        "Figure 5: joint torques of the cycloidal motion, θ from 0 to π in all joints",
        [
            (
                animation(
                    motion.t[::4], [path(model, motion.q, "tip"), *skeleton(model, motion.q[::4])],
                    "the planar arm folds over from the right to the left", view="xy", speed=2.0,
                ),
                "The motion, at twice its speed, and the way of the tip.",
            ),
            (
                line_figure(motion.t, [(f"τ{k + 1}", motion.tau[:, k]) for k in range(3)], y_label="torque (N m)"),
                "Joint torques. In the paper's figure the axis runs from −2 to 5 N m.",
            ),
        ],
        ["RIDIM's torques along this motion were plotted and confirmed with torques from explicit expressions."],
        planar_force_checks(model, motion),
    )  # fmt: skip
    page.panels(
        "Figure 6: free fall from θ = 0",
        [
            (
                animation(
                    fall.t[::5], [path(model, fall.q, "tip"), *skeleton(model, fall.q[::5])],
                    "the planar arm falls and whips about", view="xy", speed=0.5,
                ),
                "The fall, at half its speed. The arm starts stretched out along X, at rest.",
            ),
            (
                line_figure(fall.t, [(f"θ{k + 1}", fall.q[:, k]) for k in range(3)], y_label="joint angle (rad)"),
                "Joint angles.",
            ),
        ],
        ["Gravity first drives θ1 negative.", "All three angles show the swinging of a triple pendulum."],
        planar_fall_checks(fall),
    )  # fmt: skip


# Table 3 and figures 7 to 9.
def _stanford(page: ReportPage) -> None:
    model = samples.stanford_arm()
    motion, fall = forces(model, STANFORD_START, STANFORD_END), free_fall(model, STANFORD_START)
    page.part("Section 6.2, figure 7 and table 3: the Stanford arm")
    page.text(
        "Six freedoms, the third joint prismatic; Denavit–Hartenberg parameters, masses and inertias of the paper's "
        "table 3, gravity along −Z. The motion goes to 60° in every revolute joint and to b3 = 0.1 m; θ2 starts at "
        "90°, where the slide is level, all others at zero."
    )
    hand = skeleton(model, motion.q[::4])
    short = fall.t <= 0.65
    page.panels(
        "What moves",
        [
            (
                animation(
                    motion.t[::4], [path(model, motion.q, "hand"), *hand],
                    "the Stanford arm moves from stretched out to bent", view=(-60.0, 25.0), speed=2.0,
                ),
                "The cycloidal motion at twice its speed, and the way of the hand.",
            ),
            (
                animation(
                    fall.t[short], [path(model, fall.q[short], "hand"), *skeleton(model, fall.q[short])],
                    "the Stanford arm falls, its slide runs out", view=(-60.0, 15.0), speed=0.25,
                ),
                "The first 0.65 s of the free fall, at a quarter of its speed.",
            ),
        ],
        ["Figure 7 shows the arm, table 3 its lengths, masses and inertias."],
        [(bool(abs(model.mass - 21.1) < 1e-12), f"Table 3's masses add up to {model.mass:.1f} kg.")],
    )  # fmt: skip
    units = ["N m", "N m", "N", "N m", "N m", "N m"]
    page.panels(
        "Figure 8: joint forces of the cycloidal motion",
        [
            (
                line_figure(motion.t, [("τ", motion.tau[:, k])], y_label=units[k], size=_PANEL),
                f"({'abcdef'[k]}) joint {k + 1}",
            )
            for k in range(6)
        ],
        ["The torques agree with those that Cyril's thesis of 1988 reports for the same arm."],
        stanford_force_checks(model, motion),
    )  # fmt: skip
    turned = np.where(np.arange(6) == 2, 1.0, 180.0 / np.pi)
    names = ("θ1", "θ2", "b3", "θ4", "θ5", "θ6")
    page.panels(
        f"Figure 9: free fall over {FALL:g} s",
        [
            (
                line_figure(
                    fall.t, [(names[k], fall.q[:, k] * turned[k])],
                    y_label=f"{names[k]} ({'m' if k == 2 else 'degrees'})", size=_PANEL,
                ),
                f"({'abcdef'[k]}) joint {k + 1}",
            )
            for k in range(6)
        ],
        ["The slide starts to run out fast when joint 2 has turned by more than 90°; nothing holds it."],
        stanford_fall_checks(fall),
    )  # fmt: skip
