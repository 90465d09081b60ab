"""The page of operator rules is the one that the rules write."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_rules_is_up_to_date():
    generator = runpy.run_path(str(DOCS / "generate_rules.py"))
    assert generator["PAGE"].read_text(encoding="utf-8") == generator["page"]()
