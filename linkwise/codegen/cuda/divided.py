"""Programs with wide results on a GPU: several kernels in sequence, and the memory between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.cuda import layout as layouts
from linkwise.codegen.cuda.layout import Kind
from linkwise.codegen.cuda.lent import lent
from linkwise.codegen.cuda.parts import Part, Parts, split
from linkwise.codegen.cuda.runtime import DeviceProgram, compiled_kernels, cupy, shared_bytes
from linkwise.codegen.cuda.source import Kernel
from linkwise.codegen.cuda.spread import spread_kernel
from linkwise.codegen.cuda.wide import LONGEST, part_kernel
from linkwise.codegen.steps import Repetition
from linkwise.once import cached_property, once
from linkwise.tracing.block import Block

BETWEEN_BYTES = 4 << 30
"""Memory between the kernels of one call, at most (but for one tile's); a larger batch takes turns."""

# A tile with all its rows, up to which one kernel has room for them: however long the program is, or if it is short.
_ROOMY_BYTES = 40 * 1024
_TWO_TILES_BYTES = 112 * 1024
_SHORT = 6000  # nodes of a program


def device_program(program: Block, dtype: Any, routine: Repetition | None = None) -> DeviceProgram | DividedProgram:
    """A program for GPUs: one kernel, or several if its results are wide."""
    if routine is None and is_wide(program, np.dtype(dtype).itemsize * 8):
        return DividedProgram(program, dtype)
    return DeviceProgram(program, dtype, routine)


def is_wide(program: Block, bits: int) -> bool:
    """Whether a program has results that one kernel should not keep on the chip together with its inputs."""
    arrays = (*program.inputs, *program.outputs)
    tile = 32 * sum(spec.size for spec in arrays) * bits // 8
    if tile <= _ROOMY_BYTES or (tile <= _TWO_TILES_BYTES and len(program.nodes) <= _SHORT):
        return False
    return any(spec.size > layouts.WIDE for spec in program.outputs)


@dataclass(frozen=True)
class Divided:
    """All kernels of a program."""

    parts: tuple[Kernel, ...]
    last: Kernel


class DividedProgram:
    """A program as several kernels, in one precision; is launched as a :class:`DeviceProgram` is.

    Args:
        program: what is computed.
        dtype: float64 or float32.
    """

    rollout = None
    takes_addresses = True

    def __init__(self, program: Block, dtype: Any) -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        self._memory: dict[int, int] = {}
        self._texts: dict[tuple[Any, ...], Kernel] = {}
        self._launchers: dict[tuple[Any, ...], list[tuple[Kernel, Any]]] = {}

    @cached_property
    def division(self) -> Parts:
        """What each kernel computes."""
        return split(self.program, LONGEST[self.dtype.itemsize * 8])

    def kernels(self, kinds: tuple[Kind, ...], available: int) -> Divided:
        """The texts for arrays that come in these ways, for devices with so much shared memory."""
        program, whole, bits = self.program, self.division, self.dtype.itemsize * 8
        given, filled = kinds[: len(program.inputs)], kinds[len(program.inputs) :]

        def of_part(part: Part) -> Kernel:
            # Whatever way the others come, its text is the same.
            own = tuple(given[number] for number in part.inputs(program))
            key = (part, own, available)
            return once(self._texts, key, lambda: part_kernel(program, whole, part, bits, given, available))

        parts = tuple(of_part(part) for part in whole.parts)
        key = (filled, available)
        last = once(self._texts, key, lambda: spread_kernel(program, whole, bits, filled, available))
        return Divided(parts, last)

    def in_place(self, kinds: tuple[Kind, ...]) -> bool:
        """Yes: all kernels but the last have read a state's inputs before its results are written."""
        return True

    def launch(self, arrays: Sequence[Any], kinds: tuple[Kind, ...], count: int, steps: int | None = None) -> None:
        """Run on the current device and stream.

        Args:
            arrays: inputs then outputs, laid out as ``kinds`` says: CuPy's, or addresses as ``numpy.uint64``.
            kinds: how each array comes.
            count: states.
            steps: None; rollouts have one kernel.
        """
        if count == 0:
            return
        *parts, last = self._loaded(kinds)
        lanes, cut = layouts.LANES[0], len(self.program.inputs)
        name, places = self.program.name, self.division.places
        between, tiles = lent(name, -(-count // lanes), places, self.dtype, BETWEEN_BYTES)
        for begin in range(0, count, tiles * lanes):
            end = min(count, begin + tiles * lanes)
            numbers = (np.int64(count), np.int64(begin), np.int64(end))
            for kernel, launcher in parts:
                _launch(kernel, launcher, end - begin, (*arrays[:cut], between, *numbers))
            _launch(*last, end - begin, (*arrays[cut:], between, *numbers))

    def _loaded(self, kinds: tuple[Kind, ...]) -> list[tuple[Kernel, Any]]:
        device = cupy().cuda.Device().id
        known = self._launchers.get((kinds, device))
        if known is None:
            made = self.kernels(kinds, shared_bytes(self._memory))
            kernels = [*made.parts, made.last]
            known = self._launchers[kinds, device] = list(zip(kernels, compiled_kernels(kernels), strict=True))
        return known


def _launch(kernel: Kernel, launcher: Any, states: int, arguments: tuple[Any, ...]) -> None:
    launcher((kernel.blocks(states),), (kernel.threads,), arguments, shared_mem=kernel.shared_bytes)
