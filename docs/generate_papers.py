"""Write papers.md from what the code cites, and systems.md: `python docs/generate_papers.py`."""

from __future__ import annotations

import ast
import json
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from paper_citations import PACKAGE, PAPERS, ROOT, citations, items

from linkwise.classics.linearized import LINEARIZED
from linkwise.classics.registry import ALGORITHMS
from linkwise.operators import RULES
from linkwise.papers.five_programs import MISSED, WELCOME
from linkwise.papers.numbered import PAPERS_IN_ORDER, NumberedRow, Paper

PAGE = Path(__file__).parent / "papers.md"
SYSTEMS_PAGE = Path(__file__).parent / "systems.md"
MEASURED = Path(__file__).parent / "papers_measured.json"

HEAD = """# Which paper is where

What is numbered in the five papers, the functions that implement it, their files, the test of each, the bounds on
errors in that test, and the error that was measured when it ran: of all its comparisons the one that came nearest
its bound, relative wherever the bound is. *Exact* where something else than an error is compared. This page is
generated (`python docs/generate_papers.py`) from the docstrings, which cite the paper and the equation, from the lists
of classical algorithms and operator rules, from a short list of what is numbered, and from the errors that
`python docs/measure_papers.py` wrote down; a test holds it to the code.
Files are given without `linkwise/`. `make demo` writes a page with the results beside what is printed, and the same
list.
"""
TAIL = """## The named algorithms

The named algorithms of the papers (Vereshchagin, Armstrong, Featherstone, Rodriguez, Saha's DeNOC, the constraint-force
algorithm, divide and conquer, …) are all there, one file each, in `classics/`:

```python
import numpy as np
from linkwise import classics, samples

model = samples.stanford_arm()
rng = np.random.default_rng(0)
q, v, tau = rng.uniform(-1, 1, (3, 6))
right = model.forward_dynamics(q, v, tau)

for algorithm in classics.ALGORITHMS.of_kind("forward"):
    if algorithm.joints == "all" and algorithm.name != "constraint_force":
        found = classics.run(algorithm.name, model, q, v, tau)
        assert np.allclose(found, right), algorithm.name
        print(f"{algorithm.name:36} {algorithm.paper} {algorithm.equations:14} O({algorithm.order})")
```

They are references: written to be read beside the paper, over any scalar, checked against each other and counted
([](operation_counts.md)). `Model`'s own functions are the ones to use. Divide and conquer and the constraint-force
algorithm take closed loops as well; [](performance.md) has divide and conquer on threads and on a GPU.

Book's recursive Lagrangian equations of flexible arms in 4 × 4 matrices (1984), which Featherstone 2000 §2 names
without a formula, are `book` there. Its forces and those of `Model.inverse_dynamics` differ by 3e-16 on arms whose
modes do not turn the ends of links, at deflections of any size, and in proportion to the deflection where they do
(`tests/classics/test_flexible.py`). Three links of two modes each, with hinges in no special direction, take it 2922
multiplications and 2303 additions; ours 1802 and 1533, with ends that turn by rotations.

Quoted only: the operation counts of Khalil, Angeles and Balafoutis in table 1 of Saha 1999, whose texts are not printed
there.
"""

Place = tuple[str, str]
"""A file, and the name in it; empty for the whole file."""


@cache
def places() -> dict[tuple[str, str], list[Place]]:
    """For each paper and item, what implements it."""
    found: dict[tuple[str, str], set[Place]] = {}
    for c in citations():
        stem = Path(c.file).stem
        name = c.name or (stem if exists(c.file, stem) else "")  # a file that is about one function
        found.setdefault((c.paper, c.item), set()).add((c.file, name))
    for a in ALGORITHMS.values():
        file = a.function.__module__.replace(".", "/") + ".py"
        text = a.equations if a.equations[0] in "§lt" else f"eq. {a.equations}"
        for item in items(text):
            found.setdefault((a.paper, item), set()).add((file, a.function.__name__))
    for b in LINEARIZED:
        file = b.function.__module__.replace(".", "/") + ".py"
        found.setdefault(("Jain 1993", f"algorithm {b.number}"), set()).add((file, b.function.__name__))
    for rule in RULES.values():
        for source in rule.source.split("; "):
            paper = next(name for name in PAPERS if source.startswith(name))
            for item in items(source.removeprefix(paper)):
                found.setdefault((paper, item), set()).add(("linkwise/operators/rules.py", rule.name))
    return {key: sorted(value) for key, value in found.items()}


