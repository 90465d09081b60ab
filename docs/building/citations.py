"""Sphinx: the numbers of the papers, 000 to 004, become citations by author and year, with the number as a link."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAPERS = {
    "000": "Jain 1991",
    "001": "Jain and Rodriguez 1993",
    "002": "Saha 1999",
    "003": "Featherstone and Orin 2000",
    "004": "Rodriguez, Jain and Kreutz 1989",
}
LIST = "theory/papers"
WITHOUT = (LIST, "notation", "changelog")  # pages that say themselves which paper is which, or quote

# Not the thousands of "10 000", nor digits after a point.
NUMBER = re.compile(r"(?<![\d.,·−-])(?<!\d[ \u00a0\u202f])(00[0-4])(?![\d.,]\d|\d)")
_KEPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.reference, addnodes.pending_xref, nodes.title, nodes.raw)
_UNIT = (nodes.paragraph, nodes.table, nodes.bullet_list, addnodes.desc)  # within these an author is named once


class Citations(SphinxTransform):
    """Rewrites the texts of a page."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Replace every number that stands for a paper."""
        if self.env.docname in WITHOUT:
            return
        named: dict[int, set[str]] = {}
        for text in list(self.document.findall(nodes.Text)):
            if NUMBER.search(text) and not _inside(text, _KEPT):
                self._cite(text, named.setdefault(id(_outermost(text)), set()))

    def _cite(self, text: nodes.Text, named: set[str]) -> None:
        parts: list[nodes.Node] = []
        end = 0
        for match in NUMBER.finditer(text):
            number = match[1]
            before = str(text)[end : match.start()]
            written = before.rstrip("( ").endswith(PAPERS[number])  # by hand
            if number not in named and not written:
                before += f"{PAPERS[number]} "
            named.add(number)
            parts += [nodes.Text(before), self._link(number if before.endswith("(") else f"({number})")]
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


def _outermost(node: nodes.Node) -> nodes.Node:
    """The paragraph, table or list that a text belongs to."""
    found = node.parent
    while node is not None:
        if isinstance(node, _UNIT):
            found = node
        node = node.parent
    return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook in."""
    app.add_transform(Citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
