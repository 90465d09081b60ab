"""NumPy's functions on traced scalars give what they give on numbers; those that cannot say what to write instead."""

from __future__ import annotations

import operator

import mpmath
import numpy as np
import pytest

import linkwise as lw
import linkwise.math as lm
from linkwise import samples
from linkwise.sim.plans import adaptive_methods, fixed_methods
from linkwise.spatial.dual import Dual, derivative, new_level
from linkwise.trace.interpreter import interpret

ARM = samples.planar_arm(3)
INPUTS = {"q": "q", "v": "v"}
A = np.random.default_rng(5).normal(size=(3, 3))
RNG = np.random.default_rng(0)
STATES = RNG.uniform(-0.95, 0.95, (20, 2, 3))


def agrees(fn, tol=1e-13, reference=None):
    """The compiled function on states, one by one and in a batch, against NumPy itself."""
    reference = reference or fn
    compiled = lw.compile(fn, ARM, inputs=INPUTS)
    batch = np.asarray(compiled(STATES[:, 0], STATES[:, 1]), float)
    for k, (q, v) in enumerate(STATES):
        expected = np.asarray(reference(ARM, q, v), float)
        np.testing.assert_allclose(batch[k], expected, rtol=tol, atol=tol)
        np.testing.assert_allclose(np.asarray(compiled(q, v), float), expected, rtol=tol, atol=tol)


UNARY = [
    "exp",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "sqrt",
    "abs",
    "fabs",
    "sign",
    "square",
    "expm1",
    "log1p",
    "exp2",
    "log",
    "log2",
    "log10",
    "reciprocal",
    "negative",
    "deg2rad",
    "rad2deg",
    "radians",
    "degrees",
]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    function = getattr(np, name)
    agrees(lambda m, q, v: [function(np.abs(q[0])), *function(np.abs(v)), *function(abs(0.5 * q))])


@pytest.mark.parametrize(
    "fn",
    [
        lambda m, q, v: np.clip(q, -0.3, 0.3),
        lambda m, q, v: q.clip(-0.3, v),
        lambda m, q, v: np.clip(q[0], None, 0.3),
        lambda m, q, v: np.maximum(q, v) + np.fmin(q[0], v[1]),
        lambda m, q, v: np.where(q > 0, q, v),
        lambda m, q, v: np.where(q[0] > 0.1, 1.0, v[0]),
        lambda m, q, v: np.where((q > 0) & (v < 0.2) | ~(q < v), q, v),
        lambda m, q, v: np.where(np.logical_or(q > 0, np.logical_not(v < 0)), q, v),
        lambda m, q, v: np.max(q) + q.min() + np.sum(v) + np.mean(q) + np.prod(q),
        lambda m, q, v: np.max(np.outer(q, v), axis=0),
        lambda m, q, v: np.linalg.solve(A + np.outer(q, v), q),
        lambda m, q, v: np.linalg.solve(np.array([[0.0, 1.0], [1.0, 0.0]]) * q[0] + np.diag(v[:2]) * 1e-3, q[:2]),
        lambda m, q, v: np.linalg.inv(A + np.outer(q, v)) @ A,
        lambda m, q, v: np.linalg.det(A + np.outer(q, v)),
        lambda m, q, v: np.linalg.norm(q) + np.linalg.norm(q, 1) + np.linalg.norm(v, np.inf),
        lambda m, q, v: np.linalg.norm(np.outer(q, v), axis=1),
        lambda m, q, v: np.linalg.cholesky(m.mass_matrix(q)),
        lambda m, q, v: np.linalg.solve(m.mass_matrix(q), v),
        lambda m, q, v: np.cross(q, v) + A @ q + q @ A + np.dot(q, v) + np.einsum("i,ij,j->", q, A, v),
        lambda m, q, v: np.cross([0.0, 0.0, -1.0], np.stack([q[0], 0.0, v[0]])) + np.cross(np.outer(q, v), A)[1],
        lambda m, q, v: np.cross(np.outer(q, v), A, axis=0)[2],
        lambda m, q, v: np.hypot(q, v) + np.arctan2(q, v) + np.heaviside(q, 0.5) + np.power(np.abs(q), 1.5),
        lambda m, q, v: 2.0 * q + np.float64(3.0) * v[0] + np.ones(3) * q[1] - np.arange(3) / (2.0 + v[2]),
        lambda m, q, v: np.concatenate([q, v])[::2],
        lambda m, q, v: np.stack([q[0], v[0]]) + np.array([q[1], 1.0]),
        lambda m, q, v: lm.where(q > 0, q, 0.0) + lm.sin(q) + lm.clip(q, -0.1, 0.1) + lm.sign(v) + lm.abs(q),
        lambda m, q, v: lm.minimum(q[0], v[0]) + lm.maximum(q, v) + lm.asin(q) + lm.acos(v) + lm.atan(q),
        lambda m, q, v: lm.sinh(q) + lm.cosh(v) + lw.linalg.solve(A, q) + lw.linalg.solve(A + np.outer(q, q), v),
        lambda m, q, v: lw.linalg.cholesky(m.mass_matrix(q)) @ v,
    ],
)  # fmt: skip
def test_functions_of_arrays(fn):
    agrees(fn, 1e-11)


