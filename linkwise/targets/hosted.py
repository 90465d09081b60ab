"""Programs that ask Python on the way: stepped through by the interpreter, their blocks compiled.

One pass costs some ten microseconds for each statement, whatever the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.targets.llvm.kernel import BatchKernel
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.block import Block
from linkwise.trace.interpreter import Interpreter
from linkwise.trace.program import Program

Array = NDArray[Any]


class HostedProgram:
    """A program that the interpreter steps through, with compiled blocks."""

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

        def evaluate(code: Block | Program, inputs: Sequence[Array], outputs: Sequence[Array], count: int) -> None:
            self._kernel(code, count).evaluate(inputs, outputs, count, threads)

        Interpreter(self.program, self.dtype, evaluate).run(rows, tables, records, count)

    def _kernel(self, code: Block | Program, count: int) -> BatchKernel | ProgramKernel:
        kernel = self._kernels.get(id(code))
        if kernel is None:
            if isinstance(code, Program):
                kernel = ProgramKernel.build(code, self.dtype, single=count < 3)
            else:
                kernel = BatchKernel.build(code, self.dtype)
            self._kernels[id(code)] = kernel
        return kernel
