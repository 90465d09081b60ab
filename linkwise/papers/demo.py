"""The five papers, computed: ``make demo``, ``linkwise demo`` or ``python -m linkwise.papers.demo`` writes one page.

First machines that move, ten lines of code and a chart of speed; then each paper in its own section: its algorithms,
tables and figures with what the library computes beside what is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from linkwise import __version__
from linkwise.errors import require_extra
from linkwise.papers.arm_figures import force_table
from linkwise.papers.closed_loops import loops_part
from linkwise.papers.decoupled import decoupled_section
from linkwise.papers.five_programs import systems_part
from linkwise.papers.flexible_links import bending_part
from linkwise.papers.linearized_models import linearization_section
from linkwise.papers.numbered import PAPERS_IN_ORDER
from linkwise.papers.opening import opening_section
from linkwise.papers.report_page import ReportPage
from linkwise.papers.review import review_section
from linkwise.papers.unified import unified_section
from linkwise.sim.progress import Progress


def framework_section(page: ReportPage) -> None:
    """Write the section of Rodriguez 1989, everything in it that is numbered."""
    page.section(
        "Rodriguez 1989", "Trees, loops and links that bend",
        "G. Rodriguez, A. Jain and K. Kreutz, <i>Spatial operator algebra framework for multibody system dynamics</i> "
        "(1989)",
    )  # fmt: skip
    page.text(
        "The same operators for trees, for systems with closed loops (a tree, and constraints on points of it) and for "
        "links that deform."
    )
    loops_part(page)
    bending_part(page)
    systems_part(page)


def list_section(page: ReportPage) -> None:
    """Write the list of everything numbered in the papers, with the test of each."""
    page.section("list", "Everything that is numbered")
    for paper in PAPERS_IN_ORDER:
        rows = [[row.numbers.replace("-", "–"), row.what, row.test or row.why_not] for row in paper.rows]
        page.table(["", "what", "test, or why there is none"], rows, paper.number, words=True)


Section = Callable[[ReportPage], None]
SECTIONS: tuple[Section, ...] = (
    opening_section,
    unified_section,
    linearization_section,
    decoupled_section,
    review_section,
    framework_section,
    list_section,
)


def make_report(
    path: str | Path = "linkwise_demo.html",
    *,
    sections: Sequence[Section] = SECTIONS,
    progress: bool | Callable[[float], None] | None = None,
) -> Path:
    """Compute everything and write the page; returns where it is.

    Args:
        path: ``.html``.
        sections: what to write, of :data:`SECTIONS`.
        progress: True or False to show a bar or not, None for one on a terminal, or a function of the fraction done.
    """
    for module in ("matplotlib", "viser", "trimesh"):
        require_extra(module, "viz")
    began, bar = perf_counter(), Progress(progress, "demo")
    page = ReportPage(
        "linkwise: machines that move",
        "The dynamics of robots, spacecraft and mechanisms, in Python, at the speed of the machine. Below the first "
        "screen is, paper by paper, the work that the library is built on: every algorithm, table and figure, with "
        "what is computed here beside what is printed there. Each number was computed just now, on this machine.",
    )
    for number, section in enumerate(sections):
        bar.update(number / len(sections))
        section(page)
    bar.close()
    page.section("yours", "The same in your own hands")
    page.code(
        """
linkwise view stanford_arm                                   # sliders, handles, a live simulation
linkwise inverse stanford_arm --from 0,1.5708,0,0,0,0 --to 1.0472,1.0472,0.1,1.0472,1.0472,1.0472 --plot forces.png
linkwise simulate stanford_arm --q0 0,1.5708,0,0,0,0 --duration 3.5 --html fall.html
linkwise counts articulated_body --chain 6
"""
    )
    page.footer(f"linkwise {__version__}. Computed, compiled and drawn in {perf_counter() - began:.1f} s.")
    return page.save(path)


def main() -> int:
    """Write the report and say where it is."""
    path = make_report(sys.argv[1] if len(sys.argv) > 1 else "linkwise_demo.html")
    print(force_table())
    print(f"The report is {path.resolve()}: open it in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
