"""Buffers of long programs that share places: none that are needed together, and the same numbers as ever."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.targets.shared_places import lifetimes, places_of_buffers
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import Buffer, Call, Copy, For, Program
from linkwise.trace.tracer import trace


def long_program(size: int, stages: int) -> Program:
    """Each stage takes what the last two have made; in the middle there is a loop over a buffer that stays."""

    def less(a: list[Any], b: list[Any]) -> list[tuple[str, tuple[int, ...], list[Any]]]:
        return [("y", (size,), [x - 0.5 * y for x, y in zip(a, b, strict=True)])]

    mixed = trace("mixed", less, [("a", (size,)), ("b", (size,))])
    buffers = [Buffer("in", size, load=True), Buffer("sum", size), Buffer("more", size)]
    statements: list[Call | Copy | For] = [Copy("in", "sum")]
    names = ["in", "in"]
    for k in range(stages):
        names.append(f"stage{k}")
        buffers.append(Buffer(names[-1], size))
        statements.append(Call(mixed, (names[-2], names[-3]), (names[-1],)))
        if k == stages // 2:
            statements.append(For(3, (Call(mixed, ("sum", names[-1]), ("more",)), Copy("more", "sum"))))
    buffers.append(Buffer("out", size, store=True))
    statements.append(Call(mixed, (names[-1], "sum"), ("out",)))
    return Program("stages", tuple(buffers), tuple(statements))


def test_buffers_that_are_needed_together_lie_apart() -> None:
    rng = np.random.default_rng(0)
    sizes = {f"b{k}": int(rng.integers(1, 50)) for k in range(60)}
    lives = {name: tuple(sorted(rng.integers(0, 40, size=2).tolist())) for name in sizes}
    starts = places_of_buffers(sizes, lives)
    for a in sizes:
        for b in sizes:
            if a < b and lives[a][0] <= lives[b][1] and lives[b][0] <= lives[a][1]:
                assert starts[a] + sizes[a] <= starts[b] or starts[b] + sizes[b] <= starts[a]
    assert max(starts[name] + size for name, size in sizes.items()) < 0.8 * sum(sizes.values())


def test_lifetimes() -> None:
    program = long_program(4, 6)
    lives = lifetimes(program, as_a_whole=True)
    assert lives["in"] == lives["sum"] == lives["more"] == (0, len(program.statements))
    assert lives["stage0"] == (1, 3)
    assert lives["stage3"] == (4, 7)  # also in the loop behind it
    assert lives["out"] == (8, len(program.statements))


def test_a_long_program_in_less_memory() -> None:
    program = long_program(200, 40)
    kernel, x = ProgramKernel.build(program), np.random.default_rng(1).normal(size=(13, 200))
    assert kernel.memory.own_bytes < 200 * 8 * kernel.lanes * 12  # not 44 buffers
    y = np.empty_like(x)
    kernel.evaluate([x], [y], len(x))
    for given, found in zip(x, y, strict=True):
        np.testing.assert_allclose(found, interpret(program, [given.tolist()])[0], rtol=1e-12, atol=1e-12)
