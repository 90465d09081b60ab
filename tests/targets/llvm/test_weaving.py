"""Work for other blocks woven into a body: sines ahead of their block, whatever their arguments are."""

import numpy as np
import pytest

from linkwise.targets.llvm import binding, weaving
from linkwise.trace.block import ArraySpec, Block
from tests.targets.programs import kernel_on, mixture


def test_sines_of_inputs_and_of_shifted_inputs_are_split_off_but_none_of_products():
    nodes = (("input", 0, 0), ("const", 0.5), ("add", 0, 1), ("mul", 0, 0), ("sin", 0), ("cos", 2), ("sin", 3))
    program = Block("p", nodes, (ArraySpec("q", (1,)),), (ArraySpec("y", (3,)),), ((4, 5, 6),))
    ahead, rest = weaving.split(program)
    assert ahead.results == ((4, 5),)
    assert rest.nodes[4:6] == (("input", 1, 0), ("input", 1, 1))
    assert rest.nodes[6] == ("sin", 3)


def test_long_programs_keep_their_sines(monkeypatch):
    program = mixture()
    assert weaving.split(program)[0] is not None
    monkeypatch.setattr(weaving, "_SHORT", len(program.nodes))
    assert weaving.split(program) == (None, program)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sines_ahead_are_those_of_the_block_itself_to_the_bit(dtype, monkeypatch):
    """Also where an argument is too large or no number: in the first block, an inner one, the last and a short one."""
    monkeypatch.setattr(weaving, "_SPACING", 0)
    program = mixture()
    rng = np.random.default_rng(3)
    lanes = binding.host().lanes(dtype)
    count = 5 * lanes + 3
    inputs = [rng.uniform(-1, 1, (count, array.size)).astype(dtype) for array in program.inputs]
    for state, value in ((0, 3e5), (2 * lanes + 1, np.inf), (5 * lanes - 1, np.nan), (count - 1, -1e7)):
        inputs[0][state, 2] = value
    found = []
    for short in (10**9, 0):
        monkeypatch.setattr(weaving, "_SHORT", short)
        outputs = [np.zeros((count, array.size), dtype) for array in program.outputs]
        kernel_on(binding.host(), program, dtype).evaluate(inputs, outputs, count)
        found.append(outputs)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
