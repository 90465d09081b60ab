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

Function = Callable[..., CompiledFunction]  # one of the model's own functions, by its name and optional inputs
_COLUMNS_BYTES = 1 << 25  # columns are taken some at a time, so that their arrays stay this small


class _OfManyLinks(CompiledFunction):
    """A function made of others of the same model.

    Args:
        name: of the function.
        text: over any scalar, for symbols.
        inputs: name and core shape of each input; external forces last, if there are any.
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
        optional = [n for n, _ in inputs if n == "f_ext"]
        self._inverse_dynamics = function("inverse_dynamics", *optional)
        self._forward_dynamics = function("forward_dynamics", *optional)
        self._perturb = function("perturb_inverse", *optional)
        self._solve = function("mass_solve")
        self._size = size

    @property
    def single(self) -> None:
        """As for any function of many links."""
        return


class PerturbedForward(_OfManyLinks):
    """``perturb_forward``: δv̇ = 𝓜⁻¹(δτ - A_D δv - B_D δq). O(n)."""

    def general(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate for one state or a batch."""
        batch = Batch(self.name, self.inputs, arrays)
        if batch.is_symbolic:
            return batch.each_state(self.text, self._symbolic_result)
        q, v, tau, dq, dv, dtau, *forces = batch.arrays
        vdot = self._forward_dynamics.general(q, v, tau, *forces, threads=threads)
        moved = self._perturb.general(q, v, vdot, dq, dv, np.zeros_like(vdot), *forces, threads=threads)
        return self._solve.general(q, dtau - moved, out=out, threads=threads)


class LinearizedColumns(_OfManyLinks):
    """``linearize_inverse`` or ``linearize_forward``, column by column. O(n²), memory O(n) beside the result."""

    def general(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate for one state or a batch."""
        batch = Batch(self.name, self.inputs, arrays)
        if batch.is_symbolic:
            return batch.each_state(self.text, self._symbolic_result)
        n = self._size
        forward = self.name == "linearize_forward"
        kind: Any = LinearizedForward if forward else LinearizedInverse
        shapes = [(n,), (n, n), (n, n), (n, n)]
        results = batch.outputs([ArraySpec(f, s) for f, s in zip(kind._fields, shapes, strict=True)], out)
        flat = [array.reshape(batch.size, *s) for (array, _), s in zip(results, shapes, strict=True)]
        for i, numbers in enumerate(zip(*batch.flat_inputs(), strict=True)):
            state = [x.reshape(shape) for x, (_, shape) in zip(numbers, self.inputs, strict=True)]
            self._one(state, [array[i] for array in flat], forward, threads)
        return kind._make(batch.finish(results, out))

    def _one(self, state: Sequence[Any], into: list[Any], forward: bool, threads: int | None) -> None:
        """τ and its change for each unit change of q, v and v̇; or v̇ and ∂v̇ = -𝓜⁻¹ ∂τ at that v̇, 𝓜⁻¹."""
        q, v, x, *forces = state
        into[0][...] = (self._forward_dynamics if forward else self._inverse_dynamics).general(q, v, x, *forces)
        vdot = into[0] if forward else x
        zero = np.zeros(self._size, q.dtype)
        for which, matrix in enumerate(into[1:]):
            for start, unit in self._units(q.dtype):
                columns = unit
                if which < 2 or not forward:
                    changes = [unit if which == k else zero for k in range(3)]
                    columns = self._perturb.general(q, v, vdot, *changes, *forces, threads=threads)
                if forward:
                    columns = self._solve.general(q, columns if which == 2 else -columns, threads=threads)
                matrix[:, start : start + len(unit)] = columns.T

    def _units(self, dtype: Any) -> Any:
        """Unit vectors, some at a time, and the number of the first."""
        step = max(16, _COLUMNS_BYTES // (8 * self._size))
        for start in range(0, self._size, step):
            stop = min(self._size, start + step)
            unit = np.zeros((stop - start, self._size), dtype)
            unit[np.arange(stop - start), np.arange(start, stop)] = 1.0
            yield start, unit
