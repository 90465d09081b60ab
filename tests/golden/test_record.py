"""The emitted code of twenty functions is what it was: a change of it is made on purpose, or not at all."""

from __future__ import annotations

import json

import pytest

from tests.golden.functions import FUNCTIONS, RECORD, record_of

KNOWN = json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_emitted_code_is_as_recorded(name: str) -> None:
    found = record_of(FUNCTIONS[name]())
    assert found == KNOWN[name], (
        "the code of this function has changed. If it should: compare the texts of both versions "
        "(python -m tests.golden.functions FOLDER), measure both, then write the record anew (without FOLDER)"
    )
