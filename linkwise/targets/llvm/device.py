"""The processor as a device: NumPy arrays, machine code by LLVM, and the interpreter where programs ask Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from linkwise import targets
from linkwise.array_types import Array
from linkwise.targets import recycled
from linkwise.targets.batch import HostBatch, Inputs, check_steps
from linkwise.targets.device import Callee, Device
from linkwise.targets.llvm.target import TARGET
from linkwise.targets.steps import Repetition, Rollout
from linkwise.trace.block import Block
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.targets.llvm.kernel import BatchKernel
    from linkwise.targets.llvm.program_kernel import ProgramKernel

FEW = 4
"""States below which each is computed by itself, where a kernel knows the difference."""

_AT_ONCE = 0.1  # s for which machine code runs before Python may look at an interrupt
_COUNTED = 1 << 23  # steps that are counted exactly in any precision


class HostedProgram:
    """A program that asks Python on the way: the interpreter steps through it, its blocks are compiled.

    One pass costs some ten microseconds for each statement, whatever the batch.
    """

    def __init__(self, program: Program, dtype: DTypeLike = np.float64) -> None:
        self.program, self.dtype = program, np.dtype(dtype)
        self._kernels: dict[int, BatchKernel | ProgramKernel] = {}

    def run(
        self,
        rows: Mapping[str, Array],
        tables: Mapping[str, Array],
        records: Mapping[str, Array],
        count: int,
        threads: int = 1,
    ) -> None:
        """Run on the host; arguments as :meth:`linkwise.targets.llvm.program_kernel.ProgramKernel.run`."""
        from linkwise.trace.interpreter import Interpreter

        def evaluate(code: Block | Program, inputs: Sequence[Array], outputs: Sequence[Array], count: int) -> None:
            if id(code) not in self._kernels:
                self._kernels[id(code)] = _compiled(code, self.dtype, few_states=count < FEW - 1)
            self._kernels[id(code)].evaluate(inputs, outputs, count, threads)

        Interpreter(self.program, self.dtype, evaluate).run(rows, tables, records, count)


def _compiled(code: Block | Program, dtype: np.dtype[Any], few_states: bool) -> BatchKernel | ProgramKernel:
    from linkwise.targets.llvm.kernel import BatchKernel

    if isinstance(code, Block):
        return BatchKernel.build(code, dtype)
    from linkwise.targets.llvm.program_kernel import ProgramKernel

    return ProgramKernel.build(code, dtype, single=few_states)


_SAME: staticmethod[[object], Any] = staticmethod(np.asarray)


class Processor(Device):
    """The processor and its own memory."""

    name = "the host"
    target = TARGET
    calls_python = True
    xp = np
    empty = staticmethod(recycled.empty)
    to_device, to_host, as_callers_library = _SAME, _SAME, _SAME
    entered = staticmethod(nullcontext)

    def __reduce__(self) -> str:
        """Name of the only one."""
        return "PROCESSOR"

    def kernel(self, program: Block | Program, dtype: np.dtype[Any], few_states: bool = False) -> Any:
        """Compiled; stepped through by the interpreter where Python functions are called."""
        if isinstance(program, Program) and not program.is_compilable:
            return HostedProgram(program, dtype)
        return _compiled(program, dtype, few_states)

    def call(self, function: Callee, arrays: Sequence[Any], out: Any = None, threads: int = 1) -> list[Any]:
        """Evaluate on NumPy arrays."""
        if function.repeats is not None:
            return self._repeat(function, arrays, out, threads, *function.repeats)
        batch = HostBatch(function.name, function.inputs, arrays)
        kernel = function.kernel(batch.dtype, self, batch.size < FEW)
        results = batch.outputs(kernel.program.outputs, out)
        kernel.evaluate(batch.flat_inputs(), [flat for flat, _ in results], batch.size, threads)
        return batch.finish(results)

    def _repeat(
        self, function: Callee, arrays: Sequence[Any], out: Any, threads: int, steps: int, rollout: Rollout
    ) -> list[Any]:
        """Many steps, some tenths of a second at a time."""
        batch = StepsBatch(function.name, function.inputs, arrays, rollout, steps)
        kernel = function.kernel(batch.dtype, self, batch.size < FEW - 1)
        routine: Repetition = kernel.program
        record, outputs = rollout.record, routine.step.outputs
        kept = (steps,) if record else ()
        shapes = [(*kept, *batch.shape, *spec.shape) for spec in outputs]
        filled = batch.checked_out(shapes, out)
        results = [recycled.empty((*kept, batch.size, spec.size), batch.dtype) for spec in outputs]
        passed = {routine.given(k): row for k, row in enumerate(batch.rows) if k not in batch.series}
        made = {routine.made(k): result for k, result in enumerate(results)}
        # States first, as a routine sees them; in memory the steps are.
        read = {routine.given(k): np.swapaxes(values, 0, 1) for k, values in batch.series.items()}
        recorded = {name: np.swapaxes(values, 0, 1) for name, values in made.items()} if record else {}
        at_once = int(_AT_ONCE * threads / (self.alone + routine.operations * batch.size * self.together))
        at_once = min(max(1, at_once), _COUNTED)
        for start in range(0, steps, at_once) if batch.size else ():
            part = slice(start, min(steps, start + at_once))
            clock = np.tile(np.array([0, part.stop - part.start], batch.dtype), (batch.size, 1))
            kernel.run(
                {**passed, **({} if record else made), routine.CLOCK: clock},
                {name: values[:, part] for name, values in read.items()},
                {name: values[:, part] for name, values in recorded.items()},
                batch.size,
                threads,
            )
        shaped = [a.reshape(shape) for a, shape in zip(results, shapes, strict=True)]
        for target, value in zip(filled, shaped, strict=True):
            if target is not None:
                target[...] = value
        return [value if target is None else target for target, value in zip(filled, shaped, strict=True)]


class StepsBatch(HostBatch):
    """The arguments of many steps: sequences have one more axis, the steps, before all others.

    Its ``rows`` (count, size) are those of each input, those that are fed back being copies; ``series`` has (steps,
    count or 1, size) for each input that is a sequence.
    """

    def __init__(self, name: str, inputs: Inputs, arrays: Sequence[Any], rollout: Rollout, steps: int) -> None:
        for k in rollout.sequences:
            check_steps(name, *inputs[k], arrays[k].shape, steps)
        # One step's row stands for a sequence while shapes and precision are found.
        super().__init__(name, inputs, [a[0] if k in rollout.sequences else a for k, a in enumerate(arrays)])
        fed = {k for _, k in rollout.feedback}
        self.rows = [flat.copy() if k in fed else flat for k, flat in enumerate(self.flat_inputs())]
        self.series = {k: self._series(inputs[k][1], arrays[k], steps) for k in rollout.sequences}

    def _series(self, core: tuple[int, ...], array: Any, steps: int) -> Any:
        size = math.prod(core)
        if math.prod(array.shape[1 : array.ndim - len(core)]) == 1:  # the same for all states
            return np.ascontiguousarray(array, self.dtype).reshape(steps, 1, size)
        missing = len(self.shape) + len(core) + 1 - array.ndim
        array = array.reshape(steps, *(1,) * missing, *array.shape[1:])
        whole = np.broadcast_to(array, (steps, *self.shape, *core))
        return np.ascontiguousarray(whole, self.dtype).reshape(steps, self.size, size)


PROCESSOR = Processor()


def device_of(arrays: Sequence[Any]) -> Device:
    """The device that arrays are on: that of the first that is not on the host."""
    place = targets.place_of(arrays)
    return PROCESSOR if place is None else place.device(arrays)
