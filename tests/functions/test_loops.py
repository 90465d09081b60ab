"""Loops in compiled functions: the same numbers and derivatives as Python's own loops give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Items, looped_over, maximum, minimum, repeated, where
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import For, Program, WhileAny
from linkwise.trace.verifier import verify

MODEL = samples.stanford_arm()
RNG = np.random.default_rng(0)
X, A = RNG.normal(size=(21, 3)), RNG.normal(size=21)


def spiral(m, x, a, passes=7):
    """A state that depends on the number of the pass and on what is around."""
    return lw.loop(passes, lambda i, s: 0.9 * s + a * lw.math.sin(s[[1, 2, 0]]) + 0.1 * i, x)


def spiral_in_python(x, a, passes=7):
    for i in range(passes):
        x = 0.9 * x + a * np.sin(x[..., [1, 2, 0]]) + 0.1 * i
    return x


def compiled(text=spiral):
    return lw.compile(text, MODEL, inputs={"x": 3, "a": "scalar"})


def sizes(s):
    """Several arrays and numbers in one state, some of which do not change."""
    return {"x": 0.5 * s["x"] + s["n"], "n": s["n"] + 1.0, "pair": (s["pair"][1], s["pair"][0]), "same": s["same"]}


def root(m, x):
    """Newton's method: as many passes as it takes."""
    return lw.while_loop(lambda s: s * s - x > 1e-13 * x, lambda s: 0.5 * (s + x / s), x + 1.0)


def nested(m, x):
    return lw.loop(3, lambda i, s: lw.loop(4, lambda j, t: 0.5 * t + lw.math.cos(t * x) + i * j, s + i), x)


def nested_in_python(x):
    s = x
    for i in range(3):
        t = s + i
        for j in range(4):
            t = 0.5 * t + np.cos(t * x) + i * j
        s = t
    return s


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_numbers_of_a_loop(dtype):
    f = compiled()
    x, a = X.astype(dtype), A.astype(dtype)
    tol = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(f(x, a), spiral_in_python(x, a[:, None]), rtol=tol, atol=tol)
    np.testing.assert_allclose(f(x[3], a[3]), spiral_in_python(x[3], a[3]), rtol=tol, atol=tol)
    np.testing.assert_array_equal(f(x, a, threads=2), f(x, a))
    np.testing.assert_array_equal(f(x[5:6], a[5:6])[0], f(x, a)[5])


def test_one_pass_is_compiled_however_many_there_are():
    few, many = compiled(), compiled(lambda m, x, a: spiral(m, x, a, passes=7000))
    assert few.program.operations == many.program.operations
    assert many.counts.trig == 1000 * few.counts.trig
    verify(many.program)
    assert any(isinstance(s, For) for code in many.program.codes if isinstance(code, Program) for s in code.walk())
    np.testing.assert_allclose(many(X, 0.05 * A), spiral_in_python(X, 0.05 * A[:, None], passes=7000), rtol=1e-9)


def test_the_interpreter_is_the_definition():
    f = compiled()
    (found,) = interpret(f.program, [X[0].tolist(), [float(A[0])]])
    np.testing.assert_allclose(found, f(X[0], A[0]), rtol=1e-14)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["x", "a"])
def test_jacobians_of_a_loop(name, mode):
    found = compiled().jacobian(name, mode=mode)(X[0], A[0])
    for k, unit in enumerate(np.eye(3) if name == "x" else [np.zeros(3)]):

        def along(s):
            return spiral(None, np.array(s[:3], object), s[3], 7)

        _, rate = derivative(along, [*X[0], A[0]], [*unit, float(name == "a")])
        np.testing.assert_allclose(found[:, k] if name == "x" else found, [float(r) for r in rate], rtol=1e-12)


