"""A routine run with NumPy, statement by statement: the definition of what it does, and the way for Python functions.

Programs run as batch kernels; the loops, the tables and the records are NumPy. One pass costs some ten microseconds
for each statement, whatever the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.codegen import routine as routines
from linkwise.codegen.llvm.kernel import BatchKernel
from linkwise.codegen.llvm.rolled import RolledKernel
from linkwise.tracing.program import Program

Array = NDArray[Any]


class HostedRoutine:
    """A routine that the interpreter steps through."""

    def __init__(self, routine: routines.Program, dtype: DTypeLike = np.float64) -> None:
        self.routine = routine
        self.dtype = np.dtype(dtype)
        self._kernels: dict[int, BatchKernel | RolledKernel] = {}

    def run(
        self,
        rows: Mapping[str, Array],
        tables: Mapping[str, Array],
        records: Mapping[str, Array],
        count: int,
        threads: int = 1,
    ) -> None:
        """As :meth:`linkwise.codegen.llvm.routine.RoutineKernel.run`."""
        memory = {buffer.name: np.zeros((count, buffer.size), self.dtype) for buffer in self.routine.buffers}
        for buffer in self.routine.buffers:
            if buffer.load:
                memory[buffer.name][...] = rows[buffer.name]
        try:
            self._all(self.routine.statements, memory, tables, records, count, threads)
        finally:  # an interrupt between two statements leaves the last whole state
            for buffer in self.routine.buffers:
                if buffer.store:
                    rows[buffer.name][...] = memory[buffer.name]

    def _all(
        self,
        statements: Sequence[routines.Statement],
        memory: dict[str, Array],
        tables: Mapping[str, Array],
        records: Mapping[str, Array],
        count: int,
        threads: int,
    ) -> None:
        states = np.arange(count)
        for statement in statements:
            match statement:
                case routines.Call(program, inputs, outputs):
                    kernel = self._kernel(program, count)
                    kernel.run([memory[n] for n in inputs], [memory[n] for n in outputs], count, threads)
                case routines.Host(function, inputs, outputs):
                    results = function(*(memory[n] for n in inputs))
                    for name, result in zip(outputs, results, strict=True):
                        memory[name][...] = result
                case routines.Copy(source, target):
                    memory[target][...] = memory[source]
                case routines.Lookup(table, index, target):
                    memory[target][:, 0] = tables[table][memory[index][:, 0].astype(np.int64)]
                case routines.Seek(curve, at, target, offset):
                    rows = tables[curve]
                    part = memory[target][:, offset : offset + rows.shape[2]]
                    for k, now in enumerate(memory[at][:, 0]):
                        if not part[k, 0] <= now < part[k, 1]:
                            own = rows[k if len(rows) > 1 else 0]
                            part[k] = own[max(0, int(np.count_nonzero(own[:, 0] <= now)) - 1)]
                case routines.Read(series, index, target):
                    given = tables[series]
                    own = states if len(given) > 1 else np.zeros(count, int)
                    memory[target][...] = given[own, memory[index][:, 0].astype(np.int64)]
                case routines.Record(record, value, index, mask):
                    chosen = memory[mask][:, 0] != 0.0
                    records[record][states[chosen], memory[index][chosen, 0].astype(np.int64)] = memory[value][chosen]
                case routines.WhileAny(flag, body):
                    while (memory[flag] != 0.0).any():
                        self._all(body, memory, tables, records, count, threads)
                case routines.IfAny(flag, body):
                    if (memory[flag] != 0.0).any():
                        self._all(body, memory, tables, records, count, threads)
                case routines.Columns(unit, column, matrix, body):
                    columns = memory[matrix].reshape(count, memory[unit].shape[1], memory[column].shape[1])
                    for j in range(columns.shape[1]):
                        memory[unit][...] = 0.0
                        memory[unit][:, j] = 1.0
                        self._all(body, memory, tables, records, count, threads)
                        columns[:, j] = memory[column]
                case _:
                    assert_never(statement)

    def _kernel(self, program: Any, count: int) -> BatchKernel | RolledKernel:
        kernel = self._kernels.get(id(program))
        if kernel is None:
            if isinstance(program, Program):
                kernel = RolledKernel.build(program, self.dtype, single=count < 3)
            else:
                kernel = BatchKernel.build(program, self.dtype)
            self._kernels[id(program)] = kernel
        return kernel
