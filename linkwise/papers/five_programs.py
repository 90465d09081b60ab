"""Table of systems of Rodriguez 1989: five programs, what their users welcome, what they miss, and where it is here."""

from __future__ import annotations

import re

from linkwise.papers.report_page import ReportPage

System = tuple[str, str, str]
"""A program, what its users say, and where that is found here: text with links to pages of the documentation."""

WELCOME: tuple[System, ...] = (
    (
        "NBOD2",
        "a preprocessor that helps",
        "models from files or by hand, checked with messages that say what to do: [](guide/models.md), "
        "[](guide/files.md)",
    ),
    (
        "SD/EXACT",
        "parameters that change at run time",
        "`model.with_parameters`, `p=` in every function; `Element.parameters` during a run: [](guide/parameters.md)",
    ),
    ("SD/EXACT", "speed", "compiled for each mechanism: [](performance.md)"),
    ("SPASIS", "inputs that are friendly, documentation", "[](getting_started.md), [](finding.md)"),
    (
        "SPASIS",
        "batch processing",
        "every function and simulation takes batches; studies with thousands of members: [](guide/batches.md), "
        "[](guide/ensembles.md)",
    ),
    ("SPASIS", "extensive orbital dynamics", "`lw.space`: [](guide/space.md)"),
    (
        "Station Control Simulation",
        "a modular, self-contained design",
        "`pip install linkwise`, no compiler; [](architecture.md)",
    ),
    (
        "TREETOPS",
        "an interactive preprocessor, options of setup",
        "the viewer moves joints and levers live: [](guide/viewer.md)",
    ),
    (
        "TREETOPS",
        "a library of actuators and sensors",
        "[](guide/control.md), [](guide/simulation.md), [](guide/space.md)",
    ),
)
MISSED: tuple[System, ...] = (
    (
        "NBOD2",
        "a better indexing of free and constrained joints",
        "joints, bodies and freedoms by name; what a closure leaves free is a joint type: [](guide/joints.md), "
        "[](guide/closed_loops.md)",
    ),
    ("NBOD2", "simple examples of use", "programs of at most thirty lines: [](examples.md)"),
    ("NBOD2", "run time: acceptable, to be improved", "[](performance.md)"),
    ("NBOD2", "flexibility, which it lacks", "[](guide/flexible.md)"),
    (
        "SD/EXACT",
        "less memory",
        "straight-line programs of a few kilobytes; loops for long chains: [](guide/long_chains.md)",
    ),
    ("SD/EXACT", "flexibility", "[](guide/flexible.md)"),
    ("SD/EXACT", "graphics", "[](guide/viewer.md)"),
    (
        "SD/EXACT",
        "a variable number of freedoms",
        "closures that take hold and let go during a run, contact, locked joints: [](guide/closed_loops.md), "
        "[](guide/contact.md), [](guide/editing.md)",
    ),
    ("SPASIS", "better aerodynamics", "`lw.space.Drag` on facets, with layers of NRLMSIS: [](guide/space.md)"),
    (
        "SPASIS",
        "propellant dynamics",
        "`lw.space.Tank`, `Propulsion`, slosh as pendulum or particle, jet damping: [](guide/space.md)",
    ),
    ("SPASIS", "animation", "films and pages that play anywhere: [](guide/viewer.md)"),
    ("SPASIS", "reboost", "`examples/station.py`"),
    ("SPASIS", "flexibility, docking", "[](guide/flexible.md); [](guide/space.md)"),
    (
        "Station Control Simulation",
        "code for model reduction",
        "Craig–Bampton and modal reduction: [](guide/flexible.md)",
    ),
    (
        "Station Control Simulation",
        "faster code; run time excessive with flexible models",
        "a flexible station flies faster than real time by thousands: `python -m bench.space`",
    ),
    (
        "Station Control Simulation",
        "Nastran's OUTPUT2 and OUTPUT4",
        "`lw.FlexibleBody.from_nastran`: [](guide/flexible.md)",
    ),
    (
        "TREETOPS",
        "flexible inputs that are fully defined",
        "one schema, checked, for files of ours: [](guide/native_file.md); modes of your own: "
        "`lw.FlexibleBody.from_modes`",
    ),
    ("TREETOPS", "a graphical preprocessor", "[](guide/viewer.md)"),
    (
        "TREETOPS",
        "output that is less cumbersome",
        "`Trajectory` as arrays, tables, plots, films: [](guide/simulation.md)",
    ),
    (
        "TREETOPS",
        "a better interface with users' subroutines",
        "any Python function of `(t, q, v, p)`, compiled with the rest; elements of your own: "
        "[](guide/control.md), [](guide/compile.md)",
    ),
    ("TREETOPS", "modes that restrict less; less effort for flexible data", "[](guide/flexible.md)"),
)


def systems_part(page: ReportPage) -> None:
    """Write both halves of the table."""
    page.part("The table of five programs: what their users welcome and miss")
    for head, systems in (("welcome", WELCOME), ("wished for", MISSED)):
        page.table(["program", head, "here"], [[*row[:2], _plain(row[2])] for row in systems], words=True)


def _plain(text: str) -> str:
    """The text with the names of pages in place of links, without marks."""
    return re.sub(r"\[\]\(([^)]*)\)", r"docs/\1", text).replace("`", "")
