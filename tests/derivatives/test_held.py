"""Values that are held: solutions of equations with the derivatives of their equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import planar_arm
from linkwise.spatial.dual import derivative
from linkwise.trace.program import Program

ARM = planar_arm(1)


def root(model: Any, x: Any, p: Any) -> dict[str, Any]:
    """√p + x, with a number of passes that depends on p."""
    y = lw.math.hold(lw.while_loop(lambda y: abs(y * y - p[0]) > 1e-14, lambda y: 0.5 * (y + p[0] / y), 1.0 + p[0]))
    return {"y": y - (y * y - p[0]) / (2.0 * y) + x[0]}


ROOT = lw.compile(root, ARM, {"x": 1, "p": 1})
SLOPE = 0.5 / np.sqrt(2.0)


def test_a_solution_has_the_derivative_of_its_equation_in_both_modes() -> None:
    assert ROOT([1.0], [2.0]).y == pytest.approx(1.0 + np.sqrt(2.0), rel=1e-15)
    assert ROOT.jacobian("p", "forward")([0.0], [2.0]).y == pytest.approx([SLOPE])
    assert ROOT.jvp("p")([0.0], [2.0], [1.0]).y == pytest.approx(SLOPE)
    by_x, by_p = ROOT.vjp("x", "p")([0.0], [2.0], 3.0)
    assert by_x == [3.0] and by_p == pytest.approx([3.0 * SLOPE])


def test_the_same_inside_another_function() -> None:
    outer = lw.compile(lambda model, p: 3.0 * ROOT([0.0], 2.0 * p).y, ARM, {"p": 1})
    assert outer.vjp("p")([1.0], 1.0) == pytest.approx([6.0 * SLOPE])
    assert outer.jacobian("p", "forward")([1.0]) == pytest.approx([6.0 * SLOPE])


def test_second_derivatives_are_refused_wherever_they_are_asked_for() -> None:
    with pytest.raises(lw.InputError, match="no second derivatives"):
        ROOT.hessian("p")([0.0], [2.0])
    slope = lw.compile(lambda model, p: ROOT.jacobian("p", "forward")([0.0], p).y, ARM, {"p": 1})
    assert slope([2.0]) == pytest.approx([SLOPE])
    with pytest.raises(lw.InputError, match="no second derivatives"):
        slope.jacobian("p")([2.0])


def test_what_runs_pays_nothing_for_what_is_held() -> None:
    bare = lw.compile(lambda model, p: p[0] * p[0] + 1.0, ARM, {"p": 1}, name="f")
    held = lw.compile(
        lambda model, p: p[0] * p[0] + 1.0 + (lw.math.sin(p[0]) - lw.math.hold(lw.math.sin(p[0]))),
        ARM,
        {"p": 1},
        name="f",
    )
    assert held.program.fingerprint == bare.program.fingerprint
    assert held.gradient("p")([0.5]) == pytest.approx([1.0 + np.cos(0.5)])


def test_in_the_body_of_a_loop() -> None:
    def product(model: Any, p: Any) -> Any:
        return lw.loop(3, lambda i, x: x * lw.math.hold(p[0]) + p[0], p[0])

    f = lw.compile(product, ARM, {"p": 1})
    assert isinstance(f.program, Program)
    p = 0.7  # with h the held p: ((p h + p) h + p) h + p
    assert f([p]) == pytest.approx(p + p**2 + p**3 + p**4)
    assert f.vjp("p")([p], 1.0) == pytest.approx([1 + p + p**2 + p**3])
    assert f.jvp("p")([p], [1.0]) == pytest.approx(1 + p + p**2 + p**3)


def test_plain_and_dual_numbers() -> None:
    assert lw.math.hold(1.5) == 1.5
    values, rates = derivative(lambda x: [x[0] * lw.math.hold(x[0])], [3.0], [1.0])
    assert values == [9.0] and rates == [3.0]