def test_products_gradients_and_second_derivatives_of_a_loop():
    f = compiled()
    d, w = RNG.normal(size=(2, 3))
    J = f.jacobian("x")(X[0], A[0])
    np.testing.assert_allclose(f.jvp("x")(X[0], A[0], d), J @ d, rtol=1e-12)
    np.testing.assert_allclose(f.vjp("x")(X[0], A[0], w), w @ J, rtol=1e-12)
    g = compiled(lambda m, x, a: (spiral(m, x, a) ** 2).sum())
    value, gradient = g.value_and_gradient("x")(X[0], A[0])
    assert value == pytest.approx((spiral_in_python(X[0], A[0]) ** 2).sum())
    np.testing.assert_allclose(gradient, 2.0 * spiral_in_python(X[0], A[0]) @ J, rtol=1e-12)
    step = 1e-5
    ahead, back = (g.gradient("x")(X[0] + e, A[0]) for e in (step * d, -step * d))
    np.testing.assert_allclose(g.hessian("x")(X[0], A[0]) @ d, (ahead - back) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_loops_in_loops(mode):
    f = lw.compile(nested, MODEL, inputs={"x": "scalar"})
    x = np.linspace(0.1, 0.4, 9)
    np.testing.assert_allclose(f(x), nested_in_python(x), rtol=1e-12)
    step = 1e-7
    slope = (nested_in_python(x + step) - nested_in_python(x - step)) / (2 * step)
    np.testing.assert_allclose(f.jacobian("x", mode=mode)(x), slope, rtol=1e-5)


def test_while_loops_end_state_by_state():
    f = lw.compile(root, MODEL, inputs={"x": "scalar"})
    x = np.geomspace(1e-6, 1e9, 37)
    np.testing.assert_allclose(f(x), np.sqrt(x), rtol=1e-12)
    np.testing.assert_allclose(f.jacobian("x")(x), 0.5 / np.sqrt(x), rtol=1e-9)
    assert any(isinstance(s, WhileAny) for code in f.program.codes if isinstance(code, Program) for s in code.walk())
    for k in (0, 17, 36):
        assert f(x[k]) == f(x)[k]
    with pytest.raises(lw.InputError, match="reverse mode"):
        f.jacobian("x", mode="reverse")(x)


def test_what_does_not_end_is_not_a_number():
    f = lw.compile(
        lambda m, x: lw.while_loop(lambda s: s > 0.0, lambda s: s + x, 1.0, limit=50), MODEL, inputs={"x": "scalar"}
    )
    np.testing.assert_array_equal(f(np.array([-0.5, 1.0, -3.0])), [0.0, math.nan, -2.0])
    assert math.isnan(lw.while_loop(lambda s: s > 0.0, lambda s: s + 1.0, 1.0, limit=50))


def test_states_of_any_form():
    def text(m, x, a):
        return lw.loop(4, lambda i, s: sizes(s), {"x": x, "n": a, "pair": (x[0], a), "same": 7.0})

    found = compiled(text)(X, A)
    expected = {"x": X, "n": A[:, None], "pair": (X[:, 0], A), "same": 7.0}
    for _ in range(4):
        expected = sizes(expected)
    np.testing.assert_allclose(found.x, expected["x"], rtol=1e-14)
    np.testing.assert_allclose(found.n, expected["n"][:, 0], rtol=1e-14)
    np.testing.assert_allclose(found.pair, np.stack(expected["pair"], -1), rtol=1e-14)
    np.testing.assert_array_equal(found.same, np.full(21, 7.0))


def test_a_state_of_numbers_that_the_body_makes_traced():
    f = compiled(lambda m, x, a: lw.loop(5, lambda i, s: s * a + x[0], 1.0))
    expected = 1.0
    for _ in range(5):
        expected = expected * A + X[:, 0]
    np.testing.assert_allclose(f(X, A), expected, rtol=1e-13)
    np.testing.assert_allclose(f.jacobian("x", mode="reverse")(X, A)[:, 0], sum(A**k for k in range(5)), rtol=1e-12)


def test_functions_of_the_model_inside_a_loop():
    """Explicit Euler by hand, against the same loop in Python."""
    h = 1e-3

    def step(m, q, v):
        return q + h * v, v + h * m.forward_dynamics(q, v, np.zeros(6))

    f = lw.compile(lambda m, q, v: lw.loop(20, lambda i, s: step(m, *s), (q, v)), MODEL, inputs={"q": "q", "v": "v"})
    q, v = MODEL.random_configuration(1), RNG.normal(size=6)
    found = f(q, v)
    for _ in range(20):
        q, v = step(MODEL, q, v)
    np.testing.assert_allclose(found[0], q, rtol=1e-12)
    np.testing.assert_allclose(found[1], v, rtol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "dop853", "rodas4"])
def test_a_control_with_a_loop(method):
    """Friction by Newton's method on its own equation, in a simulation."""

    def implicit(t, q, v, p):
        return -lw.loop(6, lambda i, f: f - (f + 0.1 * f**3 - v) / (1.0 + 0.3 * f * f), v)

    def closed(t, q, v, p):
        f = v
        for _ in range(6):
            f = f - (f + 0.1 * f**3 - v) / (1.0 + 0.3 * f * f)
        return -f

    start = MODEL.random_configuration(2), np.ones(6)
    a, b = (lw.simulate(MODEL, *start, duration=0.05, dt=0.01 if method == "rk4" else None, method=method, control=c)
            for c in (implicit, closed))  # fmt: skip
    np.testing.assert_allclose(a.q[-1], b.q[-1], rtol=0, atol=1e-9)


