"""sin, cos, exp, log and atan2 within two units in the last place, everywhere."""

import math

import mpmath
import numpy as np
import pytest

from linkwise.trace.block import ArraySpec, Block
from tests.targets.programs import binary, bits, evaluate, evaluate_on, lesser_machines, unary

RNG = np.random.default_rng(0)


def ulps(got: np.ndarray, arguments: list[np.ndarray], function, dtype=np.float64) -> float:
    """The largest error in units in the last place of the true value, against sixty digits."""
    worst = 0.0
    with mpmath.workdps(60):
        for g, *args in zip(got.tolist(), *(a.tolist() for a in arguments), strict=True):
            true = function(*map(mpmath.mpf, args))
            unit = float(np.spacing(dtype(abs(float(true)))))
            worst = max(worst, float(abs(mpmath.mpf(g) - true) / mpmath.mpf(unit)))
    return worst


def angles(limit=1e5, dtype=np.float64):
    near = np.arange(-40, 41) * (math.pi / 2)
    far = RNG.integers(-60000, 60000, 400) * (math.pi / 2)
    x = np.concatenate(
        [
            RNG.uniform(-4, 4, 600),
            RNG.uniform(-limit, limit, 600),
            near,
            np.nextafter(near, 1e9),
            far,
            np.nextafter(far, 0),
            10.0 ** RNG.uniform(-12, 5, 300),
            [limit, -limit, 1e-300, 5e-324, -5e-324],
        ]
    )
    x = x.astype(dtype)
    return x[np.abs(x) <= limit]


@pytest.mark.parametrize("op", ["sin", "cos"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sin_cos(op, dtype):
    x = angles(dtype=dtype)
    got = evaluate(unary(op), [x[:, None]], dtype)[0][:, 0]
    assert ulps(got, [x], getattr(mpmath, op), dtype) <= 2.0


@pytest.mark.parametrize("machine", lesser_machines()[1:], ids=lambda m: f"{m.vector_bytes}-{m.cpu}")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sin_without_fused_operations(machine, dtype):
    x = angles(dtype=dtype)
    got = evaluate_on(machine, unary("sin"), [x[:, None]], dtype)[0][:, 0]
    assert ulps(got, [x], mpmath.sin, dtype) <= 2.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sin_of_huge_and_special_arguments(dtype):
    """The rare lanes take the library's way and leave their neighbours alone."""
    big = np.array([1e5 + 1, -1e6, 1e10, 1e15, -1e22, 1e30])
    x = np.concatenate([big, [0.0, -0.0, math.inf, -math.inf, math.nan, 0.5]]).astype(dtype)
    y = evaluate(unary("sin"), [x[:, None]], dtype)[0][:, 0]
    assert ulps(y[:6], [x[:6]], mpmath.sin, dtype) <= 2.0
    assert bits(y[6:8]) == bits([0.0, -0.0])
    assert np.isnan(y[8:11]).all()
    assert y[11] == dtype(math.sin(0.5))


def test_sin_and_cos_share_one_evaluation():
    nodes = (("input", 0, 0), ("input", 0, 1), ("sin", 0), ("cos", 0), ("cos", 1), ("sin", 1))
    program = Block("sc", nodes, (ArraySpec("x", (2,)),), (ArraySpec("y", (4,)),), ((2, 3, 4, 5),))
    x = RNG.uniform(-3, 3, (30, 2))
    expected = np.column_stack([np.sin(x[:, 0]), np.cos(x[:, 0]), np.cos(x[:, 1]), np.sin(x[:, 1])])
    assert np.allclose(evaluate(program, [x])[0], expected, rtol=1e-15, atol=1e-16)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp(dtype):
    x = np.concatenate([RNG.uniform(-745, 709.7, 500), RNG.uniform(-1, 1, 300), 10.0 ** RNG.uniform(-20, 0, 100)])
    x = x.astype(dtype)
    if dtype is np.float32:
        x = x[x < 88.7]
    got = evaluate(unary("exp"), [x[:, None]], dtype)[0][:, 0]
    assert ulps(got, [x], mpmath.exp, dtype) <= 2.0
    special = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 710.0, 1e9, -746.0, -1e9], dtype)
    with np.errstate(over="ignore"):
        assert bits(evaluate(unary("exp"), [special[:, None]], dtype)) == bits(np.exp(special))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log(dtype):
    x = np.concatenate(
        [10.0 ** RNG.uniform(-300, 300, 400), RNG.uniform(0.5, 2, 400), 1 + RNG.uniform(-1e-6, 1e-6, 200)]
    )
    x = np.concatenate([x, 5e-324 * RNG.integers(1, 2**40, 50).astype(float)])
    x = x[x < np.finfo(dtype).max].astype(dtype)
    x = x[(x > 0) & np.isfinite(x)]
    got = evaluate(unary("log"), [x[:, None]], dtype)[0][:, 0]
    assert ulps(got, [x], mpmath.log, dtype) <= 2.0
    special = np.array([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, -1.0, -5e-324], dtype)
    with np.errstate(all="ignore"):
        assert bits(evaluate(unary("log"), [special[:, None]], dtype)) == bits(np.log(special))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_atan2(dtype):
    y = np.concatenate([RNG.normal(size=800), 10.0 ** RNG.uniform(-30, 30, 300), RNG.normal(size=100)])
    x = np.concatenate([RNG.normal(size=800), RNG.normal(size=300), 10.0 ** RNG.uniform(-30, 30, 100)])
    y, x = y.astype(dtype), x.astype(dtype)
    got = evaluate(binary("atan2"), [y[:, None], x[:, None]], dtype)[0][:, 0]
    assert ulps(got, [y, x], mpmath.atan2, dtype) <= 2.0
    special = np.array([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e38, -1e38, 5e-324], dtype)
    if dtype is np.float64:
        special = np.append(special, [1.7e308, -1.7e308])
    a, b = (v.ravel()[:, None] for v in np.meshgrid(special, special))
    got, expected = evaluate(binary("atan2"), [a, b], dtype)[0], np.arctan2(a, b)
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    fine = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got[fine]), np.signbit(expected[fine]))
    assert np.all(np.abs(got[fine] - expected[fine]) <= 2 * np.spacing(np.abs(expected[fine])))
