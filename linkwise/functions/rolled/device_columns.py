"""Matrices of many links on a GPU: state by state, the unit vectors of a state as a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linkwise.targets.cuda.launching import Launched
from linkwise.targets.cuda.runtime import cupy
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.trace.block import ArraySpec

if TYPE_CHECKING:
    from linkwise.functions.rolled.columns import ColumnsFunction


@dataclass(frozen=True)
class Arrays:
    """Arrays that a function takes and gives."""

    name: str
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]


class ColumnsProgram(Launched[Arrays]):
    """A function of columns for GPUs; is launched as a program is.

    Args:
        function: whose columns they are.
        dtype: float64 or float32.
    """

    takes_addresses = False

    def __init__(self, function: ColumnsFunction, dtype: Any) -> None:
        inputs = tuple(ArraySpec(name, shape) for name, shape in function.inputs)
        super().__init__(Arrays(function.name, inputs, tuple(function.results())), dtype)
        self.function = function

    def in_place(self, kinds: tuple[ArrayOrder, ...]) -> bool:
        """No: a state is read once for each of its columns."""
        return False

    def launch(
        self, arrays: Sequence[Any], kinds: tuple[ArrayOrder, ...], count: int, steps: int | None = None
    ) -> None:
        """As :meth:`DeviceProgram.launch`."""
        specs = (*self.program.inputs, *self.program.outputs)
        cut = len(self.program.inputs)
        for k in range(count):
            own = [array if kind == "one" else array[k] for array, kind in zip(arrays, kinds, strict=True)]
            state = [x.reshape(spec.shape) for x, spec in zip(own[:cut], specs, strict=False)]
            into = [x if x.flags.c_contiguous else cupy().empty(x.shape, x.dtype) for x in own[cut:]]
            shaped = [x.reshape(spec.shape) for x, spec in zip(into, specs[cut:], strict=True)]
            self.function.column_by_column(state, shaped, None, cupy())
            for there, made in zip(own[cut:], into, strict=True):
                if there is not made:
                    there[...] = made
