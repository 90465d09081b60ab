"""The home of NumPy arrays: routines as machine code of this processor, or interpreted where they ask Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from linkwise import targets
from linkwise.array_types import Array
from linkwise.targets import recycled
from linkwise.targets.home import Home, Runner
from linkwise.trace.block import Block
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.targets.llvm.kernel import BatchKernel
    from linkwise.targets.llvm.program_kernel import ProgramKernel


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
            self._kernel(code, count).evaluate(inputs, outputs, count, threads)

        Interpreter(self.program, self.dtype, evaluate).run(rows, tables, records, count)

    def _kernel(self, code: Block | Program, count: int) -> BatchKernel | ProgramKernel:
        kernel = self._kernels.get(id(code))
        if kernel is None:
            from linkwise.targets.llvm.kernel import BatchKernel
            from linkwise.targets.llvm.program_kernel import ProgramKernel

            if isinstance(code, Program):
                kernel = ProgramKernel.build(code, self.dtype, single=count < 3)
            else:
                kernel = BatchKernel.build(code, self.dtype)
            self._kernels[id(code)] = kernel
        return kernel


class Processor(Home):
    """The processor's own memory."""

    name = "the host"
    calls_python = True
    xp = np

    def __reduce__(self) -> str:
        """Name of the only one."""
        return "PROCESSOR"

    def runner(self, routine: Program, dtype: np.dtype[Any], single_states: bool) -> Runner:
        """Compiled; stepped through by the interpreter where Python functions are called."""
        if routine.is_compilable:
            from linkwise.targets.llvm.program_kernel import ProgramKernel

            return ProgramKernel.build(routine, dtype, single=single_states)
        return HostedProgram(routine, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Memory that was used before, where it is large."""
        return recycled.empty(shape, np.dtype(dtype))

    def seconds(self, operations: int, count: int) -> float:
        """Seconds by one core."""
        return 2e-9 + operations * count * 4e-10


PROCESSOR = Processor()


def home_of(arrays: Sequence[Any]) -> Home:
    """Home of these arrays: that of the first that is not on the host."""
    place = targets.place_of(arrays)
    return PROCESSOR if place is None else place.home(arrays)