def test_symbols_and_plain_numbers_loop_in_python():
    casadi = pytest.importorskip("casadi")
    x = casadi.SX.sym("x")
    expression = lw.loop(3, lambda i, s: s * x + i, x)
    assert float(casadi.Function("f", [x], [expression])(2.0)) == ((2.0 * 2.0) * 2.0 + 1.0) * 2.0 + 2.0
    assert lw.loop(0, lambda i, s: 1 / 0, "untouched") == "untouched"
    with pytest.raises(lw.InputError, match="does not know its condition"):
        lw.while_loop(lambda s: casadi.SX.sym("a") * s < 3.0, lambda s: s + 1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lambda m, x, a: lw.loop(2.5, lambda i, s: s, x), "number of passes"),
        (lambda m, x, a: lw.loop(True, lambda i, s: s, x), "number of passes"),
        (lambda m, x, a: lw.loop(-1, lambda i, s: s, x), "number of passes"),
        (lambda m, x, a: lw.loop(3, lambda i, s: s[:2], x), "another shape"),
        (lambda m, x, a: lw.loop(3, lambda i, s: (s, s), x), "another shape"),
        (lambda m, x, a: lw.loop(3, lambda i, s: s, (x, x[0] > 0.0)), "not a number"),
        (lambda m, x, a: lw.loop(3, lambda i, s: s, (x, None)), "not a number"),
        (lambda m, x, a: lw.while_loop(lambda s: s[0] > 0, lambda s: s, x, limit=0), "limit"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(lw.InputError, match=message):
        compiled(text)


def test_a_compiled_function_with_a_loop_inside_another_text():
    inner = compiled()
    outer = compiled(lambda m, x, a: inner(x, a).sum() * a)
    np.testing.assert_allclose(outer(X, A), spiral_in_python(X, A[:, None]).sum(-1) * A, rtol=1e-12)
    _, rate = derivative(lambda s: list(inner(np.array(s[:3], object), s[3])), [*X[0], A[0]], [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose([float(x) for x in rate], inner.jacobian("x")(X[0], A[0])[:, 0], rtol=1e-12)


def over_items(x: Any) -> list[Any]:
    """Sums and rows of a loop over stretches of x and of constants, with a loop inside; and one that skips passes."""
    xs, starts, factors = list(x), [0, 2, 1, 4], [[0.0], [1.0], [4.0], [9.0]]

    def step(state: Any, factor: Any, pair: Any) -> tuple[list[Any], list[Any]]:
        halved = repeated(3, lambda z: [0.5 * z[0] + factor[0]], [pair[0]])[0]
        return [state[0] + factor[0] * pair[0] + halved, state[1] + pair[1]], [state[0], pair[0] * xs[0]]

    sums, rows = looped_over([Items.rows(factors), Items(xs, starts, 2)], step, [0.0, 1.0])
    positive, made = looped_over(
        [Items.rows(factors), Items(xs, starts, 2)],
        lambda total, factor, pair: (
            [total[0] + factor[0] * maximum(minimum(pair[0], pair[1]), 0.0)],
            [maximum(minimum(pair[0], pair[1]), 0.0)],
        ),
        [0.0],
        (lambda total, factor, pair: pair[0] > 0.0, lambda total, factor, pair: pair[1] > 0.0),
    )
    return [*sums, *positive, *(x for row in (*rows, *made) for x in row)]


def test_loops_over_items_are_those_of_python() -> None:
    """Stretches of inputs and constants, results of each pass, and passes that nobody asks for."""
    f = lw.compile(lambda _, x: np.array(over_items(x), object), MODEL, inputs={"x": (6,)})
    verify(f.program)
    x = np.random.default_rng(0).normal(size=(20, 6))
    x[5] = -np.abs(x[5])
    assert np.allclose(f(x), [over_items([float(a) for a in row]) for row in x], atol=1e-13)
    forward, reverse = (f.jacobian("x", mode=mode)(x) for mode in ("forward", "reverse"))
    assert np.allclose(forward, reverse, atol=1e-13)
    small = 1e-6 * np.eye(6)[:, None]
    differences = (f(x + small) - f(x - small)) / 2e-6
    assert np.allclose(np.moveaxis(forward, -1, 0), differences, atol=1e-8)


def test_loops_whose_first_passes_are_asked_for_end_after_them() -> None:
    """Of thirty passes each state asks for as many as its input says: sums, and what those passes make."""

    def text(_: Any, x: Any) -> Any:
        numbers = Items.rows([[float(k)] for k in range(30)])
        total, made = looped_over(
            [numbers],
            lambda now, k: (
                [now[0] + where(k[0] < x[0] - 0.5, k[0] * x[1], 0.0)],
                [where(k[0] < x[0] - 0.5, k[0] + x[1], -1.0)],
            ),
            [0.0],
            (lambda now, k: k[0] < x[0] - 0.5,),
            first_ones=True,
        )
        return np.array([*total, *(where(float(k) < x[0] - 0.5, y, 0.0) for k, (y,) in enumerate(made))], object)

    f = lw.compile(text, MODEL, inputs={"x": (2,)})
    verify(f.program)
    counts = np.array([0, 1, 8, 9, 3, 16, 17, 30, 25, 2, 0, 5])
    x = np.stack([counts, np.linspace(1.0, 2.0, len(counts))], axis=1)
    for given in (x, x[:1], x[4:5], x[::-1].copy()):
        for (count, factor), (total, *made) in zip(given, f(given), strict=True):
            asked = np.arange(30) < count
            assert np.isclose(total, (np.arange(30) * asked).sum() * factor)
            assert np.allclose(made, np.where(asked, np.arange(30) + factor, 0.0))
    forward, reverse = (f.jacobian("x", mode=mode)(x[1:]) for mode in ("forward", "reverse"))
    assert np.allclose(forward, reverse, atol=1e-13)
