"""The Python in the documentation runs as it stands, page by page; so do the `linkwise` commands."""

import re
import subprocess
import sys
from dataclasses import fields

import pytest

import linkwise as lw
from docs.building.examples import ONE_PAGE
from docs.building.model_topics import grouped
from docs.building.pages import DOCS, PAGES, blocks, missing, run
from linkwise import targets


def with_code(language):
    return [
        pytest.param(page, id=str(page.relative_to(DOCS)))
        for page in PAGES
        if blocks(page.read_text(encoding="utf-8"), language)
    ]


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    targets._known.cache_clear()  # a page registers one of its own


@pytest.mark.parametrize("page", with_code("python"))
def test_python(page):
    lacking = missing(page)
    if lacking:
        pytest.skip(lacking)
    assert all(ran.code for ran in run(page, "python"))


@pytest.mark.parametrize("page", with_code("console"))
def test_commands(page):
    for ran in run(page, "console", "toml"):
        assert len(ran.printed.splitlines()) >= len(ran.code.splitlines())


GUIDES = [page for page in PAGES if page.parent.name == "guide"]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_every_guide_shows_something(page):
    text = page.read_text(encoding="utf-8")
    assert "print(" in text or "$ linkwise" in text or "![" in text


@pytest.mark.parametrize("name", ["jax", "torch", "learning", "optimal_control", "casadi", "fmi"])
def test_a_bridge_begins_with_few_lines_that_work(name, tmp_path):
    page = DOCS / "guide" / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    beginning = re.match(r"# [^\n]+\n\n```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert beginning is not None
    assert len(beginning[1].splitlines()) <= 13
    lacking = missing(page)
    if lacking:
        pytest.skip(lacking)
    subprocess.run([sys.executable, "-c", beginning[1]], cwd=tmp_path, check=True)  # where there are no files


def test_every_page_is_reached():
    reached = {"index"}
    for path in PAGES:
        for toc in re.findall(r"^```{toctree}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            names = [line for line in toc.splitlines() if line and not line.startswith(":")]
            reached |= {(path.parent / name).relative_to(DOCS).as_posix() for name in names}
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES} - {"operation_counts_why"}
    assert pages == reached


def test_what_people_look_for_leads_somewhere():
    rows = [line for line in (DOCS / "finding.md").read_text(encoding="utf-8").splitlines() if "](" in line]
    words = [word.strip() for row in rows for word in row.split("|")[1].split(",")]
    assert {"gravity compensation", "LQR", "URDF", "contact", "damping"} <= set(words)
    assert len(words) == len(set(words))
    for row in rows:
        for page, anchor in re.findall(r"\]\(([\w/]+\.md)(?:#example-([\w-]+))?\)", row):
            assert (DOCS / page).exists()
            assert not anchor or anchor.replace("-", "_") in ONE_PAGE


def test_every_method_of_a_model_has_a_topic():
    groups = grouped()
    assert "forward_dynamics" in groups["Dynamics"]
    listed = [name for names in groups.values() for name in names]
    assert len(listed) == len(set(listed))
    stored = {field.name for field in fields(lw.Model)}
    assert {name for name in dir(lw.Model) if not name.startswith("_")} - stored <= set(listed)
