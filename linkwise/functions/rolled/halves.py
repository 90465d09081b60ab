"""Symmetric matrices of many links from one half: inward sweeps with the columns in the lanes of vectors.

What the columns of a state have in common (the φ of each link, its composite inertia times its axes) is found once and
takes the place of the link constants, which all lanes share. A sweep then hands a force inboard and does nothing else,
and in a serial chain it begins at the columns' own links: half of the links on average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.mass_matrix import inboard_product, width
from linkwise.array_types import Array, Precision
from linkwise.dataclass import dataclass, replace
from linkwise.functions.rolled.columns import ColumnsFunction
from linkwise.functions.rolled.link_vectors import GlobalInput
from linkwise.functions.rolled.rolled_function import RolledFunction
from linkwise.functions.rolled.rolling import RolledTree
from linkwise.functions.rolled.symbolic_links import RolledKind, SymbolicLink
from linkwise.joints import Joint
from linkwise.mechanism.layout import numbers_of
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property, once
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Rotation, Shift, Transform
from linkwise.spatial.vectors import Force, Motion, Vec
from linkwise.trace.block import ArraySpec
from linkwise.trace.program import PARAMETERS, Initial, Program

if TYPE_CHECKING:
    from linkwise.targets.llvm.program_kernel import ProgramKernel

_MIRRORED = 128  # columns that are mirrored together: few enough for a block to stay in the cache


@dataclass(frozen=True, eq=False)
class _LinkOfState(SymbolicLink):
    """A link whose constants are those of one state, see :func:`linkwise.algorithms.mass_matrix.of_links`."""

    kind: RolledKind
    joint: Joint
    index: int
    multiplier: float = 1.0
    offset: float = 0.0
    is_mimic: bool = False
    modes: int = 0
    seat: None = None

    @cached_property
    def _numbers(self) -> list[Scalar]:
        return list(self.kind.array(PARAMETERS, width(self.joint.nv)))

    @property
    def across(self) -> Transform:
        """φ(parent, link)."""
        n = self._numbers
        return Transform(Shift(Vec.of(n[9:12])), Rotation(Mat3([n[0:3], n[3:6], n[6:9]])))

    @property
    def axes(self) -> list[Motion]:
        """The columns of S: constants where they are fixed in the link."""
        if self.joint.fixed_axes:
            return list(self.joint.subspace([0.0] * self.joint.nq))
        return [Motion.of(self._of_freedom(i)[:6]) for i in range(self.joint.nv)]

    @property
    def RS(self) -> list[Force]:
        """The columns of R S."""
        return [Force.of(self._of_freedom(i)[6:12]) for i in range(self.joint.nv)]

    @property
    def armature(self) -> list[Scalar]:
        """Rotor inertias."""
        return [self._of_freedom(i)[12] for i in range(self.joint.nv)]

    def _of_freedom(self, i: int) -> list[Scalar]:
        return self._numbers[12 + 13 * i : 25 + 13 * i]


class _StateTree(RolledTree):
    """A tree whose link constants are filled in state by state."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.kinds = [RolledKind(kind.index, kind.template, kind.first, kind.members) for kind in self.kinds]
        for kind in self.kinds:
            kind.link = _LinkOfState(kind, kind.template.joint, kind.template.index)
            kind.rows = np.zeros((len(kind.members), width(kind.template.joint.nv)))


def is_halved(tree: Tree) -> bool:
    """Whether the links are rigid, each with freedoms of its own, in frames aligned with their joints."""
    return not tree.has_modes and not tree.has_mimics


def half_program(tree: Tree) -> tuple[Program, list[list[int]]]:
    """The sweep for a column, and the links whose constants it takes, kind by kind."""
    rolled = _StateTree(tree)
    x = GlobalInput("x", ArraySpec("x", (tree.nv,)), "v")
    program = rolled.finish("mass_matrix_half", [x], {"out": inboard_product(rolled, x)})
    handed = [buffer for buffer in program.buffers if buffer.name.startswith("handed:")]
    # A sweep may begin anywhere in a chain: what its first link finds must be nothing.
    nothing = tuple(Initial(buffer.name, place, 0.0) for buffer in handed for place in range(buffer.size))
    initial = nothing if _is_chain(tree) else program.initial
    return replace(program.with_lanes("x"), initial=initial), [kind.members for kind in rolled.kinds]


def _is_chain(tree: Tree) -> bool:
    parents = numbers_of(tree.links, "parent")
    return bool((parents == np.arange(len(parents)) - 1).all())


class HalvedFunction(ColumnsFunction):
    """The mass matrix of many links.

    Args:
        arguments: those of every compiled function.
        of_links: gives what the columns of a state have in common.
        tree: the tree.
        options: those of :class:`ColumnsFunction`, which traces take.
    """

    def __init__(self, *arguments: Any, of_links: RolledFunction, tree: Tree, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._of_links, self._tree = of_links, tree

    @cached_property
    def _half(self) -> tuple[Program, list[list[int]]]:
        return half_program(self._tree)

    def _half_kernel(self, dtype: Precision) -> ProgramKernel:
        from linkwise.targets.llvm.program_kernel import ProgramKernel

        return once(self._kernels, (dtype, "half"), lambda: ProgramKernel.build(self._half[0], dtype))

    def _one(self, state: list[Array], into: list[Array], threads: int) -> None:
        (matrix,) = into
        dtype = state[0].dtype
        rows = self._of_links.general(*state)
        kernel = self._half_kernel(dtype)
        constants = rows if len(self._half[1]) == 1 else np.concatenate([self._of_kind(rows, k) for k in self._half[1]])
        half = matrix if matrix.flags.c_contiguous else np.empty(matrix.shape, dtype)
        kernel.run_units(half, constants, self._stops, threads)
        _mirror(half)
        if half is not matrix:
            matrix[...] = half

    def _of_kind(self, rows: Array, members: list[int]) -> Array:
        """The numbers of the links of one kind, without what joints of more freedoms have."""
        numbers: Array = rows[members][:, : width(self._tree.links[members[0]].joint.nv)]
        return numbers.reshape(-1)

    @cached_property
    def _stops(self) -> Array:
        """For each freedom how many links a sweep for it passes: in a chain those up to its own, else all of them."""
        count = len(self._tree.links)
        if not _is_chain(self._tree):
            return np.full(self._tree.nv, count)
        starts = numbers_of(self._tree.links, "v_start")
        return np.searchsorted(starts, np.arange(self._tree.nv), side="right")


def _mirror(half: Array) -> None:
    """A symmetric matrix from the part on and left of its diagonal."""
    n = len(half)
    for start in range(0, n, _MIRRORED):
        stop = min(n, start + _MIRRORED)
        half[:start, start:stop] = half[start:stop, :start].T
        block = half[start:stop, start:stop]
        lower = np.tril(block)
        block[...] = lower + np.tril(block, -1).T
