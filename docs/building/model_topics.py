"""Sphinx: the methods of `Model` on api/model, grouped by topic.

A method's topic is the class that brings it to `Model`, unless a table here says otherwise: none can be left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import linkwise as lw

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "api/model"
PLACE = "<!-- topics -->"

# Topics in the order of the page: a title, and what it has. A class's name stands for its other methods.
TOPICS: dict[str, tuple[str, ...]] = {
    "What it is made of": ("Mechanism",),
    "Configurations": ("ConfigurationSpace", "configuration_rate"),
    "Dynamics": ("Dynamics", "Passive"),
    "Kinematics": ("Kinematics",),
    "Inverse kinematics": ("InverseKinematics",),
    "Statics and workspace": ("statics",),
    "Energy, momentum, mass centre": ("kinetic_energy", "potential_energy", "center_of_mass", "momentum", "centroidal"),
    "Derivatives": ("Linearization", "StateSpaces", "Sensitivities"),
    "Operational space and identification": ("operational", "regressor", "inertial_parameters"),
    "Closed loops": ("Closures", "ClosedDynamics", "constraints", "with_closure_solver"),
    "Changed copies": ("Editing", "with_*", "without*"),
    "Run-time parameters": ("with_parameters", "parameters"),
    "Compiled functions and operators": ("function", "operators", "with_sweeps"),
    "From and to files": ("Files", "from_dh"),
    "More": ("Model",),
}

GROUPS = {
    "statics": "linkwise.model.statics.Statics",
    "centroidal": "linkwise.model.dynamics.Centroidal",
    "constraints": "linkwise.model.closures.Constraints",
    "operational": "linkwise.model.dynamics.Operational",
}
"""Attributes of a model that are groups of functions, and their classes."""


def grouped() -> dict[str, list[str]]:
    """The public methods and properties of `Model` under their topics."""
    by_name = {name: title for title, parts in TOPICS.items() for name in parts}
    starts = {name[:-1]: title for name, title in by_name.items() if name.endswith("*")}
    groups: dict[str, list[str]] = {title: [] for title in TOPICS}
    seen: set[str] = set()
    for owner in lw.Model.__mro__:
        for name, value in vars(owner).items():
            if name.startswith("_") or name in seen or not (callable(value) or hasattr(value, "__get__")):
                continue
            seen.add(name)
            starred = next((title for start, title in starts.items() if name.startswith(start)), None)
            title = by_name.get(name) or starred or by_name.get(owner.__name__) or "More"
            groups[title].append(name)
    return {title: names for title, names in groups.items() if names}


def text() -> str:
    """The sections, in MyST."""
    lines: list[str] = []
    for title, names in grouped().items():
        lines += [f"## {title}", "", "```{eval-rst}", ".. currentmodule:: linkwise", ""]
        for name in names:
            method = callable(getattr(lw.Model, name))
            lines.append(f".. {'automethod' if method else 'autoattribute'}:: Model.{name}")
            if name in GROUPS:
                lines += ["", f".. autoclass:: {GROUPS[name]}", "   :members:", "   :inherited-members: Group", ""]
        lines += ["```", ""]
    return "\n".join(lines)


def _fill(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = source[0].replace(PLACE, text())


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook in."""
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
