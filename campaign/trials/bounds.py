"""Checked builds of random programs: every load and store of the emitted LLVM within the memory it was given.

Kernels for batches in both precisions, for this machine and its poorer relatives, and kernels with loops; results are
compared with those of the ordinary builds, bit for bit.
"""

from __future__ import annotations

import numpy as np

from campaign.mechanisms import random_recipe
from campaign.surface import methods
from campaign.trial import Log, Trial, said
from linkwise.functions.rolled.rolled_function import RolledFunction
from linkwise.targets.llvm import bounds
from linkwise.targets.llvm.kernel import BatchKernel
from linkwise.targets.llvm.program_kernel import ProgramKernel
from tests.targets.checked_state import CheckedState
from tests.targets.programs import kernel_on, lesser_machines

COUNTS = (1, 3, 8, 9, 17, 40)


def check(seed: int, number: int) -> None:
    """One function of one mechanism, for a few numbers of states."""
    rng = np.random.default_rng([seed, number])
    recipe = random_recipe(rng, largest=4)
    model = recipe.build()
    method = methods()[str(rng.choice([name for name, m in methods().items() if m.is_in_catalogue]))]
    static = {"body": model.bodies[-1].name} if "body" in method.static else {}
    optional = [name for name in method.optional if rng.random() < 0.3]
    function = model.function(method.name, *optional, **static)
    dtype = np.dtype(rng.choice(["f8", "f8", "f4"]))
    if isinstance(function, RolledFunction):
        program, single = function.rolled_program, bool(rng.random() < 0.3)
        usual = ProgramKernel.build(program, dtype, single=single)
        watched = bounds.checked_program(program, dtype, single=single)
    else:
        program = function.program
        machines = lesser_machines()
        machine = machines[rng.integers(len(machines))]
        usual = BatchKernel.build(program, dtype) if machine is machines[0] else kernel_on(machine, program, dtype)
        watched = bounds.checked_batch(program, dtype, machine)
        if dtype == np.float64:
            _check_state(CheckedState(program, machine), usual, rng)
    for count in COUNTS:
        inputs = [rng.uniform(-1, 1, (count, a.size)).astype(dtype) for a in program.inputs]
        results = []
        for kernel in (usual, watched):
            outputs = [np.full((count, a.size), 7.0, dtype) for a in program.outputs]
            kernel.evaluate(inputs, outputs, count)
            results.append(outputs)
        for got, right in zip(results[1], results[0], strict=True):
            same = np.array_equal(got, right, equal_nan=True)
            assert same, f"{method.name} of {recipe}: with NaNs in the scratch memory the result is another"


def _check_state(watched: CheckedState, usual: BatchKernel, rng: np.random.Generator) -> None:
    """The arithmetic of one state against that of a batch: rounded in another order, so not to the last bit."""
    program = watched.program
    inputs = [rng.uniform(-1, 1, (1, a.size)) for a in program.inputs]
    results = [[np.full((1, a.size), 7.0) for a in program.outputs] for _ in range(2)]
    watched.run(inputs, results[0])
    usual.evaluate(inputs, results[1], 1)
    for got, right in zip(*results, strict=True):
        assert np.array_equal(np.isnan(got), np.isnan(right)), "one state is NaN where a batch is not"


class Bounds(Trial):
    """Every load and store."""

    name, unit, target, chunk = "bounds", "kernels with every load and store checked", 10**4, 200
    patience = 300.0

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Build twice, run twice."""
        for number in log.numbers(numbers):
            try:
                check(seed, number)
            except Exception as error:
                log.fail(number, said(error))
