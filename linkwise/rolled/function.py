"""Functions of large mechanisms: rolled sweeps behind the same call as any compiled function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.arrays import Batch
from linkwise.codegen.cuda.detect import on_device
from linkwise.compile import Chart, CompiledFunction, checked_threads
from linkwise.errors import InputError
from linkwise.once import cached_property
from linkwise.tracing.rolled_program import RolledProgram

Rolling = Callable[[str], RolledProgram]
"""Makes the program with loops, under a name."""


class ManyLinksFunction(CompiledFunction):
    """A function of a large mechanism; what it does with a batch of numbers is the subclass's."""

    @property
    def single(self) -> None:
        """Calls of one state go the general way: with many links the call itself does not count."""
        return

    def general(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate for one state or a batch."""
        if any(map(on_device, arrays)):
            raise InputError(
                f"{self.name} of a large mechanism runs on the CPU",
                got="arrays on a GPU",
                allowed="NumPy arrays",
                do='copy them to the host, or use model.with_sweeps("unrolled")',
            )
        batch = Batch(self.name, self.inputs, arrays)
        split = checked_threads(threads)
        if not batch.is_symbolic:
            return self._evaluate(batch, out, split)
        if out is not None:
            raise InputError(f"{self.name} fills out with numbers only", got="symbols", do="drop the out= argument")
        if batch.size:
            return batch.each_state(self.text, self._symbolic_result)
        nothing = self._evaluate(batch, None, split)  # no state tells the shape of a result: numbers do
        if isinstance(nothing, tuple):
            return type(nothing)._make(array.astype(object) for array in nothing)  # type: ignore[attr-defined]
        return nothing.astype(object)

    @abstractmethod
    def _evaluate(self, batch: Batch, out: Any, threads: int) -> Any:
        """The result for a batch of numbers."""


class RolledFunction(ManyLinksFunction):
    """A function whose text is made of sweeps, run as loops over the links.

    Args:
        name: of the function.
        text: over any scalar, for symbols.
        inputs: name and core shape of each input.
        doc: docstring.
        charts: tangent spaces of the inputs that are configurations.
        rolling: makes the program with loops.
    """

    def __init__(
        self,
        name: str,
        text: Callable[..., Any],
        inputs: Sequence[tuple[str, tuple[int, ...]]],
        doc: str,
        charts: Mapping[str, Chart] | None = None,
        *,
        rolling: Rolling,
    ) -> None:
        super().__init__(name, text, inputs, doc, charts)
        self._rolling = rolling

    @cached_property
    def rolled_program(self) -> RolledProgram:
        """The program with loops."""
        return self._rolling(self.name)

    def _rolled_kernel(self, dtype: np.dtype[Any], single: bool) -> Any:
        key: Any = (dtype, single)
        kernel = self._kernels.get(key)
        if kernel is None:
            from linkwise.codegen.rolled import RolledKernel

            kernel = self._kernels[key] = RolledKernel.build(self.rolled_program, dtype, single=single)
        return kernel

    def _evaluate(self, batch: Batch, out: Any, threads: int) -> Any:
        kernel = self._rolled_kernel(batch.dtype, single=batch.size < 4)
        results = batch.outputs(self.rolled_program.outputs, out)
        kernel.run(batch.flat_inputs(), [flat for flat, _ in results], batch.size, threads)
        return batch.finish(results, out)[0]

    def source(self, target: str = "llvm", dtype: Any = np.float64) -> str:
        """The generated code; "llvm" shows the loops, other targets are of the unrolled program."""
        if target != "llvm":
            return super().source(target, dtype)
        from linkwise.codegen.rolled import rolled_module
        from linkwise.codegen.target import host

        return rolled_module(self.rolled_program, host(), np.dtype(dtype).itemsize * 8, single=False)