SCALARS = {
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "abs": abs, "sign": mpmath.sign, "tanh": mpmath.tanh,
}  # fmt: skip
POINTS = [-0.999999, -0.5, -1e-3, -1e-9, 1e-12, 1e-5, 0.2, 0.49999, 0.50001, 0.75, 0.9999999]


@pytest.mark.parametrize("name", SCALARS)
def test_digits_and_derivatives(name):
    """To a few units of rounding of mpmath; derivatives by programs, by dual numbers, and by mpmath."""
    function, exact = getattr(lw.math, name), SCALARS[name]
    points = np.array(POINTS)
    compiled = lw.compile(lambda m, x: function(x), ARM, inputs={"x": "scalar"}, name=name)
    expected = np.array([float(exact(mpmath.mpf(float(x)))) for x in points])
    np.testing.assert_allclose(compiled(points), expected, rtol=1e-15 * 4, atol=0)
    np.testing.assert_allclose([float(function(x)) for x in POINTS], expected, rtol=1e-15 * 4)
    np.testing.assert_allclose([interpret(compiled.program, [[x]])[0][0] for x in POINTS], expected, rtol=1e-15 * 8)
    with mpmath.workdps(40):
        slopes = np.array([float(mpmath.diff(exact, mpmath.mpf(float(x)))) for x in points])
    np.testing.assert_allclose(compiled.gradient("x")(points), slopes, rtol=1e-9, atol=1e-12)
    duals = [derivative(lambda x: [function(x[0])], [x], [1.0])[1][0] for x in POINTS]
    np.testing.assert_allclose(np.array(duals, float), slopes, rtol=1e-9, atol=1e-12)


def test_derivatives_of_solve():
    compiled = lw.compile(lambda m, q, v: np.linalg.solve(A + np.outer(q, v), q), ARM, inputs=INPUTS)
    jacobian = compiled.jacobian("v")
    for q, v in STATES[:3]:
        step = 1e-6 * np.eye(3)
        columns = [(compiled(q, v + e) - compiled(q, v - e)) / 2e-6 for e in step]
        np.testing.assert_allclose(jacobian(q, v), np.array(columns).T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda m, q, v: np.interp(q[0], [0, 1], [0, 1]), "lw.Table"),
        (lambda m, q, v: np.floor(q[0]), "lw.Sampled"),
        (lambda m, q, v: np.any(q > 0), "conditions"),
        (lambda m, q, v: np.sort(q), "lw.math.minimum"),
        (lambda m, q, v: np.linalg.eigh(np.outer(q, q))[0], "np.eigh"),
        (lambda m, q, v: np.zeros(3).__iadd__(q), "np.zeros(n, object)"),
        (lambda m, q, v: np.where(q > 0), "both choices"),
        (lambda m, q, v: 1.0 if q[0] > 0 else 2.0, "lw.math.where"),
    ],
)
def test_what_cannot_be_says_what_to_write(fn, words):
    with pytest.raises(lw.InputError, match="cannot be compiled") as error:
        lw.compile(fn, ARM, inputs=INPUTS)
    assert words in str(error.value)


def test_controls_may_be_written_with_numpy():
    """Also where the integrator differentiates them by dual numbers."""
    limit = np.array([2.0, 1.0, 0.5])

    def control(t, q, v, p):
        push = 0.1 * np.clip(-5.0 * np.tanh(q) - v, -limit, limit) * np.exp(-np.abs(t))
        return push - 1e-4 * np.where(np.sin(t) >= 0.0, np.linalg.solve(ARM.mass_matrix(q), v), 0.0)

    results = [
        lw.simulate(ARM, [0.3, 0.2, 0.1], duration=0.5, method=method, control=control, rtol=1e-9)
        for method in ("dop853", "rodas4")
    ]
    assert not results[0].note
    np.testing.assert_allclose(results[0].q[-1], results[1].q[-1], atol=1e-6)


