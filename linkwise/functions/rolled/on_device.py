"""Functions of many links on a GPU: one long chain by its segments, and matrices by their columns.

The segments of a chain are states of a batch, a thread each, and the cuts are joined pair by pair,
:mod:`linkwise.algorithms.segments` level by level: every step is a function of a batch, the pairs of a level. Launched
one after the other on one stream: some thirty kernels for a chain of 100 000 links, each of which takes microseconds,
where the sweep from link to link would leave all threads but one idle.

Matrices go state by state, the unit vectors of a state as a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.segments import (
    ANSWER,
    CUT,
    ENDS,
    MOVED,
    SEGMENT,
    TURNED,
    Cut,
    Segment,
    Turned,
    ends_of_both,
    joined,
    turn_beyond,
    turned_of,
    turned_together,
)
from linkwise.array_types import Array, Precision
from linkwise.dataclass import dataclass
from linkwise.functions.function import CompiledFunction
from linkwise.functions.rolled.chain_segments import ParallelForwardDynamics, inertia_rows
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property, once
from linkwise.spatial.flattening import flatten
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, plus
from linkwise.spatial.vectors import Vec
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.device import CudaDevice
from linkwise.targets.cuda.launched_blocks import Launched
from linkwise.targets.cuda.launched_programs import DeviceProgram
from linkwise.targets.cuda.runtime import cupy
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.functions.rolled.columns import ColumnsFunction


Flat = Sequence[Scalar]


class PairwiseForwardDynamics(ParallelForwardDynamics):
    """Forward dynamics of one state of a long chain, by segments that are joined two at a time."""

    def _omegas(self, turns: Array) -> Array:
        count = len(turns)
        levels = [self._filled_up(turns, _still())]
        while len(levels[-1]) > 1:
            levels.extend(self._do("turned_together", _paired(levels[-1])))
        omegas: Array = self.library.zeros((1, 3))
        for level in levels[-2::-1]:
            omegas = self._do("turn_beyond", _paired(level), omegas)[0].reshape(-1, 3)
        return omegas[:count]

    def _joined(self, answers: Array, moved: Array, omegas: Array) -> tuple[Array, Array]:
        count = len(answers)
        level = self._filled_up(self._do("segment", answers, moved)[0], Segment.of_no_links().numbers)
        cuts = []
        while len(level) > 1:
            pairs = _paired(level)
            level, cut = self._do("joined", pairs)
            cuts.append((pairs, cut))
        ends = self._at_the_ends
        for pairs, cut in reversed(cuts):
            ends = self._do("ends_of_both", pairs, cut, ends)[0].reshape(-1, ENDS)
        bases = self.library.concatenate([omegas, ends[:count, :6]], axis=1)
        return bases, self.library.ascontiguousarray(ends[:count, 6:])

    def _do(self, name: str, *arrays: Array) -> tuple[Array, ...]:
        """One of the steps, for all pairs of a level."""
        made = step(name)(*arrays)
        return made if isinstance(made, tuple) else (made,)

    @property
    def _at_the_ends(self) -> Array:
        """[α, F] of the whole chain: a base at rest in the field of gravity, nothing on the tip."""
        gravity = [-float(g) for g in self.chain.tree.gravity]
        ends: Array = self.library.asarray(np.array([[0.0] * 3 + gravity + [0.0] * 6]))
        return ends

    def _filled_up(self, rows: Array, neutral: Flat) -> Array:
        """With neutral rows up to a power of two."""
        missing = (1 << (len(rows) - 1).bit_length()) - len(rows)
        if not missing:
            return rows
        more = self.library.asarray(np.tile(np.array(neutral, float), (missing, 1)))
        filled: Array = self.library.concatenate([rows, more])
        return filled


def _paired(rows: Array) -> Array:
    """Two neighbouring rows as one."""
    return rows.reshape(len(rows) // 2, -1)


def _still() -> list[Scalar]:
    return flatten(Turned(Mat3.identity(), Vec.zero()))[0]


def _segment(answer: Flat, moved: Flat) -> list[Scalar]:
    """From what a sweep of a segment gives: see :class:`linkwise.algorithms.segments.SegmentAnswer`."""
    P = inertia_rows(answer[:21])
    Psi = [[answer[27 + 6 * j + i] for j in range(6)] for i in range(6)]
    own = Segment(P, answer[21:27], Psi, [], plus(answer[84:90], moved[3:9]))
    return [*Segment(P, own.z, Psi, P, own.c).numbers[:63], *answer[63:84], *own.c]


def _turned_together(pair: Flat) -> list[Scalar]:
    return flatten(turned_together(turned_of(pair[:TURNED]), turned_of(pair[TURNED:])))[0]


def _turn_beyond(pair: Flat, omega: Flat) -> list[Scalar]:
    return [*omega, *turn_beyond(turned_of(pair[:TURNED]), Vec.of(omega))]


def _joined(pair: Flat) -> tuple[list[Scalar], list[Scalar]]:
    both, cut = joined(Segment.of(pair[:SEGMENT]), Segment.of(pair[SEGMENT:]))
    return both.numbers, cut.numbers


def _ends_of_both(pair: Flat, cut: Flat, ends: Flat) -> list[Scalar]:
    inner, outer = ends_of_both(Segment.of(pair[:SEGMENT]), Cut.of(cut), ends[:6], ends[6:])
    return [*inner[0], *inner[1], *outer[0], *outer[1]]


_TEXTS: dict[str, tuple[Callable[..., object], dict[str, int]]] = {
    "segment": (_segment, {"answer": ANSWER, "moved": MOVED}),
    "turned_together": (_turned_together, {"pair": 2 * TURNED}),
    "turn_beyond": (_turn_beyond, {"pair": 2 * TURNED, "omega": 3}),
    "joined": (_joined, {"pair": 2 * SEGMENT}),
    "ends_of_both": (_ends_of_both, {"pair": 2 * SEGMENT, "cut": CUT, "ends": ENDS}),
}


@cache
def step(name: str) -> CompiledFunction:
    """A step of a level; the same for all chains."""
    text, inputs = _TEXTS[name]
    return CompiledFunction(f"chain_{name}", text, [(n, (size,)) for n, size in inputs.items()])


SEGMENTS = 2048
"""About so many segments. More would be shorter, but one level of joints more; and on segments of few links rounding
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
        self.library = cupy()
        self._programs: dict[tuple[str, int], DeviceProgram] = {}
        self._constants_there: dict[tuple[int, int], Array] = {}

    def _do(self, name: str, *arrays: Array) -> tuple[Array, ...]:
        function = step(name)
        block = function.program
        assert isinstance(block, Block)
        program = function.kernel(_FLOAT64, CudaDevice(arrays))
        given = [cupy().ascontiguousarray(array) for array in arrays]
        outputs = tuple(cupy().empty((len(given[0]), spec.size), _FLOAT64) for spec in block.outputs)
        program.launch([*given, *outputs], _rows(len(given) + len(outputs)), len(given[0]))
        return outputs

    def _run(
        self, what: str, group: tuple[int, int, int], rows: Sequence[Array], outs: Sequence[Array], threads: int
    ) -> None:
        _, length, count = group
        arrays = [self._there(*group), *rows, *outs]
        self._program(what, length).launch(arrays, _rows(len(arrays)), count)

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

    def __init__(self, tree: Tree, program: Program, dtype: Precision) -> None:
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

    def __init__(self, function: ColumnsFunction, dtype: Precision) -> None:
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
