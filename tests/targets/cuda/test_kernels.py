"""Kernels' text, run on the CPU by emulation."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.targets.cuda import plan_writer, tile_layout
from linkwise.targets.cuda import source as kernels
from linkwise.targets.cuda.source import batch_kernel, rollout_kernel
from linkwise.targets.steps import Rollout, repeated
from linkwise.trace.block import OPS, ArraySpec, Block
from linkwise.trace.interpreter import interpret
from tests.targets.cuda.emulation import LANES, Emulated, needs_compiler
from tests.targets.cuda.models import binary, every_joint, random_state, sum_of_squares, unary
from tests.targets.cuda.random_programs import programs

pytestmark = needs_compiler
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e30, -1e30, 1e-30, math.inf, -math.inf, math.nan]


@pytest.fixture(autouse=True)
def _few_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_layout, "LANES", (LANES,))


def run(
    program: Block, folder: Path, arrays: list[np.ndarray], dtype: type = np.float64, **options: Any
) -> list[np.ndarray]:
    """All outputs for the rows of the inputs."""
    kernel = batch_kernel(program, np.dtype(dtype).itemsize * 8, **options)
    count = len(arrays[0])
    outputs = [np.full((count, a.size), -777.0, dtype) for a in program.outputs]
    emulated = Emulated(kernel, len(arrays) + len(outputs), dtype, folder)
    emulated([*(np.ascontiguousarray(a, dtype) for a in arrays), *outputs], count)
    return outputs


def same(got: np.ndarray, wanted: np.ndarray) -> bool:
    return bool(((got == wanted) | (np.isnan(got) & np.isnan(wanted))).all())


def test_table_is_complete() -> None:
    assert set(plan_writer.TABLE) | set(plan_writer.ABSORBED) == set(OPS) | {"fma"}


@pytest.mark.parametrize("op", ["neg", "abs", "sqrt"])
def test_unary(op: str, tmp_path: Path) -> None:
    x = np.array(SPECIAL)[:, None]
    wanted = np.array([[OPS[op].define(a)] for a in SPECIAL])
    assert same(run(unary(op), tmp_path, [x])[0], wanted)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "min", "max", "lt", "le", "eq"])
def test_binary(op: str, tmp_path: Path) -> None:
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    wanted = np.array([[float(OPS[op].define(a, b))] for a, b in pairs.tolist()])
    assert same(run(binary(op), tmp_path, [pairs[:, :1], pairs[:, 1:]])[0], wanted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_sin_and_cos(op: str, dtype: type, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-s, s, 500) for s in (1.0, 100.0, 1e5)] + [[1e7, 3e20, -1e25, np.inf, np.nan]])
    got = run(unary(op), tmp_path, [x.astype(dtype)[:, None]], dtype)[0][:, 0]
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, op)(x.astype(dtype).astype(float))
    assert np.allclose(got, wanted, rtol=0, atol=2 * np.finfo(dtype).eps, equal_nan=True)


def test_computed_angles_are_guarded(tmp_path: Path) -> None:
    nodes = (("input", 0, 0), ("mul", 0, 0), ("sin", 1))
    program = Block("s", nodes, (ArraySpec("x", (1,)),), (ArraySpec("y", (1,)),), ((2,),))
    got = run(program, tmp_path, [np.array([[2.0], [1e4], [1e9]])])[0][:, 0]
    assert got[:2] == pytest.approx(np.sin([4.0, 1e8]), abs=1e-15)
    assert math.isnan(got[2])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs(), st.integers(1, 11), st.sampled_from([5, 100]))
def test_random_programs(tmp_path_factory: Any, program: Block, count: int, limit: int) -> None:
    rng = np.random.default_rng(count)
    arrays = [rng.uniform(-2, 2, (count, a.size)) for a in program.inputs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "LIMIT", {32: limit, 64: limit})
        got = run(program, tmp_path_factory.mktemp("k"), arrays)
    for state in range(count):
        wanted = interpret(program, [a[state] for a in arrays])
        for output, row in zip(got, wanted, strict=True):
            # The kernel's sine of -0 is +0: what is divided by it is infinite the other way.
            both = np.isinf(output[state]) & np.isinf(row)
            assert np.allclose(output[state][~both], np.array(row, float)[~both], rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize(("size", "outputs"), [(1, 1), (7, 49), (8, 16), (6, 36), (29, 300)])
def test_sizes(size: int, outputs: int, tmp_path: Path) -> None:
    """Dense and padded rows."""
    x = np.random.default_rng(0).uniform(-1, 1, (10, size))
    wanted = np.stack([x[:, k % size] ** 2 + np.sin(x[:, 0]) for k in range(outputs)], 1)
    assert np.allclose(run(sum_of_squares(size, outputs), tmp_path, [x])[0], wanted)


def test_too_large_to_stage(tmp_path: Path) -> None:
    """What does not fit the shared memory is read and written where it is."""
    x = np.random.default_rng(0).uniform(-1, 1, (10, 9))
    wanted = np.stack([x[:, k % 9] ** 2 + np.sin(x[:, 0]) for k in range(50)], 1)
    assert np.allclose(run(sum_of_squares(9, 50), tmp_path, [x], shared_bytes=1000)[0], wanted)


@pytest.mark.parametrize("shared_bytes", [200, 99 * 1024])
def test_columns_and_one_for_all(tmp_path: Path, shared_bytes: int) -> None:
    program = sum_of_squares(5, 7)
    x = np.random.default_rng(0).uniform(-1, 1, (10, 5))
    wanted = np.stack([x[:, k % 5] ** 2 + np.sin(x[:, 0]) for k in range(7)], 1)
    kernel = batch_kernel(program, 64, ("columns", "columns"), shared_bytes)
    out = np.zeros((7, 10))
    Emulated(kernel, 2, np.float64, tmp_path)([np.ascontiguousarray(x.T), out], 10)
    assert np.allclose(out.T, wanted)
    kernel = batch_kernel(program, 64, ("one", "rows"), shared_bytes)
    out = np.zeros((10, 7))
    (tmp_path / "one").mkdir()
    Emulated(kernel, 2, np.float64, tmp_path / "one")([x[3].copy(), out], 10)
    assert np.allclose(out, wanted[3])


@pytest.mark.parametrize("limit", [6, 225])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mechanism(dtype: type, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of joint, with registers to spare and with hardly any."""
    monkeypatch.setattr(kernels, "LIMIT", {32: limit, 64: limit})
    model = every_joint()
    q, v, a = (x.astype(dtype) for x in random_state(model, 7))
    got = run(model.function("inverse_dynamics").program, tmp_path, [q, v, a], dtype)[0]
    wanted = model.inverse_dynamics(*(x.astype(float) for x in (q, v, a)))
    assert np.abs(got - wanted).max() < (1e-12 if dtype is np.float64 else 1e-4) * np.abs(wanted).max()