# Mistakes are told when lw.compile is called; inputs may be given by name.
def test_inputs_by_name():
    f = lw.compile(lambda m, q, v: q - 2.0 * v, ARM, inputs=INPUTS)
    q, v = STATES[0]
    for _ in range(3):
        np.testing.assert_array_equal(f(q=q, v=v), f(q, v))
        np.testing.assert_array_equal(f(v=v, q=q), f(q, v))
        np.testing.assert_array_equal(f(q, v=STATES[:, 1]), f(q, STATES[:, 1]))
    with pytest.raises(lw.errors.UnknownNameError, match="input of"):
        f(q=q, w=v)
    with pytest.raises(lw.InputError, match="twice"):
        f(q, q=q)
    with pytest.raises(lw.InputError, match="was not given v"):
        f(q=q)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda m, q: q, "cannot be called with these inputs"),
        (lambda m, q, v: q.undefined, "AttributeError"),
        (lambda m, q, v: m.mass_matrix(q, q, q, q), "TypeError"),
        (lambda m, q, v: None, "not a number"),
        (lambda m, q, v: [np.random.normal() * q[0]], "does more than compute"),  # noqa: NPY002
    ],
)
def test_mistakes_are_told_at_once(fn, words):
    with pytest.raises(lw.InputError, match=words):
        lw.compile(fn, ARM, inputs=INPUTS)


def test_what_cannot_be_drawn():
    pytest.importorskip("matplotlib")
    traj = lw.simulate(ARM, np.zeros(3), duration=0.01)
    with pytest.raises(lw.errors.UnknownNameError, match="quantity to draw"):
        traj.plot(what=("foo",))


OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip


@pytest.mark.parametrize("several", [np.array([0.5, 2.0]), [0.5, 2.0], (0.5, 2.0), np.array([[0.5], [2.0]])])
@pytest.mark.parametrize("apply", OPERATORS)
def test_a_scalar_and_several_numbers(apply, several):
    """In either order, for every kind of scalar: as a number and an array of NumPy's, also for lists and tuples."""
    numbers = np.asarray(several)
    first, second = np.asarray(apply(2.0, numbers), float), np.asarray(apply(numbers, 2.0), float)

    level = new_level()
    inner = Dual(2.0, 1.0, level)
    for dual in (inner, Dual(inner, 1.0, new_level()), Dual(2.0, inner, new_level())):
        for found, expected in ((apply(dual, several), first), (apply(several, dual), second)):
            assert isinstance(found, np.ndarray)
            values = [_value(x) for x in found.reshape(-1)]
            np.testing.assert_allclose(np.reshape(values, found.shape).astype(float), expected)

    def number(values):
        return np.where(values, 1.0, 0.0) if apply in OPERATORS[5:] else values

    def behind(of):
        return lambda m, q, v: number(apply(abs(q[0]) + 0.1, of))

    def before(of):
        return lambda m, q, v: number(apply(of, abs(q[0]) + 0.1))

    agrees(behind(several), reference=behind(numbers))
    agrees(before(several), reference=before(numbers))


def _value(x):
    while isinstance(x, Dual):
        x = x.value
    return x


def test_slopes_of_a_scalar_times_several_numbers():
    x = Dual(2.0, 1.0, new_level())
    for found, slopes in (
        (x * np.array([3.0, 4.0]), (3.0, 4.0)),
        ([3.0, 4.0] / x, (-0.75, -1.0)),
        (x ** np.array([2.0, 3.0]), (4.0, 12.0)),
        (np.array([3.0, 4.0]) - x, (-1.0, -1.0)),
    ):
        np.testing.assert_allclose([each.tangent for each in found], slopes)


def test_choices_between_vectors():
    agrees(lambda m, q, v: lw.math.where(q[0] > 0.0, [1.0, q[1]], np.array([3.0, 4.0])))
    agrees(lambda m, q, v: np.where((q[0] > 0.0) & np.array([True, False]), q[1] * np.ones(2), 0.0))
    agrees(lambda m, q, v: np.where(np.array([True, False]) | (q[0] > 0.0), 1.0, 0.0))


class _Pull(lw.Element):
    """A scalar times a vector, in both orders, on joints and on a body."""

    is_actuator = False

    def force(self, t, q, v, x, p):
        return (1.0 + lw.math.sin(q[0])) * np.array([0.1, 0.2, 0.0]) - np.array([0.2, 0.1, 0.3]) * v[0] + t * q

    def wrench(self, t, q, v, x, p):
        return {ARM.bodies[-1].name: q[0] * np.array([0.0, 0.0, 0.0, 1.0, 2.0, 0.0])}


@pytest.mark.parametrize("method", [m for m in (*fixed_methods(), *adaptive_methods()) if m != "moreau"])
def test_scalars_times_vectors_in_every_method(method):
    step = {"rtol": 1e-9} if method in adaptive_methods() else {"dt": 1e-4}
    found = lw.simulate(ARM, [0.3, 0.2, 0.1], duration=0.02, method=method, control=_Pull(), **step)
    exact = lw.simulate(ARM, [0.3, 0.2, 0.1], duration=0.02, control=_Pull(), rtol=1e-11)
    np.testing.assert_allclose(found.v[-1], exact.v[-1], atol=1e-2 if method == "euler" else 1e-5)
