"""Matrices of many links: the O(n) sweeps of a vector, with unit vectors in the lanes. O(n²), memory O(n) beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from linkwise.algorithms.catalogue import Columns
from linkwise.array_types import Array, Precision
from linkwise.errors import InputError
from linkwise.functions.rolled.rolled_function import ManyLinksFunction, RolledFunction
from linkwise.spatial.scalar import Scalar
from linkwise.targets.batch import HostBatch
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR
from linkwise.trace.block import ArraySpec
from linkwise.trace.calls import CallingTracer

_UNITS_BYTES = 1 << 25  # unit vectors are taken some at a time, so that their arrays stay this small


class ColumnsFunction(ManyLinksFunction):
    """A matrix (or several) from a function that multiplies it by a vector.

    Args:
        arguments: those of every compiled function.
        columns: which inputs of ``column`` are unit vectors in turn, and how results become a matrix.
        column: the product; takes the function's inputs and one vector for each matrix.
        value: what comes before the matrices, if anything: the function's own value.
    """

    def __init__(self, *arguments: Any, columns: Columns, column: RolledFunction, value: RolledFunction | None) -> None:
        super().__init__(*arguments)
        self._columns, self._column, self._value = columns, column, value
        self._shapes = [shape for _, shape in column.inputs[len(self.inputs) :]]

    def builtin(self, *_: object, **__: object) -> None:
        """None: a matrix of many links takes so long that the call itself does not count."""
        return

    def results(self) -> list[ArraySpec]:
        """The arrays of a result."""
        vector = self._column.rolled_program.outputs[0].shape
        specs = [] if self._value is None else [ArraySpec("value", self._value.rolled_program.outputs[0].shape)]
        for name, shape in zip(self._columns.along, self._shapes, strict=True):
            size = math.prod(shape)
            specs.append(ArraySpec(name, (size, *vector) if self._columns.rows else (*vector, size)))
        return specs

    @property
    def result_type(self) -> type[Any] | None:
        """The kind of named tuple that is returned; None for a single matrix."""
        return self._columns.result

    def _built(self, device: Device, dtype: Precision, few_states: bool = False) -> Any:
        if device.target.name != "cuda":
            return super()._built(device, dtype)
        from linkwise.functions.rolled.on_device import ColumnsProgram

        return ColumnsProgram(self, dtype)

    def _evaluate(self, device: Device, arrays: Sequence[Array], out: Any, threads: int) -> list[Array]:
        if device is not PROCESSOR:
            return super()._evaluate(device, arrays, out, threads)
        batch, specs = HostBatch(self.name, self.inputs, arrays), self.results()
        results = batch.outputs(specs, out)
        flat = [array.reshape(batch.size, *spec.shape) for (array, _), spec in zip(results, specs, strict=True)]
        for i, numbers in enumerate(zip(*batch.flat_inputs(), strict=True)):
            state = [x.reshape(shape) for x, (_, shape) in zip(numbers, self.inputs, strict=True)]
            self._one(state, [array[i] for array in flat], threads)
        return batch.finish(results)

    def along(self, names: tuple[str, ...]) -> ManyLinksFunction:
        """Raises InputError: columns are products along directions already, and have none of their own."""
        raise InputError(
            f"{self.name} of a large mechanism has no derivative along {', '.join(names)} here",
            do='multiply by vectors (mass_product, bias_force, …), or use model.with_sweeps("unrolled")',
        )

    def _call_in(self, tracer: CallingTracer, state: list[list[Scalar]]) -> Any:
        """Column by column, a call for each."""
        found = []
        if self._value is not None:
            value = self._value._call_in(tracer, state)
            found.append(value)
            if self._columns.value_replaces is not None:
                place = [n for n, _ in self.inputs].index(self._columns.value_replaces)
                state = [list(np.ravel(value)) if k == place else values for k, values in enumerate(state)]
        zeros = [[0.0] * math.prod(shape) for shape in self._shapes]
        for which, zero in enumerate(zeros):
            products = []
            for j in range(len(zero)):
                unit = [1.0 if i == j else 0.0 for i in range(len(zero))]
                vectors = [unit if which == k else other for k, other in enumerate(zeros)]
                products.append(self._column._call_in(tracer, [*state, *vectors]))
            found.append(np.stack(products, 0 if self._columns.rows else -1))
        return found[0] if self._columns.result is None else self._columns.result._make(found)

    def _one(self, state: list[Array], into: list[Array], threads: int) -> None:
        self.column_by_column(state, into, threads, np)

    def column_by_column(self, state: list[Array], into: list[Array], threads: int | None, library: ModuleType) -> None:
        """Fill the matrices of one state, which are arrays of a library."""
        if self._value is not None:
            into[0][...] = self._value.general(*state)
            if self._columns.value_replaces is not None:
                state = list(state)
                state[[n for n, _ in self.inputs].index(self._columns.value_replaces)] = into[0]
            into = into[1:]
        dtype = state[0].dtype
        zeros = [library.zeros(shape, dtype) for shape in self._shapes]
        for which, matrix in enumerate(into):
            for start, units in _units(self._shapes[which], dtype, library):
                vectors = [units if which == k else zero for k, zero in enumerate(zeros)]
                products = self._column.general(*state, *vectors, threads=threads)
                if self._columns.rows:
                    matrix[start : start + len(units)] = products
                else:
                    matrix[..., start : start + len(units)] = library.moveaxis(products, 0, -1)


def _units(shape: tuple[int, ...], dtype: Precision, library: ModuleType) -> Iterator[tuple[int, Array]]:
    """Unit vectors, some at a time, and the number of the first."""
    size = math.prod(shape)
    step = max(16, _UNITS_BYTES // (8 * max(size, 1)))
    for start in range(0, size, step):
        stop = min(size, start + step)
        units = library.zeros((stop - start, size), dtype)
        units[library.arange(stop - start), library.arange(start, stop)] = 1.0
        yield start, units.reshape(stop - start, *shape)
