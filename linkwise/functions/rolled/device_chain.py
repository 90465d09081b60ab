"""One long chain on a GPU: segments as states of a batch, a thread each, and the cuts joined pair by pair.

Launched one after the other on one stream: some thirty kernels for a chain of 100 000 links, each of which takes
microseconds, where the sweep from link to link would leave all threads but one idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.functions.rolled.pairs import PairwiseForwardDynamics, step
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property, once
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.device import CudaDevice
from linkwise.targets.cuda.launching import DeviceProgram, Launched
from linkwise.targets.cuda.runtime import cupy
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.trace.block import Block
from linkwise.trace.program import Program

SEGMENTS = 2048
"""How many there are, about. More would be shorter, but one level of joints more; and on segments of few links rounding
weighs more: at 100 000 links, 4000 of them cost two digits at one of the cuts."""

FEW = 512
"""States, one after the other by segments, that take as long as all side by side from link to link."""

_FLOAT64 = np.dtype(np.float64)


def segment_length(links: int) -> int:
    """Links of a segment: near what SEGMENTS asks for, and such that few are left over."""
    near = max(1, round(links / SEGMENTS))
    return min(range(max(1, 3 * near // 4), 3 * near // 2 + 1), key=lambda n: (links % n, abs(n - near)))


class DeviceForwardDynamics(PairwiseForwardDynamics):
    """Forward dynamics of one float64 state of a long chain, on the current device and stream."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree, max(1, len(tree.links) // segment_length(len(tree.links))))
        self._programs: dict[tuple[str, int], DeviceProgram] = {}
        self._constants_there: dict[tuple[int, int], Array] = {}

    @property
    def library(self) -> Any:
        """CuPy."""
        return cupy()

    def _do(self, name: str, *arrays: Array) -> tuple[Array, ...]:
        function = step(name)
        block = function.program
        assert isinstance(block, Block)
        program = function.kernel(_FLOAT64, CudaDevice(arrays))
        given = [cupy().ascontiguousarray(array) for array in arrays]
        outputs = tuple(cupy().empty((len(given[0]), spec.size), _FLOAT64) for spec in block.outputs)
        program.launch([*given, *outputs], _rows(len(given) + len(outputs)), len(given[0]))
        return outputs

    def _each(
        self, what: str, states: Sequence[Array], ends: Sequence[Array], sizes: Sequence[int | None], threads: int
    ) -> list[Array]:
        cp = cupy()
        found: list[list[Array]] = [[] for _ in sizes]
        done = 0
        widths = (self.chain.nq, self.chain.nv, self.chain.nv)
        for first, length, count in self._groups:
            program = self._program(what, length)
            arrays = [self._there(first, length, count)]
            arrays += [self._part(x, w, first, length, count) for x, w in zip(states, widths, strict=False)]
            arrays += [cp.ascontiguousarray(end[done : done + count]) for end in ends]
            outs = [cp.empty((count, length * self.chain.nv if s is None else s), _FLOAT64) for s in sizes]
            program.launch([*arrays, *outs], _rows(len(arrays) + len(outs)), count)
            done += count
            for collected, out in zip(found, outs, strict=True):
                collected.append(out)
        together = [[o.reshape(-1) if s is None else o for o in f] for f, s in zip(found, sizes, strict=True)]
        return [parts[0] if len(parts) == 1 else cp.concatenate(parts) for parts in together]

    def _program(self, what: str, length: int) -> DeviceProgram:
        return once(
            self._programs,
            (what, length),
            lambda: DeviceProgram(self.chain.program(length, what, far=True), _FLOAT64),
        )

    def _there(self, first: int, length: int, count: int) -> Array:
        """The links' constants, on the current device."""
        key = (int(cupy().cuda.Device().id), first)
        lanes = layouts.LANES[0]
        return once(self._constants_there, key, lambda: cupy().asarray(self._constants(first, length, count, lanes)))


class LongChainProgram(Launched[Program]):
    """Forward dynamics of a long chain for GPUs: by segments for few states, from link to link for many.

    Args:
        tree: the chain.
        program: the loops from link to link.
        dtype: of the arrays; segments are computed in float64 in any case, which their joints need.
    """

    takes_addresses = False

    def __init__(self, tree: Tree, program: Program, dtype: Any) -> None:
        super().__init__(program, dtype)
        self._tree = tree
        self._from_link_to_link = DeviceProgram(program, dtype)

    @cached_property
    def _by_segments(self) -> DeviceForwardDynamics:
        return DeviceForwardDynamics(self._tree)

    def launch(
        self, arrays: Sequence[Any], kinds: tuple[ArrayOrder, ...], count: int, steps: int | None = None
    ) -> None:
        """As :meth:`DeviceProgram.launch`."""
        if count > FEW:
            self._from_link_to_link.launch(arrays, kinds, count)
            return
        for k in range(count):
            given = [array if kind == "one" else array[k] for array, kind in zip(arrays[:3], kinds, strict=False)]
            q, v, tau = (cupy().ascontiguousarray(x.reshape(-1)).astype(_FLOAT64, copy=False) for x in given)
            arrays[3][k] = self._by_segments(q, v, tau)


def _rows(count: int) -> tuple[ArrayOrder, ...]:
    return tuple[ArrayOrder, ...]("rows" for _ in range(count))
