"""``linkwise doctor``: what it finds is so, and what it does not find it says."""

import json
import tomllib
from pathlib import Path

import pytest

from linkwise.cli import main
from linkwise.cli.commands import machine as doctor
from linkwise.targets.llvm import layouts


def findings(capsys, *arguments):
    main(["doctor", *arguments])
    return capsys.readouterr().out


def test_all_things_are_listed(capsys):
    text = findings(capsys)
    for what in ("Python", "processor", "compiled code", "quick calls", "cache", "C compiler", "CUDA", "extra viz"):
        assert what in text


def test_json_says_the_same(capsys):
    told = json.loads(findings(capsys, "--json"))
    machine = {each["what"]: each for each in told["machine"]}
    assert machine["compiled code"]["works"] and machine["quick calls"]["works"] is layouts.available()
    assert len(told["extras"]) == len(doctor._EXTRAS)


def test_extras_are_those_of_the_package_and_missing_modules_are_named():
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(doctor._EXTRAS) == set(declared["project"]["optional-dependencies"]) - {"test", "lint", "docs", "dev"}
    found = doctor._extra("viz", ("no_such_module",), "views")
    assert not found.works and "no_such_module" in found.found


def test_wrong_numbers_are_an_error(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_compiled", lambda: doctor.Finding("compiled code", False, "off", "report this"))
    with pytest.raises(SystemExit):
        findings(capsys)
    assert "report this" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "name", "value"),
    [("_probes", None, None), (None, "gettotalrefcount", lambda: 0)],
    ids=["layout", "debug"],
)
def test_another_interpreter_is_named(monkeypatch, target, name, value):
    import sys

    if target:
        monkeypatch.setattr(layouts, target, lambda: [1.0])
    else:
        monkeypatch.setattr(sys, name, value, raising=False)
    assert layouts.trouble.__wrapped__() is not None
