"""Forward dynamics of one very long chain, on several threads or on a GPU.

A single state leaves the lanes of vectors and the other cores idle, since each link waits for the one before it. With
``threads`` a chain of many links is cut into segments that run side by side, see
:mod:`linkwise.functions.rolled.segments`; on a GPU it is so anyway, see :mod:`linkwise.functions.rolled.device_chain`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.catalogue import Trees
from linkwise.functions.rolled.function import RolledFunction
from linkwise.functions.rolled.segments import ParallelForwardDynamics, can_be_cut
from linkwise.memoized import once
from linkwise.targets.batch import HostBatch
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR

if TYPE_CHECKING:
    from linkwise.model.model import Model

LONG = 10_000
"""Links from which segments are worth their joints: below, the sweep from link to link is the faster one."""

SEGMENT = 400
"""Links in one segment: few enough for their memory to stay in the cache of a core."""


class LongChainFunction(RolledFunction):
    """Forward dynamics of a long chain: by segments for one state where threads are offered, else as any other."""

    def __init__(self, trees: Trees, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._trees = trees
        self._cut: dict[int, ParallelForwardDynamics] = {}

    def _evaluate(self, device: Device, arrays: Sequence[Any], out: Any, threads: int) -> list[Any]:
        if threads > 1 and device is PROCESSOR:
            batch = HostBatch(self.name, self.inputs, arrays)
            if not batch.shape and batch.dtype == np.float64:
                results = batch.outputs(self.rolled_program.outputs, out)
                q, v, tau = (rows.reshape(-1) for rows in batch.flat_inputs())
                results[0][0].reshape(-1)[:] = self._segments(threads)(q, v, tau, threads)
                return batch.finish(results)
        return super()._evaluate(device, arrays, out, threads)

    def _built(self, device: Device, dtype: np.dtype[Any], few_states: bool = False) -> Any:
        if device.target.name != "cuda":
            return super()._built(device, dtype, few_states)
        from linkwise.functions.rolled.device_chain import LongChainProgram

        return LongChainProgram(self._trees.aligned, self.rolled_for(device.target), dtype)

    def _segments(self, threads: int) -> ParallelForwardDynamics:
        from linkwise.targets.llvm.binding import host

        chain = self._trees.aligned
        wave = host().lanes(np.float64) * threads  # segments that run at the same time
        count = wave * max(1, round(len(chain.links) / (wave * SEGMENT)))
        return once(self._cut, count, lambda: ParallelForwardDynamics(chain, count))


def function_type(model: Model, name: str, inputs: Sequence[tuple[str, Any]]) -> Callable[..., RolledFunction]:
    """How a function of a large model is made: forward dynamics of a chain that can be cut has a type of its own."""
    plain = name == "forward_dynamics" and [n for n, _ in inputs] == ["q", "v", "tau"]
    if plain and len(model.bodies) >= LONG and not model.closures and can_be_cut(model._trees.fast):
        return partial(LongChainFunction, model._trees)
    return RolledFunction
