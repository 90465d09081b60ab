"""The runner counts, notices crashes and hangs, goes on behind them, shrinks, and reports."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaign import report, runner
from campaign.kinds import KINDS
from campaign.mechanisms import Recipe, random_recipe
from campaign.shrink import outcome, shrink
from campaign.surface import LEFT_OUT, methods, unknown
from campaign.trial import Log, read_status
from campaign.trials.calls import Calls, Case, Given, as_test, check
from linkwise.algorithms.catalogue import CATALOGUE


def test_every_function_is_called() -> None:
    assert not unknown(), "say in campaign.surface how to draw these arguments"
    assert set(CATALOGUE) <= set(methods()) | set(LEFT_OUT)
    assert methods()["jacobian"].static == ("body", "node", "reference")
    assert methods()["forward_dynamics"].optional == ("f_ext", "t")


def test_outcomes() -> None:
    assert outcome(lambda _: None, 0) == ""
    assert outcome(lambda n: 1 / n, 0).startswith("ZeroDivisionError: division by zero")
    assert outcome(lambda _: os.kill(os.getpid(), signal.SIGSEGV), 0) == "SIGSEGV"
    assert outcome(lambda _: time.sleep(60), 0, seconds=0.3) == "hangs"


def test_shrinks_to_the_smallest_that_fails_alike() -> None:
    def fails(n: int) -> None:
        if n >= 7:
            raise KeyError(n)
        if n >= 5:
            raise ValueError(n)

    def simpler(n: int) -> Iterator[int]:
        yield from (n // 2, n - 1)

    small, failure = shrink(100, simpler, fails, 30.0)
    assert small == 7
    assert failure.startswith("KeyError: 7")


def test_the_log_is_read_from_outside(tmp_path: Path) -> None:
    log = Log(tmp_path, time.time() + 60)
    for number in log.numbers(range(5, 8)):
        log.begin(number, f"case {number}")
    number, done, _, text = read_status(tmp_path)
    assert (number, done, text) == (7, 3, "case 7")
    assert list(Log(tmp_path, time.time() - 1).numbers(range(3))) == []


def test_a_time() -> None:
    assert [runner.seconds_of(x) for x in ("90", "90s", "10m", "1.5h")] == [90, 90, 600, 5400]


def test_chunks_begin_where_mechanisms_do() -> None:
    trial = KINDS["collections"]
    found = list(runner.chunks(trial, 5, 100))
    assert found[0] == range(5, trial.chunk)
    assert sum(map(len, found)) == 100


class _Bad(Calls):
    """Stands in for a kind with trouble in its numbers 1 and 3."""

    def unavailable(self) -> None:
        return None


def test_goes_on_behind_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "crashing.py"
    module.write_text(
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from campaign.trial import Log\n"
        "name, seed, first, count, deadline, folder = sys.argv[1:]\n"
        "log = Log(Path(folder), float(deadline))\n"
        "for number in log.numbers(range(int(first), int(first) + int(count))):\n"
        "    if number == 1:\n"
        "        os.kill(os.getpid(), signal.SIGSEGV)\n"
        "    if number == 3:\n"
        "        log.fail(3, 'ValueError: three')\n"
    )
    usual = runner.subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        return usual([command[0], str(module), *command[3:]], **options)

    monkeypatch.setattr(runner.subprocess, "Popen", popen)
    monkeypatch.setattr(runner.Run, "_shrink", lambda self: None)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    run = runner.Run(_Bad(), 0, tmp_path, 1, failures=10)
    found = run.go(0, 6, 60.0)
    assert found.done == 5
    assert [failure["number"] for failure in found.failures] == [1, 3]
    assert found.failures[0]["what"].startswith("SIGSEGV")
    assert "--seed 0 --first 1 --count 1" in found.failures[0]["again"]


def test_the_table() -> None:
    kind = {"unit": "random calls", "target": 10**6, "done": 1500, "seconds": 30.0, "skipped": "", "failures": []}
    gone = {**kind, "skipped": "no GPU", "done": 0}
    one = {"date": "2026-01-01", "version": "1", "machine": "m", "seed": 0, "kinds": {"calls": kind, "device": gone}}
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    made = report.filled(page, [one, one])
    assert "| calls: random calls | 3 000 | 1 000 000 | 0 | 60 s |" in made
    assert "not run: no GPU" in made
    assert made.startswith("before")
    assert made.endswith("after\n")
    assert "old" not in made


def test_the_page_has_room_for_the_table() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert page.index(report.BEGIN) < page.index(report.END)


def test_numbers_are_reproducible() -> None:
    trial = Calls()
    assert trial.case(7, 4321) == trial.case(7, 4321)
    assert trial.case(7, 4321) != trial.case(8, 4321)
    recipe = random_recipe(np.random.default_rng(3))
    assert recipe.build() == random_recipe(np.random.default_rng(3)).build()


def test_a_case_as_a_test_runs() -> None:
    case = Case(Recipe(seed=3), "gravity_force", batch=(2,), given=(Given("f4"),))
    namespace: dict[str, Any] = {}
    exec(as_test(case, "it fails"), namespace)
    namespace["test_call_of_gravity_force"]()


def test_the_oracles_can_say_no() -> None:
    """A wrong result is noticed by each of them."""
    from campaign import oracles

    recipe = Recipe(seed=5, bodies=2, types=("revolute", "prismatic"))
    model = recipe.build()
    method = methods()["mass_matrix"]
    one = {"q": model.random_configuration(1)}
    right = model.mass_matrix(one["q"])
    wrong = right * (1 + 1e-6)
    for ask in (oracles.pinocchio, oracles.laws):
        if ask is oracles.pinocchio:
            pytest.importorskip("pinocchio")
        assert ask(recipe, method, one, right)
        with pytest.raises(AssertionError):
            ask(recipe, method, one, wrong)
    assert oracles.forty_digits(recipe, method, one, right, 0) < oracles.ALLOWED
    with pytest.raises(AssertionError, match="40 digits"):
        oracles.forty_digits(recipe, method, one, right * (1 + 1e-11), 0)
    linearize = methods()["linearize_forward"]
    state = {**one, "v": np.ones(model.nv), "tau": np.ones(model.nv)}
    lin = model.linearize_forward(*state.values())
    assert oracles.differences(recipe, linearize, state, lin)
    with pytest.raises(AssertionError, match="differences"):
        oracles.differences(recipe, linearize, state, lin._replace(dv=lin.dv + 1e-4))


def test_mistakes_must_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = Case(Recipe(seed=1), "gravity_force", mistake="short")
    check(mistake)
    monkeypatch.setattr("campaign.oracles.call", lambda *arguments, **options: 0.0)
    with pytest.raises(AssertionError, match="a mistake was not noticed: short"):
        check(mistake)
