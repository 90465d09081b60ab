"""What functions of many links have in common that are not one rolled program."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from linkwise.arrays import Batch
from linkwise.compile import CompiledFunction

Function = Callable[..., CompiledFunction]  # one of the model's own functions, by its name and optional inputs


class ManyLinksFunction(CompiledFunction):
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

    @property
    def single(self) -> None:
        """Calls of one state go the general way: with many links the call itself does not count."""
        return

    def general(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate for one state or a batch."""
        batch = Batch(self.name, self.inputs, arrays)
        if batch.is_symbolic:
            return batch.each_state(self.text, self._symbolic_result)
        return self._evaluate(batch, out, threads)

    @abstractmethod
    def _evaluate(self, batch: Batch, out: Any, threads: int | None) -> Any:
        """The result for a batch of numbers."""
