"""Derivatives of powers, at 0 too, where they are limits: in every mode, of traced and of dual numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.dual import Dual

XS = np.array([0.0, 0.3, 1.0, 2.0])
EXPONENTS = [-2.0, -1.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.7]


def _compiled(function: Callable[..., Any], size: int) -> lw.CompiledFunction:
    b = lw.ModelBuilder("any")
    b.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0))
    return lw.compile(lambda m, x: function(*x), b.build(), inputs={"x": size})


def _derivative(x: Any, p: float, order: int) -> Any:
    """p (p - 1) … x ** (p - order), by IEEE's powers; zero once a factor is."""
    factor = math.prod(p - k for k in range(order))
    with np.errstate(divide="ignore"):
        return np.zeros_like(x) if factor == 0.0 else factor * np.power(x, p - order)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_powers_with_a_number_above(p: float, modes: str) -> None:
    names: dict[str, Any] = {"f": "forward", "r": "reverse"}
    f = _compiled(lambda x: x**p, 1)
    first = f.jacobian("x", names[modes[0]])
    second = first.jacobian("x", names[modes[1]])
    for x in (XS[:, None], XS[:1], XS[2:3]):  # lanes, and one state
        np.testing.assert_allclose(f(x), _derivative(x[..., 0], p, 0), rtol=1e-14)
        np.testing.assert_allclose(first(x)[..., 0], _derivative(x[..., 0], p, 1), rtol=1e-14)
        np.testing.assert_allclose(second(x)[..., 0, 0], _derivative(x[..., 0], p, 2), rtol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 2.5])
def test_powers_with_a_value_above(mode: Any, p: float) -> None:
    f = _compiled(lambda x, e: x**e, 2)
    first = f.jacobian("x", mode)
    second = first.jacobian("x", mode)
    points = np.stack([XS, np.full_like(XS, p)], axis=-1)
    log = np.log(np.where(XS > 0, XS, 1.0))
    np.testing.assert_allclose(f(points), XS**p, rtol=1e-14)
    np.testing.assert_allclose(first(points)[:, 0], _derivative(XS, p, 1), rtol=1e-14)
    np.testing.assert_allclose(first(points)[:, 1], XS**p * log, rtol=1e-13)
    np.testing.assert_allclose(second(points)[:, 0, 0], _derivative(XS, p, 2), rtol=1e-13)
    np.testing.assert_allclose(second(points)[:, 1, 1], XS**p * log**2, rtol=1e-12)


def test_powers_whose_exponent_is_zero() -> None:
    f = _compiled(lambda x, e: x**e, 2)
    points = np.array([[0.0, 0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(f(points), [1.0, 1.0])
    np.testing.assert_allclose(f.jacobian("x")(points)[1], [0.0, math.log(2.0)], rtol=1e-15)
    np.testing.assert_array_equal(
        _compiled(lambda e: 0.0**e, 1)(np.array([[2.0], [0.0], [-1.0]])), [0.0, 1.0, math.inf]
    )


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_powers_inside_other_functions(mode: Any) -> None:
    """The force of Hertz, d |x|^1.5 and its slope: finite at the place of touch."""
    f = _compiled(lambda x: lw.math.sin(abs(x) ** 1.5 + x) * lw.math.maximum(x, 0.0) ** 1.5, 1)
    x, h = np.array([[-0.5], [0.0], [0.4]]), 1e-6
    slope = (f(x + h) - f(x - h)) / (2 * h)
    np.testing.assert_allclose(f.jacobian("x", mode)(x)[:, 0], slope, atol=1e-8)


@pytest.mark.parametrize("p", [0.3, 0.5, 1.0, 1.5, 2.0, 2.5, -0.5, -1.0])
def test_powers_of_dual_numbers(p: float) -> None:
    """Numbers and duals of duals, with the exponent a number and a constant of the level."""
    for x in XS.tolist():
        for exponent in (p, Dual(p, 0.0, 2)):
            outer = Dual(Dual(x, 1.0, 1), 1.0, 2) ** exponent
            assert outer.value.value == pytest.approx(float(_derivative(np.array(x), p, 0)), rel=1e-14)
            assert outer.value.tangent == pytest.approx(float(_derivative(np.array(x), p, 1)), rel=1e-14)
            assert getattr(outer.tangent, "tangent", 0.0) == pytest.approx(
                float(_derivative(np.array(x), p, 2)), rel=1e-13
            )
    moved = Dual(2.0, 0.0, 1) ** Dual(p, 1.0, 1)
    assert moved.tangent == pytest.approx(2.0**p * math.log(2.0), rel=1e-14)
    assert (2.0 ** Dual(p, 1.0, 1)).tangent == pytest.approx(2.0**p * math.log(2.0), rel=1e-14)
    if p > 0.0:
        assert (Dual(0.0, 0.0, 1) ** Dual(p, 1.0, 1)).tangent == 0.0


def test_roots_of_dual_numbers() -> None:
    root = lw.math.sqrt(Dual(0.0, 1.0, 1))
    assert root.value == 0.0 and root.tangent == math.inf


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.5])
def test_powers_of_duals_inside_programs(p: float) -> None:
    """As user-defined joints differentiate: a dual of traced numbers."""
    f = _compiled(lambda x: (Dual(x, 1.0, 1) ** p).tangent, 1)
    np.testing.assert_allclose(f(XS[:, None]), _derivative(XS, p, 1), rtol=1e-14)
    g = _compiled(lambda x, e: (Dual(x, 1.0, 1) ** e).tangent, 2)
    np.testing.assert_allclose(g(np.stack([XS, np.full_like(XS, p)], axis=-1)), _derivative(XS, p, 1), rtol=1e-14)
