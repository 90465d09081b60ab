"""Matplotlib figures as images of a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def picture(app: Sphinx, docname: str, name: str, figure: Any) -> nodes.image:
    """Save a figure beside the doctrees, transparent (CSS turns its colours for dark pages), and refer to it."""
    import matplotlib

    folder = Path(app.doctreedir) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.svg"
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):  # the same file from every build
        figure.savefig(file, transparent=True, bbox_inches="tight", metadata={"Date": None})
    relative = os.path.relpath(file, (Path(app.srcdir) / docname).parent)
    return nodes.image(uri=Path(relative).as_posix(), alt=_words(figure), classes=["drawn"])


def _words(figure: Any) -> str:
    """What a figure shows, for those who do not see it: titles and labels of its axes."""
    parts = [figure.get_suptitle()]
    for axes in figure.axes:
        over = [label for label in (axes.get_ylabel(), axes.get_xlabel()) if label]
        parts.append(axes.get_title() or " over ".join(over))
    return "Figure: " + ("; ".join(dict.fromkeys(part for part in parts if part)) or "drawn by the code above")
