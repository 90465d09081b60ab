"""A page in one file: nothing fetched, readable on paper, on a phone and in the dark; formulas in MathML."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from linkwise.papers.animation import SCRIPT

_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789−+", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_ACCENTS = {"\u0304": "¯", "\u0307": "˙", "\u0308": "¨", "\u0302": "^", "\u0303": "~"}
_WORDS = ("diag", "sin", "cos", "for", "and", "where", "of", "is", "the", "with")
_TOKEN = re.compile(
    r"_(?:[a-zA-Z0-9]+|\w)|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+½?|[₀-₉]+|\b(?:" + "|".join(_WORDS) + r")\b|\d+(?:\.\d+)?|\s+|.", re.DOTALL
)


def mathml(formula: str) -> str:
    """The formula as a <math> element: letters are factors, `_x` is an index, `*` an adjoint, `~` a tilde above.

    >>> mathml("D⁻¹")
    '<math><mrow><msup><mi>D</mi><mrow><mo>−</mo><mn>1</mn></mrow></msup></mrow></math>'
    """
    out: list[str] = []
    letters = "".join(unicodedata.normalize("NFD", c) if c.isalpha() else c for c in formula)  # ë as e and its dots
    for token in _TOKEN.findall(letters):
        if token.isspace():
            continue
        if out and (token in _ACCENTS or token == "~"):
            out.append(f'<mover accent="true">{out.pop()}<mo>{_ACCENTS.get(token, "~")}</mo></mover>')
        elif out and token[0] == "_" and len(token) > 1:
            out.append(f"<msub>{out.pop()}<mi>{token[1:]}</mi></msub>")
        elif out and token[0] in _RAISED:
            out.append(_raised(out.pop(), "".join(_RAISED.get(c, "1/2") for c in token)))
        elif out and token[0] in _LOWERED:
            out.append(f"<msub>{out.pop()}<mn>{''.join(_LOWERED[c] for c in token)}</mn></msub>")
        elif out and token in ("*", "'"):
            out.append(_raised(out.pop(), "∗" if token == "*" else "′"))
        elif token in _WORDS:
            out.append(f"<mtext>&nbsp;{token}&nbsp;</mtext>")
        elif token[0].isdigit():
            out.append(f"<mn>{token}</mn>")
        elif token.isalpha():
            out.append(f"<mi>{token}</mi>")
        else:
            out.append(f'<mo stretchy="false">{escape("−" if token == "-" else token)}</mo>')
    return f"<math><mrow>{''.join(out)}</mrow></math>"


def _raised(base: str, power: str) -> str:
    parts = "".join(f"<mn>{c}</mn>" if c.isalnum() else f"<mo>{c}</mo>" for c in power)
    return f"<msup>{base}<mrow>{parts}</mrow></msup>"


STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6573; --line: #dde2e9; --wash: #f5f7fa; --paper: #fff;
  --accent: #1f5fa8; --good: #23733f; --bad: #b3261e;
  --c0: #1f5fa8; --c1: #d1603d; --c2: #2f7d50; --c3: #7d5ba6; --c4: #a2760a; --c5: #217f8c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #a2acba; --line: #333b47; --wash: #1d232c;
  --paper: #14181f; --accent: #7db4f0; --good: #6fce90; --bad: #ff8a80;
  --c0: #7db4f0; --c1: #f0916f; --c2: #76cc97; --c3: #bd9fe4; --c4: #dcb14a; --c5: #66c6d3; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; color: var(--ink); background: var(--paper); overflow-wrap: break-word;
  font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 28px 72px; }
h1 { font-size: 31px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; }
h2 { font-size: 23px; line-height: 1.25; margin: 56px 0 4px; padding-top: 24px; border-top: 1px solid var(--line); }
h2 .number { color: var(--accent); margin-right: 0.4em; font-variant-numeric: tabular-nums; }
h3 { font-size: 17px; margin: 34px 0 10px; }
p { margin: 0 0 12px; max-width: 46em; }
a { color: var(--accent); }
.lead { color: var(--soft); font-size: 17px; }
.cited { color: var(--soft); font-size: 15px; }
nav { display: flex; flex-wrap: wrap; gap: 8px; margin: 18px 0 22px; padding: 0; }
nav a { border: 1px solid var(--line); border-radius: 999px; padding: 5px 14px; text-decoration: none;
  font-size: 15px; }
.pair { display: grid; grid-template-columns: minmax(0, 1.5fr) minmax(0, 1fr); gap: 28px; align-items: start; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(290px, 1fr)); gap: 14px; margin-bottom: 14px; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; padding: 12px 12px 10px; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; max-width: 680px; margin: 0 auto; }
figure svg text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif !important; }
figure canvas { display: block; width: 100%; border-radius: 4px; }
figure iframe { display: block; width: 100%; border: 0 !important; border-radius: 4px; }
figcaption { color: var(--soft); font-size: 14px; margin-top: 6px; }
.controls { display: flex; gap: 10px; align-items: center; margin-top: 8px; font-size: 14px; color: var(--soft);
  font-variant-numeric: tabular-nums; }
.controls button { font: inherit; color: var(--accent); background: none; border: 1px solid var(--line);
  border-radius: 6px; padding: 3px 12px; min-width: 5.2em; cursor: pointer; }
.controls input { flex: 1; min-width: 0; accent-color: var(--accent); }
.controls output { min-width: 4.5em; text-align: right; }
.side h4 { margin: 0 0 6px; font-size: 13px; text-transform: uppercase; letter-spacing: 0.06em; color: var(--soft); }
.side ul { list-style: none; padding: 0; margin: 0 0 16px; }
.side li { padding: 7px 0 7px 28px; border-top: 1px solid var(--line); position: relative; font-size: 15px; }
.side li:first-child { border-top: 0; }
.says li { padding-left: 14px; border: 0; border-left: 3px solid var(--accent); margin-bottom: 8px; padding-top: 0;
  padding-bottom: 0; }
.checks li::before { content: "✓"; position: absolute; left: 4px; font-weight: 700; color: var(--good); }
.checks li.no::before { content: "✗"; color: var(--bad); }
.gallery { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 16px; margin: 14px 0; }
math { font-size: 1.08em;
  font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", "DejaVu Math TeX Gyre", math; }
td.formulas { line-height: 1.9; white-space: normal; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 28px; margin-top: 16px; }
.scroll { overflow-x: auto; margin: 8px 0 16px; }
.about { color: var(--soft); font-size: 14px; max-width: none; margin: 10px 0 0; }
table { border-collapse: collapse; width: 100%; font-size: 15px; }
th, td { text-align: right; padding: 6px 8px; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: pre;
  font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; font-size: 13px; }
th:first-child, td:first-child, .words th, .words td { text-align: left; }
.words td:nth-child(2) { white-space: pre-line; min-width: 15em; }
td.yes { color: var(--good); } td.no { color: var(--bad); font-weight: 700; }
tr.ours td { background: var(--wash); font-weight: 600; }
code { background: var(--wash); border-radius: 4px; padding: 1px 5px; font-size: 0.92em; }
pre { background: var(--wash); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; overflow-x: auto;
  font-size: 14px; line-height: 1.45; }
pre code { background: none; padding: 0; }
footer { margin-top: 52px; padding-top: 16px; border-top: 1px solid var(--line); color: var(--soft); font-size: 14px; }
@media (max-width: 820px) { .pair, .columns { grid-template-columns: minmax(0, 1fr); gap: 18px; } }
@media (max-width: 520px) { main { padding: 24px 14px 48px; } h1 { font-size: 26px; } h2 { font-size: 21px; }
  figure { padding: 8px 6px; } figcaption { padding: 0 4px; } th, td { padding: 6px 7px; font-size: 14px; } }
@media print { figure, tr { break-inside: avoid; } .controls, nav { display: none; } }
"""


class Formulas(str):
    """Cell of a table with a formula in each line, which are typeset."""

    __slots__ = ()


Check = tuple[bool, str]
"""Whether something holds, and the sentence that says so; the sentence may contain markup."""
Checks = Sequence[Check]


class ReportPage:
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
    if isinstance(cell, Formulas):
        return f'<td class="formulas">{"<br>".join(mathml(line) for line in cell.splitlines())}</td>'
    return f"<td>{escape(cell)}</td>"
