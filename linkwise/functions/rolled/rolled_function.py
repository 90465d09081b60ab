"""Functions of large mechanisms: rolled sweeps behind the same call as any compiled function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from linkwise import targets
from linkwise.array_types import Precision
from linkwise.errors import InputError
from linkwise.functions.call_arrays import SymbolBatch, results_like
from linkwise.functions.function import CompiledFunction
from linkwise.memoized import cached_property
from linkwise.spatial.dual import Dual, parts_of_level
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.targets.device import Device
from linkwise.trace.block import Block
from linkwise.trace.calls import CallingTracer
from linkwise.trace.program import Program
from linkwise.trace.tracer import Traced


class RolledMaker(Protocol):
    """Makes the program with loops, under a name."""

    def __call__(self, name: str, far: bool = False) -> Program:
        """``far``: sweeps are joined as :func:`linkwise.functions.rolled.joined_loops.joined` says."""


class ManyLinksFunction(CompiledFunction):
    """A function of a large mechanism; what it does with a batch of numbers is the subclass's."""

    def _on_symbols(self, batch: SymbolBatch, out: object) -> Any:
        tracer = _calling_tracer(batch) if out is None else None
        return super()._on_symbols(batch, out) if tracer is None else self._called(tracer, batch.one_state())

    def _called(self, tracer: CallingTracer, state: list[list[Scalar]]) -> Any:
        """The result on the scalars of a trace that can call programs with loops."""
        levels = {x.level for values in state for x in values if isinstance(x, Dual)}
        if not levels:
            return self._call_in(tracer, state)
        level = max(levels)
        split = [parts_of_level(values, level) for values in state]
        moving = {n for (n, _), (_, d) in zip(self.inputs, split, strict=True) if not all(map(is_zero, d))}
        value = self._called(tracer, [values for values, _ in split])
        if not moving:
            return value
        names = tuple(n for n, _ in self.inputs if n in moving)
        directions = [d for (n, _), (_, d) in zip(self.inputs, split, strict=True) if n in moving]
        tangent = self.along(names)._called(tracer, [*(values for values, _ in split), *directions])
        dual = [Dual(x, d, level) for x, d in zip(np.ravel(value), np.ravel(tangent), strict=True)]
        return results_like(np.shape(value), dual)

    def _built(self, device: Device, dtype: Precision, few_states: bool = False) -> Any:
        """The kernel on a device that has loops."""
        raise InputError(
            f"{self.name} of a large mechanism runs on the CPU",
            got=f"arrays on {device.name}",
            allowed="NumPy arrays",
            do='copy them to the host, or use model.with_sweeps("unrolled")',
        )

    @abstractmethod
    def along(self, names: tuple[str, ...]) -> ManyLinksFunction:
        """The change of the function: takes what it takes, then the rates of the inputs of these names."""

    @abstractmethod
    def _call_in(self, tracer: CallingTracer, state: list[list[Scalar]]) -> Any:
        """The result on traced scalars and constants."""


class RolledFunction(ManyLinksFunction):
    """A function whose text is made of sweeps, run as loops over the links.

    Args:
        arguments: those of every compiled function; the text is for symbols.
        rolling: makes the program with loops.
        along: makes the function of its change with the inputs of some names.
        result: the named tuple that is returned, if it is not one array.
    """

    def __init__(
        self,
        *arguments: Any,
        rolling: RolledMaker,
        along: Callable[[tuple[str, ...]], RolledFunction] | None = None,
        result: type[Any] | None = None,
    ) -> None:
        super().__init__(*arguments)
        self._rolling, self._along, self._result = rolling, along, result
        self._changes: dict[tuple[str, ...], RolledFunction] = {}

    @cached_property
    def rolled_program(self) -> Program:
        """The program with loops."""
        return self._rolling(self.name)

    @cached_property
    def _joined_far(self) -> Program:
        return self._rolling(self.name, far=True)

    def rolled_for(self, target: targets.Target) -> Program:
        """The program with loops as a target runs it best."""
        return self._joined_far if target.prefers_few_loops else self.rolled_program

    def along(self, names: tuple[str, ...]) -> RolledFunction:
        """With dual numbers in each link's part."""
        if self._along is None:
            raise InputError(
                f"{self.name} of a large mechanism has no derivative along {', '.join(names)} here",
                do='use model.with_sweeps("unrolled")',
            )
        if names not in self._changes:
            self._changes[names] = self._along(names)
        return self._changes[names]

    def _call_in(self, tracer: CallingTracer, state: list[list[Scalar]]) -> Any:
        return results_like(self.rolled_program.outputs[0].shape, tracer.call(self.rolled_program, state)[0])

    @property
    def result_type(self) -> type[Any] | None:
        """The kind of named tuple that is returned; None for a single array."""
        return self._result

    def _built(self, device: Device, dtype: Precision, few_states: bool = False) -> Any:
        if not device.target.loops:
            return super()._built(device, dtype)
        return CompiledFunction._built(self, device, dtype, few_states)

    def program_for(self, target: targets.Target) -> Block | Program:
        """The program with loops where the target has them, else the unrolled one."""
        return self.rolled_for(target) if target.loops else self.program


def _calling_tracer(batch: SymbolBatch) -> CallingTracer | None:
    """The tracer of one state's scalars, if its trace can call programs with loops."""
    if batch.shape:
        return None
    for array in batch.arrays:
        for x in np.ravel(array):
            while isinstance(x, Dual):
                x = x.value
            if isinstance(x, Traced):
                tracer = x.tracer
                return tracer if isinstance(tracer, CallingTracer) and tracer.large_models else None
    return None
