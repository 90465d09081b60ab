"""Tracing: which rewrites are made, that they are exact, and what the program then is."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.interpreter import interpret
from linkwise.trace.passes import LONG, remove_dead
from linkwise.trace.program import Buffer, Call, Copy, For, Program
from linkwise.trace.readable import count, to_text
from linkwise.trace.tracer import Traced, Tracer, maximum, minimum, trace
from linkwise.trace.verifier import verify


def program_of(function: Callable[..., Any], n: int = 2) -> Block:
    """The program of a function of n scalars with one result."""
    program = trace("f", lambda x: [("y", (), [function(*x)])], [("x", (n,))])
    verify(program)
    return program


def operations(function: Callable[..., Any], n: int = 2) -> list[str]:
    return [node[0] for node in program_of(function, n).nodes if node[0] not in ("const", "input")]


# Rewrites: what leaves no operation.
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + 0.0, lambda x, y: 0 + x, lambda x, y: x - 0.0, lambda x, y: x * 1.0, lambda x, y: 1 * x,
        lambda x, y: x / 1.0, lambda x, y: (-x).__neg__(), lambda x, y: +x, lambda x, y: x**1, lambda x, y: (x - 0) * 1,
        lambda x, y: x * -1 * -1, lambda x, y: 0.0 - (0.0 - x), lambda x, y: x + 0 * y, lambda x, y: x + (y - y),
        lambda x, y: x * (y / y), lambda x, y: lw.math.where(x < y, x, x),
    ],
)  # fmt: skip
def test_nothing_is_left_to_do(function: Any) -> None:
    assert program_of(function).nodes == (("input", 0, 0),)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda x, y: x * 0.0, 0.0), (lambda x, y: 0 * x, 0.0), (lambda x, y: x - x, 0.0), (lambda x, y: 0.0 / x, 0.0),
        (lambda x, y: x / x, 1.0), (lambda x, y: x**0, 1.0), (lambda x, y: (x + y) - (y + x), 0.0),
        (lambda x, y: x * y - y * x, 0.0), (lambda x, y: -0.0 * x, 0.0), (lambda x, y: 2.5, 2.5),
    ],
)  # fmt: skip
def test_constants_come_out(function: Any, value: float) -> None:
    assert program_of(function).nodes == (("const", value),)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: x + -y, ["sub"]),
        (lambda x, y: -x + y, ["sub"]),
        (lambda x, y: x - -y, ["add"]),
        (lambda x, y: -(x - y), ["sub"]),
        (lambda x, y: (-x) * (-y), ["mul"]),
        (lambda x, y: (-x) * y, ["mul", "neg"]),
        (lambda x, y: (-x) / (-y), ["div"]),
        (lambda x, y: x * -2.0, ["mul", "neg"]),
        (lambda x, y: y + x * -2.0, ["mul", "sub"]),
        (lambda x, y: -x - y, ["add", "neg"]),
        (lambda x, y: 3.0 - -x, ["add"]),
        (lambda x, y: lw.math.cos(-x), ["cos"]),
        (lambda x, y: lw.math.sin(-x) + y, ["sin", "sub"]),
        (lambda x, y: x**2, ["mul"]),
        (lambda x, y: x**4, ["mul", "mul"]),
        (lambda x, y: x**-1, ["div"]),
        (lambda x, y: x**0.5, ["sqrt"]),
        (lambda x, y: x * y + y * x, ["mul", "add"]),
        (lambda x, y: (x + y) * (y + x), ["add", "mul"]),
        (lambda x, y: lw.math.sin(x) * lw.math.sin(x), ["sin", "mul"]),
        (lambda x, y: x - 2.0, ["sub"]),
        (lambda x, y: -5.0 / -x, ["div", "neg"]),
    ],
)
def test_what_is_left(function: Any, expected: list[str]) -> None:
    assert sorted(operations(function)) == sorted(expected)


expressions = st.recursive(
    st.one_of(st.sampled_from(["x", "y", "z"]), st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5, -3.0])),
    lambda children: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "atan2", "min", "max"]), children, children),
        st.tuples(st.sampled_from(["neg", "sin", "cos", "abs", "square"]), children),
        st.tuples(st.just("where"), children, children, children, children),
    ),
    max_leaves=25,
)


def evaluate(e: Any, values: dict[str, Any]) -> Any:
    if isinstance(e, str):
        return values[e]
    if isinstance(e, float):
        return e
    op, *parts = e
    a = [evaluate(part, values) for part in parts]
    return {
        "+": lambda: a[0] + a[1],
        "-": lambda: a[0] - a[1],
        "*": lambda: a[0] * a[1],
        "/": lambda: a[0] / (a[1] * a[1] + 1.5),
        "atan2": lambda: lw.math.atan2(a[0], a[1] * a[1] + 0.5),
        "min": lambda: minimum(a[0], a[1]),
        "max": lambda: maximum(a[0], a[1]),
        "neg": lambda: -a[0],
        "sin": lambda: lw.math.sin(a[0]),
        "cos": lambda: lw.math.cos(a[0]),
        "abs": lambda: abs(a[0]),
        "square": lambda: a[0] ** 2,
        "where": lambda: lw.math.where(a[0] < a[1], a[2], a[3]),
    }[op]()


@given(expressions, st.tuples(*[st.floats(-2, 2)] * 3))
@settings(deadline=None, max_examples=400, derandomize=True)
def test_any_expression_means_what_python_means(e: Any, numbers: Any) -> None:
    expected = float(evaluate(e, dict(zip("xyz", numbers, strict=True))))
    program = trace("f", lambda v: [("y", (), [evaluate(e, dict(zip("xyz", v, strict=True)))])], [("v", (3,))])
    verify(program)
    result = interpret(program, [list(numbers)])[0][0]
    scale = 1e-9 if math.isfinite(expected) and abs(expected) < 1e9 else 1.0  # a branch may turn on the last digit
    if not math.isclose(result, expected, rel_tol=1e-9, abs_tol=scale):
        assert "where" in repr(e) or "min" in repr(e) or "max" in repr(e) or abs(expected) > 1e9


# Programs.
def test_dead_code_goes_and_order_holds() -> None:
    def text(x: Any, y: Any) -> Any:
        lw.math.exp(x[0])  # never used
        return [("a", (2,), [x[0] + y[0], x[0] * y[0]]), ("b", (), [7.0])]

    program = trace("two", text, [("x", (2,)), ("y", (1,))])
    verify(program)
    assert [node[0] for node in program.nodes if node[0] == "exp"] == []
    assert interpret(program, [[3.0, 9.0], [5.0]]) == [[8.0, 15.0], [7.0]]
    assert remove_dead(program) == program


def test_long_programs_keep_their_order() -> None:
    def text(x: Any) -> Any:
        values = [x[0]]
        for k in range(LONG + 10):
            values.append(values[-1] * values[-1] + float(k % 7))
        return [("y", (3,), [values[-1], values[10], values[5]])]

    program = trace("long", text, [("x", (1,))])
    verify(program)
    assert len(program.nodes) > LONG
    short = Block(program.name, program.nodes[:50], program.inputs, (ArraySpec("y", ()),), ((40,),))
    verify(remove_dead(short))


def test_counts() -> None:
    def function(x: Any, y: Any) -> Any:
        return (x * y + lw.math.sin(x) - lw.math.cos(y) / x) * lw.math.sqrt(y) - abs(-x)

    counts = count(program_of(function))
    assert (counts.mul, counts.add, counts.div, counts.trig) == (2, 3, 1, 2)
    assert (counts.M, counts.A) == (3, 3)
    assert counts.other == {"sqrt": 1, "abs": 1}
    assert str(counts) == "2 mul, 1 div, 3 add, 2 sin/cos, 1 abs, 1 sqrt"


def test_text() -> None:
    lines = to_text(program_of(lambda x, y: lw.math.sin(2.0 * x))).splitlines()
    assert lines == [
        "program f(x[2])",
        "  %0 = x[0]",
        "  %1 = 2.0",
        "  %2 = mul %0, %1",
        "  %3 = sin %2",
        "  y[] = %3",
    ]


def test_text_of_a_program() -> None:
    """Its statements, then each block that it calls, under names of their own."""
    double, half = program_of(lambda x: 2.0 * x, 1), program_of(lambda x: 0.5 * x, 1)
    buffers = (Buffer("in:a", 1, load=True), Buffer("b", 1), Buffer("out:c", 1, store=True))
    calls = (Call(double, ("in:a",), ("b",)), For(3, (Call(half, ("b",), ("out:c",)), Copy("out:c", "b"))))
    assert to_text(Program("twice", buffers, calls)).splitlines() == [
        "program twice(a[1]) -> c[1]",
        "  memory b[1]",
        "  b = f(in:a)",
        "  for 3:",
        "    out:c = f#2(b)",
        "    b = out:c",
        "",
        *to_text(double).splitlines(),
        "",
        "program f#2(x[1])",
        *to_text(half).splitlines()[1:],
    ]


def test_fingerprints() -> None:
    a, b = program_of(lambda x, y: x + y), program_of(lambda x, y: y + x)
    assert a.fingerprint == program_of(lambda x, y: x + y).fingerprint
    assert a.fingerprint != program_of(lambda x, y: x - y).fingerprint
    assert program_of(lambda x, y: x + 0.1).fingerprint != program_of(lambda x, y: x + 0.1000000001).fingerprint
    assert interpret(a, [[1.0, 2.0]]) == interpret(b, [[1.0, 2.0]])


# Behaviour as numbers.
def test_no_value_yet() -> None:
    x = Tracer().input("x", (1,))[0]
    for use in (lambda: bool(x), lambda: float(x), lambda: math.sin(x), lambda: bool(x < 1.0)):
        with pytest.raises(TypeError, match=r"use lw\.math\.where\(condition, a, b\) instead of `if`"):
            use()
    assert repr(x) == "<traced %0 = ('input', 0, 0)>"


def test_two_programs_do_not_mix() -> None:
    x, y = Tracer().input("x", (1,))[0], Tracer().input("y", (1,))[0]
    with pytest.raises(ValueError, match="a traced scalar of one program was used in another"):
        x.tracer.finish("f", [("y", (), [y])])


def test_numpy_scalars_and_arrays() -> None:
    """Arithmetic with NumPy's numbers and arrays on either side, element by element."""
    importlib.import_module("linkwise.functions.scalar_arrays")  # which knows how
    x, y = Tracer().input("x", (2,))
    assert isinstance(np.float64(2.0) * x, Traced)
    assert isinstance(x + np.int64(2), Traced)
    assert isinstance(np.array([x, y]) @ np.array([1.0, 2.0]), Traced)
    assert isinstance(np.sin(np.array([x], dtype=object))[0], Traced)
    with pytest.raises(TypeError):
        x + "1"


