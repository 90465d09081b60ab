"""Linear systems by tiles, against NumPy."""

import numpy as np
import pytest

from linkwise.targets.llvm.bounds import checked_program
from linkwise.trace.interpreter import interpret
from linkwise.trace.tiles import TILE, TiledSystem
from linkwise.trace.verifier import verify


def system(n, seed, sparse):
    rng = np.random.default_rng(seed)
    pattern = rng.random((n, n)) < 0.02 if sparse else np.ones((n, n), bool)
    pattern[-3:] = True
    return pattern, rng.normal(size=(n, n)) * pattern, 3.0 * n, rng.normal(size=n)


@pytest.mark.parametrize("n", [1, TILE - 1, TILE, TILE + 1, 3 * TILE - 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_solutions(n, sparse):
    pattern, J, shift, right = system(n, n, sparse)
    made = TiledSystem(pattern, n + 1)
    verify(made.factor)
    verify(made.solve)
    matrix = [*J.T.ravel(), *range(n)]  # a column more, which is not part of it
    factors = interpret(made.factor, [matrix, [shift]])[0]
    x = interpret(made.solve, [factors, right.tolist()])[0]
    np.testing.assert_allclose(x, np.linalg.solve(shift * np.eye(n) - J, right), rtol=1e-12)


@pytest.mark.parametrize("single", [True, False])
def test_compiled(single):
    n, count = 2 * TILE + 3, 3
    pattern, J, shift, right = system(n, 0, sparse=True)
    made = TiledSystem(pattern, n)
    factor, solve = (checked_program(program, single=single) for program in (made.factor, made.solve))
    factors, x = np.empty((count, made.total)), np.empty((count, n))
    shifts = shift * np.arange(1.0, count + 1.0)
    factor.evaluate([np.tile(J.T.ravel(), (count, 1)), shifts[:, None].copy()], [factors], count)
    solve.evaluate([factors, np.tile(right, (count, 1))], [x], count)
    for k in range(count):
        np.testing.assert_allclose(x[k], np.linalg.solve(shifts[k] * np.eye(n) - J, right), rtol=1e-12)


def test_tiles_that_stay_zero_are_left_out():
    n = 40 * TILE
    pattern = np.eye(n, dtype=bool)
    made = TiledSystem(pattern, n)
    assert made.total == n * TILE
