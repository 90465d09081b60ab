"""A page in one file: nothing fetched, readable on paper, on a phone and in the dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from linkwise.papers.animation import SCRIPT
from linkwise.papers.style import STYLE

Check = tuple[bool, str]
"""Whether something holds, and the sentence that says so; the sentence may contain markup."""
Checks = Sequence[Check]


class Page:
    """Collects parts in order; `save` writes one file.

    Args:
        title: in words.
        lead: what the page is about; may contain markup.
    """

    def __init__(self, title: str, lead: str) -> None:
        self.title, self.lead = title, lead
        self.checks: list[Check] = []
        """Checks so far."""
        self._sections: list[tuple[str, str]] = []
        self._parts: list[str] = []

    # Words.
    def section(self, key: str, title: str, cited: str = "") -> None:
        """A new section, which the top of the page leads to.

        Args:
            key: its short name: a paper's number, or one word.
            title: in words.
            cited: the paper; may contain markup.
        """
        self._sections.append((key, title))
        number = f'<span class="number">{escape(key)}</span>' if key.isdigit() else ""
        self._parts.append(f'<h2 id="s-{escape(key)}">{number}{escape(title)}</h2>')
        if cited:
            self._parts.append(f'<p class="cited">{cited}</p>')

    def heading(self, text: str) -> None:
        """A new section that the top of the page does not lead to."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def part(self, text: str) -> None:
        """A part of a section."""
        self._parts.append(f"<h3>{escape(text)}</h3>")

    def text(self, html: str) -> None:
        """A paragraph; may contain markup."""
        self._parts.append(f"<p>{html}</p>")

    def code(self, text: str) -> None:
        """A piece of Python or shell."""
        self._parts.append(f"<pre><code>{escape(text.strip())}</code></pre>")

    def footer(self, text: str) -> None:
        """The last line."""
        self._parts.append(f"<footer>{escape(text)}</footer>")

    # Pictures, with what the paper says and what is found.
    def figure(self, title: str, drawing: str, caption: str) -> None:
        """A figure across the page; without a title if that is empty. The caption may contain markup."""
        if title:
            self.part(title)
        self._parts.append(_figure(drawing, caption))

    def gallery(self, figures: Iterable[tuple[str, str]]) -> None:
        """Small figures side by side, each with a caption that may contain markup."""
        self._parts.append(f'<div class="gallery">{"".join(_figure(*each) for each in figures)}</div>')

    def beside(self, title: str, drawing: str, caption: str, says: Sequence[str], checks: Checks) -> None:
        """A figure, and beside it what the paper says and what we checked."""
        self.part(title)
        self._parts.append(
            f'<div class="pair">{_figure(drawing, caption)}'
            f'<div class="side">{_says(says)}{self._found(checks)}</div></div>'
        )

    def panels(self, title: str, drawings: Iterable[tuple[str, str]], says: Sequence[str], checks: Checks) -> None:
        """Several figures with captions, and under them what the paper says and what we checked."""
        self.part(title)
        figures = "".join(_figure(drawing, caption) for drawing, caption in drawings)
        self._parts.append(
            f'<div class="panels">{figures}</div><div class="columns"><div class="side">{_says(says)}</div>'
            f'<div class="side">{self._found(checks)}</div></div>'
        )

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str | bool]],
        caption: str = "",
        *,
        words: bool = False,
        ours: Sequence[int] = (),
    ) -> None:
        """A table; the first column names the row. A truth value becomes a mark, and counts as a check.

        Args:
            header: names of the columns.
            rows: their cells.
            caption: above; may contain markup.
            words: whether all columns are words, set from the left.
            ours: numbers of the rows that are the library's own.
        """
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = []
        for number, row in enumerate(rows):
            cells = "".join(_cell(cell) for cell in row)
            body.append(f'<tr class="ours">{cells}</tr>' if number in ours else f"<tr>{cells}</tr>")
            self.checks += [(cell, f"{header[0]}: {row[0]}") for cell in row if isinstance(cell, bool)]
        above = f'<p class="about">{caption}</p>' if caption else ""
        kind = ' class="words"' if words else ""
        table = (
            f'{above}<div class="scroll" tabindex="0"><table{kind}><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>"
        )
        self._parts.append(table)

    def found(self, checks: Checks) -> None:
        """Add the findings of checks, across the page."""
        self._parts.append(f'<div class="side">{self._found(checks)}</div>')

    def _found(self, checks: Checks) -> str:
        self.checks += checks
        items = "".join(("<li>" if holds else '<li class="no">') + text + "</li>" for holds, text in checks)
        return f'<h4>What we find</h4><ul class="checks">{items}</ul>'

    # The whole.
    def html(self) -> str:
        """The whole page."""
        held = sum(holds for holds, _ in self.checks)
        links = "".join(
            f'<a href="#s-{escape(key)}">{escape(f"{key} {title}" if key.isdigit() else title)}</a>'
            for key, title in self._sections
        )
        top = f'<h1>{escape(self.title)}</h1><p class="lead">{self.lead}</p>'
        if links:
            top += f'<nav aria-label="sections">{links}</nav>'
        if self.checks:
            top += f"<p><b>{held} of {len(self.checks)}</b> checks on this page hold.</p>"
        body = "\n".join(self._parts)
        script = f"<script>{SCRIPT}</script>\n" if 'class="motion"' in body else ""  # nothing runs where nothing moves
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{top}\n{body}\n</main>\n"
            f"{script}</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the page; returns where."""
        target = Path(path)
        target.write_text(self.html(), encoding="utf-8")
        return target


def power(error: float) -> str:
    """An error as a power of ten, to one digit."""
    return "0" if error == 0.0 else f"{error:.0e}"


def _figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"


def _says(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{text}</li>" for text in sentences)
    return f'<h4>What the paper says</h4><ul class="says">{items}</ul>' if sentences else ""


def _cell(cell: str | bool) -> str:
    if isinstance(cell, bool):
        return '<td class="yes">✓</td>' if cell else '<td class="no">✗</td>'
    return f"<td>{escape(cell)}</td>"
