"""Rows of tables by their numbers: the same in every target, harmless beyond the ends, constants in derivatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.spatial.scalar import RowTable, clip
from linkwise.targets.c import emit_c
from linkwise.targets.cuda.launched_programs import DeviceProgram
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.calls import traced as program
from linkwise.trace.interpreter import Interpreter
from linkwise.trace.program import Buffer, Call, ParameterRow, Program
from linkwise.trace.state_loops import table_row
from linkwise.trace.verifier import verify
from tests.targets.c.test_emit import needs_compiler
from tests.targets.c.test_programs import SANITIZERS, passes
from tests.targets.cuda.fakes import Fakes, fakes  # noqa: F401
from tests.targets.cuda.test_statements import open_sizes

HEIGHTS = np.array([0.5, -1.0, 2.0, 0.25, 3.0, 1.0])
TABLE = RowTable(HEIGHTS.tolist(), 5, 1, 2)
"""Of each of five intervals the values at its two ends."""
PLACES = np.array([0.0, 0.99, 1.0, 3.5, 4.0, 4.999, 5.0, 7.0, 1e30, np.inf, -1e-30, -2.5, -np.inf, np.nan])


def wanted(places: np.ndarray) -> np.ndarray:
    k = [0 if not x > 0.0 else int(min(x, 4.0)) for x in places]
    return np.stack([np.array(k, float), HEIGHTS[k], HEIGHTS[np.array(k) + 1]], axis=-1)


def summed() -> Program:
    """A row of the program's own parameters, and one of a program that it calls, at twice the place."""
    twice = program("twice", lambda x: {"y": [2.0 * x[0]]}, {"x": 1})
    buffers = (Buffer("x", 1, load=True), Buffer("y", 1), Buffer("a", 3, store=True), Buffer("b", 3, store=True))
    inner = table_row(HEIGHTS, 5, 1, 2)
    calls = (Call(twice, ("x",), ("y",)), Call(inner, ("y",), ("b",)))
    return Program("summed", buffers, (ParameterRow("x", "a", 5, 1), *calls), parameters=HEIGHTS)


def run(kernel: object, places: np.ndarray, dtype: type) -> list[np.ndarray]:
    count = len(places)
    rows = {"x": places.astype(dtype)[:, None], **{name: np.full((count, 3), np.nan, dtype) for name in "ab"}}
    kernel.run(rows, {}, {}, count)
    return [np.asarray(rows[name]) for name in "ab"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("how", ["interpreted", "lanes", "one by one"])
def test_rows_and_their_numbers(how: str, dtype: type) -> None:
    code = summed()
    verify(code)
    kernel = Interpreter(code, dtype)
    if how != "interpreted":
        kernel = ProgramKernel.build(code, dtype, single=how == "one by one")
    a, b = run(kernel, PLACES, dtype)
    np.testing.assert_array_equal(a, wanted(PLACES))
    np.testing.assert_array_equal(b, wanted(2.0 * PLACES))


@pytest.mark.parametrize("is_open", [False, True])
def test_on_a_device(fakes: Fakes, is_open: bool) -> None:  # noqa: F811
    code = open_sizes(summed()) if is_open else summed()
    fakes.cupy.asnumpy = np.asarray
    places = np.resize(PLACES[:-1], 33)  # the emulation turns NaN into a whole number as C does
    a, b = run(DeviceProgram(code, np.float64), places, np.float64)
    np.testing.assert_array_equal(a, wanted(places))
    np.testing.assert_array_equal(b, wanted(2.0 * places))


def test_rows_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="not in the parameters"):
        table_row(HEIGHTS, 6, 1, 2)
    with pytest.raises(ValueError, match="not in the parameters"):
        table_row(HEIGHTS, 0, 1, 2)


def between(x: object) -> object:
    """Linear between the numbers of the table."""
    s = clip(x, 0.0, 5.0)
    k, (low, high) = TABLE.at(s)
    return low + (s - k) * (high - low)


def test_interpolation_with_derivatives() -> None:
    f = lw.compile(lambda _, q: between(q[0] * q[0] + q[1]), samples.planar_arm(n=2), inputs={"q": "q"})
    q = np.random.default_rng(0).uniform(-2.4, 2.4, (50, 2))
    place = q[:, 0] ** 2 + q[:, 1]
    np.testing.assert_allclose(f(q), np.interp(place, np.arange(6.0), HEIGHTS), atol=1e-13)
    np.testing.assert_allclose([between(x) for x in place.tolist()], f(q), atol=1e-13)
    slope = np.where((place > 0) & (place < 5), np.diff(HEIGHTS)[np.clip(place, 0, 4.5).astype(int)], 0.0)
    for mode in ("forward", "reverse"):
        found = f.jacobian("q", mode=mode)(q)
        np.testing.assert_allclose(found, np.stack([2.0 * q[:, 0] * slope, slope], axis=-1), atol=1e-12)


def test_symbols_of_other_libraries() -> None:
    casadi = pytest.importorskip("casadi")
    x = casadi.SX.sym("x")
    f = casadi.Function("f", [x], [between(x)])
    for place in (-1.0, 0.0, 0.4, 2.0, 4.7, 9.0):
        assert float(f(place)) == pytest.approx(np.interp(place, np.arange(6.0), HEIGHTS))


@needs_compiler
def test_in_c(tmp_path: Path) -> None:
    f = lw.compile(lambda _, q: between(q[0] * q[0] + q[1]), samples.planar_arm(n=2), inputs={"q": "q"})
    passes(emit_c(f, tmp_path), *SANITIZERS)
