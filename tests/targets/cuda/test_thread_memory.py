"""Routines as kernels: run by emulation, state by state, they do what the interpreter says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError
from linkwise.targets.cuda import tile_layout
from linkwise.targets.cuda.device_memory import DeviceKernel
from linkwise.targets.cuda.launched_programs import distances, kernel_writer
from linkwise.targets.cuda.source import rollout_kernel
from linkwise.targets.cuda.statements import arguments_of
from linkwise.targets.cuda.thread_memory import ThreadKernel
from linkwise.targets.llvm.device import HostedProgram
from linkwise.targets.steps import Rollout, repeated
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Buffer, Call, Copy, Host, Program, Read, Record, Seek, columns
from linkwise.trace.tiles import TILE, TiledSystem
from tests.sim.test_routine import collatz, run
from tests.targets.cuda.emulation import LANES, Emulated, needs_compiler

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def small_warps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_layout, "LANES", (LANES,))


class EmulatedProgram:
    """A program's kernel on arrays of NumPy."""

    def __init__(self, program: Program, dtype: Any, folder: Path) -> None:
        self.program, bits = program, np.dtype(dtype).itemsize * 8
        self.kernel = kernel_writer(program, bits).kernel()
        self.emulated = Emulated.of(self.kernel, len(arguments_of(program)) + 1, folder)

    def run(self, rows: Any, tables: Any, records: Any, count: int, threads: int = 1) -> None:
        given = {**rows, **tables, **records}
        numbers = distances(self.program, given, count)
        passed = [
            given[each.name].ctypes.data if each.kind == "array" else numbers[each.kind, each.name]
            for each in arguments_of(self.program)
        ]
        self.emulated.launch([*passed, count], self.kernel.blocks(count))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loops_tables_and_records(dtype: Any, tmp_path: Path) -> None:
    routine = collatz()
    kernel = EmulatedProgram(routine, dtype, tmp_path)
    for count in (1, 3, LANES, 21):
        starts = np.random.default_rng(0).integers(1, 12, count)
        for a, b in zip(run(kernel, starts, dtype), run(HostedProgram(routine, dtype), starts, dtype), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("members", [1, 6])
def test_curves_and_series(members: int, tmp_path: Path) -> None:
    """The row in force at each state's own time; rows by number, of all or of each state, in any order of memory."""
    times = np.array([-np.inf, 0.0, 0.5, 2.0, np.inf])
    rows = np.zeros((members, 4, 3))
    rows[:, :, 0], rows[:, :, 1] = times[:-1], times[1:]
    rows[:, :, 2] = np.random.default_rng(0).normal(size=(members, 4))
    add = program("add", lambda p, x: {"sum": [p[3] + x[0], x[1]]}, {"p": 4, "x": 2})
    buffers = (
        Buffer("t", 1, load=True),
        Buffer("p", 4, load=True, store=True),
        Buffer("place", 1, load=True),
        Buffer("x", 2),
        Buffer("sum", 2),
        Buffer("one", 1, load=True),
    )
    statements = (
        Seek("curve", "t", "p", 1),
        Read("given", "place", "x"),
        Call(add, ("p", "x"), ("sum",)),
        Record("kept", "sum", "place", "one"),
    )
    routine = Program(
        "mixed", buffers, statements, records=(("kept", 2),), curves=(("curve", 3),), series=(("given", 2),)
    )
    count = 6
    given = np.random.default_rng(1).normal(size=(5, members, 2))
    found = []
    for kernel in (EmulatedProgram(routine, float, tmp_path), HostedProgram(routine)):
        own = {
            "t": np.array([-1.0, 0.0, 0.3, 0.5, 3.0, 2.0])[:, None],
            "p": np.full((count, 4), 7.0),
            "place": np.array([0.0, 1.0, 2.0, 3.0, 4.0, 2.0])[:, None],
            "one": np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])[:, None],
        }
        kept = np.full((5, count, 2), -1.0)
        tables = {"curve": rows.copy(), "given": np.swapaxes(given, 0, 1)}
        kernel.run(own, tables, {"kept": np.swapaxes(kept, 0, 1)}, count)
        found.append((own["p"], kept))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (found[0][1] != -1.0).sum() == 2 * 5


