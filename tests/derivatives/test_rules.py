"""The table of derivative rules, one operation at a time, and the two modes against each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.trace.block import OPS, ArraySpec, Block
from linkwise.trace.derivatives import RULES, cotangents, tangents
from linkwise.trace.interpreter import interpret

REAL = [op for op in OPS.values() if op.result == "R" and op.name != "hold"]  # what is held has no derivative
POINTS = (-1.3, -0.4, 0.7, 2.1)
POSITIVE = ("sqrt", "log")


def _program(op: str) -> Block:
    """One operation on the elements of one input; a truth value is made by a comparison."""
    nodes: list[tuple] = []
    arguments = []
    for k, kind in enumerate(OPS[op].arguments):
        nodes.append(("input", 0, k))
        place = len(nodes) - 1
        if kind == "B":
            nodes.append(("const", 0.1))
            nodes.append(("lt", place, place + 1))
        arguments.append(len(nodes) - 1)
    nodes.append((op, *arguments))
    n = OPS[op].arity
    return Block(op, tuple(nodes), (ArraySpec("x", (n,)),), (ArraySpec("y", ()),), ((len(nodes) - 1,),))


def test_every_real_operation_has_a_rule_and_no_other() -> None:
    assert set(RULES) == {op.name for op in REAL}


@pytest.mark.parametrize("op", [op.name for op in REAL])
def test_rule_is_the_derivative(op: str) -> None:
    program, n, h = _program(op), OPS[op].arity, 1e-6
    values = [abs(x) for x in POINTS] if op in POSITIVE else list(POINTS)
    for point in itertools.permutations(values, n):
        forward = tangents(program, [list(point)], [[{k: 1.0} for k in range(n)]])[0][0]
        back = cotangents(program, [list(point)], [[{0: 1.0}]])[0]
        for k in range(n):
            ahead, behind = list(point), list(point)
            ahead[k] += h
            behind[k] -= h
            slope = (interpret(program, [ahead])[0][0] - interpret(program, [behind])[0][0]) / (2 * h)
            assert forward.get(k, 0.0) == pytest.approx(slope, rel=1e-7, abs=1e-8)
            assert back[k].get(0, 0.0) == pytest.approx(slope, rel=1e-7, abs=1e-8)


def test_what_is_held_has_no_derivative() -> None:
    program = _program("hold")
    assert interpret(program, [[1.5]])[0][0] == 1.5
    assert tangents(program, [[1.5]], [[{0: 1.0}]]) == [[{}]]
    assert cotangents(program, [[1.5]], [[{0: 1.0}]]) == [[{}]]


def test_a_branch_that_is_not_taken_has_no_derivative() -> None:
    # where(x < 0, sqrt(x), x) at 1: the other way round would be 0 * inf.
    nodes = (("input", 0, 0), ("const", 0.0), ("lt", 0, 1), ("sqrt", 0), ("select", 2, 3, 0))
    program = Block("branch", nodes, (ArraySpec("x", ()),), (ArraySpec("y", ()),), ((4,),))
    assert tangents(program, [[0.5]], [[{0: 1.0}]])[0][0] == {0: 1.0}


def test_kinks_take_the_side_of_the_definition() -> None:
    for op, expected in (("min", (0.0, 1.0)), ("max", (0.0, 1.0)), ("abs", (1.0,))):
        n = OPS[op].arity
        moved = tangents(_program(op), [[0.0] * n], [[{k: 1.0} for k in range(n)]])[0][0]
        assert tuple(moved.get(k, 0.0) for k in range(n)) == expected


def test_modes_agree_on_random_programs() -> None:
    rng = np.random.default_rng(0)
    smooth = ["add", "sub", "mul", "div", "neg", "sin", "cos", "exp", "atan2", "min", "max", "abs"]
    for _ in range(20):
        nodes: list[tuple] = [("input", 0, k) for k in range(4)]
        for _ in range(40):
            op = str(rng.choice(smooth))
            if op == "exp":  # keep the numbers small
                nodes.append(("sin", int(rng.integers(len(nodes)))))
            nodes.append((op, *(int(rng.integers(len(nodes))) for _ in range(OPS[op].arity))))
            if op == "exp":
                nodes[-1] = ("exp", len(nodes) - 2)
        results = tuple(int(k) for k in rng.integers(len(nodes), size=3))
        program = Block("random", tuple(nodes), (ArraySpec("x", (4,)),), (ArraySpec("y", (3,)),), (results,))
        x = rng.uniform(0.5, 1.5, size=4).tolist()
        forward = tangents(program, [x], [[{k: 1.0} for k in range(4)]])[0]
        back = cotangents(program, [x], [[{k: 1.0} for k in range(3)]])[0]
        J = np.array([[row.get(k, 0.0) for k in range(4)] for row in forward])
        K = np.array([[back[k].get(row, 0.0) for k in range(4)] for row in range(3)])
        if np.isfinite(J).all():
            np.testing.assert_allclose(J, K, rtol=1e-9, atol=1e-9 * np.abs(J).max())
