"""Launches of blocks on a GPU, in one precision, compiled when first needed.

The end of every call there; :mod:`linkwise.targets.cuda.launched_programs` launches programs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from linkwise.memoized import once
from linkwise.targets import DirectLaunch
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.parts import KernelPart, KernelParts, split
from linkwise.targets.cuda.runtime import (
    Launcher,
    compiled_kernels,
    cupy,
    launch_address,
    shared_bytes,
    working_memory,
)
from linkwise.targets.cuda.source import Kernel, batch_kernel, rollout_kernel
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.targets.cuda.wide import LONGEST, LONGEST_AT_HOME, Homes, last_kernel, part_kernel
from linkwise.targets.steps import Repetition, Rollout
from linkwise.trace.block import Block

# A tile with all its rows, up to which one kernel has room for them: however long the program is, or if it is short.
_ROOMY_BYTES = 40 * 1024
_TWO_TILES_BYTES = 112 * 1024
_SHORT = 6000  # nodes of a program

# Nodes of a program, above which it is cut even if its results are few. A multiprocessor then waits for instructions
# more than it computes (on an H200, steps with contact in float32: a quadruped of 12 700 nodes makes 970 M/s in one
# kernel and 740 in two, a humanoid of 31 300 makes 133 M/s in one and 200 in five).
_LONG = {32: 16_000, 64: 7000}


Code = TypeVar("Code")  # a block, a program, or what else has inputs and outputs


class Launched(ABC, Generic[Code]):
    """A block or a program for GPUs in one precision.

    Args:
        program: what is computed.
        dtype: float64 or float32.
    """

    rollout: Rollout | None = None
    """Feedback between steps, if there are many."""
    takes_addresses: ClassVar[bool] = True
    """Whether arrays may be given by their addresses alone."""

    def __init__(self, program: Code, dtype: DTypeLike) -> None:
        self.program, self.dtype = program, np.dtype(dtype)
        self._memory: dict[int, int] = {}

    def in_place(self, kinds: tuple[ArrayOrder, ...]) -> bool:
        """Whether an output may be the same array as an input: where all inputs are read before results are written."""
        return True

    def prepare(self, kinds: tuple[ArrayOrder, ...]) -> None:
        """Compile for the current device, if that is not left to the first launch."""

    @abstractmethod
    def launch(
        self, arrays: Sequence[object], kinds: tuple[ArrayOrder, ...], count: int, steps: int | None = None
    ) -> None:
        """Run on the current device and stream.

        Args:
            arrays: inputs then outputs, laid out as ``kinds`` says: CuPy's, or addresses as ``numpy.uint64``. Those of
                programs that come in lanes are tiles (tiles, size, lanes).
            kinds: how each array comes.
            count: states.
            steps: for a rollout.
        """


def device_block(
    block: Block, dtype: DTypeLike, routine: Repetition | None = None, *, apart: bool = True
) -> LaunchedBlock:
    """A block for GPUs: one kernel, or several if its results are wide or it is long.

    Args:
        block: what is computed.
        dtype: float64 or float32.
        routine: for many steps of it in one launch.
        apart: whether its outputs never lie where inputs do, unless it says that they may (``in_place``).
    """
    bits = np.dtype(dtype).itemsize * 8
    if routine is None and (is_long(block, bits) or is_wide(block, bits)):
        return DividedBlock(block, dtype, apart)
    return DeviceBlock(block, dtype, routine)


def is_long(program: Block, bits: int) -> bool:
    """Whether a program has more instructions than a multiprocessor should go through in one kernel."""
    return len(program.nodes) > _LONG[bits]


def is_wide(program: Block, bits: int) -> bool:
    """Whether a program has results that one kernel should not keep on the chip together with its inputs."""
    arrays = (*program.inputs, *program.outputs)
    tile = 32 * sum(spec.size for spec in arrays) * bits // 8
    if tile <= _ROOMY_BYTES or (tile <= _TWO_TILES_BYTES and len(program.nodes) <= _SHORT):
        return False
    return any(spec.size > layouts.WIDE for spec in program.outputs)


class LaunchedBlock(Launched[Block]):
    """A block for GPUs: kernels for each way its arrays can lie, and for each device."""

    def __init__(self, program: Block, dtype: DTypeLike) -> None:
        super().__init__(program, dtype)
        self._texts: dict[Hashable, Kernel] = {}
        self._launchers: dict[Hashable, list[tuple[Kernel, Launcher]]] = {}

    @abstractmethod
    def kernels(self, kinds: tuple[ArrayOrder, ...], available: int) -> list[Kernel]:
        """The texts for arrays that come in these ways, for devices with so much shared memory."""

    def prepare(self, kinds: tuple[ArrayOrder, ...]) -> None:
        """Compile all kernels."""
        self._loaded(kinds)

    def _loaded(self, kinds: tuple[ArrayOrder, ...]) -> list[tuple[Kernel, Launcher]]:
        device = cupy().cuda.Device().id
        known = self._launchers.get((kinds, device))
        if known is None:
            kernels = self.kernels(kinds, shared_bytes(self._memory))
            known = self._launchers[kinds, device] = list(zip(kernels, compiled_kernels(kernels), strict=True))
        return known


class DeviceBlock(LaunchedBlock):
    """A block, or many steps of one, as one kernel.

    Args:
        program: what is computed.
        dtype: float64 or float32.
        routine: for many steps of it in one launch.
    """

    def __init__(self, program: Block, dtype: DTypeLike, routine: Repetition | None = None) -> None:
        super().__init__(program, dtype)
        self.routine = routine
        self.rollout = None if routine is None else routine.rollout

    def kernels(self, kinds: tuple[ArrayOrder, ...], available: int) -> list[Kernel]:
        """One kernel."""
        bits = self.dtype.itemsize * 8

        def written() -> Kernel:
            if self.routine is not None:
                return rollout_kernel(self.routine, bits, kinds, available)
            return batch_kernel(self.program, bits, kinds, available)

        return [once(self._texts, (kinds, available), written)]

    def in_place(self, kinds: tuple[ArrayOrder, ...]) -> bool:
        """Whether an output may be the same array as an input."""
        return self.kernels(kinds, shared_bytes(self._memory))[0].in_place

    def launch(
        self, arrays: Sequence[object], kinds: tuple[ArrayOrder, ...], count: int, steps: int | None = None
    ) -> None:
        """One launch."""
        if count:
            ((kernel, launcher),) = self._loaded(kinds)
            last = () if steps is None else (np.int32(steps),)
            launch_states(kernel, launcher, count, (*arrays, np.int64(count), *last))

    def direct(self, kinds: tuple[ArrayOrder, ...]) -> DirectLaunch | None:
        """Launch without Python; None where there are several devices, or where CuPy does not tell the handle."""
        ((kernel, launcher),) = self._loaded(kinds)
        handle = getattr(getattr(launcher, "kernel", None), "ptr", None)
        address = launch_address()
        if not handle or not address or cupy().cuda.runtime.getDeviceCount() != 1:
            return None
        states = kernel.states or kernel.threads
        return DirectLaunch(address, int(handle), kernel.threads, states, kernel.shared_bytes)


class DividedBlock(LaunchedBlock):
    """A block with wide results, or a long one: several kernels in sequence, and the memory between them.

    Args:
        program: what is computed.
        dtype: float64 or float32.
        apart: whether results may be left where they belong while inputs are still read.
    """

    def __init__(self, program: Block, dtype: DTypeLike, apart: bool = True) -> None:
        super().__init__(program, dtype)
        self.apart = apart
        self._divisions: dict[int, KernelParts] = {}

    def in_place(self, kinds: tuple[ArrayOrder, ...]) -> bool:
        """Whether results are written when all inputs have been read: by a last kernel."""
        return self._homes(kinds) is None

    def _homes(self, kinds: tuple[ArrayOrder, ...]) -> Homes | None:
        return self.division(kinds).homes(kinds[len(self.program.inputs) :]) if self.apart else None

    def division(self, kinds: tuple[ArrayOrder, ...]) -> KernelParts:
        """Kernels, each with its share of the program."""
        at_home = self.apart and set(kinds[len(self.program.inputs) :]) == {"columns"}
        longest = (LONGEST_AT_HOME if at_home else LONGEST)[self.dtype.itemsize * 8]
        return once(self._divisions, longest, lambda: split(self.program, longest))

    def kernels(self, kinds: tuple[ArrayOrder, ...], available: int) -> list[Kernel]:
        """A kernel for each part, and a last one if their results are to be spread."""
        program, whole, bits = self.program, self.division(kinds), self.dtype.itemsize * 8
        given, filled = kinds[: len(program.inputs)], kinds[len(program.inputs) :]
        homes = self._homes(kinds)

        def of_part(part: KernelPart) -> Kernel:
            # Whatever way the others come, its text is the same.
            own = tuple(given[number] for number in part.inputs(program))
            key = (part, own, available, homes is None)
            return once(self._texts, key, lambda: part_kernel(program, whole, part, bits, given, available, homes))

        parts = [of_part(part) for part in whole.parts]
        if homes is not None:
            return parts
        key = (filled, available)
        last = once(self._texts, key, lambda: last_kernel(program, whole, bits, filled, available))
        return [*parts, last]

    def launch(
        self, arrays: Sequence[object], kinds: tuple[ArrayOrder, ...], count: int, steps: int | None = None
    ) -> None:
        """One launch for each kernel, and each turn."""
        if count == 0:
            return
        parts, last = self._loaded(kinds), []
        cut = len(self.program.inputs)
        if self.in_place(kinds):
            parts, last = parts[:-1], parts[-1:]
        taken, filled = (arrays[:cut], arrays[cut:]) if last else (arrays, ())
        name, places = self.program.name, self.division(kinds).places
        between, tiles = working_memory(name, tiles_of(count), places, self.dtype)
        for begin, end in turns(count, tiles):
            numbers = (np.int64(count), np.int64(begin), np.int64(end))
            for own, kernels in ((taken, parts), (filled, last)):
                for kernel, launcher in kernels:
                    launch_states(kernel, launcher, end - begin, (*own, between, *numbers))


def tiles_of(count: int) -> int:
    """Tiles that states fill."""
    return -(-count // layouts.LANES[0])


def turns(count: int, tiles: int) -> Iterator[tuple[int, int]]:
    """First state and end of each turn, of so many tiles."""
    states = tiles * layouts.LANES[0]
    for begin in range(0, count, states):
        yield begin, min(count, begin + states)


def launch_states(kernel: Kernel, launcher: Launcher, states: int, arguments: tuple[object, ...]) -> None:
    """Launch as many blocks of threads as cover so many states."""
    launcher((kernel.blocks(states),), (kernel.threads,), arguments, shared_mem=kernel.shared_bytes)
