"""Sphinx: `make docs` builds with warnings as errors. The code in the pages runs then, and in tests/docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.util.inspect import TypeAliasForwardRef

import linkwise

sys.path.insert(0, str(Path(__file__).parents[1]))  # for docs.building

project = "linkwise"
author = "The linkwise authors"
copyright = "The linkwise authors"
release = version = linkwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "docs.building.outputs",
    "docs.building.mathml",
    "docs.building.citations",
    "docs.building.gallery",
    "docs.building.model_topics",
]
exclude_patterns = ["_build", "operation_counts_why.md"]
nitpicky = False

html_theme = "furo"
html_title = f"linkwise {release}"
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_css_files = ["linkwise.css"]
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_labels = False
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"exclude-members": "__init__, __new__"}
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array"}
# Inside `Array | None` Sphinx writes an alias by its repr, which should be its name.
TypeAliasForwardRef.__repr__ = lambda self: self.name
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True

_MARK = re.compile(r"(?<!`)\*(?!\*)|\|")


def _escape_adjoints(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Our docstrings write the adjoint of A as A* and its size as |A|, which reStructuredText would take for markup."""
    for i, line in enumerate(lines):
        if "``" not in line and "**" not in line:
            lines[i] = _MARK.sub(r"\\\g<0>", line)


_COLON = "\ue000"  # stands for one while Napoleon looks


def _hide_colons(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Napoleon would take what stands before a colon in the first line of a property's docstring for its type."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(": ", _COLON)


def _show_colons(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Undo it."""
    lines[:] = [line.replace(_COLON, ": ") for line in lines]


def setup(app: Any) -> None:
    """Hook in."""
    app.connect("autodoc-process-docstring", _hide_colons, priority=400)  # before Napoleon
    app.connect("autodoc-process-docstring", _show_colons, priority=600)  # after it
    app.connect("autodoc-process-docstring", _escape_adjoints)
