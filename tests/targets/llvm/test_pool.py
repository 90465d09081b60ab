"""States that leave their block in a loop: the same numbers as from the interpreter, whoever they go with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.work import flag
from linkwise.spatial.scalar import where
from linkwise.targets.llvm import bounds
from linkwise.targets.llvm.device import HostedProgram
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.calls import traced
from linkwise.trace.program import Buffer, Call, Copy, For, IfAny, Program, Record, Slice, Statement, WhileAny
from linkwise.trace.waiting import WaitingLoop, with_loops_inlined
from tests.seeds import seeds

LONG = 40  # turns of a pass, so that it costs more than moving its numbers


def mixed(x: Any, c: Any, turns: int, first: int) -> list[Any]:
    """Whole numbers stirred together, small enough to be exact in float32."""
    x = list(x)
    for k in range(turns * len(x)):
        i, j = k % len(x), (k * first + 1) % len(x)
        total = x[i] + 3.0 * x[j] + c[(k + first) % len(c)]
        x[i] = where(total > 900.0, total - 801.0, where(total < -900.0, total + 807.0, total))
    return x


def waiting_program(rng: np.random.Generator, called: bool) -> Program:
    """A random program with a loop of as many passes as each state's ``n`` says, at its top or in a call."""
    width, given = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    first = int(rng.integers(2, 9))

    def begin(x: Any, c: Any, n: Any) -> dict[str, Any]:
        return {
            "state": [*mixed(x, c, 1, first), n[0]],
            "more": flag(n[0] > 0.5),
            "kept": [a + b for a in x for b in c],
        }

    def body(state: Any, c: Any) -> dict[str, Any]:
        runs = state[-1] > 0.5
        new = mixed(state[:-1], c, LONG, first)
        return {
            "new": [*(where(runs, a, b) for a, b in zip(new, state, strict=False)), where(runs, state[-1] - 1.0, 0.0)]
        }

    def asks(state: Any) -> dict[str, Any]:
        return {"more": flag(state[-1] > 0.5), "odd": flag((state[-1] > 2.5) & (state[0] > 0.0))}

    def bent(state: Any) -> dict[str, Any]:
        odd = (state[-1] > 2.5) & (state[0] > 0.0)
        return {"new": [where(odd, state[0] - 1.0, state[0]), *state[1:]]}

    def end(state: Any, kept: Any, c: Any) -> dict[str, Any]:
        return {"y": [a - kept[0] + c[-1] for a in mixed(state[:-1], c, 1, first)]}

    size = width + 1
    sizes = {"x": width, "c": given, "n": 1, "state": size, "kept": width * given}
    inner = {"state": size, "c": given}
    begins, ends = (
        traced("begin", begin, {k: sizes[k] for k in "xcn"}),
        traced("end", end, {**inner, "kept": sizes["kept"]}),
    )
    passes, asking = traced("body", body, inner), traced("asks", asks, {"state": size})
    bends = traced("bent", bent, {"state": size})
    assert [spec.name for spec in ends.inputs] == ["state", "c", "kept"]
    turn: list[Statement] = [Call(passes, ("state", "c"), ("new",)), Copy("new", "state")]
    if rng.random() < 0.5:  # some passes more, of which those that are done notice nothing
        turn = [For(int(rng.integers(1, 3)), tuple(turn))]
    turn.append(Call(asking, ("state",), ("more", "odd")))
    if rng.random() < 0.5:
        turn.append(IfAny("odd", (Call(bends, ("state",), ("new",)), Copy("new", "state"))))
    if rng.random() < 0.5:
        turn.append(For(width, (Copy(Slice("state", 1), "one"), Copy("one", Slice("trail", 1)))))
    turn.append(Call(asking, ("state",), ("more", "odd")))
    outer = (
        *(Buffer(name, sizes[name], load=True) for name in "xcn"),
        Buffer("y", width, store=True),
        Buffer("left", size, store=True),
    )
    own = (Buffer("new", size), Buffer("odd", 1), Buffer("one", 1), Buffer("trail", width + 1))
    before = Call(begins, ("x", "c", "n"), ("state", "more", "kept"))
    after = (Call(ends, ("state", "c", "kept"), ("y",)), Copy("state", "left"))
    inside = (Buffer("state", size), Buffer("more", 1), Buffer("kept", sizes["kept"]))
    if not called:
        return Program("waits", (*outer, *inside, *own), (before, WhileAny("more", tuple(turn)), *after))
    loop = Program(
        "loop",
        (
            Buffer("start", size, load=True),
            Buffer("c", given, load=True),
            Buffer("state", size, store=True),
            Buffer("more", 1),
            *own,
        ),
        (Copy("start", "state"), Call(asking, ("state",), ("more", "odd")), WhileAny("more", tuple(turn))),
    )
    around = (*outer, *inside, Buffer("start", size))
    first_part = Call(begins, ("x", "c", "n"), ("start", "more", "kept"))
    return Program("calls", around, (first_part, Call(loop, ("start", "c"), ("state",)), *after))


