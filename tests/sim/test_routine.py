"""Routines: the compiled loop does what the interpreted one does."""

import numpy as np
import pytest

from linkwise.sim.work import flag
from linkwise.spatial.scalar import where
from linkwise.targets.llvm.device import HostedProgram
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Buffer, Call, Copy, Host, IfAny, Lookup, Program, Record, WhileAny, columns
from linkwise.trace.tiles import TILE, TiledSystem


def collatz(limit=60.0):
    """x → x/2 or 3x + 1 until 1; each value recorded at its own place, and the largest looked up in a table."""

    def step(x, n):
        half = x[0] * 0.5
        return {
            "half": half,
            "odd": 3.0 * x[0] + 1.0,
            "n_new": n[0] + 1.0,
            "doubled": (half - where(half < 0.0, 0.0, half)) + x[0],
        }

    def choose(x, half, odd, parity, n):
        running = (x[0] > 1.5) & (n[0] < limit)
        value = where(parity[0] > 0.0, odd[0], half[0])
        return {
            "x_new": where(running, value, x[0]),
            "moved": flag(running),
            "n_next": where(running, n[0] + 1.0, n[0]),
        }

    def again(x, n):
        return {"running": flag((x[0] > 1.5) & (n[0] < limit))}

    stepping = program("step", step, {"x": 1, "n": 1})
    choosing = program("choose", choose, {"x": 1, "half": 1, "odd": 1, "parity": 1, "n": 1})
    asking = program("again", again, {"x": 1, "n": 1})
    names = ("half", "odd", "n_new", "doubled", "parity", "x_new", "moved", "n_next", "running")
    buffers = (
        Buffer("x", 1, load=True, store=True),
        Buffer("n", 1, load=True, store=True),
        *(Buffer(k, 1) for k in names),
    )
    body = (
        Call(stepping, ("x", "n"), ("half", "odd", "n_new", "doubled")),
        Lookup("parities", "x", "parity"),
        Call(choosing, ("x", "half", "odd", "parity", "n"), ("x_new", "moved", "n_next")),
        IfAny("moved", (Record("path", "x_new", "n", "moved"),)),
        Copy("x_new", "x"),
        Copy("n_next", "n"),
        Call(asking, ("x", "n"), ("running",)),
    )
    first = Call(asking, ("x", "n"), ("running",))
    return Program("collatz", buffers, (first, WhileAny("running", body)), ("parities",), (("path", 1),))


def run(kernel, starts, dtype, threads=1):
    count = len(starts)
    rows = {"x": np.array(starts, dtype).reshape(-1, 1), "n": np.zeros((count, 1), dtype)}
    path = np.full((count, 64, 1), -1.0, dtype)
    kernel.run(rows, {"parities": (np.arange(10_000) % 2).astype(dtype)}, {"path": path}, count, threads)
    return rows["x"], rows["n"], path


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("count", [1, 3, 8, 21, 64])
def test_compiled_and_interpreted_agree(dtype, scalar, count):
    starts = np.random.default_rng(0).integers(1, 12, count)
    routine = collatz()
    expected = run(HostedProgram(routine, dtype), starts, dtype)
    found = run(ProgramKernel.build(routine, dtype, single=scalar), starts, dtype, threads=2)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (found[0] == 1.0).all()


def test_what_does_not_fit_is_refused():
    double = program("double", lambda x: {"y": [2.0 * a for a in x]}, {"x": 2})
    buffers = (Buffer("a", 2), Buffer("b", 3))
    with pytest.raises(ValueError, match="3 numbers"):
        Program("wrong", buffers, (Call(double, ("a",), ("b",)),))
    with pytest.raises(ValueError, match="'c'"):
        Program("wrong", buffers, (Copy("a", "c"),))
    with pytest.raises(ValueError, match="writes what it reads"):
        Program("wrong", buffers, (Call(double, ("a",), ("a",)),))


def test_python_functions_run_only_interpreted():
    buffers = (Buffer("a", 2, load=True, store=True), Buffer("b", 2))
    routine = Program("host", buffers, (Host(lambda a: (a + 1.0,), ("a",), ("b",)), Copy("b", "a")))
    rows = {"a": np.zeros((3, 2))}
    HostedProgram(routine).run(rows, {}, {}, 3)
    np.testing.assert_array_equal(rows["a"], 1.0)
    with pytest.raises(ValueError, match="cannot be compiled"):
        ProgramKernel.build(routine)


def test_the_fingerprint_sees_every_change():
    assert collatz().fingerprint == collatz().fingerprint
    assert collatz().fingerprint != collatz(50.0).fingerprint


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scalar", [True, False])
def test_matrices_by_columns_and_programs_with_loops(scalar, dtype):
    """(3 I - J) x = b, with J by columns from its product with a vector, factored and solved by programs with loops."""
    n, count = TILE + 3, 11
    J = np.random.default_rng(0).normal(size=(n, n)) / n
    system = TiledSystem(np.ones((n, n), bool), n)

    def product(unit, scale):
        return {"column": [scale[0] * sum(float(J[i, j]) * unit[j] for j in range(n)) for i in range(n)]}

    multiplying = program("product", product, {"unit": n, "scale": 1})
    kept = {"scale": 1, "shift": 1, "right": n, "x": n}
    others = {"unit": n, "column": n, "matrix": n * n, "factors": system.total}
    buffers = (
        *(Buffer(name, size, load=name != "x", store=name == "x") for name, size in kept.items()),
        *(Buffer(name, size) for name, size in others.items()),
    )
    statements = (
        columns("unit", n, "column", n, "matrix", (Call(multiplying, ("unit", "scale"), ("column",)),)),
        Call(system.factor, ("matrix", "shift"), ("factors",)),
        Call(system.solve, ("factors", "right"), ("x",)),
    )
    routine = Program("system", buffers, statements)
    rows = {"scale": np.arange(1.0, count + 1.0)[:, None], "shift": np.full((count, 1), 30.0)}
    rows = {name: np.ascontiguousarray(a, dtype) for name, a in rows.items()}
    rows["right"] = np.random.default_rng(1).normal(size=(count, n)).astype(dtype)
    found = []
    for kernel in (ProgramKernel.build(routine, dtype, single=scalar), HostedProgram(routine, dtype)):
        rows["x"] = np.empty((count, n), dtype)
        kernel.run(rows, {}, {}, count)
        found.append(rows["x"])
    exact = [
        np.linalg.solve(30.0 * np.eye(n) - k * J, b) for k, b in zip(range(1, count + 1), rows["right"], strict=True)
    ]
    for x in found:
        np.testing.assert_allclose(
            x, exact, rtol=1e-11 if dtype == np.float64 else 2e-4, atol=1e-6 * (dtype != np.float64)
        )


def test_columns_must_fit_their_matrix():
    buffers = (Buffer("unit", 2), Buffer("column", 3), Buffer("matrix", 5))
    with pytest.raises(ValueError, match="2 passes of 3 numbers"):
        Program("wrong", buffers, (columns("unit", 2, "column", 3, "matrix", ()),))