def test_arrays_with_scalars() -> None:
    A = np.array([[1.0, 2.0], [3.0, 0.5]])

    def function(model: Any, q: Any) -> Any:
        x = q[0]
        sums = A * x + x * A + (A - x) + (x - A) + A / x + x / A + A**x + x**A + q[:, None] * x
        return sums + np.vectorize(lambda c, a, b: lw.math.where(c, a, b), otypes=[object])(x > A, x * A, 1.0)

    model = lw.Model.from_dh([[1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    compiled = lw.compile(function, model, {"q": "q"})
    q = np.array([1.7, -0.4])
    x = q[0]
    expected = A * x + x * A + (A - x) + (x - A) + A / x + x / A + A**x + x**A + q[:, None] * x
    expected += np.where(x > A, x * A, 1.0)
    np.testing.assert_allclose(compiled(q), expected, rtol=1e-13)


def test_truth_values() -> None:
    def function(x: Any, y: Any) -> Any:
        inside = (x > 0.0) & (y >= 0.0) | ~(x != y)
        return (
            lw.math.where(inside & True, 1.0, 0.0)
            + lw.math.where((x == y) | False, 10.0, 0.0)
            + lw.math.where(x <= y, 100.0, 0.0)
        )

    program = program_of(function)
    for x, y in ((1.0, 2.0), (-1.0, 2.0), (-1.0, -1.0), (2.0, 1.0), (0.0, 0.0)):
        inside = (x > 0 and y >= 0) or x == y
        assert interpret(program, [[x, y]])[0][0] == inside + 10 * (x == y) + 100 * (x <= y)


def test_minimum_and_maximum() -> None:
    program = program_of(lambda x, y: minimum(x, 1.0) + 10.0 * maximum(2.0, y))
    assert interpret(program, [[3.0, 5.0]])[0][0] == 51.0
    assert (minimum(1.0, 2.0), maximum(1.0, 2.0)) == (1.0, 2.0)


def test_ieee_behaviour() -> None:
    """Division by zero, domains and overflow give infinities and NaN, as on the machine, not exceptions."""

    def values(x: float, y: float) -> list[float]:
        def text(v: Any) -> Any:
            a, b = v
            return [
                (
                    "y",
                    (6,),
                    [a / b, lw.math.sqrt(a), lw.math.log(b), lw.math.exp(a), lw.math.sin(a), lw.math.atan2(b, a)],
                )
            ]

        return interpret(trace("f", text, [("v", (2,))]), [[x, y]])[0]

    assert values(1.0, 0.0)[0] == math.inf
    assert values(-1.0, 0.0)[0] == -math.inf
    assert values(1.0, -0.0)[0] == -math.inf
    assert math.isnan(values(0.0, 0.0)[0])
    assert math.isnan(values(-1.0, 1.0)[1])
    assert values(1.0, 0.0)[2] == -math.inf
    assert math.isnan(values(1.0, -1.0)[2])
    assert values(1e4, 1.0)[3] == math.inf
    assert math.isnan(values(math.inf, 1.0)[4])
    assert all(math.isnan(x) for x in values(math.nan, math.nan))


def test_comparisons_count_as_one_and_zero_in_sums_and_products():
    """Rewards and masks as NumPy has them; floats give the same."""

    def masked(q):
        a, b = q[0] > 0.5, q[1] > 0.5
        several = [sum(x > 0.5 for x in q), 2.0 * a, q[2] * a, a * b, 1 - b, a - q[0], q[0] - a, 0.5 + b]
        return np.array([*several, *((q > 0.5) * q)])

    f = lw.compile(lambda model, q: masked(q), None, inputs={"q": 3})
    for q in ([0.6, 0.4, 0.7], [0.1, 0.9, 0.5]):
        np.testing.assert_array_equal(f(q), masked(np.array(q)))
    by_q = f.jacobian("q")(np.array([0.6, 0.4, 0.7]))
    assert by_q[:3].tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]] and by_q[-3:].tolist() == np.diag([1, 0, 1]).tolist()
