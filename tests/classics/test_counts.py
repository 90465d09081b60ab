"""Operation counts: the papers' tables, our place beside them, and the page that shows both."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import linkwise as lw
from linkwise.classics import ALGORITHMS, count
from linkwise.functions.counting import PUBLISHED, Published, linearized_counts

DOCS = Path(__file__).parents[2] / "docs"


def printed(name: str, kind: str) -> Published:
    return next(p for p in PUBLISHED if p.name.startswith(name) and p.kind == kind)


@pytest.mark.parametrize("n", [6, 12])
def test_below_the_best_printed_rows(n: int) -> None:
    inverse, forward = count("linkwise_inverse", n, "regrouped"), count("linkwise_forward", n, "regrouped")
    for ours, theirs in ((inverse, printed("Balafoutis", "inverse")), (forward, printed("Featherstone", "forward"))):
        assert theirs.M(n) - ours.M > 0
        assert theirs.A(n) - ours.A > 0


def test_no_step_back() -> None:
    """The counts reached; lower ones are welcome here."""
    for n, inverse, forward in ((6, (382, 323), (854, 766)), (12, (868, 743), (2024, 1852))):
        for name, (M, A) in (("linkwise_inverse", inverse), ("linkwise_forward", forward)):
            counts = count(name, n, "regrouped")
            assert max(counts.M, M) == M
            assert max(counts.A, A) == A


def _below_the_paper(n: int) -> None:
    """Jain 1993 algorithms 2 and 6, run and counted as ours are; and as printed."""
    for row in linearized_counts(n):
        if row.number in (2, 6):
            assert row.own is not None
            assert row.own[0] < min(row.counted[0], row.printed[0])
            assert sum(row.own) < min(sum(row.counted), sum(row.printed))


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 9, 10, 11, 14, 20])
def test_derivatives_below_the_algorithms_of_the_paper(n: int) -> None:
    """Where ours change from one way to the other, and around; the slow test has them all."""
    _below_the_paper(n)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(2, 41))
def test_derivatives_below_the_algorithms_of_the_paper_for_every_n(n: int) -> None:
    _below_the_paper(n)


def test_rows_of_table_1() -> None:
    """Saha 1999 table 1: the formulas in the order of the names give the printed column for n = 6."""
    column = [(2195, 1719), (852, 834), (800, 595), (676, 527), (538, 478), (521, 435), (489, 421)]
    assert [(p.M(6), p.A(6)) for p in PUBLISHED if p.kind == "inverse"] == column


def test_rows_of_table_2() -> None:
    """Saha 1999 table 2, both columns.

    The fractions of Walker and Orin's row are lost in the scan; M = n³/6 + 11½n² + 38⅓n - 47 gives both its columns.
    Its A = n³/6 + 7n² + 38⅚n - 46 gives 1716 for n = 12 as printed, and 475 for n = 6, where the table has 480.
    """
    columns = [[871, 797, 2077, 1955], [996, 871, 2190, 1915], [633, 475, 2357, 1716]]
    for p, column in zip([p for p in PUBLISHED if p.kind == "forward"], columns, strict=True):
        assert [p.M(6), p.A(6), p.M(12), p.A(12)] == pytest.approx(column)


def test_walker_and_orin_are_counted_without_the_bias_force() -> None:
    """Our composite-body mass matrix with Cholesky's method has the same leading terms as their row of table 2.

    Their inverse dynamics alone takes more multiplications (table 1: 137n - 22) than the whole row at n = 6.
    """
    row = printed("Walker", "forward")

    def third_difference(f: Any) -> float:
        return f(9) - 3 * f(8) + 3 * f(7) - f(6)

    def second_difference(f: Any) -> float:
        return f(8) - 2 * f(7) + f(6)

    for which in ("M", "A"):
        ours = lambda n, which=which: getattr(count("composite_cholesky", n, "dh"), which)  # noqa: E731
        theirs = getattr(row, which)
        assert third_difference(ours) == pytest.approx(third_difference(theirs))
        assert second_difference(ours) == pytest.approx(second_difference(theirs))
    assert printed("Walker", "inverse").M(6) > row.M(6)


@pytest.mark.parametrize("name", [a.name for a in ALGORITHMS.values() if a.order == "n"])
def test_linear_algorithms_are_linear(name: str) -> None:
    assert count(name, 24).M < 4.2 * count(name, 8).M  # O(n²) would be nine times


def test_ours_is_exactly_linear() -> None:
    for name in ("linkwise_inverse", "linkwise_forward"):
        for kind in ("dh", "regrouped"):
            counts = [count(name, n, kind) for n in range(4, 13)]
            assert len({b.M - a.M for a, b in pairwise(counts)}) == 1
            assert len({b.A - a.A for a, b in pairwise(counts)}) == 1


def test_order_of_the_mass_matrix_methods() -> None:
    """Jain 1991 §3: direct, then symmetry, then composite bodies."""
    for n in (3, 6, 12):
        direct, symmetry, composite = (count(name, n) for name in ("direct", "symmetry", "composite"))
        assert direct.M > symmetry.M > composite.M


def test_every_algorithm_can_be_counted() -> None:
    for name in ALGORITHMS:
        counts = count(name, 2, "dh")
        assert counts.M > 0


def test_refusals() -> None:
    with pytest.raises(lw.errors.UnknownNameError, match="newton_euler"):
        count("newton", 3)
    with pytest.raises(lw.InputError, match="regrouped"):
        count("newton_euler", 3, "modified dh")
    with pytest.raises(lw.InputError, match="positive"):
        count("newton_euler", 0)
    with pytest.raises(lw.InputError, match="mass"):
        count("sparse_kkt", 3, "regrouped")


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_counts", DOCS / "generate_counts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: Any) -> None:
    """A few rows; `python docs/generate_counts.py` writes them all."""
    page = (DOCS / "operation_counts.md").read_text(encoding="utf-8")
    for name in ("linkwise_inverse", "linkwise_forward", "newton_euler", "articulated_body", "composite", "armstrong"):
        assert generator.row(name) in page
    for p in PUBLISHED:
        assert generator.published_row(p) in page
    assert generator.ladder() in page
    assert (DOCS / "operation_counts.svg").exists()
