"""Wide results that leave in pieces, and long programs in parts: the same numbers, all of them, once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linkwise.codegen.cuda import layout
from linkwise.codegen.cuda import source as kernels
from linkwise.codegen.cuda.instructions import LONGEST_PIECE, Piece, numbers_of, pieces_of
from linkwise.codegen.cuda.leaving import gathered
from linkwise.codegen.cuda.parts import split
from linkwise.codegen.cuda.source import all_rows, batch_kernel, wide_results
from linkwise.model_api.model import Model
from linkwise.models import planar_arm
from linkwise.tracing.program import ArraySpec, Program
from tests.codegen.cuda.emulation import LANES, Emulated, needs_compiler
from tests.codegen.cuda.models import every_joint, random_state


@pytest.fixture(autouse=True)
def _few_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LANES", (LANES,))


@pytest.mark.parametrize("shape", [(2, 3), (20, 20), (5, 29), (4, 70), (7, 4, 4), (65,), (3, 33)])
def test_pieces_cover_an_array(shape: tuple[int, ...]) -> None:
    spec = ArraySpec("y", shape)
    results = (tuple(range(spec.size)),)
    program = Program("p", tuple(("const", float(k)) for k in range(spec.size)), (), (spec,), results)
    found = [numbers_of(program, Piece(0, first)) for first in pieces_of(spec)]
    assert [number for piece in found for number in piece] == list(range(spec.size))
    assert max(map(len, found)) <= LONGEST_PIECE


@needs_compiler
@pytest.mark.parametrize("local", [False, True])
def test_pieces(local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few registers, so that values wait in shared or in local memory."""
    monkeypatch.setattr(kernels, "LIMIT", {32: 60, 64: 60})
    monkeypatch.setattr(kernels, "_CROWDED_BYTES", 0 if local else 1 << 30)
    model, count = every_joint(), 2 * LANES + 3
    function = model.function("mass_matrix_inverse")
    program = function.program
    kernel = batch_kernel(program, 64, pieces={0: pieces_of(program.outputs[0])})
    assert ("volatile REAL frame[" in kernel.text) == local
    assert "lw_give<" in kernel.text
    _check(model, function, kernel, count, tmp_path)


def powers() -> Program:
    """x⁴ of each of 80 numbers plus the first one, in four rows, and the sum of the first two."""
    nodes: list = [("input", 0, k) for k in range(80)]
    results = []
    for k in range(80):
        nodes += [("mul", k, k), ("mul", len(nodes), len(nodes)), ("add", len(nodes) + 1, 0)]
        results.append(len(nodes) - 1)
    nodes.append(("add", 0, 1))
    outputs = (ArraySpec("s", (1,)), ArraySpec("y", (4, 20)))
    return Program("powers", tuple(nodes), (ArraySpec("x", (80,)),), outputs, ((len(nodes) - 1,), tuple(results)))


@needs_compiler
def test_rows_of_several_matrices_leave_together(tmp_path: Path) -> None:
    model = planar_arm(16)
    function = model.function("linearize_inverse")
    program = function.program
    wide = {k: pieces_of(program.outputs[k]) for k in (1, 2, 3)}
    kernel = batch_kernel(program, 64, pieces=wide)
    assert kernel.text.count("lw_give<") < sum(map(len, wide.values())) / 2
    _check(model, function, kernel, LANES + 1, tmp_path)


def test_gathered() -> None:
    """Rows of two matrices that are complete in turn, from the last to the first, and one that lies apart."""
    order = [(Piece(array, 10 * row), 10) for row in (5, 4, 3, 2, 0) for array in (0, 1)]
    for room, longest, waiting in ((9, 10, 10), (10, 10, 10), (40, 20, 40), (80, 40, 80), (1000, 40, 80)):
        leaving = gathered(order, room)
        stretches = list(dict.fromkeys(leaving.stretches.values()))
        assert (max(s.size for s in stretches), leaving.size) == (longest, waiting)
        assert sum(s.size for s in stretches) == 100
        assert len(leaving.last) == len(stretches)
        held: dict[int, Piece] = {}  # what waits in each place, as the pieces come
        for piece, size in order:
            places = range(leaving.place(piece), leaving.place(piece) + size)
            assert not held.keys() & set(places)
            held.update(dict.fromkeys(places, piece))
            if piece in leaving.last:
                stretch = leaving.stretches[piece]
                for k in range(stretch.size):
                    at = held.pop(stretch.place + k)
                    assert at.array == stretch.array and at.first <= stretch.first + k < at.first + 10
        assert not held


@needs_compiler
def test_parts(tmp_path: Path) -> None:
    program = powers()
    parts = split(program, {1: pieces_of(program.outputs[1])}, longest=70)
    assert len(parts) == 4
    x = np.random.default_rng(0).normal(size=(LANES + 1, 80))
    outputs = [np.full((len(x), 1), -777.0), np.full((len(x), 80), -777.0)]
    for number, part in enumerate(parts):
        kernel = batch_kernel(part.program, 64, all_rows(part.program), pieces=part.pieces)
        home = tmp_path / str(number)
        home.mkdir()
        passed = [x, *(outputs[k] for k in part.outputs)]
        Emulated(kernel, len(passed), float, home)(passed, len(x))
    assert np.allclose(outputs[0][:, 0], x[:, 0] + x[:, 1])
    assert np.allclose(outputs[1], x**4 + x[:, :1])


def test_short_programs_are_whole() -> None:
    program = every_joint().function("mass_matrix").program
    wide = {0: pieces_of(program.outputs[0])}
    assert len(split(program, wide)) == 1
    assert len(split(program, {}, longest=1)) == 1


def test_which_results_leave_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are long in the making, or leave no room; a vector and what comes as columns never does."""
    monkeypatch.setattr(layout, "LANES", (32,))
    program = every_joint().function("linearize_inverse").program
    assert set(wide_results(program, 64, ["rows"] * 7)) == {1, 2, 3}
    assert set(wide_results(program, 64, ["rows"] * 6 + ["columns"])) == {1, 2}
    assert not wide_results(every_joint().function("jacobian", body="world").program, 64, ["rows"] * 2)
    matrix = every_joint().function("mass_matrix").program
    assert not wide_results(matrix, 32, ["rows"] * 2)


def _check(model: Model, function: object, kernel: object, count: int, folder: Path) -> None:
    program = function.program  # type: ignore[attr-defined]
    given = random_state(model, count)[: len(program.inputs)]
    outputs = [np.full((count, a.size), -777.0) for a in program.outputs]
    Emulated(kernel, len(given) + len(outputs), float, folder)([*given, *outputs], count)  # type: ignore[arg-type]
    expected = function(*given)  # type: ignore[operator]
    for got, wanted in zip(outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
        flat = wanted.reshape(count, -1)
        assert np.allclose(got, flat, rtol=1e-10, atol=1e-11 * np.abs(flat).max())