@pytest.mark.parametrize("record", [False, True])
def test_rollout_in_place_or_not(record: bool, tmp_path: Path) -> None:
    """y is read after its next value is known, x is not: one is copied between steps, the other written in place."""
    nodes = (
        ("input", 0, 0),
        ("input", 1, 0),
        ("add", 0, 1),
        ("const", 0.5),
        ("mul", 1, 3),
        ("add", 4, 2),
        ("mul", 5, 1),
    )
    program = Block(
        "walk", nodes, (ArraySpec("x", (1,)), ArraySpec("y", (1,))),
        (ArraySpec("x", (1,)), ArraySpec("y", (1,)), ArraySpec("z", (1,))), ((2,), (4,), (6,)),
    )  # fmt: skip
    kernel = rollout_kernel(repeated(program, Rollout(((0, 0), (1, 1)), (), record)), 64)
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 6, 1))
    steps = 5
    outputs = [np.full((steps, 6, 1) if record else (6, 1), np.nan) for _ in range(3)]
    Emulated(kernel, 5, np.float64, tmp_path, more=1)([x, y, *outputs], 6, steps)
    history = []
    for _ in range(steps):
        z = (0.5 * y + (x + y)) * y
        x, y = x + y, 0.5 * y
        history.append((x, y, z))
    for got, wanted in zip(outputs, zip(*history, strict=True), strict=True):
        assert np.allclose(got, np.stack(wanted) if record else wanted[-1])


def test_text_says_what_it_is() -> None:
    text = every_joint().function("inverse_dynamics").source("cuda", np.float32)
    assert text.startswith("// inverse_dynamics: one state per thread, float. Generated by linkwise.\n")
    assert "in q 22, v 20, vdot 20; out out 20" in text
    assert 'extern "C" __global__ void' in text
    roll = lw.rollout(lw.compile(lambda m, q: {"q": q + 0.1}, every_joint(), {"q": "q"}), 3)
    assert "for (int step = 0; step < steps; ++step)" in roll.source()
