"""The page of the papers is the one that the code writes, and names nothing that does not exist."""

import runpy
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator():
    before = list(sys.path)
    found = runpy.run_path(str(DOCS / "generate_papers.py"))
    sys.path[:] = before
    return found


def test_the_page_is_up_to_date(generator):
    for page, text in (("PAGE", "page"), ("SYSTEMS_PAGE", "systems_page")):
        found = generator[page].read_text(encoding="utf-8")
        assert found == generator[text](), "run python docs/generate_papers.py"


def test_every_number_of_every_paper_is_accounted_for(generator):
    for paper in generator["PAPERS_IN_ORDER"]:
        without, unknown = generator["leftover"](paper)
        assert without == [], f"{paper.number}: numbers without a row"
        assert unknown == [], f"{paper.number}: cited, but not in the paper"


def test_every_function_file_and_test_exists(generator):
    for paper in generator["PAPERS_IN_ORDER"]:
        for row in paper.rows:
            if row.why_not:
                assert not row.test
                continue
            found = generator["of_row"](paper, row)
            assert found, f"{paper.number} {row.numbers}: nothing implements it"
            for file, name in found:
                assert generator["exists"](file, name), f"{paper.number} {row.numbers}: {file}:{name}"
            file, _, name = row.test.partition("::")
            assert name.startswith("test_")
            assert generator["exists"](file, name), f"{paper.number} {row.numbers}: {row.test}"


def test_nothing_else_passes_for_something(generator):
    assert not generator["exists"]("linkwise/classics/noc.py", "no_such_function")
    assert not generator["exists"]("linkwise/no_such_file.py", "")
    assert not generator["exists"]("linkwise/operators/state.py", "Operators.no_such_letter")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eq. 45, 46, 60", ["eq. 45", "eq. 46", "eq. 60"]),
        ("eq. 11-13, table 1", ["eq. 11", "eq. 12", "eq. 13", "table 1"]),
        ("lemmas 3.1 and 3.2", ["lemma 3.1", "lemma 3.2"]),
        ("eq. A.3-A.5", ["eq. A.3", "eq. A.4", "eq. A.5"]),
        ("steps A–F", [f"step {x}" for x in "ABCDEF"]),
        ("§5, §6", ["§5", "§6"]),
    ],
)
def test_citations_are_read(generator, text, expected):
    assert generator["items"](text) == expected
