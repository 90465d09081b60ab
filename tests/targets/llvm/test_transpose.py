"""Rows to lanes and back, for rows of any length."""

import numpy as np
import pytest

from linkwise.trace.block import ArraySpec, Block
from tests.targets.programs import kernel_on, lesser_machines


def _tripled(size: int) -> Block:
    nodes = [("input", 0, k) for k in range(size)]
    nodes += [("add", k, k) for k in range(size)] + [("add", size + k, k) for k in range(size)]
    rows = (ArraySpec("x", (size,)),), (ArraySpec("y", (size,)),)
    return Block("tripled", tuple(nodes), *rows, (tuple(range(2 * size, 3 * size)),))


@pytest.mark.parametrize("machine", lesser_machines(), ids=lambda m: f"{m.vector_bytes}-{m.cpu}")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 15])
def test_rows_of_any_length_also_in_place(machine, size):
    """Fewer columns than a vector has lanes, whole groups of them, and groups that overlap."""
    kernel = kernel_on(machine, _tripled(size))
    x = np.random.default_rng(size).integers(-99, 100, (21, size)).astype(float)
    around = np.full((23, size), np.nan)
    kernel.evaluate([x], [around[1:22]], 21)
    np.testing.assert_array_equal(around[1:22], 3 * x)
    assert np.isnan(around[[0, 22]]).all()  # nothing is written before the first row and behind the last
    expected = 3 * x
    kernel.evaluate([x], [x], 21)
    np.testing.assert_array_equal(x, expected)
