"""Sphinx: below each block of Python in a page what it prints and draws, and in blocks of commands what they print."""

from __future__ import annotations

import contextlib
import io
import logging
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.logging import getLogger

from docs.building import pages
from docs.building.pictures import picture

_log = getLogger(__name__)
LONGEST = 30  # lines that a command's output shows


class Outputs(SphinxTransform):
    """Runs a page when it is read."""

    default_priority = 350  # after the parser, before images are collected

    def apply(self, **kwargs: Any) -> None:
        """Put the results of a page's blocks into its tree."""
        page = Path(self.env.doc2path(self.env.docname))
        if page.suffix != ".md" or not pages.blocks(page.read_text(encoding="utf-8")):
            return
        lacking = pages.missing(page)
        if lacking:
            _log.info("%s is shown without results: %s", page.name, lacking)
            return
        shown = iter(list(self.document.findall(nodes.literal_block)))
        logging.disable(logging.INFO)  # servers and devices of other libraries
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                results = list(pages.run(page))
            for number, ran in enumerate(results):
                block = next(node for node in shown if node.astext().rstrip() == ran.code.rstrip())
                self._show(block, ran, f"{self.env.docname.replace('/', '-')}-{number}")
        except Exception as error:
            _log.warning("the code of %s does not run: %s: %s", page.name, type(error).__name__, error)
        finally:
            logging.disable(logging.NOTSET)

    def _show(self, block: nodes.literal_block, ran: pages.Ran, name: str) -> None:
        if ran.language == "console":
            text = _shortened(ran.printed)
            block.rawsource = text
            block[:] = [nodes.Text(text)]  # sets their parent, which other transforms look for
            return
        at = block.parent.index(block) + 1
        for k, figure in reversed(list(enumerate(ran.figures))):
            block.parent.insert(at, picture(self.app, self.env.docname, f"{name}-{k}", figure))
        if ran.printed.strip():
            text = ran.printed.rstrip()
            block.parent.insert(at, nodes.literal_block(text, text, language="text", classes=["output"]))


def _shortened(transcript: str) -> str:
    """At most so many lines below each command."""
    lines, count = [], 0
    for line in transcript.splitlines():
        count = 0 if line.startswith("$ ") else count + 1
        if count <= LONGEST:
            lines.append(line)
        elif count == LONGEST + 1:
            lines.append("…")
    return "\n".join(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook in."""
    app.add_transform(Outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
