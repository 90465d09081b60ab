"""Linearised dynamics of many links: the O(n) perturbation, with unit changes in the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.linearized_forward import LinearizedForward
from linkwise.algorithms.linearized_inverse import LinearizedInverse
from linkwise.arrays import Batch
from linkwise.compile import CompiledFunction
from linkwise.rolled.many_links import CombinedFunction
from linkwise.tracing.program import ArraySpec

_COLUMNS_BYTES = 1 << 25  # columns are taken some at a time, so that their arrays stay this small


class _Perturbing(CombinedFunction):
    """A function through small changes; external forces are its last input, if there are any."""

    def _own(self, name: str) -> CompiledFunction:
        return self._function(name, *(n for n, _ in self.inputs if n == "f_ext"))


class PerturbedForward(_Perturbing):
    """``perturb_forward``: δv̇ = 𝓜⁻¹(δτ - A_D δv - B_D δq). O(n)."""

    def _evaluate(self, batch: Batch, out: Any, threads: int | None) -> Any:
        q, v, tau, dq, dv, dtau, *forces = batch.arrays
        vdot = self._own("forward_dynamics").general(q, v, tau, *forces, threads=threads)
        moved = self._own("perturb_inverse").general(q, v, vdot, dq, dv, np.zeros_like(vdot), *forces, threads=threads)
        return self._function("mass_solve").general(q, dtau - moved, out=out, threads=threads)


class LinearizedColumns(_Perturbing):
    """``linearize_inverse`` or ``linearize_forward``, column by column. O(n²), memory O(n) beside the result."""

    def _evaluate(self, batch: Batch, out: Any, threads: int | None) -> Any:
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
        into[0][...] = (self._own("forward_dynamics") if forward else self._own("inverse_dynamics")).general(
            q, v, x, *forces
        )
        vdot = into[0] if forward else x
        zero = np.zeros(self._size, q.dtype)
        for which, matrix in enumerate(into[1:]):
            for start, unit in self._units(q.dtype):
                columns = unit
                if which < 2 or not forward:
                    changes = [unit if which == k else zero for k in range(3)]
                    columns = self._own("perturb_inverse").general(q, v, vdot, *changes, *forces, threads=threads)
                if forward:
                    columns = self._function("mass_solve").general(
                        q, columns if which == 2 else -columns, threads=threads
                    )
                matrix[:, start : start + len(unit)] = columns.T

    def _units(self, dtype: Any) -> Any:
        """Unit vectors, some at a time, and the number of the first."""
        step = max(16, _COLUMNS_BYTES // (8 * self._size))
        for start in range(0, self._size, step):
            stop = min(self._size, start + step)
            unit = np.zeros((stop - start, self._size), dtype)
            unit[np.arange(stop - start), np.arange(start, stop)] = 1.0
            yield start, unit
