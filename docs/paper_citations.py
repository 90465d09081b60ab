"""What the code says about the papers: citations such as ``Jain 1991 eq. 45, 46`` in docstrings, with their place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "linkwise"
SKIPPED = ("papers",)
"""Parts of the package that talk about the papers and do not implement them."""

PAPERS = ("Jain 1991", "Jain 1993", "Saha 1999", "Featherstone 2000", "Rodriguez 1989")
"""Their names: first author and year."""

_NUMBER = r"(?:[A-C]\.)?\d+(?:\.\d+)?(?:[a-c]\b)?"
_KIND = r"(?:eqs?\.|lemmas?|tables?|figures?|algorithms?|steps?|appendix|§)"
_LIST = rf"{_NUMBER}(?:\s*(?:,|and|to|-|–|…)\s*{_NUMBER})*"
_ITEM = rf"{_KIND}\s*(?:{_LIST}|[A-F](?:[–-][A-F])?\b)"
CITATION = re.compile(rf"\b({'|'.join(PAPERS)})\s+({_ITEM}(?:\s*(?:,|and)\s*{_ITEM})*)")
_KINDS = {"eq": "eq.", "lemma": "lemma", "table": "table", "figure": "figure", "algorithm": "algorithm",
          "step": "step", "appendix": "appendix", "§": "§"}  # fmt: skip


@dataclass(frozen=True, order=True)
class Citation:
    """One numbered thing of a paper, and what in the code names it."""

    paper: str
    item: str
    """Like ``eq. 45``, ``lemma 6.2``, ``algorithm 5``, ``§3.5``."""
    file: str
    name: str
    """Of the function, class or method; empty for the whole module."""


def items(text: str) -> list[str]:
    """``eq. 45, 46 and lemma 6.2`` → ``eq. 45``, ``eq. 46``, ``lemma 6.2``; ranges are written out.

    >>> items("eq. 11-13, table 1")
    ['eq. 11', 'eq. 12', 'eq. 13', 'table 1']
    """
    found: list[str] = []
    for part in re.finditer(rf"({_KIND})\s*({_LIST}|[A-F](?:[–-][A-F])?\b)", text):
        kind = next(known for start, known in _KINDS.items() if part.group(1).startswith(start))
        join = "" if kind == "§" else " "
        for piece in re.split(r"\s*(?:,|and)\s*", part.group(2)):
            found += [f"{kind}{join}{number}" for number in _written_out(piece)]
    return found


def _written_out(piece: str) -> list[str]:
    ends = re.split(r"\s*(?:to|-|–|…)\s*", piece)
    if len(ends) != 2:
        return ends
    first, last = ends
    if first.isalpha():
        return [chr(k) for k in range(ord(first), ord(last) + 1)]
    head, _, tail = first.rpartition(".")
    lead = f"{head}." if head else ""
    return [f"{lead}{k}" for k in range(int(tail), int(last.rpartition(".")[2]) + 1)]


def citations(root: Path = PACKAGE) -> Iterator[Citation]:
    """Those in the docstrings of the package."""
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in SKIPPED:
            continue
        file = path.relative_to(root.parent).as_posix()
        for name, text in _docstrings(ast.parse(path.read_text(encoding="utf-8"))):
            for match in CITATION.finditer(re.sub(r"\s+", " ", text)):
                for item in items(match.group(2)):
                    yield Citation(match.group(1), item, file, name)


def _docstrings(tree: ast.Module, inside: str = "") -> Iterator[tuple[str, str]]:
    if text := ast.get_docstring(tree):
        yield inside, text
    yield from _inner(tree.body, inside)


def _inner(body: list[ast.stmt], inside: str) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{inside}.{node.name}" if inside else node.name
            if text := ast.get_docstring(node):
                yield name, text
            yield from _inner(node.body, name)
