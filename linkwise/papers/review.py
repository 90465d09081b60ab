"""Featherstone and Orin's review: its algorithms, three ways with closed loops, and complexity, measured."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from linkwise import samples
from linkwise.array_types import Array
from linkwise.classics.registry import ALGORITHMS
from linkwise.functions.counting import count
from linkwise.functions.function import CompiledFunction, compile
from linkwise.mechanism.layout import lay_out
from linkwise.model.model import Model
from linkwise.papers.algorithms import NAMES, algorithm_table, chain_model
from linkwise.papers.animation import Line, animation, path, skeleton
from linkwise.papers.drawings import growth_figure
from linkwise.papers.report_page import Checks, ReportPage, power
from linkwise.sim.simulate import simulate

CITED = "R. Featherstone and D. Orin, <i>Robot dynamics: equations and algorithms</i> (2000)"
SIZES = (3, 6, 12, 24)
MEASURED = {
    "newton_euler": "inverse dynamics (RNEA)",
    "articulated_body": "forward, articulated bodies (ABA)",
    "composite_cholesky": "forward, composite bodies (CRBA) and Cholesky",
    "direct_cholesky": "forward, n inverse dynamics and Cholesky",
}
_STATES = 512


def review_section(page: ReportPage) -> None:
    """Write the section of Featherstone 2000, everything in it that is numbered."""
    page.section("Featherstone 2000", "Equations and algorithms, a review", CITED)
    page.text(
        "The recursive Newton–Euler, composite-rigid-body and articulated-body algorithms in one notation, three ways "
        "to treat closed loops, and algorithms that come from looking at the whole system at once."
    )
    page.part("Equations 1 to 14 and 23 to 29: the algorithms")
    algorithm_table(page, "Featherstone 2000", ("composite", "direct", "vereshchagin", "articulated_body"))
    _complexity(page)
    _loops(page)
    _particular(page)


# Complexity.
def measured_times() -> dict[str, list[float]]:
    """ns for one state of a batch, on one core, of algorithms as printed, each traced and compiled for a chain of n."""
    found: dict[str, list[float]] = {name: [] for name in MEASURED}
    for n in SIZES:
        model = chain_model(n)
        states = np.random.default_rng(n).normal(size=(3, _STATES, n))
        for name in MEASURED:
            found[name].append(_ns(_compiled(name, model), *states))
    return found


def _compiled(name: str, model: Model) -> CompiledFunction:
    tree, text = lay_out(model), ALGORITHMS[name].function

    def classic(model: Model, q: Array, v: Array, x: Array) -> Array:
        return np.array(text(tree, list(q), list(v), list(x)), dtype=object)

    return compile(classic, model, inputs={"q": "q", "v": "v", "x": "v"}, name=name)


def _ns(function: Callable[..., object], *arrays: Array) -> float:
    out = np.asarray(function(*arrays))
    best = np.inf
    for _ in range(40):
        start = perf_counter()
        function(*arrays, out=out)
        best = min(best, perf_counter() - start)
    return float(best / len(out) * 1e9)


def exponent(n: tuple[int, ...], y: list[float]) -> float:
    """The power of n between the last two sizes."""
    return float(np.log(y[-1] / y[-2]) / np.log(n[-1] / n[-2]))


def _complexity(page: ReportPage) -> None:
    times = measured_times()
    counted = {name: [float(c.M + c.A) for c in (count(name, n) for n in SIZES)] for name in MEASURED}
    page.panels(
        "Complexity, counted and measured",
        [
            (
                growth_figure(
                    [(MEASURED[name], SIZES, counted[name]) for name in MEASURED],
                    y_label="operations",
                ),
                "Multiplications and additions of each algorithm as printed, on a generic chain of n hinges.",
            ),
            (
                growth_figure(
                    [(MEASURED[name], SIZES, times[name]) for name in MEASURED],
                    y_label="ns per state",
                ),
                f"The same programs compiled and run just now: a batch of {_STATES} states, one core, best of 40.",
            ),
        ],
        [
            "Inverse dynamics and the articulated-body algorithm take O(n) operations.",
            "The mass matrix takes O(n²) by composite bodies, O(n²) also as n inverse dynamics with a larger factor; "
            "to factor it takes O(n³).",
        ],
        _complexity_checks(counted, times),
    )  # fmt: skip


def _complexity_checks(counted: dict[str, list[float]], times: dict[str, list[float]]) -> Checks:
    slopes = {name: exponent(SIZES, values) for name, values in counted.items()}
    more = {name: np.diff(counted[name]) / np.diff(SIZES) for name in ("newton_euler", "articulated_body")}
    bend = max(float(abs(each[-1] / each[-2] - 1.0)) for each in more.values())
    aba, crba = times["articulated_body"], times["composite_cholesky"]
    a, b = SIZES[-2:]
    return [
        (
            bend < 0.02,
            f"Each further link takes {more['newton_euler'][-1]:.0f} operations more by RNEA and "
            f"{more['articulated_body'][-1]:.0f} by ABA, wherever one looks (to {100 * bend:.1f} %): straight lines.",
        ),
        (
            1.8 < slopes["composite_cholesky"] < 3.0 and 1.8 < slopes["direct_cholesky"] < 3.0,
            f"Those of the two with a mass matrix grow as n to the {slopes['composite_cholesky']:.2f} and "
            f"{slopes['direct_cholesky']:.2f} from {a} to {b} links, on their way to 3.",
        ),
        (
            crba[-1] > aba[-1],
            f"Measured, ABA takes {aba[0]:.0f} ns and CRBA {crba[0]:.0f} ns for {SIZES[0]} links, {aba[-1]:.0f} and "
            f"{crba[-1]:.0f} ns for {SIZES[-1]}.",
        ),
    ]


# Closed loops.
METHODS = {
    "kkt": "1: the whole system (eq. 20)",
    "multipliers": "2: λ first (eq. 21)",
    "nullspace": "3: null space (eq. 22)",
}


def _loops(page: ReportPage) -> None:
    page.part("Section 3.4: three ways with closed loops")
    rows: list[list[str | bool]] = []
    rng = np.random.default_rng(2)
    for model in (samples.four_bar(1), samples.slider_crank(), samples.stewart_platform()):
        q = model.assemble(model.integrate(model.neutral(), 0.2 * rng.normal(size=model.nv)))
        v, tau = model.constraints.project_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
        found = {name: model.with_closure_solver(name).forward_dynamics(q, v, tau) for name in METHODS}
        scale = max(float(np.abs(x).max()) for x in found.values())
        apart = max(float(np.abs(x - y).max()) for x in found.values() for y in found.values()) / scale
        equations = len(model.closure_error(q))
        rows.append(
            [
                model.name.replace("_", " "),
                str(model.nv),
                str(equations),
                str(model.freedoms(q).count),
                power(apart),
                apart < 1e-8,
            ]
        )
    page.table(
        ["mechanism", "joint freedoms n", "equations", "freedoms left", "difference", ""],
        rows,
        "Accelerations by "
        + "; ".join(f"method {text}" for text in METHODS.values())
        + ": the largest difference between any two, relative. Hinges in a planar loop are redundant (the equations "
        "are more than their rank), and all three must still agree.",
    )
    model = samples.slider_crank()
    t = np.linspace(0.0, 1.5, 121)
    v = model.constraints.project_velocity(model.neutral(), np.eye(model.nv)[0] * 6.0)
    run = simulate(model, model.neutral(), v * (6.0 / v[0]), duration=1.5, output_times=t, rtol=1e-9)
    open_by, drift = float(np.abs(run.closure_error).max()), float(np.abs(run.energy - run.energy[0]).max())
    ground = Line(np.array([[0.0, 0, 0], [0.45, 0, 0]]), -1, 2.0, dots=False)
    page.beside(
        "A crank and a slider",
        animation(
            t, [ground, path(model, run.q, "rod", (0.15, 0.0, 0.0)), *skeleton(model, run.q)],
            "a crank turns and drives a slider to and fro", view="xz", speed=0.5,
        ),
        "Left alone with a turning crank, at half speed; the way of the middle of the rod.",
        ["Loop equations are differentiated twice, and must be stabilised, since rounding would let them drift apart."],
        [
            (open_by < 1e-9, f"The loop stays closed to {open_by:.0e} m over 1.5 s."),
            (drift < 1e-6, f"Energy stays constant to {drift:.0e} J."),
        ],
    )  # fmt: skip


# A particular robot.
def _particular(page: ReportPage) -> None:
    page.part("Section 4: equations for one particular robot")
    rows: list[list[str | bool]] = []
    fewer = True
    for model in (chain_model(6), samples.stanford_arm(), samples.planar_arm()):
        rng = np.random.default_rng(0)
        states = rng.uniform(-1.0, 1.0, (3, 8192, model.nv))
        for kind in ("inverse", "forward"):
            function, name = model.function(NAMES[kind]), f"linkwise_{kind}"
            generic = count(name, model.nv, "regrouped")
            fewer &= function.counts.M <= generic.M
            rows.append(
                [
                    f"{model.name.replace('_', ' ')}, {kind}", f"{generic.M} / {generic.A}",
                    f"{function.counts.M} / {function.counts.A}", f"{_ns(getattr(model, NAMES[kind]), *states):.0f}",
                ]
            )  # fmt: skip
    page.table(
        ["", "generic chain of as many links", "this robot", "ns per state, one core"],
        rows,
        "The review remarks that for one robot the equations written out in symbols take the least work. The library "
        "writes them out for the robot at hand, with constants folded and structural zeros gone. M / A; 8192 states.",
    )
    page.found(
        [(bool(fewer), "No robot takes more than the generic chain, and those with right angles take much less.")]
    )
