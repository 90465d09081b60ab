"""Wide results: staged rows, columns that are always zero, and copies past the caches."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.targets.llvm import binding, streaming, weaving
from linkwise.targets.llvm.ir import LaneShape
from linkwise.targets.llvm.kernel import BatchKernel
from linkwise.targets.llvm.program_kernel import ProgramKernel, program_module
from linkwise.targets.llvm.target import TARGET
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import Buffer, Call, For, Program

N_IN = 5


def _program(size: int, seed: int) -> Block:
    """Outputs of a wide row with long and short runs of zeros, and a narrow one."""
    rng = np.random.default_rng(seed)
    nodes: list[tuple] = [("input", 0, k) for k in range(N_IN)] + [("const", 0.0), ("const", 2.5)]
    while len(nodes) < 2000:
        a, b = rng.integers(max(0, len(nodes) - 200), len(nodes), size=2)
        nodes.append((str(rng.choice(["add", "sub"])), int(a), int(b)) if len(nodes) % 3 else ("sin", int(a)))
    wide = [int(k) for k in rng.integers(7, len(nodes), size=size)]
    for first, last in ((0, 3), (17, 50), (90, 91), (128, 250), (size - 5, size)):
        wide[first:last] = [5] * (last - first)
    wide[20] = 6
    narrow = [int(k) for k in rng.integers(0, len(nodes), size=3)]
    arrays = (ArraySpec("wide", (size,)), ArraySpec("narrow", (3,)))
    return Block("wide", tuple(nodes), (ArraySpec("x", (N_IN,)),), arrays, (tuple(wide), tuple(narrow)))


def _streaming_kernel(program: Block, dtype: type, far: bool, monkeypatch: pytest.MonkeyPatch) -> BatchKernel:
    monkeypatch.setattr(streaming, "FAR_BYTES", 0 if far else 1 << 40)
    monkeypatch.setattr(weaving, "_SPACING", 10**9)  # what is woven into the arithmetic is not staged
    monkeypatch.setenv("LINKWISE_CACHE", "0")
    assert "call void @copy_out" in TARGET.source(program, np.dtype(dtype))
    return BatchKernel.build(program, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [600, 601])
@pytest.mark.parametrize("far", [False, True])
def test_wide_outputs(dtype: type, size: int, far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program = _program(size, seed=size)
    kernel = _streaming_kernel(program, dtype, far, monkeypatch)
    rng = np.random.default_rng(1)
    for count in (1, 7, 16, 33):
        x = rng.uniform(-1, 1, size=(count, N_IN)).astype(dtype)
        for shift in (0, 1, 3):  # results that begin anywhere
            room = np.full(count * size + shift + 8, np.nan, dtype)
            wide = room[shift : shift + count * size].reshape(count, size)
            narrow = np.full((count, 3), np.nan, dtype)
            kernel.evaluate([x], [wide, narrow], count)
            assert np.isnan(room[:shift]).all()
            assert np.isnan(room[shift + count * size :]).all()
            expected = [interpret(program, [row.tolist()]) for row in x.astype(float)]
            scale = max(1.0, np.abs(np.array([e[0] for e in expected])).max())
            tolerance = (1e-11 if dtype is np.float64 else 1e-3) * scale
            np.testing.assert_allclose(wide, [e[0] for e in expected], atol=tolerance)
            np.testing.assert_allclose(narrow, [e[1] for e in expected], atol=tolerance)


def test_runs_are_what_is_not_zero() -> None:
    program = _program(600, seed=0)
    wide = streaming.wide_outputs(program, LaneShape(64, 8))
    assert list(wide) == [0]
    skipped = streaming.skipped(program, wide)
    assert all(program.nodes[program.results[array][e]] == ("const", 0.0) for array, e in skipped)
    assert {(0, e) for e in range(128, 248)} <= skipped
    assert not {(0, e) for e in range(16, 24)} & skipped


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("far", [False, True])
def test_results_at_odd_addresses(dtype: type, far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views into bytes need not begin at a multiple of a number; what lies before and behind them stays."""
    size = 601
    kernel = _streaming_kernel(_program(size, seed=size), dtype, far, monkeypatch)
    for count in (1, 16, 19):
        x = np.random.default_rng(count).uniform(-1, 1, size=(count, N_IN)).astype(dtype)
        expected, narrow = np.empty((count, size), dtype), np.empty((count, 3), dtype)
        kernel.evaluate([x], [expected, narrow], count)
        for shift in range(64):
            room = np.full(expected.nbytes + 192, 0xAB, np.uint8)
            wide = room[64 + shift :][: expected.nbytes].view(dtype).reshape(count, size)
            kernel.evaluate([x], [wide, narrow], count)
            assert np.array_equal(wide, expected)
            assert (room[: 64 + shift] == 0xAB).all()
            assert (room[64 + shift + expected.nbytes :] == 0xAB).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [600, 613])
def test_wide_outputs_of_programs_with_loops(dtype: type, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that begin anywhere in a line, and at addresses that are no multiple of a number."""
    monkeypatch.setattr(streaming, "FAR_BYTES", 0)
    monkeypatch.setenv("LINKWISE_CACHE", "0")
    block = Block(
        "rows",
        tuple(("input", 0, k) for k in range(N_IN)),
        (ArraySpec("x", (N_IN,)),),
        (ArraySpec("y", (size,)),),
        (tuple(k % N_IN for k in range(size)),),
    )
    program = Program(
        "rows",
        (Buffer("x", N_IN, load=True, shape=(N_IN,)), Buffer("y", size, store=True, shape=(size,))),
        (For(1, (Call(block, ("x",), ("y",)),)),),
    )
    assert "call void @lanes_to_rows_past" in program_module(program, binding.host(), 64, 8)
    kernel = ProgramKernel.build(program, dtype)
    item = np.dtype(dtype).itemsize
    for count in (1, 16, 33):
        x = np.random.default_rng(1).uniform(-1, 1, size=(count, N_IN)).astype(dtype)
        for shift in (0, item, 5 * item, 3):
            room = np.full((count * size + 16) * item, 0xEE, np.uint8)
            y = room[shift : shift + count * size * item].view(dtype).reshape(count, size)
            kernel.evaluate([x], [y], count)
            np.testing.assert_array_equal(y, x[:, np.arange(size) % N_IN])
            assert (room[:shift] == 0xEE).all()
            assert (room[shift + count * size * item :] == 0xEE).all()
