"""Every operation does what its definition says, to the bit where rounding leaves no choice."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.targets.llvm import function_plan, ops, source, transcendental
from linkwise.targets.llvm.fusing import FUSED
from linkwise.trace.block import OPS, ArraySpec, Block
from tests.targets.programs import binary, bits, evaluate, evaluate_on, interpret, lesser_machines, mixture, unary

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e300, -1e300, 5e-324, -2.5e-310, math.inf, -math.inf, math.nan, 1e-8]
PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL)))


def test_table_is_complete():
    assert set(ops.TABLE) | set(transcendental.ENTRY_OF) == {*OPS, *FUSED}
    assert not set(ops.TABLE) & set(transcendental.ENTRY_OF)


@pytest.mark.parametrize("op", ["neg", "abs", "sqrt"])
def test_unary_exact(op):
    x = np.array([*SPECIAL, 2.0, 7.0, -3.3])[:, None]
    assert bits(evaluate(unary(op), [x])) == bits(interpret(unary(op), [x]))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "min", "max"])
def test_binary_exact(op):
    a, b = PAIRS[:, :1], PAIRS[:, 1:]
    assert bits(evaluate(binary(op), [a, b])) == bits(interpret(binary(op), [a, b]))


@pytest.mark.parametrize("op", ["lt", "le", "eq"])
def test_comparison_as_result(op):
    a, b = PAIRS[:, :1], PAIRS[:, 1:]
    assert bits(evaluate(binary(op), [a, b])) == bits(interpret(binary(op), [a, b]))


def test_truth_values():
    nodes = [("input", 0, k) for k in range(3)]
    nodes += [("lt", 0, 1), ("le", 1, 2), ("eq", 0, 2)]
    nodes += [("and", 3, 4), ("or", 4, 5), ("not", 6), ("and", 7, 8), ("or", 9, 5)]
    nodes += [("select", k, 0, 1) for k in range(3, 11)]
    program = Block("truth", tuple(nodes), (ArraySpec("x", (3,)),), (ArraySpec("y", (8,)),), (tuple(range(11, 19)),))
    x = np.array(list(itertools.product([0.0, 1.0, 2.0, math.nan], repeat=3)))
    assert bits(evaluate(program, [x])) == bits(interpret(program, [x]))


@st.composite
def exact_programs(draw):
    """Programs whose arithmetic is exact on small whole numbers, so that fused or not makes no difference."""
    nodes = [("input", 0, k) for k in range(3)] + [("const", float(draw(st.integers(-3, 3))))]
    size = [4.0, 4.0, 4.0, 3.0]  # bounds, to stay below 2^53
    real, truth = [0, 1, 2, 3], []
    for _ in range(draw(st.integers(1, 40))):
        op = draw(st.sampled_from(["add", "sub", "mul", "neg", "abs", "min", "max", "lt", "le", "eq", "select", "not"]))
        if OPS[op].arguments.startswith("B") and not truth:
            continue
        chosen = [draw(st.sampled_from(truth if kind == "B" else real)) for kind in OPS[op].arguments]
        a = [size[k] for k in chosen]
        bound = math.prod(a) if op == "mul" else sum(a)
        if bound > 2.0**50:
            continue
        nodes.append((op, *chosen))
        size.append(bound)
        (truth if OPS[op].result == "B" else real).append(len(nodes) - 1)
    results = draw(st.lists(st.sampled_from(real), min_size=1, max_size=9))
    return Block("random", tuple(nodes), (ArraySpec("x", (3,)),), (ArraySpec("y", (len(results),)),), (tuple(results),))


@settings(max_examples=40, deadline=None)
@given(exact_programs(), st.integers(1, 19), st.integers(0, 2**32 - 1), st.sampled_from([np.float64, np.float32]))
def test_random_programs(program, count, seed, dtype):
    x = np.random.default_rng(seed).integers(-4, 5, (count, 3)).astype(float)
    expected = interpret(program, [x])[0]
    if dtype is np.float32 and np.abs(expected).max(initial=0.0) > 2**24:
        return
    got = evaluate(program, [x], dtype)[0]
    if dtype is np.float64:
        assert np.array_equal(got, expected)
    else:
        assert np.allclose(got, expected, rtol=1e-4, atol=1e-1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("machine", lesser_machines(), ids=lambda m: f"{m.vector_bytes}-{m.cpu}")
def test_machines(machine, dtype):
    program = mixture()
    rng = np.random.default_rng(5)
    for count in (1, 2, 5, 16, 37):
        inputs = [rng.uniform(-1, 1, (count, array.size)).astype(dtype) for array in program.inputs]
        tolerance = 1e-12 if dtype is np.float64 else 1e-3
        for got, expected in zip(evaluate_on(machine, program, inputs, dtype), interpret(program, inputs), strict=True):
            assert np.allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("piece", [1, 2, 7, 30])
def test_pieces_agree(monkeypatch, piece):
    """A program cut anywhere computes the same to the bit, truth values across cuts included."""
    program = mixture()
    nodes = [*program.nodes, ("lt", 0, 1), ("not", len(program.nodes)), ("sin", 40)]
    n = len(nodes)
    nodes += [("select", n - 2, 4, n - 1), ("select", n - 3, n, 5)]
    results = (program.results[0], (*program.results[1][:-2], n, n + 1))
    program = Block("cut", tuple(nodes), program.inputs, program.outputs, results)
    x = [np.random.default_rng(1).uniform(-1, 1, (11, array.size)) for array in program.inputs]
    machine = lesser_machines()[0]
    whole = evaluate_on(machine, program, x)
    monkeypatch.setattr(source, "make_plan", lambda program, final: function_plan.make_plan(program, piece, final))
    cut = evaluate_on(machine, program, x)
    for a, b, c in zip(whole, cut, interpret(program, x), strict=True):
        assert np.array_equal(a, b)
        assert np.allclose(a, c, rtol=1e-12, atol=1e-14)


def test_no_inputs_and_empty_outputs():
    program = Block(
        "c", (("const", 2.5),), (ArraySpec("x", (0,)),), (ArraySpec("y", (2,)), ArraySpec("z", (0, 3))), ((0, 0), ())
    )
    y, z = evaluate(program, [np.empty((5, 0))])
    assert np.array_equal(y, np.full((5, 2), 2.5))
    assert z.shape == (5, 0)
