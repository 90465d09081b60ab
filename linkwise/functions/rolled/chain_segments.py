"""One long chain on many lanes and threads: the segments of :mod:`linkwise.algorithms.segments` as states of a batch.

Every segment has the same number of links, so one rolled kernel runs them all, each lane with its own link constants.
What links the segments is a chain again, of 6×6 systems at the cuts, swept from the tip to the base and back.

A single state leaves the lanes of vectors and the other cores idle, since each link waits for the one before it. With
``threads`` a chain of many links is cut into segments that run side by side; on a GPU it is so anyway, see
:mod:`linkwise.functions.rolled.on_device`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.segments import (
    ANSWER,
    MOVED,
    TURNED,
    Cut,
    Segment,
    accelerated,
    answered,
    ends_of_both,
    joined,
    symmetric,
    turned,
    upper,
)
from linkwise.algorithms.sweeps import inward, outward, per_body
from linkwise.array_types import Array, Precision
from linkwise.dataclass import replace
from linkwise.functions.rolled.link_vectors import GlobalInput, part
from linkwise.functions.rolled.rolled_function import RolledFunction
from linkwise.functions.rolled.rolling import RolledTree
from linkwise.functions.rolled.symbolic_links import sorted_into_kinds
from linkwise.mechanism.layout import numbers_of
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property, once
from linkwise.spatial.flattening import flatten
from linkwise.spatial.matrices import Mat3, transposed, zeros
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar, plus
from linkwise.spatial.vectors import Force, Vec
from linkwise.targets.batch import HostBatch
from linkwise.targets.device import Device
from linkwise.targets.llvm.binding import host
from linkwise.targets.llvm.device import PROCESSOR
from linkwise.trace.block import ArraySpec
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.targets.llvm.program_kernel import ProgramKernel


_CONSTANTS = "in:constants"


class _SegmentTree(RolledTree):
    """The first links of a chain, with the constants of each link read from an input of the state."""

    def __init__(self, tree: Tree, length: int) -> None:
        super().__init__(tree)
        self.kinds = sorted_into_kinds(tree, _CONSTANTS)
        self.links = tree.links[:length]
        self.nq, self.nv = length * tree.links[0].joint.nq, length * tree.links[0].joint.nv
        self.kinds[0].members = list(range(length))
        self.constants_are_inputs = True


def can_be_cut(tree: Tree) -> bool:
    """Whether it is a serial chain whose links are all of one kind, none following another."""
    serial = bool((numbers_of(tree.links, "parent") == np.arange(len(tree.links)) - 1).all())
    return serial and not tree.has_mimics and not tree.has_modes and len(sorted_into_kinds(tree)) == 1


class Chain:
    """A serial chain of one kind of joint, ready to be cut; see :func:`can_be_cut`."""

    def __init__(self, tree: Tree) -> None:
        kinds = sorted_into_kinds(tree)
        self.tree = tree
        self.n = len(tree.links)
        self.rows: Array = np.ascontiguousarray(kinds[0].rows)
        self.nq, self.nv = tree.links[0].joint.nq, tree.links[0].joint.nv

    def program(self, length: int, what: str, far: bool = False) -> Program:
        """One of the three steps, for segments of this many links; sweeps joined from ``far``, where that pays."""
        tree: Any = _SegmentTree(self.tree, length)
        constants = GlobalInput("constants", ArraySpec("constants", (length, max(1, self.rows.shape[1]))), "body")
        q: Any = GlobalInput("q", ArraySpec("q", (length * self.nq,)), "q")
        v: Any = GlobalInput("v", ArraySpec("v", (length * self.nv,)), "v")
        tau: Any = GlobalInput("tau", ArraySpec("tau", (length * self.nv,)), "v")
        base = GlobalInput("base", ArraySpec("base", (9 if what == "accelerated" else 3,)), "none")
        tip = GlobalInput("tip", ArraySpec("tip", (6,)), "none")
        at = tree.whole(tree.ground, base)
        omega = Vec.of(at[:3])
        outputs: dict[str, Any]
        if what == "turned":
            inputs, outputs = [constants, q, v], {"turned": flatten(turned(tree, q, v))[0]}
        elif what == "answered":
            answer, moved = answered(tree, q, v, tau, omega)
            inputs, outputs = [constants, q, v, tau, base], {"answer": flatten(answer)[0], "moved": flatten(moved)[0]}
        else:
            motion = RigidMotion(omega, Vec.of(at[3:6]), Vec.of(at[6:9]))
            vdot = accelerated(tree, q, v, tau, motion, Force.of(tree.whole(tree.ground, tip)))
            inputs, outputs = [constants, q, v, tau, base, tip], {"vdot": vdot}
        program: Program = tree.finish(f"chain_{what}", inputs, outputs, far)
        return program.with_lanes("constants")


class ParallelForwardDynamics:
    """Forward dynamics of one state of a long chain, by segments.

    Args:
        tree: a serial chain of one kind of joint.
        segments: how many; a multiple of the lanes of a vector times the threads.
    """

    library: ModuleType = np
    """The library that makes arrays."""

    def __init__(self, tree: Tree, segments: int) -> None:
        self.chain = Chain(tree)
        self.segments = max(1, min(segments, self.chain.n))
        self.length = self.chain.n // self.segments
        self._kernels: dict[tuple[str, int], ProgramKernel] = {}
        self._in_lanes: dict[tuple[int, int], Array] = {}

    @cached_property
    def _groups(self) -> list[tuple[int, int, int]]:
        """First link, length and number of segments: those of equal length, and one with the links left over."""
        whole = self.segments * self.length
        left = self.chain.n - whole
        return [(0, self.length, self.segments)] + ([(whole, left, 1)] if left else [])

    def __call__(self, q: Array, v: Array, tau: Array, threads: int = 1) -> Array:
        """v̇ (nv) for one float64 state."""
        omegas = self._omegas(self._each("turned", [q, v], [], [TURNED], threads)[0])
        answers, moved = self._each("answered", [q, v, tau], [omegas], [ANSWER, MOVED], threads)
        bases, tips = self._joined(answers, moved, omegas)
        return self._each("accelerated", [q, v, tau], [bases, tips], [None], threads)[0].reshape(-1)

    def _omegas(self, turns: Array) -> Array:
        """The rate of turn of every segment's base."""
        omegas = np.zeros((len(turns), 3))
        if len(turns) > 1:
            kernel = self._cut_kernel(turn_program, len(turns) - 1)
            kernel.evaluate([turns[:-1].reshape(1, -1)], [omegas[1:].reshape(1, -1)], 1)
        return omegas

    def _joined(self, answers: Array, moved: Array, omegas: Array) -> tuple[Array, Array]:
        """The motion of every segment's base (ω, ω', a), and the force that its tip must bring up."""
        count = len(answers)
        bases, tips = np.zeros((count, 9)), np.zeros((count, 6))
        bases[:, :3] = omegas
        bases[0, 6:] = [-g for g in self.chain.tree.gravity]
        if count > 1:
            last = np.concatenate((upper(inertia_rows(answers[-1])), answers[-1, 21:27]))
            cuts = np.empty((1, count - 1, 12))
            inputs = [answers[:-1].reshape(1, -1), moved[:-1].reshape(1, -1), last[None], bases[:1, 3:].copy()]
            self._cut_kernel(join_program, count - 1).evaluate([np.ascontiguousarray(x) for x in inputs], [cuts], 1)
            tips[:-1], bases[1:, 3:] = cuts[0, :, :6], cuts[0, :, 6:]
        return bases, tips

    def _cut_kernel(self, program: Callable[[Tree, int], Program], cuts: int) -> ProgramKernel:
        key = (program.__name__, cuts)
        kernel = self._kernels.get(key)
        if kernel is None:
            from linkwise.targets.llvm.program_kernel import ProgramKernel

            kernel = self._kernels[key] = ProgramKernel.build(program(self.chain.tree, cuts), single=True)
        return kernel

    def _each(
        self, what: str, states: Sequence[Array], ends: Sequence[Array], sizes: Sequence[int | None], threads: int
    ) -> list[Array]:
        """Run one step on all segments; one row of results for each (all rows together, for results of the links)."""
        found: list[list[Array]] = [[] for _ in sizes]
        done, widths = 0, (self.chain.nq, self.chain.nv, self.chain.nv)
        for first, length, count in self._groups:
            rows = [self._part(x, w, first, length, count) for x, w in zip(states, widths, strict=False)]
            rows += [self.library.ascontiguousarray(end[done : done + count]) for end in ends]
            outs = [self.library.empty((count, length * self.chain.nv if size is None else size)) for size in sizes]
            self._run(what, (first, length, count), rows, outs, threads)
            done += count
            for collected, out, size in zip(found, outs, sizes, strict=True):
                collected.append(out.reshape(-1) if size is None else out)
        return [parts[0] if len(parts) == 1 else self.library.concatenate(parts) for parts in found]

    def _run(
        self, what: str, group: tuple[int, int, int], rows: Sequence[Array], outs: Sequence[Array], threads: int
    ) -> None:
        """Run one step on some segments of equal length: the first link, its length, and how many there are."""
        _, length, count = group
        kernel = self._kernel(what, length, single=count == 1)
        kernel.evaluate([self._constants(*group, kernel.lanes), *rows], outs, count, threads)

    def _constants(self, first: int, length: int, count: int, lanes: int) -> Array:
        """The links' constants with the segments of each block in lanes; once for all calls."""
        key = (first, lanes)
        if key not in self._in_lanes:
            width = max(1, self.chain.rows.shape[1])
            blocks = -(-count // lanes)
            table = np.zeros((blocks * lanes, length * width))
            part = self.chain.rows[first : first + length * count].reshape(count, -1)
            table[:count, : part.shape[1]] = part
            table[count:] = table[0]  # lanes that no segment fills do as the first one does
            laned = table.reshape(blocks, lanes, -1).transpose(0, 2, 1)
            self._in_lanes[key] = _aligned_copy(laned)
        return self._in_lanes[key]

    @staticmethod
    def _part(x: Array, width: int, first: int, length: int, count: int) -> Array:
        return x[first * width : (first + length * count) * width].reshape(count, length * width)

    def _kernel(self, what: str, length: int, single: bool) -> ProgramKernel:
        kernel = self._kernels.get((what, length))
        if kernel is None:
            from linkwise.targets.llvm.program_kernel import ProgramKernel

            kernel = ProgramKernel.build(self.chain.program(length, what), single=single)
            self._kernels[what, length] = kernel
        return kernel


def _aligned_copy(array: Array) -> Array:
    """A contiguous copy that begins on a cache line, as vector loads expect."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class _CutTree(RolledTree):
    """The cuts of a chain as a chain of their own: cut i lies between segments i and i + 1."""

    def __init__(self, tree: Tree, count: int) -> None:
        super().__init__(tree)
        self.links = tree.links[:count]
        self.kinds[0].members = list(range(count))
        self.constants_are_inputs = True  # there are none


def turn_program(tree: Tree, cuts: int) -> Program:
    """From how much each segment turns to the rate of turn (3) beyond each cut: ω' = R*ω + its own."""
    rolled = _CutTree(tree, cuts)
    turns = GlobalInput("turns", ArraySpec("turns", (cuts, TURNED)), "body")

    def turn(link: Any, omega: Vec) -> Vec:
        numbers = part(turns, link, TURNED)
        R = Mat3([numbers[0:3], numbers[3:6], numbers[6:9]])
        return R.transpose_times(omega) + Vec.of(numbers[9:12])

    out: Any = per_body(rolled, outward(rolled, turn, Vec.zero()), (3,))
    return rolled.finish("chain_turned", [turns], {"omegas": out})


def join_program(tree: Tree, cuts: int) -> Program:
    """From how the segments answer to the acceleration beyond each cut and the force that crosses it.

    Inputs: the answers and tip motions of all segments but the last, the last one's P and z, the acceleration of the
    first one's base. Output: for each cut, the force F' (6) and the acceleration α' (6).
    """
    rolled = _CutTree(tree, cuts)
    answer = GlobalInput("answer", ArraySpec("answer", (cuts, ANSWER)), "body")
    moved = GlobalInput("moved", ArraySpec("moved", (cuts, MOVED)), "body")
    last = GlobalInput("last", ArraySpec("last", (27,)), "none")
    base = GlobalInput("base", ArraySpec("base", (6,)), "none")

    def segment(link: Any) -> Segment:
        numbers = part(answer, link, ANSWER)
        c = plus(numbers[84:90], part(moved, link, MOVED)[3:])
        Psi = transposed([numbers[k : k + 6] for k in range(27, 63, 6)])
        return Segment(inertia_rows(numbers[:21]), numbers[21:27], Psi, symmetric(numbers[63:84]), c)

    def join(link: Any, beyond: tuple[Flat, Flat]) -> tuple[tuple[Flat, Flat], tuple[Matrix, Flat]]:
        outer = replace(Segment.of_no_links(), P=symmetric(beyond[0]), z=list(beyond[1]))
        both, cut = joined(segment(link), outer)
        return (tuple(upper(both.P)), tuple(both.z)), (cut.G, cut.f)

    at_last = rolled.whole(rolled.ground, last)
    kept = inward(rolled, join, (tuple(at_last[:21]), tuple(at_last[21:])))

    def pass_on(link: Any, alpha: Flat) -> tuple[Flat, list[Scalar]]:
        gain, free = kept[link]
        (_, F), (beyond, _) = ends_of_both(segment(link), Cut(gain, zeros(6, 6), free), list(alpha), [0.0] * 6)
        return tuple(beyond), [*F, *beyond]

    passed = outward(rolled, pass_on, tuple(rolled.whole(rolled.ground, base)), keeps=True)
    out: Any = per_body(rolled, passed, (12,))
    return rolled.finish("chain_joined", [answer, moved, last, base], {"cuts": out})


def inertia_rows(numbers: Flat) -> Matrix:
    """P as 6×6 rows from the numbers of an ArticulatedInertia: B by rows, then J and M as xx, yy, zz, xy, xz, yz."""
    P: Matrix = [[0.0] * 6 for _ in range(6)]
    for k, x in enumerate(numbers[:9]):
        i, j = k // 3, k % 3
        P[i][3 + j] = P[3 + j][i] = x
    for start, first in ((9, 0), (15, 3)):
        for x, (i, j) in zip(numbers[start : start + 6], _SIX, strict=True):
            P[first + i][first + j] = P[first + j][first + i] = x
    return P


_SIX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


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

    def _evaluate(self, device: Device, arrays: Sequence[Array], out: Any, threads: int) -> list[Array]:
        if threads > 1 and device is PROCESSOR:
            batch = HostBatch(self.name, self.inputs, arrays)
            if not batch.shape and batch.dtype == np.float64:
                results = batch.outputs(self.rolled_program.outputs, out)
                q, v, tau = (rows.reshape(-1) for rows in batch.flat_inputs())
                results[0][0].reshape(-1)[:] = self._segments(threads)(q, v, tau, threads)
                return batch.finish(results)
        return super()._evaluate(device, arrays, out, threads)

    def _built(self, device: Device, dtype: Precision, few_states: bool = False) -> Any:
        if device.target.name != "cuda":
            return super()._built(device, dtype, few_states)
        from linkwise.functions.rolled.on_device import LongChainProgram

        return LongChainProgram(self._trees.aligned, self.rolled_for(device.target), dtype)

    def _segments(self, threads: int) -> ParallelForwardDynamics:
        chain = self._trees.aligned
        wave = host().lanes(np.float64) * threads  # segments that run at the same time
        count = wave * max(1, round(len(chain.links) / (wave * SEGMENT)))
        return once(self._cut, count, lambda: ParallelForwardDynamics(chain, count))


def function_type(model: Model, name: str, inputs: Sequence[tuple[str, object]]) -> Callable[..., RolledFunction]:
    """The class of a function of a large model: forward dynamics of a chain that can be cut has a class of its own."""
    plain = name == "forward_dynamics" and [n for n, _ in inputs] == ["q", "v", "tau"]
    if plain and len(model.bodies) >= LONG and not model.closures and can_be_cut(model._trees.fast):
        return partial(LongChainFunction, model._trees)
    return RolledFunction
