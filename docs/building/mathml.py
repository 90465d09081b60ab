"""Sphinx: formulas as MathML, which browsers typeset themselves.

Docutils, which Sphinx brings, translates TeX into MathML. So formulas need no script from another server, no copy of
one in the repository, no TeX on the machine, and no time in the browser; they scale, can be selected and are read
aloud.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)


def _translated(self: Any, node: nodes.Element, *, block: bool) -> str:
    try:
        # Marks over letters as limits: accents collide with their letters where there is no font for mathematics.
        return str(tex2mathml(node.astext(), as_block=block)).replace(' accent="true"', "")
    except MathError as error:
        _log.warning("this formula cannot be set: %s (%s)", node.astext(), error, location=node)
        return f"<code>{self.encode(node.astext())}</code>"


def inline(self: Any, node: nodes.math) -> None:
    """A formula in the text."""
    self.body.append(f'<span class="math">{_translated(self, node, block=False)}</span>&NoBreak;')
    raise nodes.SkipNode


def display(self: Any, node: nodes.math_block) -> None:
    """A formula on its own."""
    self.body.append(f'<div class="math-block">{_translated(self, node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook in."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
