"""Sphinx: the names of the five papers, author and year, become links to the list of what is numbered in them."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAPERS = ("Jain 1991", "Jain 1993", "Saha 1999", "Featherstone 2000", "Rodriguez 1989")
LIST = "papers"
WITHOUT = (LIST, "notation", "changelog")  # pages that say themselves which paper is which, or quote

NAME = re.compile("|".join(PAPERS))
_KEPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.reference, addnodes.pending_xref, nodes.title, nodes.raw)


class Citations(SphinxTransform):
    """Rewrites the texts of a page."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Link every name of a paper."""
        if self.env.docname in WITHOUT:
            return
        for text in list(self.document.findall(nodes.Text)):
            if NAME.search(text) and not _inside(text, _KEPT):
                self._cite(text)

    def _cite(self, text: nodes.Text) -> None:
        parts: list[nodes.Node] = []
        end = 0
        for match in NAME.finditer(text):
            parts += [nodes.Text(str(text)[end : match.start()]), self._link(match[0])]
            end = match.end()
        parts.append(nodes.Text(str(text)[end:]))
        text.parent.replace(text, parts)

    def _link(self, shown: str) -> nodes.Node:
        return addnodes.pending_xref(
            "",
            nodes.inline("", shown, classes=["paper"]),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{LIST}",
            refdoc=self.env.docname,
            refexplicit=True,
            refwarn=True,
        )


def _inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    while node is not None:
        if isinstance(node, kinds):
            return True
        node = node.parent
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook in."""
    app.add_transform(Citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
