"""Linearised dynamics of many links: the O(n) perturbation, with unit changes in the lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.algorithms.linearized_inverse import LinearizedInverse
from linkwise.arrays import Batch
from linkwise.compile import CompiledFunction
from linkwise.tracing.program import ArraySpec

Function = Callable[[str], CompiledFunction]  # one of the model's own functions by name
_COLUMNS_BYTES = 1 << 25  # columns are taken some at a time, so that their arrays stay this small


class LinearizedColumns(CompiledFunction):
    """``linearize_inverse`` or ``linearize_forward``, column by column. O(n²), memory O(n) beside the result.

    Args:
        name: which of the two.
        text: over any scalar, for symbols.
        inputs: name and core shape of each input; external forces are not among them.
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
        """As for any function of many links."""
        return

    def general(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate for one state or a batch."""
        batch = Batch(self.name, self.inputs, arrays)
        if batch.is_symbolic:
            return batch.each_state(self.text, self._symbolic_result)
        n = self._size
        kind: Any = LinearizedInverse if self.name == "linearize_inverse" else LinearizedForward
        matrix = (n, n)
        shapes = [(n,), matrix, matrix, matrix]
        results = batch.outputs([ArraySpec(f, s) for f, s in zip(kind._fields, shapes, strict=True)], out)
        flat = [array.reshape(batch.size, *s) for (array, _), s in zip(results, shapes, strict=True)]
        for i, state in enumerate(zip(*batch.flat_inputs(), strict=True)):
            one = self._inverse if kind is LinearizedInverse else self._forward
            one(state, [array[i] for array in flat], threads)
        return kind._make(batch.finish(results, out))

    def _inverse(self, state: Sequence[Any], into: list[Any], threads: int | None) -> None:
        """τ, and its change for each unit change of q, v and v̇."""
        into[0][...] = self._function("inverse_dynamics").general(*state)
        perturb = self._function("perturb_inverse")
        zero = np.zeros(self._size, state[0].dtype)
        for which, matrix in enumerate(into[1:]):
            for start, unit in self._units(state[0].dtype):
                changes = [unit if which == k else zero for k in range(3)]
                columns = perturb.general(*state, *changes, threads=threads)
                matrix[:, start : start + len(unit)] = columns.T

    def _forward(self, state: Sequence[Any], into: list[Any], threads: int | None) -> None:
        """v̇, and ∂v̇ = -𝓜⁻¹ ∂τ at that v̇."""
        q, v, tau = state
        vdot = into[0]
        vdot[...] = self._function("forward_dynamics").general(q, v, tau)
        perturb, solve = self._function("perturb_inverse"), self._function("mass_solve")
        zero = np.zeros(self._size, q.dtype)
        for which, matrix in enumerate(into[1:]):
            for start, unit in self._units(q.dtype):
                if which < 2:
                    changes = [unit if which == k else zero for k in range(3)]
                    unit = -perturb.general(q, v, vdot, *changes, threads=threads)
                matrix[:, start : start + len(unit)] = solve.general(q, unit, threads=threads).T

    def _units(self, dtype: Any) -> Any:
        """Unit vectors, some at a time, and the number of the first."""
        step = max(16, _COLUMNS_BYTES // (8 * self._size))
        for start in range(0, self._size, step):
            stop = min(self._size, start + step)
            unit = np.zeros((stop - start, self._size), dtype)
            unit[np.arange(stop - start), np.arange(start, stop)] = 1.0
            yield start, unit
