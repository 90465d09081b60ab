"""Derivatives of functions with branches: what is not taken adds nothing, however wild it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw

XS = np.array([-3.0, -1.0, 0.0, 0.5, 2.0])


def _compiled(function: Callable[[Any], Any]) -> lw.CompiledFunction:
    b = lw.ModelBuilder("any")
    b.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0))
    return lw.compile(lambda m, x: function(x), b.build(), inputs={"x": "scalar"})


def _root(x: Any) -> Any:
    return lw.math.where(x > 0.0, lw.math.sqrt(x), 0.0)


def _first(x: Any) -> Any:
    return np.where(x > 0, 0.5 / np.sqrt(np.where(x > 0, x, 1.0)), 0.0)


def _second(x: Any) -> Any:
    return np.where(x > 0, -0.25 / np.where(x > 0, x, 1.0) ** 1.5, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_root_where_there_is_one(mode: Any, dtype: Any) -> None:
    f, x = _compiled(_root), XS.astype(dtype)
    np.testing.assert_allclose(f.jacobian("x", mode)(x), _first(XS), rtol=1e-6)
    np.testing.assert_allclose(f.gradient("x")(x), _first(XS), rtol=1e-6)


@pytest.mark.parametrize("outer", ["forward", "reverse"])
@pytest.mark.parametrize("inner", ["forward", "reverse"])
def test_second_order_in_all_modes(inner: Any, outer: Any) -> None:
    f = _compiled(_root)
    np.testing.assert_allclose(f.jacobian("x", inner).jacobian("x", outer)(XS), _second(XS), rtol=1e-14)
    np.testing.assert_allclose(f.hessian("x")(XS), _second(XS), rtol=1e-14)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_branches_within_branches_and_beside_others(mode: Any) -> None:
    def text(x: Any) -> Any:
        root, log = lw.math.sqrt(x), lw.math.log(x + 2.0)
        inner = lw.math.where(x > -2.0, log * 3.0, x * x)
        both = lw.math.where(x > 0.0, root * log, 1.0) + lw.math.where(x > 1.0, root, x)  # two guards on one value
        return inner + both + lw.math.where(x < 0.0, 1.0 / (x - 0.5), root + root * root)

    f, h = _compiled(text), 1e-6
    xs = np.array([-3.0, -1.5, -0.3, 0.25, 0.7, 1.8])
    slope = (f(xs + h) - f(xs - h)) / (2 * h)
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(f.jacobian("x", mode)(xs), slope, rtol=1e-8)


def test_what_is_computed_from_a_branch() -> None:
    f = _compiled(
        lambda x: lw.math.where(x <= 0.0, 0.0, lw.math.sqrt(x)) ** 2 + abs(lw.math.where(x == 0.0, 1.0, 1.0 / x))
    )
    expected = [1 / 9, 1.0, 0.0, 1.0 - 4.0, 1.0 - 0.25]
    np.testing.assert_allclose(f.jacobian("x", "reverse")(XS), expected, rtol=1e-14)
    np.testing.assert_allclose(f.jacobian("x", "forward")(XS), expected, rtol=1e-14)


def test_weights_are_carried_back_past_what_is_not_taken() -> None:
    f = _compiled(_root)
    np.testing.assert_allclose(f.vjp("x")(XS, np.full(5, 2.0)), 2 * _first(XS), rtol=1e-15)
    np.testing.assert_allclose(f.jvp("x")(XS, np.full(5, 2.0)), 2 * _first(XS), rtol=1e-15)


@pytest.mark.parametrize("library", ["casadi", "sympy"])
def test_guards_run_on_symbols(library: str) -> None:
    symbols = pytest.importorskip(library)
    f = _compiled(lambda x: lw.math.where(x > 0.0, lw.math.sqrt(x), 0.0) * lw.math.where(x > 1.0, lw.math.log(x), 2.0))
    x = symbols.SX.sym("x") if library == "casadi" else symbols.Symbol("x", real=True)
    slope = f.jacobian("x", "reverse").text([x])  # the text itself, on a symbol
    for point, number in zip(XS, f.jacobian("x", "forward")(XS), strict=True):
        if library == "casadi":
            found = float(symbols.Function("f", [x], [slope])(float(point)))
        else:
            found = float(slope.subs(x, float(point)))
        assert found == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_tanh_far_out(mode: Any) -> None:
    """cosh⁻² x, to its last digits as far as there are any, then zero; never NaN."""
    f = _compiled(lw.math.tanh)
    x = np.array([0.0, 1e-3, 0.0624, 0.0626, 1.0, 20.0, 300.0, 354.0, 356.0, 1e4, 1e40, 1e200])
    x = np.concatenate([x, -x])
    expected = 4 * np.exp(-2 * abs(x)) / (1 + np.exp(-2 * abs(x))) ** 2
    np.testing.assert_allclose(f(x), np.tanh(x), rtol=5e-15)
    np.testing.assert_allclose(f.jacobian("x", mode)(x), expected, rtol=1e-13)
    second = f.hessian("x")(x)
    assert np.isfinite(second).all()
    np.testing.assert_allclose(second, -2 * np.tanh(x) * expected, rtol=1e-9, atol=1e-300)
    assert np.isfinite(f.jacobian("x", mode)(np.clip(x, -3e38, 3e38).astype(np.float32))).all()
