"""Sphinx: the directive `gallery` runs every program of examples/ and shows its picture, its output and its text."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from docs.building.examples import EXAMPLES, load
from docs.building.pictures import picture


class Gallery(SphinxDirective):
    """Cards with pictures, then a section for each example."""

    def run(self) -> list[nodes.Node]:
        """Everything, as nodes."""
        cards = nodes.container(classes=["gallery"])
        sections: list[nodes.Node] = []
        for path in sorted(EXAMPLES.glob("*.py")):
            self.env.note_dependency(str(path))
            card, section = self._example(path)
            cards += card
            sections.append(section)
        return [cards, *sections]

    def _example(self, path: Path) -> tuple[nodes.container, nodes.section]:
        from matplotlib.figure import Figure

        module = load(path)
        figure = Figure(figsize=(6.0, 3.6), layout="constrained")
        with contextlib.redirect_stdout(io.StringIO()):
            module.draw(figure.subplots())
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            module.main(quick=True)

        title = path.stem.replace("_", " ").capitalize().replace("Lqr", "LQR")
        image = picture(self.env.app, self.env.docname, f"example-{path.stem}", figure)
        anchor = f"example-{path.stem.replace('_', '-')}"

        card = nodes.container(classes=["card"])
        link = nodes.reference("", "", image.deepcopy(), refid=anchor, internal=True)
        card += link
        card += nodes.paragraph("", "", nodes.reference("", title, refid=anchor, internal=True))

        section = nodes.section(ids=[anchor], names=[title.lower()])
        section += nodes.title("", title)
        for text in (module.__doc__ or "").strip().split("\n\n"):
            paragraph, _ = self.parse_inline(" ".join(text.split()))
            section += nodes.paragraph("", "", *paragraph)
        section += image
        output = printed.getvalue().rstrip()
        section += nodes.literal_block(output, output, language="text", classes=["output"])
        section += nodes.raw("", f'<details class="program"><summary>examples/{path.name}</summary>', format="html")
        code = path.read_text(encoding="utf-8")
        section += nodes.literal_block(code, code, language="python")
        section += nodes.raw("", "</details>", format="html")
        return card, section


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook in."""
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
