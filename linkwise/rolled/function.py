"""Functions of large mechanisms: rolled sweeps behind the same call as any compiled function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.arrays import Batch
from linkwise.compile import checked_threads
from linkwise.rolled.kinds import GlobalInput
from linkwise.rolled.many_links import CombinedFunction, ManyLinksFunction
from linkwise.rolled.tree import RolledTree
from linkwise.tracing.program import ArraySpec
from linkwise.tracing.rolled_program import RolledProgram


class RolledFunction(ManyLinksFunction):
    """A function whose text is made of sweeps, run as loops over the links.

    Args:
        name: of the function.
        text: over any scalar, for symbols.
        inputs: name and core shape of each input.
        doc: docstring.
        starts: for each input, how it is divided among the links: "q", "v" or "body".
        rolled_text: takes a :class:`RolledTree` and a handle for each input.
        tree: makes the rolled tree.
    """

    def __init__(
        self,
        name: str,
        text: Callable[..., Any],
        inputs: Sequence[tuple[str, tuple[int, ...]]],
        doc: str,
        *,
        starts: Sequence[str],
        rolled_text: Callable[..., Any],
        tree: Callable[[], RolledTree],
    ) -> None:
        super().__init__(name, text, inputs, doc)
        self._starts = tuple(starts)
        self._rolled_text = rolled_text
        self._tree = tree

    @cached_property
    def rolled_program(self) -> RolledProgram:
        """The program with loops."""
        tree = self._tree()
        handles = [
            GlobalInput(name, ArraySpec(name, shape), start)
            for (name, shape), start in zip(self.inputs, self._starts, strict=True)
        ]
        return tree.finish(self.name, handles, {"out": self._rolled_text(tree, *handles)})

    def _rolled_kernel(self, dtype: np.dtype[Any], single: bool) -> Any:
        key: Any = (dtype, single)
        kernel = self._kernels.get(key)
        if kernel is None:
            from linkwise.codegen.rolled import RolledKernel

            kernel = self._kernels[key] = RolledKernel.build(self.rolled_program, dtype, single=single)
        return kernel

    def _evaluate(self, batch: Batch, out: Any, threads: int | None) -> Any:
        kernel = self._rolled_kernel(batch.dtype, single=batch.size < 4)
        results = batch.outputs(self.rolled_program.outputs, out)
        kernel.run(batch.flat_inputs(), [flat for flat, _ in results], batch.size, checked_threads(threads))
        return batch.finish(results, out)[0]

    def source(self, target: str = "llvm", dtype: Any = np.float64) -> str:
        """The generated code; "llvm" shows the loops, other targets are of the unrolled program."""
        if target != "llvm":
            return super().source(target, dtype)
        from linkwise.codegen.rolled import rolled_module
        from linkwise.codegen.target import host

        return rolled_module(self.rolled_program, host(), np.dtype(dtype).itemsize * 8, single=False)


class ColumnsFunction(CombinedFunction):
    """A symmetric matrix of many links, column by column: O(n) sweeps with the columns in the lanes.

    ``column`` names the function of (q, x) that gives the matrix times x.
    """

    def __init__(self, *arguments: Any, column: str, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._column = column

    def _evaluate(self, batch: Batch, out: Any, threads: int | None) -> Any:
        n = self._size
        results = batch.outputs([ArraySpec("out", (n, n))], out)
        flat = results[0][0].reshape(batch.size, n, n)
        (states,) = batch.flat_inputs()
        step = max(16, min(n, 4_000_000 // max(n, 1)))  # columns at a time: some tens of megabytes
        for state, matrix in zip(states, flat, strict=True):
            for start in range(0, n, step):
                stop = min(n, start + step)
                unit = np.zeros((stop - start, n), batch.dtype)
                unit[np.arange(stop - start), np.arange(start, stop)] = 1.0
                matrix[start:stop] = self._function(self._column).general(state, unit, threads=threads)
        return batch.finish(results, out)[0]