def test_matrices_by_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    J = rng.normal(size=(3, 4))
    product = program(
        "product", lambda unit, s: {"column": [s[0] * sum(J[i, j] * unit[j] for j in range(4)) for i in range(3)]},
        {"unit": 4, "s": 1},
    )  # fmt: skip
    buffers = (Buffer("unit", 4), Buffer("s", 1, load=True), Buffer("column", 3), Buffer("matrix", 12, store=True))
    body = (Call(product, ("unit", "s"), ("column",)),)
    routine = Program("by_columns", buffers, (columns("unit", 4, "column", 3, "matrix", body),))
    rows = {"s": np.arange(1.0, 6.0)[:, None], "matrix": np.empty((5, 12))}
    EmulatedProgram(routine, float, tmp_path).run(rows, {}, {}, 5)
    for k in range(5):
        np.testing.assert_allclose(rows["matrix"][k].reshape(4, 3).T, (k + 1) * J, rtol=1e-15)


def test_long_programs_are_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where values wait in memory, on the chip or not."""
    n = 12

    def text(x: Any, y: Any) -> dict[str, Any]:
        waves = [lw.math.sin(a + b) for a, b in zip(x, y, strict=True)]
        return {"z": [sum(waves[j] * waves[(j + k) % n] for j in range(n)) for k in range(n)]}

    twice = program("twice", text, {"x": n, "y": n})
    buffers = (Buffer("x", n, load=True), Buffer("y", n, load=True, store=True), Buffer("z", n, store=True))
    routine = Program(
        "twice", buffers, (Call(twice, ("x", "y"), ("z",)), Copy("z", "y"), Call(twice, ("x", "y"), ("z",)))
    )
    x, y = np.random.default_rng(0).normal(size=(2, 9, n))
    expected = {"x": x, "y": y.copy(), "z": np.empty((9, n))}
    HostedProgram(routine).run(expected, {}, {}, 9)
    for most, registers, local, together in (
        (10**6, 96, True, False),
        (1, 96, True, False),
        (1, 6, False, False),
        (1, 6, True, False),
        (1, 6, False, True),
        (1, 6, True, True),
    ):
        monkeypatch.setattr("linkwise.targets.cuda.thread_memory._LONG", 0 if together else 5000)
        monkeypatch.setattr("linkwise.targets.cuda.thread_memory._WRITTEN_OUT", most)
        monkeypatch.setattr("linkwise.targets.cuda.thread_memory._SMALL", most)
        monkeypatch.setattr("linkwise.targets.cuda.thread_memory.LIMIT", {64: registers, 32: registers})
        monkeypatch.setattr("linkwise.targets.cuda.thread_memory._FRAME_BYTES", 0 if local else 1 << 20)
        folder = tmp_path / f"{most}{registers}{local}{together}"
        folder.mkdir()
        kernel = EmulatedProgram(routine, float, folder)
        assert ("__noinline__ void lw_0_twice" in kernel.kernel.text) == (most == 1)
        assert (kernel.kernel.threads > LANES) == together == ("__syncthreads();" in kernel.kernel.text)
        assert bool(kernel.kernel.shared_bytes) == (registers == 6 and not local)
        assert ("volatile REAL frame[" in kernel.kernel.text) == (registers == 6 and local)
        rows = {"x": x, "y": y.copy(), "z": np.empty((9, n))}
        kernel.run(rows, {}, {}, 9)
        np.testing.assert_allclose(rows["z"], expected["z"], rtol=1e-12)
        np.testing.assert_allclose(rows["y"], expected["y"], rtol=1e-12)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("record", [False, True])
def test_many_steps_as_any_routine(
    record: bool, together: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollout has a kernel of its own shape, but it is a routine like any other; also where warps stay together."""
    monkeypatch.setattr("linkwise.targets.cuda.thread_memory._LONG", 0 if together else 5000)
    step = program(
        "step",
        lambda x, u, c: {"x_new": [x[0] + 0.1 * x[1], x[1] - c[0] * x[0] + u[0]], "out": x[0] * u[0]},
        {"x": 2, "u": 1, "c": 1},
    )
    routine = repeated(step, Rollout(((0, 0),), (1,), record))  # type: ignore[arg-type]
    count, steps = 7, 9
    u = np.random.default_rng(1).normal(size=(steps, count, 1))
    found = []
    emulated = EmulatedProgram(routine, float, tmp_path)
    assert ("__syncthreads_or(" in emulated.kernel.text) == together
    for kernel in (emulated, HostedProgram(routine)):
        rows = {
            "given0": np.random.default_rng(0).normal(size=(count, 2)),
            "given2": np.arange(count)[:, None] * 0.01,
            "clock": np.tile([0.0, steps], (count, 1)),
        }
        shape = (count, steps) if record else (count,)
        made = {"made0": np.empty((*shape, 2)), "made1": np.empty((*shape, 1))}
        given = {**rows, **({} if record else made)}
        kernel.run(given, {"given1": np.swapaxes(u, 0, 1)}, made if record else {}, count)
        found.append((*made.values(), rows["given0"]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_programs_with_loops(dtype: Any, tmp_path: Path) -> None:
    """A linear system, factored and solved tile by tile."""
    n, count = TILE + 3, 5
    A = np.random.default_rng(0).normal(size=(count, n, n)) / n
    system = TiledSystem(np.ones((n, n), bool), n)
    kept = {"matrix": n * n, "shift": 1, "right": n, "x": n}
    buffers = (
        *(Buffer(name, size, load=name != "x", store=name == "x") for name, size in kept.items()),
        Buffer("factors", system.total),
    )
    calls = (
        Call(system.factor, ("matrix", "shift"), ("factors",)),
        Call(system.solve, ("factors", "right"), ("x",)),
    )
    rows = {
        "matrix": A.reshape(count, -1).astype(dtype),
        "shift": np.full((count, 1), 3.0, dtype),
        "right": np.random.default_rng(1).normal(size=(count, n)).astype(dtype),
    }
    found = []
    routine = Program("system", buffers, calls)
    for kernel in (EmulatedProgram(routine, dtype, tmp_path), HostedProgram(routine, dtype)):
        rows["x"] = np.full((count, n), np.nan, dtype)
        kernel.run(rows, {}, {}, count)
        found.append(rows["x"])
    np.testing.assert_allclose(*found, rtol=1e-12 if dtype is np.float64 else 1e-4, atol=1e-6)


def test_what_is_too_large_for_threads_works_in_device_memory() -> None:
    programs = [Program("large", (Buffer("a", size),), ()) for size in (8000, 10_000)]
    assert [type(kernel_writer(each, 64)) for each in programs] == [ThreadKernel, DeviceKernel]
    assert isinstance(kernel_writer(programs[1], 32), ThreadKernel)


def test_what_no_kernel_can_do_is_refused() -> None:
    buffers = (Buffer("a", 2, load=True, store=True), Buffer("b", 2))
    with pytest.raises(ValueError, match="Python functions"):
        ThreadKernel(Program("host", buffers, (Host(lambda a: (a,), ("a",), ("b",)),)), 64)
    n = TILE + 3
    step = TiledSystem(np.ones((n, n), bool), n).factor
    with pytest.raises(InputError, match=r"loops over the links[\s\S]*with_sweeps"):
        rollout_kernel(repeated(step, Rollout(((0, 0),))), 64)
