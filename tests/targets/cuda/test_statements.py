"""Every statement inside every other, in the memory of threads and in that of the device, against the interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linkwise.sim.work import flag
from linkwise.spatial.scalar import where
from linkwise.targets.cuda.device_memory import DeviceKernel
from linkwise.targets.cuda.launched_programs import DeviceProgram
from linkwise.targets.cuda.row_loops import LoopPlans
from linkwise.targets.cuda.thread_memory import ThreadKernel
from linkwise.trace.calls import traced as program
from linkwise.trace.interpreter import Interpreter
from linkwise.trace.program import (
    PARAMETERS,
    Angles,
    Buffer,
    Call,
    Copy,
    For,
    IfAny,
    Initial,
    Lookup,
    Program,
    Read,
    Record,
    Seek,
    Slice,
    Stretch,
    Switch,
    Unit,
    WhileAny,
    columns,
)
from linkwise.trace.verifier import verify
from tests.targets.cuda.emulation import LANES, needs_compiler
from tests.targets.cuda.fakes import Fakes, fakes  # noqa: F401

pytestmark = needs_compiler

COUNT = LANES + 3  # the last tile is not full


def added(name: str, size: int) -> Any:
    return program(name, lambda x, y: {"z": [a + 2.0 * b for a, b in zip(x, y, strict=True)]}, {"x": size, "y": size})


def open_sizes(code: Program) -> Program:
    """The same program with buffers whose size is data."""
    return replace(code, buffers=tuple(replace(buffer, open=True) for buffer in code.buffers))


def iterated() -> Program:
    """A sum over rows in a loop that each state leaves at its own time: sweeps of a solver."""

    def row_text(w: Any, x: Any, s: Any, g: Any) -> dict[str, Any]:
        return {"s_new": where(g[0] > 0.0, s[0] + w[0] * x[0] - 0.5 * w[0] * x[1], s[0])}

    def far_text(x: Any, s: Any, g: Any) -> dict[str, Any]:
        return {"s_new": where(g[0] > 0.0, s[0] - 0.01 * x[1] * x[1], s[0])}

    row = program("row", row_text, {"w": 1, "x": 2, "s": 1, "g": 1})
    far = program("far", far_text, {"x": 2, "s": 1, "g": 1})
    onward = program(
        "onward",
        lambda s, n, g: {"n_new": where(g[0] > 0.0, n[0] + 1.0, n[0]), "g_new": flag((s[0] < 6.0) & (n[0] < 40.0))},
        {"s": 1, "n": 1, "g": 1},
    )
    rows = np.array([[0, 0, 0, 0], [2, 1, 1, 0], [4, 0, 1, 0], [1, 2, 0, 0]])
    kinds = Switch(
        2,
        (
            (Call(row, (Stretch(PARAMETERS, 1), Stretch("x", 0), "s", "g"), ("t",)), Copy("t", "s")),
            (Call(far, (Stretch("x", 0), "s", "g"), ("t",)), Copy("t", "s"), For(2, (Copy("s", Slice("seen", 1)),))),
        ),
    )
    return Program(
        "iterated",
        (
            Buffer("x", 6, load=True),
            Buffer("s", 1, load=True, store=True),
            Buffer("n", 1, store=True),
            Buffer("seen", 2, store=True),
            *(Buffer(name, 1) for name in ("t", "n_new", "g", "g_new")),
        ),
        (
            WhileAny(
                "g",
                (
                    For("all", (kinds,)),
                    IfAny("g", (For("some", (kinds,), reverse=True),)),
                    Call(onward, ("s", "n", "g"), ("n_new", "g_new")),
                    Copy("n_new", "n"),
                    Copy("g_new", "g"),
                ),
            ),
        ),
        rows=rows,
        ranges=(("all", 0, 4), ("some", 1, 2)),
        parameters=np.array([0.5, 1.25, 0.75]),
        initial=(Initial("n", 0, 0.0), Initial("g", 0, 1.0), Initial("seen", 0, 0.0), Initial("seen", 1, 0.0)),
    )


def around(inner: Program) -> Program:
    """A program in a counted loop, whose places are slices; it calls another one, which writes what it is given."""
    twice = Program(
        "twice",
        (Buffer("v", 6, load=True), Buffer("w", 6, load=True, store=True), Buffer("u", 6)),
        (
            Call(added("plus", 6), ("v", "w"), ("u",)),
            Copy("u", "w"),
        ),
    )
    shift = np.linspace(0.1, 0.6, 6)
    return Program(
        "around",
        (
            Buffer("xs", 18, load=True),
            Buffer("sums", 3, load=True, store=True),
            Buffer("turns", 3, store=True),
            Buffer("left", 6, store=True),
            *(Buffer(name, size) for name, size in (("one", 6), ("s", 1), ("n", 1), ("seen", 2), ("s0", 1))),
        ),
        (
            For(
                3,
                (
                    Call(twice, (PARAMETERS, Slice("xs", 6)), ("one",)),
                    Copy(Slice("sums", 1), "s0"),
                    Call(inner, ("one", "s0"), ("s", "n", "seen")),
                    Copy("s", Slice("sums", 1)),
                    Copy("n", Slice("turns", 1)),
                    IfAny("n", (Copy("one", "left"),)),
                ),
                reverse=True,
            ),
        ),
        parameters=shift,
    )


def everything() -> Program:
    """Tables, curves, series, records, unit vectors and angles, row by row of a range and at once."""
    turn = program(
        "turn", lambda u, s, c: {"y": [u[0] * s[0] + u[1] * c[0], u[2] * s[1] - c[1]]}, {"u": 3, "s": 2, "c": 2}
    )
    onward = program("onward", lambda k: {"k_new": [k[0] + 1.0], "go": [flag(k[0] < 2.0)]}, {"k": 1})
    return Program(
        "everything",
        (
            Buffer("a", 2, load=True),
            Buffer("now", 1, load=True),
            Buffer("p", 4, load=True, store=True),
            Buffer("matrix", 6, store=True),
            *(Buffer(name, size) for name, size in (("s", 2), ("c", 2), ("u", 3), ("y", 2), ("row", 2), ("t", 1))),
            *(Buffer(name, 1) for name in ("k", "k_new", "go")),
        ),
        (
            Angles("a", "s", "c"),
            columns("u", 3, "y", 2, "matrix", (Call(turn, ("u", "s", "c"), ("y",)),)),
            WhileAny(
                "go",
                (
                    Seek("curve", "now", "p", 1),
                    Read("given", "k", "row"),
                    Lookup("table", "k", "t"),
                    Record("kept", "row", "k", "t"),
                    For("one", (Copy("row", Stretch("p", 0)), Copy("now", Stretch("p", 1)))),
                    Call(onward, ("k",), ("k_new", "go")),
                    Copy("k_new", "k"),
                ),
            ),
            UNITS,
        ),
        tables=("table",),
        records=(("kept", 2),),
        curves=(("curve", 3),),
        series=(("given", 2),),
        rows=np.array([[9, 9], [2, 0]]),
        ranges=(("one", 1, 1),),
        initial=(Initial("k", 0, 0.0), Initial("go", 0, 1.0)),
    )


UNITS = For(2, (Unit("u"), Copy("u", "p")))


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["iterated", "around"])
def test_loops_in_loops(fakes: Fakes, name: str, dtype: type, is_open: bool) -> None:  # noqa: F811
    code = iterated() if name == "iterated" else around(iterated())
    if is_open:
        code = open_sizes(code)
    verify(code)
    fakes.cupy.asnumpy = np.asarray
    rng = np.random.default_rng(0)
    given = {b.name: rng.uniform(0.2, 1.0, (COUNT, b.size)).astype(dtype) for b in code.buffers if b.load}
    made = {b.name: np.full((COUNT, b.size), np.nan, dtype) for b in code.buffers if b.store and not b.load}
    here, there = ({**{k: v.copy() for k, v in (given | made).items()}} for _ in range(2))
    Interpreter(code, dtype).run(here, {}, {}, COUNT)
    on_device = DeviceProgram(code, dtype)
    on_device.run(there, {}, {}, COUNT)
    assert bool(on_device.ready().tables) == is_open, "in device memory"
    for buffer in code.buffers:
        if buffer.store:
            bound = 1e-13 if dtype is np.float64 else 1e-5
            np.testing.assert_allclose(
                there[buffer.name], here[buffer.name], rtol=bound, atol=bound, err_msg=buffer.name
            )
    turns = here["n" if name == "iterated" else "turns"]
    assert turns.min() >= 1 and len(np.unique(turns)) > 1, "states leave the loop at different times"


@pytest.mark.parametrize("is_open", [False, True])
def test_arrays_of_the_caller(fakes: Fakes, is_open: bool) -> None:  # noqa: F811
    code = open_sizes(everything()) if is_open else everything()
    verify(code)
    fakes.cupy.asnumpy = np.asarray
    rng = np.random.default_rng(1)
    rows = {
        "a": rng.normal(size=(COUNT, 2)) * [1.0, 1e11],
        "now": rng.uniform(-1.0, 3.0, (COUNT, 1)),
        "p": np.zeros((COUNT, 4)),
        "matrix": np.empty((COUNT, 6)),
    }
    times = np.array([-np.inf, 0.0, 0.5, 2.0, np.inf])
    curve = np.stack([times[:-1], times[1:], rng.normal(size=4)], axis=-1)[None]
    tables = {"table": np.array([1.0, 0.0, 1.0]), "curve": curve, "given": rng.normal(size=(COUNT, 3, 2))}
    found = []
    for run in (Interpreter(code).run, DeviceProgram(code, np.float64).run):
        own, kept = {name: array.copy() for name, array in rows.items()}, np.full((COUNT, 3, 2), -1.0)
        run(own, tables, {"kept": fakes.cupy.asarray(kept) if found else kept}, COUNT)
        found.append((own, kept))
    for name in ("p", "matrix"):
        np.testing.assert_allclose(found[1][0][name], found[0][0][name], rtol=1e-12, atol=1e-12, err_msg=name)
    assert (found[0][1] != -1.0).sum() == 2 * 2 * COUNT


def test_called_as_a_function(fakes: Fakes) -> None:  # noqa: F811
    """Rows, columns, and one row for all states; an output in place of an input."""
    from linkwise.targets.cuda import exchange
    from linkwise.targets.cuda.target import TARGET

    code = iterated()

    def called(*arrays: Any) -> Any:
        kernel = TARGET.device(arrays).kernel(code, exchange.dtype_of(arrays))
        return exchange.call(kernel, "iterated", arrays, None, None)

    rng = np.random.default_rng(0)
    x, s = rng.uniform(0.2, 1.0, (COUNT, 6)), rng.uniform(0.2, 1.0, (COUNT, 1))
    expected = {"x": x, "s": s.copy(), "n": np.empty((COUNT, 1)), "seen": np.empty((COUNT, 2))}
    Interpreter(code).run(expected, {}, {}, COUNT)
    for order in ("C", "F"):
        got = called(fakes.array(x, order=order), fakes.array(s, order=order))
        for array, name in zip(got, ("s", "n", "seen"), strict=True):
            np.testing.assert_allclose(np.asarray(array), expected[name], rtol=1e-13)
    expected = {"x": np.tile(x[0], (COUNT, 1)), "s": s.copy(), "n": np.empty((COUNT, 1)), "seen": np.empty((COUNT, 2))}
    Interpreter(code).run(expected, {}, {}, COUNT)
    (first, *_) = called(x[0], fakes.array(s))
    np.testing.assert_allclose(np.asarray(first), expected["s"], rtol=1e-13)


def test_what_a_called_program_may_not_want() -> None:
    inner = Program(
        "inner", (Buffer("k", 1, load=True), Buffer("y", 1, store=True)), (Lookup("t", "k", "y"),), tables=("t",)
    )
    outer = Program("outer", (Buffer("k", 1, load=True), Buffer("y", 1, store=True)), (Call(inner, ("k",), ("y",)),))
    for kind in (ThreadKernel, DeviceKernel):
        with pytest.raises(ValueError, match="only a caller can bring"):
            kind(outer, 64)


def test_rows_of_different_sorts_are_not_fetched_ahead() -> None:
    """A column that belongs to two buffers, or more than a call for a row: such loops are run as they are written."""
    assert all(not hasattr(loop, "early") for loop in LoopPlans(iterated()).loops.values())
