"""Functions with loops, called by the builtin function that finds their kernel in its slot."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.functions.rolled.rolled_function import RolledFunction
from linkwise.targets.llvm import fastcall

pytestmark = pytest.mark.skipif(not fastcall.available(), reason="the interpreter's objects are laid out otherwise")

RNG = np.random.default_rng(7)


def _steps(_: Any, x: Any, v: Any) -> tuple[Any, Any]:
    """A pendulum's steps: as many as it takes to slow down, then ten more."""
    x, v = lw.while_loop(lambda y: y[1] > 0.5, lambda y: (y[0] + 0.1 * y[1], 0.9 * y[1]), (x, v))
    return lw.loop(10, lambda _, y: (y[0] + 0.01 * y[1], y[1] - 0.01 * lw.math.sin(y[0])), (x, v))


def _plain(x: float, v: float) -> tuple[float, float]:
    while v > 0.5:
        x, v = x + 0.1 * v, 0.9 * v
    for _ in range(10):
        x, v = x + 0.01 * v, v - 0.01 * np.sin(x)
    return x, v


@pytest.fixture
def function() -> lw.CompiledFunction:
    return lw.compile(_steps, samples.planar_arm(2), {"x": "scalar", "v": "scalar"}, wait=True)


def _is_builtin(function: lw.CompiledFunction) -> bool:
    return type(function.quick.func).__name__ == "builtin_function_or_method"


def test_one_state_goes_to_a_builtin(function: lw.CompiledFunction) -> None:
    for x, v in ((0.1, 2.0), (-0.4, 0.1), (1.0, 0.7)):
        found = function(np.array(x), np.array(v))
        np.testing.assert_allclose(found, _plain(x, v), rtol=1e-13)
        assert _is_builtin(function)
        assert [type(number) for number in found] == [np.float64, np.float64]
        general = function.general(np.array(x), np.array(v))
        assert [a.tobytes() for a in found] == [a.tobytes() for a in general]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_batches_are_those_of_the_general_way(function: lw.CompiledFunction, kind: type) -> None:
    x, v = RNG.normal(size=(2, 37)).astype(kind)
    function(x, v)  # compiles
    function(x, v)
    assert _is_builtin(function)
    for n in (1, 2, 7, 8, 37):
        found, general = function(x[:n], v[:n]), function.general(x[:n], v[:n])
        assert all((a == b).all() and a.dtype == kind for a, b in zip(found, general, strict=True))
    one = function(x[3], v[3])  # numbers of NumPy's, which are no arrays
    assert all(a == b[3] for a, b in zip(one, function(x, v), strict=True))


def test_whatever_else_goes_the_ordinary_way(function: lw.CompiledFunction) -> None:
    x, v = RNG.normal(size=(2, 40))
    function(np.array(0.1), np.array(0.2))
    expected = [np.array(a) for a in function(x[::2].copy(), v[::2].copy())]
    for given in ((x[::2], v[::2]), (list(x[::2]), list(v[::2]))):
        assert all((a == b).all() for a, b in zip(function(*given), expected, strict=True))
    assert all((a == b).all() for a, b in zip(function(x[::2].copy(), v[::2].copy(), threads=2), expected, strict=True))
    assert np.shape(function(x, np.array(0.0))[0]) == (40,)
    with pytest.raises(lw.InputError):
        function(x[:3], v[:4])


def test_results_are_put_where_they_shall_be() -> None:
    model = samples.planar_arm(3)
    function = lw.compile(lambda _, x: lw.loop(5, lambda _, y: 0.5 * y + 1.0, x), model, {"x": (3,)}, wait=True)
    x, out = RNG.normal(size=3), np.empty(3)
    assert function(x, out=out) is out
    assert (out == function(x)).all()
    assert function(x, out=out) is out
    mine = x.copy()
    assert (function(mine, out=mine) == out).all()  # the same memory
    assert (mine == out).all()


def test_from_many_threads(function: lw.CompiledFunction) -> None:
    states = RNG.normal(size=(200, 2))
    expected = [function(np.array(x), np.array(v)) for x, v in states]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda s: function(np.array(s[0]), np.array(s[1])), states))
    assert found == expected


def _chain(n: int) -> lw.Model:
    builder = lw.ModelBuilder("chain")
    placements = np.tile(np.eye(4), (n, 1, 1))
    placements[:, 2, 3] = 0.1
    axes = np.tile(np.eye(3), (n // 3 + 1, 1))[:n]
    parents = np.arange(n) - 1
    builder.add_bodies("b", parents, lw.Revolute, placements, np.ones(n), np.zeros((n, 3)), np.eye(3) * 0.01, axes=axes)
    return builder.build()


def test_rolled_mechanisms() -> None:
    model = _chain(90)
    q, v, tau = RNG.normal(size=(3, 90))
    function = model.function("forward_dynamics")
    assert isinstance(function, RolledFunction)
    found = [model.forward_dynamics(q, v, tau) for _ in range(3)]
    assert type(model.forward_dynamics).__name__ == "builtin_function_or_method"
    unrolled = model.with_sweeps("unrolled").forward_dynamics(q, v, tau)
    for each in found:
        np.testing.assert_allclose(each, unrolled, rtol=1e-8, atol=1e-8 * np.abs(unrolled).max())
    batch = np.broadcast_to(q, (9, 90)), np.broadcast_to(v, (9, 90)), np.broadcast_to(tau, (9, 90))
    many = model.forward_dynamics(*map(np.ascontiguousarray, batch))
    np.testing.assert_allclose(many, np.broadcast_to(found[0], (9, 90)), rtol=1e-8, atol=1e-8 * np.abs(unrolled).max())
    copied = pickle.loads(pickle.dumps(model.forward_dynamics))
    assert (copied(q, v, tau) == found[0]).all()
