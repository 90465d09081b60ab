"""Run the tests of papers.md and write the errors they saw to papers_measured.json: `python docs/measure_papers.py`.

Takes some minutes; words after it choose some of the tests, and the others' errors stay. Every comparison of a number
with a bound that a test makes is recorded as it passes, in the unit of the bound: `error < 1e-10 * scale` is recorded
as error / scale. Each test keeps the one that comes nearest its bound.
"""

from __future__ import annotations

import ast
import json
import operator
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from linkwise.papers.numbered import PAPERS_IN_ORDER

PAGE = Path(__file__).parent / "papers_measured.json"
LARGEST_BOUND = 1e-2  # beyond it, a number is a claim of another kind
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def number(text: str) -> tuple[float, list[float]]:
    """The value of an expression of numbers, and the numbers in it."""
    found: list[float] = []

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            found.append(float(node.value))
            return float(node.value)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            return float(_OPERATIONS[type(node.op)](value(node.left), value(node.right)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).endswith("float64"):
            return value(node.args[0])
        raise ValueError(text)

    return value(ast.parse(text, mode="eval").body), found


class Recorder:
    """What the tests compared, by test without its parameters."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[float, float]] = {}
        self.ran: set[str] = set()
        self.now = ""
        self.close, self.compare = np.testing.assert_allclose, np.allclose

    def keep(self, error: float, bound: float) -> None:
        """One comparison; the one nearest its bound stays."""
        known = self.seen.get(self.now)
        if bound < LARGEST_BOUND and np.isfinite(error) and (known is None or error / bound > known[0] / known[1]):
            self.seen[self.now] = (error, bound)

    def arrays(self, actual: Any, desired: Any, rtol: float, atol: float) -> None:
        """A comparison by NumPy: the number nearest its bound, error and bound relative to the largest number."""
        a, b = np.broadcast_arrays(np.asarray(actual, float), np.asarray(desired, float))
        scale = float(np.abs(b).max(initial=0.0)) or 1.0
        error, allowed = np.abs(a - b).reshape(-1) / scale, (atol + rtol * np.abs(b)).reshape(-1) / scale
        if (allowed > 0).any():
            worst = np.argmax(error / np.where(allowed > 0, allowed, np.inf))
            self.keep(float(error[worst]), float(allowed[worst]))

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.now = item.nodeid.partition("[")[0]
        self.ran.add(self.now)

    def pytest_assertion_pass(self, item: pytest.Item, lineno: int, orig: str, expl: str) -> None:
        left, sign, right = expl.partition("\n")[0].partition(" <= " if " <= " in expl.partition("\n")[0] else " < ")
        if sign:
            try:
                error, (bound, parts) = number(left)[0], number(right)
            except (ValueError, SyntaxError):
                return
            units = [x for x in parts if 0 < x < LARGEST_BOUND]
            if units and bound > 0:
                self.keep(abs(error) / bound * min(units), min(units))

    def pytest_configure(self) -> None:
        pytest.register_assert_rewrite("tests.operators.checks", "tests.identities.relations")

    def pytest_sessionstart(self) -> None:
        def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0, **more: Any) -> None:
            self.close(actual, desired, rtol=rtol, atol=atol, **more)
            self.arrays(actual, desired, rtol, atol)

        def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, **more: Any) -> bool:
            same = bool(self.compare(a, b, rtol=rtol, atol=atol, **more))
            if same:
                self.arrays(a, b, rtol, atol)
            return same

        np.testing.assert_allclose, np.allclose = assert_allclose, allclose


def main() -> None:
    """All rows once, or those that are named on the command line."""
    listed = {row.test for paper in PAPERS_IN_ORDER for row in paper.rows if row.test}
    tests = sorted(test for test in listed if not sys.argv[1:] or any(word in test for word in sys.argv[1:]))
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        sys.pycache_prefix = folder  # modules whose assertions were rewritten without the hook must not be found
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-o", "enable_assertion_pass_hook=true"]
        code = pytest.main([*options, *tests], plugins=[recorder])
    missing = set(tests) - recorder.ran
    if code or missing:
        sys.exit(f"tests failed or did not run: {sorted(missing)}")
    known: dict[str, float | None] = json.loads(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else {}
    found = {test: float(f"{recorder.seen[test][0]:.0e}") if test in recorder.seen else None for test in tests}
    table = {test: found.get(test, known.get(test)) for test in sorted(listed)}
    PAGE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
