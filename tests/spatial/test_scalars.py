"""Scalar functions over any scalar, and dual numbers over all of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import linkwise as lw
from linkwise.spatial import scalar
from linkwise.spatial.dual import Dual, derivative
from linkwise.spatial.flattening import flatten
from linkwise.trace.interpreter import interpret
from linkwise.trace.tracer import Tracer, trace

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[float], float]]] = {
    "sin": (lw.math.sin, math.sin),
    "cos": (lw.math.cos, math.cos),
    "tan": (lw.math.tan, math.tan),
    "sqrt": (lw.math.sqrt, math.sqrt),
    "exp": (lw.math.exp, math.exp),
    "log": (lw.math.log, math.log),
    "tanh": (lw.math.tanh, math.tanh),
    "square": (lambda x: x**2, lambda x: x**2),
    "cube": (lambda x: x**3.0, lambda x: x**3),
    "inverse": (lambda x: x**-2, lambda x: x**-2),
    "root": (lambda x: x**0.5, math.sqrt),
    "power": (lambda x: x**1.7, lambda x: x**1.7),
    "exponential": (lambda x: 2.0**x, lambda x: 2.0**x),
    "itself": (lambda x: x**x, lambda x: x**x),
    "quotient": (lambda x: (1 + x) / (2.0 - x) - 3 / x, lambda x: (1 + x) / (2.0 - x) - 3 / x),
    "absolute": (lambda x: abs(x - 1.0), lambda x: abs(x - 1.0)),
    "angle": (lambda x: lw.math.atan2(x, 1.0 - x), lambda x: math.atan2(x, 1.0 - x)),
    "angle of one": (lambda x: lw.math.atan2(1.0, x), lambda x: math.atan2(1.0, x)),
    "angle over one": (lambda x: lw.math.atan2(x, -1.0), lambda x: math.atan2(x, -1.0)),
    "branch": (lambda x: lw.math.where(x < 0.5, x * x, 3.0 * x), lambda x: x * x if x < 0.5 else 3.0 * x),
    "other branch": (lambda x: lw.math.where(x >= 1.0, x, 0.0), lambda x: x if x >= 1.0 else 0.0),
    "constant": (lambda x: 4.0, lambda x: 4.0),
}
POINTS = (0.3, 0.9, 1.3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats(name: str) -> None:
    ours, expected = FUNCTIONS[name]
    for x in POINTS:
        assert ours(x) == pytest.approx(expected(x), rel=1e-15)
        assert float(ours(np.float64(x))) == pytest.approx(expected(x), rel=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced(name: str) -> None:
    ours, expected = FUNCTIONS[name]
    program = trace("f", lambda x: [("y", (), [ours(x[0])])], [("x", (1,))])
    for x in POINTS:
        assert interpret(program, [[x]])[0][0] == pytest.approx(expected(x), rel=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_digits(name: str) -> None:
    ours, expected = FUNCTIONS[name]
    with mpmath.workdps(40):
        for x in POINTS:
            assert float(ours(mpmath.mpf(x))) == pytest.approx(expected(x), rel=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symbols(name: str) -> None:
    ours, expected = FUNCTIONS[name]
    x = sympy.Symbol("x", real=True)
    y = sympy.sympify(ours(x))
    for at in POINTS:
        assert float(y.subs(x, at)) == pytest.approx(expected(at), rel=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_duals(name: str) -> None:
    """First derivatives, and second ones by nesting, against differentiation with many digits."""
    ours, _ = FUNCTIONS[name]
    for x in POINTS:
        with mpmath.workdps(40):
            first = float(mpmath.diff(lambda t: mpmath.mpf(ours(t)), x))
            second = float(mpmath.diff(lambda t: mpmath.mpf(ours(t)), x, 2))
        value, slope = derivative(lambda t: [ours(t[0])], [x], [1.0])
        assert value[0] == pytest.approx(float(ours(x)))
        assert slope[0] == pytest.approx(first, rel=1e-12, abs=1e-12)
        nested = derivative(lambda t: derivative(lambda s: [ours(s[0])], t, [1.0])[1], [x], [1.0])
        assert nested[1][0] == pytest.approx(second, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_duals_of_traced_scalars(name: str) -> None:
    ours, _ = FUNCTIONS[name]

    def slope(x: Any) -> Any:
        _, rate = derivative(lambda t: [ours(t[0])], x, [1.0])
        return [("y", (), rate)]

    program = trace("f", slope, [("x", (1,))])
    for x in POINTS:
        expected = derivative(lambda t: [ours(t[0])], [x], [1.0])[1][0]
        assert interpret(program, [[x]])[0][0] == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_duals_and_traced_constants() -> None:
    """A traced number that is a constant of the differentiation, on either side of every operator."""

    def text(x: Any, p: Any) -> Any:
        def function(t: Any) -> Any:
            a, b = t[0], p[0]
            sums = b * a + a * b + (b - a) + (a - b) * 2.0 + b / a + a / b + lw.math.atan2(b, a) + lw.math.atan2(a, b)
            return [sums + lw.math.where(b < a, b * a, a * a) + lw.math.where(a < b, b, a) + a**2 * b**2 + b**a]

        _, rate = derivative(function, x, [1.0])
        return [("y", (), rate)]

    program = trace("f", text, [("x", (1,)), ("p", (1,))])
    for x, p in ((0.4, 1.2), (1.5, 0.7)):

        def plain(t: Any, p: float = p) -> Any:
            sums = p * t + t * p + (p - t) + (t - p) * 2 + p / t + t / p + mpmath.atan2(p, t) + mpmath.atan2(t, p)
            return sums + (p * t if p < t else t * t) + (p if t < p else t) + t**2 * p**2 + mpmath.mpf(p) ** t

        assert interpret(program, [[x], [p]])[0][0] == pytest.approx(float(mpmath.diff(plain, x)), rel=1e-12)


def test_levels_of_duals() -> None:
    """∂²/∂x∂y of x²y³, and a constant of the inner differentiation that the outer one moves."""

    def inner(x: Any, y: Any) -> Any:
        return derivative(lambda t: [t[0] * t[0] * y * y * y], [x], [1.0])[1][0]

    _, mixed = derivative(lambda y: [inner(0.7, y[0])], [1.3], [1.0])
    assert mixed[0] == pytest.approx(2 * 0.7 * 3 * 1.3**2)
    _, rate = derivative(
        lambda y: [derivative(lambda x: [lw.math.where(x[0] < 9.0, y[0], x[0])], [0.5], [1.0])[0][0]], [1.3], [1.0]
    )
    assert rate[0] == 1.0


def test_duals_compare_and_print() -> None:
    a = Dual(1.0, 2.0, 1)
    assert a < 2.0
    assert a <= 1.0
    assert a > 0.5
    assert a >= Dual(0.5, 0.0, 1)
    assert a == 1.0
    assert a != 2.0
    assert repr(a) == "Dual(1.0, 2.0)"
    assert +a is a


def test_tanh_keeps_its_digits() -> None:
    """Also near zero, where 1 - 2/(exp(2x) + 1) has lost them, and far out, where exp overflows."""
    program = trace("f", lambda x: [("y", (), [lw.math.tanh(x[0])])], [("x", (1,))])
    for x in (1e-300, 1e-12, 1e-6, 1e-3, 0.04, 0.0624, 0.0626, 0.2, 1.0, 19.0, 400.0, 1e5):
        for sign in (1, -1):
            assert interpret(program, [[sign * x]])[0][0] == pytest.approx(math.tanh(sign * x), rel=5e-15, abs=0)


def test_known_zeros_and_ones() -> None:
    x = Tracer().input("x", (1,))[0]
    assert scalar.is_zero(0.0)
    assert scalar.is_zero(0)
    assert not scalar.is_zero(1e-300)
    assert not scalar.is_zero(x)
    assert scalar.is_one(1)
    assert not scalar.is_one(x)
    assert scalar.is_exact(mpmath.mpf(1))
    assert scalar.is_exact(sympy.Symbol("x"))
    assert not scalar.is_exact(1.0)


def test_where_on_python_truth() -> None:
    assert lw.math.where(True, 1, 2) == 1
    assert lw.math.where(np.bool_(False), 1, 2) == 2


def test_flatten_and_back() -> None:
    from linkwise.spatial.vectors import Force, Motion, Vec

    value = [Motion.unit(2), (Force.zero(), Vec(1.0, 2.0, 3.0)), 4.0]
    flat, rebuild = flatten(value)
    assert len(flat) == 6 + 6 + 3 + 1
    again, _ = flatten(rebuild(flat))
    assert again == flat
