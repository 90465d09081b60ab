"""One long chain on many lanes and threads: the segments of :mod:`linkwise.algorithms.segments` as states of a batch.

Every segment has the same number of links, so one rolled kernel runs them all, each lane with its own link constants.
What links the segments is a handful of 6×6 systems, solved here from the tip to the base and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.algorithms.rigid_motion import RigidMotion
from linkwise.algorithms.segments import ANSWER, MOVED, TURNED, UPPER, accelerated, answered, turned
from linkwise.errors import InputError
from linkwise.model.tree import Tree
from linkwise.rolled.kinds import GlobalInput, sorted_into_kinds
from linkwise.rolled.record import BaseOutput, Output
from linkwise.rolled.tree import RolledTree
from linkwise.spatial.vectors import Force, Vec
from linkwise.tracing.program import ArraySpec
from linkwise.tracing.rolled_program import RolledProgram

_CONSTANTS = "in:constants"

Array = Any


class _SegmentTree(RolledTree):
    """The first links of a chain, with the constants of each link read from an input of the state."""

    def __init__(self, tree: Tree, length: int) -> None:
        super().__init__(tree)
        self.kinds = sorted_into_kinds(tree, _CONSTANTS)
        self.links = tree.links[:length]
        self.nq, self.nv = length * tree.links[0].joint.nq, length * tree.links[0].joint.nv
        self.kinds[0].members = list(range(length))
        self.constants_are_inputs = True


class Chain:
    """A serial chain of one kind of joint, ready to be cut."""

    def __init__(self, tree: Tree) -> None:
        kinds = sorted_into_kinds(tree)
        serial = all(link.parent == link.index - 1 for link in tree.links)
        if not serial or len(kinds) != 1:
            raise InputError(
                "only a serial chain of one joint type can be cut into segments",
                got=f"{len(kinds)} kinds of links" if serial else "a tree with branches",
                allowed="each body on the one before it, all joints of one type",
                do="use forward_dynamics, which takes any tree",
            )
        self.tree = tree
        self.n = len(tree.links)
        self.rows: Array = np.ascontiguousarray(kinds[0].rows)
        self.nq, self.nv = tree.links[0].joint.nq, tree.links[0].joint.nv

    def program(self, length: int, what: str) -> RolledProgram:
        """One of the three steps, for segments of this many links."""
        tree = _SegmentTree(self.tree, length)
        constants = GlobalInput("constants", ArraySpec("constants", (length, max(1, self.rows.shape[1]))), "body")
        q = GlobalInput("q", ArraySpec("q", (length * self.nq,)), "q")
        v = GlobalInput("v", ArraySpec("v", (length * self.nv,)), "v")
        tau = GlobalInput("tau", ArraySpec("tau", (length * self.nv,)), "v")
        base = GlobalInput("base", ArraySpec("base", (9 if what == "accelerated" else 3,)), "none")
        tip = GlobalInput("tip", ArraySpec("tip", (6,)), "none")
        at = base.elements()
        omega = Vec.of(at[:3])
        outputs: dict[str, Output | BaseOutput]
        if what == "turned":
            inputs, outputs = [constants, q, v], {"turned": turned(tree, q, v)}  # type: ignore[arg-type]
        elif what == "answered":
            answer, moved = answered(tree, q, v, tau, omega)  # type: ignore[arg-type]
            inputs, outputs = [constants, q, v, tau, base], {"answer": answer, "moved": moved}
        else:
            motion = RigidMotion(omega, Vec.of(at[3:6]), Vec.of(at[6:9]))
            vdot = accelerated(tree, q, v, tau, motion, Force.of(tip.elements()))  # type: ignore[arg-type]
            inputs, outputs = [constants, q, v, tau, base, tip], {"vdot": vdot}  # type: ignore[dict-item]
        return replace(tree.finish(f"chain_{what}", inputs, outputs), in_lanes=frozenset(("constants",)))


class ParallelForwardDynamics:
    """Forward dynamics of one state of a long chain, by segments.

    Args:
        tree: a serial chain of one kind of joint.
        segments: how many; a multiple of the lanes of a vector times the threads.
    """

    def __init__(self, tree: Tree, segments: int) -> None:
        self.chain = Chain(tree)
        self.segments = max(1, min(segments, self.chain.n))
        self.length = self.chain.n // self.segments
        self._kernels: dict[tuple[str, int], Any] = {}
        self._in_lanes: dict[tuple[int, int], Array] = {}

    @cached_property
    def _groups(self) -> list[tuple[int, int, int]]:
        """First link, length and number of segments: those of equal length, and one with the links left over."""
        whole = self.segments * self.length
        left = self.chain.n - whole
        return [(0, self.length, self.segments)] + ([(whole, left, 1)] if left else [])

    def __call__(self, q: Array, v: Array, tau: Array, threads: int = 1) -> Array:
        """v̇ (nv) for one float64 state."""
        turns = self._each("turned", [q, v], [], [TURNED], threads)[0]
        omegas = [np.zeros(3)]
        for turn in turns[:-1]:
            omegas.append(turn[:9].reshape(3, 3).T @ omegas[-1] + turn[9:])
        answers, moved = self._each("answered", [q, v, tau], [np.array(omegas)], [ANSWER, MOVED], threads)
        bases, tips = _joined(answers, moved, omegas, np.array(list(self.chain.tree.gravity), float))
        return self._each("accelerated", [q, v, tau], [bases, tips], [None], threads)[0].reshape(-1)

    def _each(
        self, what: str, states: Sequence[Array], ends: Sequence[Array], sizes: Sequence[int | None], threads: int
    ) -> list[Array]:
        """Run one step on all segments; one row of results for each (all rows together, for results of the links)."""
        found: list[list[Array]] = [[] for _ in sizes]
        done = 0
        for first, length, count in self._groups:
            kernel = self._kernel(what, length, single=count == 1)
            rows = [self._constants(first, length, count, kernel.lanes)]
            widths = (self.chain.nq, self.chain.nv, self.chain.nv)
            rows += [self._part(x, w, first, length, count) for x, w in zip(states, widths, strict=False)]
            rows += [np.ascontiguousarray(end[done : done + count]) for end in ends]
            outs = [np.empty((count, length * self.chain.nv if size is None else size)) for size in sizes]
            kernel.run(rows, outs, count, threads)
            done += count
            for collected, out in zip(found, outs, strict=True):
                collected.append(out)
        return [
            np.concatenate([o.reshape(-1) if s is None else o for o in f]) for f, s in zip(found, sizes, strict=True)
        ]

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

    def _kernel(self, what: str, length: int, single: bool) -> Any:
        kernel = self._kernels.get((what, length))
        if kernel is None:
            from linkwise.codegen.rolled import RolledKernel

            kernel = RolledKernel.build(self.chain.program(length, what), single=single)
            self._kernels[what, length] = kernel
        return kernel


def _aligned_copy(array: Array) -> Array:
    """A contiguous copy that begins on a cache line, as vector loads expect."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _joined(answers: Array, moved: Array, omegas: Sequence[Array], gravity: Array) -> tuple[Array, Array]:
    """Motion of every segment's base and force at every segment's tip, from how each segment answers.

    From the tip inwards: what lies from segment i on answers as F = P̂α + ẑ. With F' = P̂'α' + ẑ' beyond and
    α' = c + Ψ*α - ΛF', c = β + (motion of the tip with the base held):  F' = (1 + P̂'Λ)⁻¹ (P̂'(c + Ψ*α) + ẑ').
    """
    count = len(answers)
    P, z, Psi, Lambda, beta = _matrices(answers)
    Psi_T = Psi.transpose(0, 2, 1)
    c = beta + moved[:, 3:]
    one = np.eye(6)
    P_hat, z_hat = P[-1], z[-1]
    beyond: list[tuple[Array, Array]] = []
    for i in reversed(range(count - 1)):
        W = np.linalg.solve(one + P_hat @ Lambda[i], np.column_stack((P_hat, P_hat @ c[i] + z_hat)))
        gain = W[:, :6] @ Psi_T[i]
        beyond.append((gain, W[:, 6]))
        z_hat = z[i] + Psi[i] @ W[:, 6]
        P_hat = P[i] + Psi[i] @ gain
        P_hat = (P_hat + P_hat.T) * 0.5
    bases, tips = np.zeros((count, 9)), np.zeros((count, 6))
    alpha = np.concatenate((np.zeros(3), -gravity))
    for i in range(count):
        bases[i, :3], bases[i, 3:] = omegas[i], alpha
        if i < count - 1:
            gain, free = beyond[count - 2 - i]
            tips[i] = gain @ alpha + free
            alpha = c[i] + Psi_T[i] @ alpha - Lambda[i] @ tips[i]
    return bases, tips


def _matrices(answers: Array) -> tuple[Array, Array, Array, Array, Array]:
    """P, z, Ψ, Λ, β of all segments from the flat numbers of their Answers."""
    count = len(answers)
    P, Lambda = np.empty((count, 6, 6)), np.empty((count, 6, 6))
    B = answers[:, 0:9].reshape(count, 3, 3)
    P[:, :3, 3:], P[:, 3:, :3] = B, B.transpose(0, 2, 1)
    for start, first in ((9, 0), (15, 3)):
        for x, (i, j) in enumerate(_SIX):
            P[:, first + i, first + j] = P[:, first + j, first + i] = answers[:, start + x]
    for x, (i, j) in enumerate(UPPER):
        Lambda[:, i, j] = Lambda[:, j, i] = answers[:, 63 + x]
    Psi = answers[:, 27:63].reshape(count, 6, 6).transpose(0, 2, 1)
    return P, answers[:, 21:27], Psi, Lambda, answers[:, 84:90]


_SIX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
