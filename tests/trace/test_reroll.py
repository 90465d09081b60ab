"""Loops found in straight-line programs: fewer operations to compile, the same arithmetic."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.scalar import where
from linkwise.targets.llvm.bounds import checked_program
from linkwise.trace.block import Block
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import Program
from linkwise.trace.reroll import rerolled
from linkwise.trace.tracer import trace
from linkwise.trace.verifier import verify

N = 40


def sums(x, y, h):
    return [x[i] + h[0] * (0.5 * y[i] - y[N + i] * (1.0 / 3.0)) for i in range(N)]


def springs(x, y, h):
    """Constants that differ from joint to joint, in an order that depends on which came first."""
    k = [1.0 + (i % 3) for i in range(N)]
    return [-(k[i] * (x[i] - 0.1 * i)) - y[i] * (0.1 if i % 2 else 1.0) for i in range(N)]


def limited(x, y, h):
    """A shared comparison, and one of each joint's own."""
    late = h[0] > 0.5
    return [where(late, where(x[i] > 0.0, y[i], -y[i]), x[i]) for i in range(N)]


def turned(x, y, h):
    """Pieces with several results that share work."""
    out = []
    for i in range(0, N, 2):
        s, c = lw.math.sin(y[i]), lw.math.cos(y[i])
        out += [c * x[i] - s * x[i + 1], s * x[i] + c * x[i + 1]]
    return out


def averaged(x, y, h):
    """A sum over all that all of them use, and results that are inputs, constants or shared."""
    mean = sum(x) * (1.0 / N)
    return [*((x[i] - mean) * y[i] for i in range(N)), mean, 3.0, x[7], *([0.0] * 5)]


TEXTS = [sums, springs, limited, turned, averaged]


def traced(text):
    def run(*arrays):
        values = text(*arrays)
        return [("out", (len(values),), values), ("again", (2,), [values[3], arrays[1][0]])]

    return trace(text.__name__, run, [("x", (N,)), ("y", (2 * N,)), ("h", (1,))])


def inputs(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=n) for n in (N, 2 * N, 1)]


@pytest.mark.parametrize("text", TEXTS)
def test_the_same_numbers_from_less_code(text):
    straight = traced(text)
    looped = rerolled(straight)
    assert isinstance(looped, Program)
    verify(looped)
    assert looped.operations < len(straight.nodes) / 2
    for seed in range(3):
        given = [x.tolist() for x in inputs(seed)]
        assert interpret(looped, given) == interpret(straight, given)  # to the last bit


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("single", [True, False])
def test_compiled_inside_its_memory(text, single):
    straight = traced(text)
    looped = rerolled(straight)
    kernel = checked_program(looped, single=single)
    states = [np.ascontiguousarray(np.stack([inputs(seed)[k] for seed in range(3)])) for k in range(3)]
    found = [np.empty((3, spec.size)) for spec in looped.outputs]
    kernel.evaluate(states, found, 3)
    for state in range(3):
        expected = interpret(straight, [x[state].tolist() for x in states])
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a[state], b, rtol=1e-12, atol=1e-14)


def test_what_does_not_repeat_is_left_alone():
    def text(x):
        total = x[0]
        for k in range(300):
            total = lw.math.sin(total) * (1.0 + k) + x[k % 5]
        return [("out", (1,), [total])]

    program = trace("chain", text, [("x", (20,))])
    assert rerolled(program) is program
    assert isinstance(rerolled(traced(lambda x, y, h: [*x[:3], 0.0])), Block)