def of_row(paper: Paper, row: NumberedRow) -> list[Place]:
    """What implements a row: named functions; a whole file only where it names none."""
    all_places = {place for item in items(row.numbers) for place in places().get((paper.number, item), [])}
    for extra in row.code:
        module, name = extra.split(":")
        all_places.add((f"linkwise/{module.replace('.', '/')}.py", name))
    named = {file for file, name in all_places if name}
    return sorted(place for place in all_places if place[1] or place[0] not in named)


def leftover(paper: Paper) -> tuple[list[str], list[str]]:
    """Numbers without a row; and cited numbers that the paper does not have."""
    numbered, rows = set(items(paper.numbered)), {item for row in paper.rows for item in items(row.numbers)}
    cited = {item for number, item in places() if number == paper.number and not item.startswith("§")}
    return sorted(numbered - rows), sorted((cited | rows) - numbered - {"eq. 23b"})


def exists(file: str, name: str) -> bool:
    """Whether a file has a function, class, method, rule or test of that name."""
    path = ROOT / file
    if not path.is_file():
        return False
    if file.endswith("operators/rules.py") and name in RULES:
        return True
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    for part in name.split(".") if name else ():
        inner = [n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == part]
        if not inner:
            return False
        body = inner[0].body
    return True


@cache
def measured() -> dict[str, float]:
    """For each test, the error it saw."""
    found: dict[str, float] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def held_to(test: str) -> str:
    """The bounds on errors in a test, loosest first: numbers below 1e-2 in it, in what it calls, or by name."""
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    called = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)} & functions.keys()
    bounds = set()
    for node in (node for each in (name, *sorted(called)) for node in ast.walk(functions[each])):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name):
            value = constants.get(node.id)
        if isinstance(value, float) and 0.0 < value < 1e-2:
            bounds.add(value)
    return ", ".join(f"{bound:.0e}".replace("e-0", "e-") for bound in sorted(bounds, reverse=True)) or "–"


def table(paper: Paper) -> str:
    """The implemented rows of a paper."""
    lines = ["| number | what | function | file | test | held to | measured |", "|---|---|---|---|---|---|---|"]
    for row in paper.rows:
        if row.why_not:
            continue
        by_file: dict[str, list[str]] = {}
        for file, name in of_row(paper, row):
            by_file.setdefault(file.removeprefix("linkwise/"), []).append(name)
        functions = "<br>".join(", ".join(f"`{n}`" for n in names if n) or "(the file)" for names in by_file.values())
        files = "<br>".join(f"`{file}`" for file in by_file)
        what = row.what.replace("*", "\\*").replace("~", "\\~").replace("_", "\\_")
        error = measured()[row.test]
        last = f"{row.exact} | exact" if row.exact else f"{held_to(row.test)} | {error:.0e}".replace("e-0", "e-")
        lines.append(f"| {row.numbers.replace('-', '–')} | {what} | {functions} | {files} | `{row.test}` | {last} |")
    return "\n".join(lines)


def page() -> str:
    """The page's text."""
    parts = [HEAD]
    for paper in PAPERS_IN_ORDER:
        parts.append(f"## {paper.number}\n\n{paper.cited}.\n\n{table(paper)}\n")
        missing = [
            f"- {row.numbers.replace('-', '–')}, {row.what}: {row.why_not}." for row in paper.rows if row.why_not
        ]
        parts.append("Not implemented:\n\n" + "\n".join(missing or ["- nothing that is numbered."]) + "\n")
    parts.append(TAIL)
    return "\n".join(parts)


SYSTEMS_HEAD = """# Five programs, and what their users wished for

*Spatial operator algebra framework for multibody system dynamics* by Rodriguez, Jain and Kreutz has a table of five
programs of its time: what users welcome in each, and what they miss. This is that table again, each line with where it
is found here. The demo page has it too.
"""


def systems_page() -> str:
    """The text of the page of systems."""
    parts = [SYSTEMS_HEAD]
    for head, systems in (("welcome", WELCOME), ("wished for", MISSED)):
        last, lines = "", [f"| program | {head} | here |", "|---|---|---|"]
        for program, said, here in systems:
            lines.append(f"| {program if program != last else ''} | {said} | {here} |")
            last = program
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    assert PACKAGE.is_dir()
    PAGE.write_text(page(), encoding="utf-8")
    SYSTEMS_PAGE.write_text(systems_page(), encoding="utf-8")
