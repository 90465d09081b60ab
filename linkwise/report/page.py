"""A page in one file: no scripts, nothing fetched, readable on paper and in the dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

_STYLE = """
:root { --ink: #1c2330; --soft: #5b6573; --line: #dde2e9; --wash: #f5f7fa; --accent: #1f5fa8; --good: #23733f;
  --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 28px 72px; }
h1 { font-size: 31px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; }
h2 { font-size: 23px; margin: 52px 0 6px; padding-top: 22px; border-top: 1px solid var(--line); }
h3 { font-size: 17px; margin: 30px 0 10px; }
p { margin: 0 0 12px; max-width: 46em; }
.lead { color: var(--soft); font-size: 17px; }
.pair { display: grid; grid-template-columns: minmax(0, 1.75fr) minmax(0, 1fr); gap: 28px; align-items: start; }
.wide { margin: 0 0 14px; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; padding: 12px 12px 10px; background: #fff; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: 14px; margin-top: 6px; }
blockquote { margin: 0 0 14px; padding: 2px 0 2px 14px; border-left: 3px solid var(--accent); }
.side h4 { margin: 0 0 6px; font-size: 13px; text-transform: uppercase; letter-spacing: 0.06em; color: var(--soft); }
ul.checks { list-style: none; padding: 0; margin: 0; }
ul.checks li { padding: 7px 0 7px 28px; border-top: 1px solid var(--line); position: relative; font-size: 15px; }
ul.checks li:first-child { border-top: 0; }
ul.checks li::before { content: "✓"; position: absolute; left: 4px; font-weight: 700; color: var(--good); }
ul.checks li.no::before { content: "✗"; color: var(--bad); }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 28px; margin-top: 16px; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 16px; margin: 14px 0; }
table { border-collapse: collapse; width: 100%; font-size: 15px; margin: 10px 0 16px; }
th, td { text-align: right; padding: 6px 10px; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; font-size: 13px; }
th:first-child, td:first-child { text-align: left; }
code { background: var(--wash); border-radius: 4px; padding: 1px 5px; font-size: 0.92em; }
pre { background: var(--wash); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; overflow-x: auto;
  font-size: 14px; line-height: 1.45; }
pre code { background: none; padding: 0; }
footer { margin-top: 52px; padding-top: 16px; border-top: 1px solid var(--line); color: var(--soft); font-size: 14px; }
@media (max-width: 820px) { .pair, .columns { grid-template-columns: 1fr; } }
@media print { figure { break-inside: avoid; } }
"""


class Page:
    """Collects parts in order; `save` writes one file."""

    def __init__(self, title: str, lead: str) -> None:
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{lead}</p>']

    def heading(self, text: str) -> None:
        """A new section."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, html: str) -> None:
        """A paragraph; may contain markup."""
        self._parts.append(f"<p>{html}</p>")

    def code(self, text: str) -> None:
        """A piece of Python or shell."""
        self._parts.append(f"<pre><code>{escape(text.strip())}</code></pre>")

    def figure(self, title: str, svg: str, caption: str) -> None:
        """A figure over the whole width; the caption may contain markup."""
        self._parts.append(f'<h3>{escape(title)}</h3><div class="wide">{_figure(svg, caption)}</div>')

    def gallery(self, figures: Sequence[tuple[str, str]]) -> None:
        """Small figures side by side, each with a caption that may contain markup."""
        parts = "".join(_figure(svg, caption) for svg, caption in figures)
        self._parts.append(f'<div class="gallery">{parts}</div>')

    def beside(
        self, title: str, svg: str, caption: str, says: Sequence[str], checks: Sequence[tuple[bool, str]]
    ) -> None:
        """A figure, and beside it what the paper says and what we checked."""
        self._parts.append(
            f'<h3>{escape(title)}</h3><div class="pair">{_figure(svg, caption)}'
            f'<div class="side">{_says(says)}{_checks(checks)}</div></div>'
        )

    def above(
        self, title: str, svg: str, caption: str, says: Sequence[str], checks: Sequence[tuple[bool, str]]
    ) -> None:
        """A wide figure, and under it what the paper says and what we checked."""
        self._parts.append(
            f'<h3>{escape(title)}</h3><div class="wide">{_figure(svg, caption)}</div>'
            f'<div class="columns"><div class="side">{_says(says)}</div><div class="side">{_checks(checks)}</div></div>'
        )

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table; the first column names the row."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def footer(self, text: str) -> None:
        """The last line."""
        self._parts.append(f"<footer>{escape(text)}</footer>")

    def html(self) -> str:
        """The whole page."""
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
            "</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the page; returns where."""
        target = Path(path)
        target.write_text(self.html(), encoding="utf-8")
        return target


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def _says(paragraphs: Sequence[str]) -> str:
    return "<h4>What the paper says</h4>" + "".join(f"<blockquote>{escape(text)}</blockquote>" for text in paragraphs)


def _checks(checks: Sequence[tuple[bool, str]]) -> str:
    items = "".join(("<li>" if holds else '<li class="no">') + text + "</li>" for holds, text in checks)
    return f'<h4>What we find</h4><ul class="checks">{items}</ul>'
