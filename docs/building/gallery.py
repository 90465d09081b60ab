"""Sphinx: the directive `gallery` shows the programs of examples/, those of one page with their films first.

Longer ones run when the page is built, for their pictures and their output; `films` shows the films of chosen ones.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from docs.building.examples import EXAMPLES, LONGER, ONE_PAGE, load, pictures
from docs.building.pictures import picture


def film(env: Any, name: str) -> nodes.image:
    """The first picture of a program of one page."""
    file = pictures(name)[0]
    relative = os.path.relpath(file, (Path(env.srcdir) / env.docname).parent)
    return nodes.image(uri=Path(relative).as_posix(), alt=ONE_PAGE[name], classes=["film"])


class Films(SphinxDirective):
    """Films of programs of one page, side by side: their names are the directive's content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Cards that lead to the programs."""
        cards = nodes.container(classes=["gallery"])
        for name in self.content:
            card = nodes.container(classes=["card"])
            target = f"examples.html#example-{name.replace('_', '-')}"
            card += nodes.paragraph("", "", nodes.reference("", "", film(self.env, name), refuri=target))
            card += nodes.paragraph("", "", nodes.reference("", ONE_PAGE[name], refuri=target))
            cards += card
        return [cards]


class Gallery(SphinxDirective):
    """Cards with pictures, then a section for each example."""

    def run(self) -> list[nodes.Node]:
        """Everything, as nodes."""
        found: list[nodes.Node] = []
        sections: list[nodes.Node] = []
        for names in (ONE_PAGE, LONGER):
            cards = nodes.container(classes=["gallery"])
            for name in names:
                path = EXAMPLES / f"{name}.py"
                self.env.note_dependency(str(path))
                card, section = self._one_page(path) if name in ONE_PAGE else self._example(path)
                cards += card
                sections.append(section)
            found.append(cards)
        words = nodes.paragraph("", "Longer programs, with checks of what they find:")
        return [found[0], words, found[1], *sections]

    def _one_page(self, path: Path) -> tuple[nodes.container, nodes.section]:
        name = path.stem
        card, section = self._frame(name, ONE_PAGE[name], film(self.env, name))
        code = path.read_text(encoding="utf-8")
        self._words(section, code.split('"""')[1])
        for file in pictures(name):
            relative = Path(os.path.relpath(file, (Path(self.env.srcdir) / self.env.docname).parent)).as_posix()
            section += nodes.image(uri=relative, alt=ONE_PAGE[name], classes=["film"])
        section += nodes.literal_block(code, code, language="python")
        return card, section

    def _frame(self, name: str, title: str, image: nodes.image) -> tuple[nodes.container, nodes.section]:
        """A card that leads to a section, and the section with its title."""
        anchor = f"example-{name.replace('_', '-')}"
        card = nodes.container(classes=["card"])
        card += nodes.reference("", "", image.deepcopy(), refid=anchor, internal=True)
        card += nodes.paragraph("", "", nodes.reference("", title, refid=anchor, internal=True))
        section = nodes.section(ids=[anchor], names=[title.lower()])
        section += nodes.title("", title)
        return card, section

    def _words(self, section: nodes.section, text: str) -> None:
        for part in text.strip().split("\n\n"):
            paragraph, _ = self.parse_inline(" ".join(part.split()))
            section += nodes.paragraph("", "", *paragraph)

    def _example(self, path: Path) -> tuple[nodes.container, nodes.section]:
        from matplotlib.figure import Figure

        module = load(path)
        figure = Figure(figsize=(6.0, 3.6), layout="constrained")
        with contextlib.redirect_stdout(io.StringIO()):
            module.draw(figure.subplots())
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            module.main(quick=True)

        title = path.stem.replace("_", " ").capitalize()
        image = picture(self.env.app, self.env.docname, f"example-{path.stem}", figure)
        card, section = self._frame(path.stem, title, image)
        self._words(section, module.__doc__ or "")
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
    app.add_directive("films", Films)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