def rows_of(program: Program, rng: np.random.Generator, count: int, dtype: Any) -> dict[str, Any]:
    """Whole numbers, a few of them none; numbers of passes of which some are far larger than the others."""
    rows: dict[str, Any] = {}
    for buffer in program.kept:
        rows[buffer.name] = rng.integers(-20, 20, (count, buffer.size)).astype(dtype)
    rows["n"] = np.minimum(rng.geometric(0.3, (count, 1)) - 1, 40).astype(dtype)
    rows["n"][rng.random((count, 1)) < 0.03] = 60.0
    rows["x"][rng.random(count) < 0.05, 0] = np.nan
    return rows


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("seed", seeds(3, of=6))
def test_states_go_on_with_others_and_come_back(seed: int, called: bool, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    program = waiting_program(rng, called)
    assert WaitingLoop.of(with_loops_inlined(program)) is not None
    kernel, single = ProgramKernel.build(program, dtype), ProgramKernel.build(program, dtype, single=True)
    assert kernel.memory.slots > 1
    assert single.memory.slots == 1
    for count in (0, 1, 7, 8, 9, 40, 301, 1030):  # the last in several windows, each put in order by itself
        rows = rows_of(program, rng, count, dtype)
        expected = {name: array.copy() for name, array in rows.items()}
        HostedProgram(program, dtype).run(expected, {}, {}, count)
        for run, threads in ((kernel, 1), (kernel, 2), (single, 1)):
            found = {name: array.copy() for name, array in rows.items()}
            run.run(found, {}, {}, count, threads)
            for name in ("y", "left", "x", "c", "n"):
                np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize("called", [False, True])
def test_no_access_is_beyond_the_memory_there_is(called: bool) -> None:
    rng = np.random.default_rng(7)
    program = waiting_program(rng, called)
    checked = bounds.checked_program(program)
    for count in (1, 8, 50, 130):
        rows = rows_of(program, rng, count, np.float64)
        expected = {name: array.copy() for name, array in rows.items()}
        HostedProgram(program).run(expected, {}, {}, count)
        checked.run(rows, {}, {}, count)
        np.testing.assert_array_equal(rows["y"], expected["y"])


def test_what_a_state_takes_along() -> None:
    loop = WaitingLoop.of(with_loops_inlined(waiting_program(np.random.default_rng(1), called=False)))
    assert loop is not None
    assert {"state", "c", "more"} <= set(loop.taken)
    assert not {"kept", "x", "n", "y"} & set(loop.taken)
    assert loop.brought == ("state",)


def test_loops_that_stay_in_their_block() -> None:
    short = traced("short", lambda x: {"y": [0.5 * x[0]], "more": flag(x[0] > 1.0)}, {"x": 1})
    buffers = (Buffer("x", 1, load=True, store=True), Buffer("y", 1), Buffer("more", 1, load=True))
    body: tuple[Statement, ...] = (Call(short, ("x",), ("y", "more")), Copy("y", "x"))
    assert WaitingLoop.of(Program("short", buffers, (WhileAny("more", body),))) is None
    long = traced("long", lambda x: {"y": mixed(x, x, 100, 3), "more": flag(x[0] > 1.0)}, {"x": 1})
    body = (Call(long, ("x",), ("y", "more")), Copy("y", "x"))
    waits = WaitingLoop.of(Program("long", buffers, (WhileAny("more", body),)))
    assert waits is not None
    assert (waits.taken, waits.brought) == (("x", "more"), ("x",))  # y is made anew
    noting = (*body, Record("path", "x", "y", "more"))  # a state's own rows are known by its number
    records = (("path", 1),)
    assert WaitingLoop.of(Program("notes", buffers, (WhileAny("more", noting),), records=records)) is None


def test_functions_give_a_state_the_same_in_any_company() -> None:
    def root(m: Any, x: Any) -> Any:
        def nearer(s: Any) -> Any:
            for _ in range(8):
                s = s - 0.3 * (s * s * s + s - x) / (3.0 * s * s + 1.0)
            return s

        return lw.while_loop(lambda s: abs(s * s * s + s - x) > 1e-9 * x, nearer, x)

    b = lw.ModelBuilder("one")
    b.add_body("a", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0)
    f: Any = lw.compile(root, b.build(), inputs={"x": "scalar"})
    assert WaitingLoop.of(with_loops_inlined(f.program)) is not None
    rng = np.random.default_rng(0)
    x = 10.0 ** rng.uniform(-6, 6, 200)
    found, order = f(x), rng.permutation(200)
    np.testing.assert_array_equal(f(x[order]), found[order])
    np.testing.assert_allclose(found**3 + found, x, rtol=2e-9)
