"""What messages, docstrings and pages name as part of the library is there."""

import ast
import re
from pathlib import Path

import pytest

import linkwise as lw

ROOT = Path(__file__).parents[2]
# Behind a dot ``lw`` is part of the name of a file: panda.lw.json.
NAME = re.compile(r"(?<!\.)\b(?:lw\.([A-Za-z_]\w*)|linkwise\.([A-Z]\w*))")
FILES = [*(ROOT / "linkwise").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]


def texts(path):
    if path.suffix == ".md":
        return [path.read_text(encoding="utf-8")]
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def test_names_exist():
    missing = {}
    for path in FILES:
        if "_build" not in path.parts:
            for text in texts(path):
                for match in NAME.finditer(text):
                    name = match[1] or match[2]
                    if not hasattr(lw, name):
                        missing.setdefault(name, set()).add(path.name)
    assert not missing


@pytest.mark.parametrize("word", ["lw.no_such_thing", "linkwise.NoSuchThing"])
def test_the_pattern_sees_names(word):
    match = NAME.search(f"use {word}(…)")
    assert match
    assert not hasattr(lw, match[1] or match[2])
