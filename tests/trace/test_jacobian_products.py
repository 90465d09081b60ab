"""Jacobians that are multiplied together at waypoints, against forward mode, NumPy and counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.function import CompiledFunction
from linkwise.spatial.scalar import waypoint
from linkwise.targets import target
from linkwise.trace.block import Block
from linkwise.trace.interpreter import interpret
from linkwise.trace.jacobian_products import Waypoints, elimination_order
from linkwise.trace.program import Call, Program
from linkwise.trace.tiles import TiledElimination
from linkwise.trace.verifier import verify


def chain(sizes: list[int], seed: int) -> CompiledFunction:
    """A function through waypoints, each of which depends on some numbers of all that are before."""
    rng = np.random.default_rng(seed)
    shapes = list(zip(sizes[1:], np.cumsum(sizes[:-1]), strict=True))
    weights = [rng.normal(size=shape) * (rng.random(shape) < 0.6) for shape in shapes]

    def text(x: Any) -> Any:
        known = list(x)
        for W in weights:
            held = lw.math.hold(known[0])
            sums = [sum((w * y for w, y in zip(row, known, strict=True) if w), 0.0 * held) for row in W]
            known += waypoint([lw.math.sin(s) + 2.0 if k % 5 else 2.0 for k, s in enumerate(sums)])
        return known[-sizes[-1] :]

    return CompiledFunction("chain", text, [("x", (sizes[0],))])


@pytest.mark.parametrize("sizes", [[3, 2, 4], [20, 24, 9, 24, 17], [6, 30, 1, 30, 5]])
def test_jacobians_are_those_of_forward_mode(sizes: list[int]) -> None:
    f, x = chain(sizes, seed=1), np.random.default_rng(2).normal(size=(3, sizes[0]))
    along = f.jvp("x")(x[:, None], np.eye(sizes[0]))
    np.testing.assert_allclose(f.jacobian("x", mode="forward")(x), np.swapaxes(along, 1, 2), rtol=1e-12, atol=1e-12)
    (by_x,) = f.jacobians("x")(x)
    np.testing.assert_array_equal(by_x, f.jacobian("x", mode="forward")(x))


def test_long_products_are_loops() -> None:
    def programs(f: CompiledFunction) -> list[str]:
        program = f.jacobian("x", mode="forward").program
        calls = program.statements if isinstance(program, Program) else ()
        return [call.code.name for call in calls if isinstance(call, Call) and isinstance(call.code, Program)]

    assert programs(chain([20, 24, 9, 24, 17], 1)) == ["eliminated"]
    assert programs(chain([3, 2, 4], 1)) == []


def test_threads_of_a_gpu_have_products_written_out() -> None:
    long, short = (chain(sizes, 1).jacobian("x", mode="forward") for sizes in ([20, 24, 9, 24, 17], [3, 2, 4]))
    assert isinstance(long.program, Program)
    assert isinstance(long.program_for(target("cuda")), Block)
    assert short.program_for(target("cuda")).fingerprint == short.program.fingerprint


@pytest.mark.parametrize("sizes", [[5], [7, 12, 1, 20], [6, 6, 6]])
def test_tiles_that_eliminate_unknowns(sizes: list[int]) -> None:
    rng, n = np.random.default_rng(len(sizes)), sum(sizes)
    X = rng.normal(size=(n + 13, n + 9)) * (rng.random((n + 13, n + 9)) < 0.5)
    for end in np.cumsum(sizes):  # a group knows those before it alone
        X[:end, end:n] = 0.0
    for begin, end in zip(np.cumsum([0, *sizes]), np.cumsum(sizes), strict=False):
        X[begin:end, begin:end] = 0.0
    tiled = TiledElimination(X != 0.0, sizes)
    verify(tiled.program)
    found = interpret(tiled.program, [[0.0 if at is None else X[at] for at in tiled.given]])[0]
    D, E, F, G = X[:n, :n], X[:n, n:], X[n:, :n], X[n:, n:]
    expected = F @ np.linalg.solve(np.eye(n) - D, E) + G
    made = {at: x for at, x in zip(tiled.made, found, strict=True) if at is not None}
    for i in range(13):
        for j in range(9):
            assert made.get((n + i, n + j), X[n + i, n + j]) == pytest.approx(expected[i, j], rel=1e-10, abs=1e-10)


def test_the_order_is_that_of_a_chain_of_matrices() -> None:
    """Of 30 × 5 · 5 × 40 · 40 × 5 · 5 × 30, the product in the middle comes first: 1000 + 750 + 4500, not 36 000."""
    sizes = [30, 5, 40, 5, 30]
    ends = np.cumsum([0, *sizes])
    pattern = np.zeros((sum(sizes[1:]), sum(sizes[:-1])), bool)
    for k in range(1, 5):
        pattern[ends[k] - 30 : ends[k + 1] - 30, ends[k - 1] : ends[k]] = True
    groups = list(pairwise(ends[1:-1].tolist()))
    assert elimination_order(pattern, 30, groups)[0] == 1


def test_numbers_that_do_not_move_have_no_direction() -> None:
    waypoints = Waypoints(2)
    assert waypoints.add([{0: 2.0}, {}, {1: 3.0}]) == [{2: 1.0}, {}, {4: 1.0}]
    assert waypoints.multiplied([[{2: 5.0, 4: 1.0, 0: 1.0}, {}]]) == [[{0: 11.0, 1: 3.0}, {}]]
