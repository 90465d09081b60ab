"""What functions of many links have in common: they run on the host, and a call costs little beside its work."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from linkwise.arrays import Batch
from linkwise.codegen.cuda.detect import on_device
from linkwise.compile import CompiledFunction
from linkwise.errors import InputError

Function = Callable[..., CompiledFunction]  # one of the model's own functions, by its name and optional inputs


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
        if not batch.is_symbolic:
            return self._evaluate(batch, out, threads)
        if out is not None:
            raise InputError(f"{self.name} fills out with numbers only", got="symbols", do="leave out= out")
        return batch.each_state(self.text, self._symbolic_result)

    @abstractmethod
    def _evaluate(self, batch: Batch, out: Any, threads: int | None) -> Any:
        """The result for a batch of numbers."""


class CombinedFunction(ManyLinksFunction):
    """A function made of others of the same model, evaluated through them.

    Args:
        name: of the function.
        text: over any scalar, for symbols.
        inputs: name and core shape of each input.
        doc: docstring.
        function: the model's functions.
        size: nv.
    """

    def __init__(
        self,
        name: str,
        text: Callable[..., Any],
        inputs: Sequence[tuple[str, tuple[int, ...]]],
        doc: str,
        *,
        function: Function,
        size: int,
    ) -> None:
        super().__init__(name, text, inputs, doc)
        self._function = function
        self._size = size
