"""Launches on a GPU, the end of every call there: blocks and programs in one precision, compiled when first needed."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.memoized import once
from linkwise.targets import DirectLaunch
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.device_memory import DeviceKernel
from linkwise.targets.cuda.parts import KernelPart, KernelParts, split
from linkwise.targets.cuda.pooled_threads import HEAD, PooledKernel
from linkwise.targets.cuda.runtime import (
    Launcher,
    compiled_kernels,
    cupy,
    external_stream,
    launch_address,
    shared_bytes,
    working_memory,
    zeros,
)
from linkwise.targets.cuda.source import Kernel, batch_kernel, rollout_kernel
from linkwise.targets.cuda.statements import arguments_of
from linkwise.targets.cuda.thread_memory import CALLS, ThreadKernel, most_thread_bytes, thread_bytes
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.targets.cuda.wide import LONGEST, LONGEST_AT_HOME, Homes, last_kernel, part_kernel
from linkwise.targets.recycled import steps_between
from linkwise.targets.steps import Repetition, Rollout
from linkwise.trace.block import Block
from linkwise.trace.program import PARAMETERS, Call, Program
from linkwise.trace.waiting import WaitingLoop, with_loops_inlined

BETWEEN_BYTES = 4 << 30
"""Memory between the kernels of one call, at most (but for one tile's); a larger batch takes turns."""

SCRATCH_BYTES = 4 << 30
"""Memory that the buffers of one call's states take, at most (but for one tile's); a larger batch takes turns."""

_TILES = 16  # that a multiprocessor works on at a time: as many warps as its registers can feed

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
            _launch(kernel, launcher, count, (*arrays, np.int64(count), *last))

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
        lanes, cut = layouts.LANES[0], len(self.program.inputs)
        if self.in_place(kinds):
            parts, last = parts[:-1], parts[-1:]
        taken, filled = (arrays[:cut], arrays[cut:]) if last else (arrays, ())
        name, places = self.program.name, self.division(kinds).places
        between, tiles = working_memory(name, -(-count // lanes), places, self.dtype, BETWEEN_BYTES)
        for begin in range(0, count, tiles * lanes):
            end = min(count, begin + tiles * lanes)
            numbers = (np.int64(count), np.int64(begin), np.int64(end))
            for own, kernels in ((taken, parts), (filled, last)):
                for kernel, launcher in kernels:
                    _launch(kernel, launcher, end - begin, (*own, between, *numbers))


def _launch(kernel: Kernel, launcher: Launcher, states: int, arguments: tuple[object, ...]) -> None:
    launcher((kernel.blocks(states),), (kernel.threads,), arguments, shared_mem=kernel.shared_bytes)


class DeviceProgram(Launched[Program]):
    """A program: called as a function is, or run with whatever arrays its statements name."""

    def __init__(self, program: Program, dtype: DTypeLike) -> None:
        super().__init__(program, dtype)
        self.routine = program
        self._ready: dict[int, _Ready] = {}
        self._calls = CallSequence(program, dtype) if is_sequence(program, self.dtype.itemsize * 8) else None

    def in_place(self, kinds: tuple[ArrayOrder, ...]) -> bool:
        """Not where an early call could write what a later one reads."""
        return self._calls is None

    def prepare(self, kinds: tuple[ArrayOrder, ...]) -> None:
        """Compile the kernels, but for a sequence of calls, which does so when it is launched."""
        if self._calls is None:
            self.ready()

    def launch(
        self, arrays: Sequence[object], kinds: tuple[ArrayOrder, ...], count: int, steps: int | None = None
    ) -> None:
        """One launch, of a batch that takes turns where there is not enough memory; or one for each call."""
        if count and self._calls and self._calls.launch(arrays, kinds, count):
            return
        specs = (*self.program.inputs, *self.program.outputs)
        own: list[object] = []
        for array, kind, spec in zip(arrays, kinds, specs, strict=True):
            apart = {"rows": (spec.size, 1), "one": (0, 1), "columns": (1, count)}[kind]
            own += [array, *map(np.int64, apart)]
        self._launch(own, count)

    def run(
        self,
        rows: Mapping[str, Array],
        tables: Mapping[str, Array],
        records: Mapping[str, Array],
        count: int,
        threads: int = 1,
    ) -> None:
        """Run to the end, for ``count`` states; ``threads`` are the device's own affair.

        Arrays are CuPy's, and may also be NumPy's: those are brought to the device, and the rows among them that are
        stored come back, which waits for the kernel. As :meth:`linkwise.trace.interpreter.Interpreter.run` else.
        """
        cp = cupy()
        here = {name: cp.asarray(array) for name, array in {**rows, **tables, **records}.items()}
        numbers = distances(self.program, here, count)
        own = [
            here[each.name] if each.kind == "array" else np.int64(numbers[each.kind, each.name])
            for each in arguments_of(self.program)
        ]
        self._launch(own, count)
        for buffer in self.program.buffers:
            if buffer.store and isinstance(rows[buffer.name], np.ndarray):
                rows[buffer.name][...] = cp.asnumpy(here[buffer.name])

    def _launch(self, own: Sequence[object], count: int) -> None:
        if count == 0:
            return
        ready = self.ready()
        blocks = ready.kernel.blocks(count)
        if ready.is_pooled:
            self._launch_pooled(ready, own, count)
            return
        if len(ready.kernels) > 1:
            self._launch_parts(ready, own, count, blocks)
            return
        if ready.tables:
            name, tiles = self.program.name, min(blocks, ready.most)
            scratch, blocks = working_memory(name, tiles, ready.memory, self.dtype, SCRATCH_BYTES)
            own = (*own, scratch, *ready.tables)
        threads, shared = ready.kernel.threads, ready.kernel.shared_bytes
        ready.launchers[0]((blocks,), (threads,), (*own, np.int64(count)), shared_mem=shared)

    def _launch_pooled(self, ready: _Ready, own: Sequence[object], count: int) -> None:
        """A launch of each kernel, and each turn: as many states as could all have to wait."""
        lanes = layouts.LANES[0]
        waiting, tiles = working_memory(self.program.name, -(-count // lanes), ready.memory, self.dtype, BETWEEN_BYTES)
        for begin in range(0, count, tiles * lanes):
            end = min(count, begin + tiles * lanes)
            queue = zeros(HEAD + end - begin)
            given = (*own, waiting, queue, np.int64(count), np.int64(begin), np.int64(end))
            for kernel, launcher in zip(ready.kernels, ready.launchers, strict=True):
                _launch(kernel, launcher, end - begin, given)

    def _launch_parts(self, ready: _Ready, own: Sequence[object], count: int, blocks: int) -> None:
        """A launch for each part, and each turn: as many states as the memory has room for."""
        lanes = ready.kernel.threads
        most = max(SCRATCH_BYTES, ready.most * ready.memory * lanes * self.dtype.itemsize)
        scratch, tiles = working_memory(self.program.name, blocks, ready.memory, self.dtype, most)
        given = (*own, scratch, *ready.tables, np.int64(count))
        for begin in range(0, count, tiles * lanes):
            end = min(count, begin + tiles * lanes)
            for kernel, launcher in zip(ready.kernels, ready.launchers, strict=True):
                _launch(kernel, launcher, end - begin, (*given, np.int64(begin), np.int64(end)))

    def ready(self) -> _Ready:
        """Parts of a launch on the current device."""
        cp = cupy()
        device = cp.cuda.Device()
        known = self._ready.get(device.id)
        if known is None:
            writer = kernel_writer(self.program, self.dtype.itemsize * 8, shared_bytes(self._memory))
            tables, memory = (), 0
            kernels = writer.parts()
            if isinstance(writer, DeviceKernel):
                given = (writer.tables.whole_numbers, writer.tables.numbers(self.dtype))
                tables, memory = tuple(cp.asarray(array) for array in given), writer.tables.size
            is_pooled = isinstance(writer, PooledKernel)
            if isinstance(writer, PooledKernel):
                memory = writer.memory
            most = _TILES * int(device.attributes.get("MultiProcessorCount", 64))
            launchers = compiled_kernels(kernels)
            known = self._ready[device.id] = _Ready(kernels, launchers, tables, memory, most, is_pooled)
        return known


def is_sequence(program: Program, bits: int) -> bool:
    """Whether a program is nothing but calls from whole buffers to whole buffers, some of long blocks or long loops.

    One that works in device memory is cut there (:meth:`~linkwise.targets.cuda.device_memory.DeviceKernel.parts`).
    """
    calls = [each for each in program.statements if isinstance(each, Call)]
    places = [place for call in calls for place in (*call.inputs, *call.outputs)]
    own = (program.initial, program.tables, program.records, program.curves, program.series)
    return (
        len(calls) == len(program.statements)
        and not any(map(len, own))
        and not any(b.open or b.in_lanes or (b.load and b.store) for b in program.buffers)
        and all(isinstance(place, str) and place != PARAMETERS for place in places)
        and (
            any(isinstance(call.code, Block) and is_long(call.code, bits) for call in calls)
            or (len(calls) <= CALLS and any(isinstance(call.code, Program) and waits(call.code) for call in calls))
        )
        and not works_on_device(program, bits)
    )


def waits(program: Program) -> bool:
    """Whether states of a program wait for others so long that those which are done should make room."""
    return WaitingLoop.of(with_loops_inlined(program)) is not None


class CallSequence:
    """A program that is nothing but calls: a launch for each, and what goes from one to the next in memory.

    In one kernel its long blocks would wait for instructions, and take a minute to compile.
    """

    def __init__(self, program: Program, dtype: DTypeLike) -> None:
        self.program, self.dtype = program, np.dtype(dtype)
        calls = [each for each in program.statements if isinstance(each, Call)]
        codes = {id(call.code): call.code for call in calls}
        overlapping = {id(call.code) for call in calls if set(call.inputs) & set(call.outputs)}
        launched = {
            key: device_block(code, dtype, apart=key not in overlapping)
            if isinstance(code, Block)
            else DeviceProgram(code, dtype)
            for key, code in codes.items()
        }
        self.calls = [(launched[id(call.code)], (*call.inputs, *call.outputs)) for call in calls]
        self.between = [buffer for buffer in program.buffers if not (buffer.load or buffer.store)]
        self._prepared: set[Hashable] = set()

    def launch(self, arrays: Sequence[object], kinds: tuple[ArrayOrder, ...], count: int) -> bool:
        """Run on the current device and stream, in turns where memory does not suffice for all states.

        False, and nothing done, where that cannot be: the states of columns do not lie one behind the other.
        """
        lanes, numbers = layouts.LANES[0], sum(buffer.size for buffer in self.between)
        memory, tiles = working_memory(self.program.name, -(-count // lanes), numbers, self.dtype, BETWEEN_BYTES)
        if tiles * lanes < count and "columns" in kinds:
            return False
        own = [b for b in self.program.buffers if b.load] + [b for b in self.program.buffers if b.store]
        for begin in range(0, count, tiles * lanes):
            some = min(count - begin, tiles * lanes)
            at: dict[object, tuple[object, ArrayOrder]] = {}
            for buffer, array, kind in zip(own, arrays, kinds, strict=True):
                skipped = 0 if kind == "one" else begin * buffer.size * self.dtype.itemsize
                at[buffer.name] = (_from(array, skipped), kind)
            at |= self._between(memory, some)
            self._prepare({name: kind for name, (_, kind) in at.items()})
            for code, places in self.calls:
                code.launch([at[place][0] for place in places], tuple(at[place][1] for place in places), some)
        return True

    def _between(self, memory: Any, count: int) -> dict[object, tuple[object, ArrayOrder]]:
        """Arrays of the buffers between the calls."""
        found: dict[object, tuple[object, ArrayOrder]] = {}
        begin = 0
        for buffer in self.between:
            found[buffer.name] = (memory[begin : begin + max(1, buffer.size) * count], "columns")
            begin += buffer.size * count
        return found

    def _prepare(self, kinds: Mapping[object, ArrayOrder]) -> None:
        """Compile all kernels side by side, before the first launch."""
        device = cupy().cuda.Device().id
        key = (device, tuple(kinds.items()))
        if key in self._prepared:
            return

        def prepared(call: tuple[Launched[Any], tuple[object, ...]]) -> None:
            with cupy().cuda.Device(device):
                call[0].prepare(tuple(kinds[place] for place in call[1]))

        with ThreadPoolExecutor(min(len(self.calls), os.cpu_count() or 1)) as pool:
            list(pool.map(prepared, self.calls))
        self._prepared.add(key)


def _from(array: Any, skipped: int) -> object:
    """An array from some byte on."""
    if not skipped:
        return array
    return np.uint64((int(array) if isinstance(array, (int, np.integer)) else array.data.ptr) + skipped)


@dataclass(frozen=True)
class _Ready:
    """A program on one device.

    Args:
        kernels: their texts, one or several that run one after the other.
        launchers: the kernels, compiled.
        tables: where its buffers are in device memory, what steers it.
        memory: and the numbers of a state there, or of one that waits.
        most: tiles that run at a time.
        is_pooled: whether states that are not done wait in a queue.
    """

    kernels: Sequence[Kernel]
    launchers: Sequence[Launcher]
    tables: tuple[object, ...]
    memory: int
    most: int
    is_pooled: bool

    @property
    def kernel(self) -> Kernel:
        """The first."""
        return self.kernels[0]


def launch_on_stream(
    program: Block | Program, dtype: DTypeLike
) -> Callable[[int, Sequence[int], int], DirectLaunch | None]:
    """Function that launches a program on a stream of somebody else's, with arrays of rows known by their addresses."""
    kernel: LaunchedBlock | DeviceProgram
    kernel = device_block(program, dtype) if isinstance(program, Block) else DeviceProgram(program, dtype)

    def launch(stream: int, places: Sequence[int], count: int) -> DirectLaunch | None:
        if not count:
            return None
        cp = cupy()
        device = cp.cuda.runtime.pointerGetAttributes(int(places[-1])).device  # results have an address for certain
        with cp.cuda.Device(device), external_stream(stream):
            kinds = tuple[ArrayOrder, ...]("rows" for _ in places)
            kernel.launch(places, kinds, count)
            return kernel.direct(kinds) if isinstance(kernel, DeviceBlock) else None

    return launch


def kernel_writer(program: Program, bits: int, available: int = layouts.SHARED_BYTES) -> DeviceKernel | ThreadKernel:
    """The writer of a program's kernels: in the memory of threads, or of the device where that does not suffice.

    Buffers whose size is data are always there.
    """
    if works_on_device(program, bits):
        return DeviceKernel(program, bits)
    inlined = with_loops_inlined(program)
    loop = WaitingLoop.of(inlined)
    if loop is not None:
        return PooledKernel(inlined, loop, bits, available)
    return ThreadKernel(program, bits, available)


def works_on_device(program: Program, bits: int) -> bool:
    """Whether a program's buffers are in device memory."""
    is_open = any(buffer.open for buffer in program.buffers)
    return is_open or thread_bytes(program, bits) > most_thread_bytes(program)


def distances(program: Program, arrays: Mapping[str, Array], count: int) -> dict[tuple[str, str], int]:
    """The numbers among a kernel's arguments, by kind and name, for arrays that lie as they do."""
    numbers: dict[tuple[str, str], int] = {}
    for buffer in program.kept:
        numbers["apart", buffer.name], numbers["stride", buffer.name] = buffer.size, 1
    for names, shared in ((program.records, False), (program.series, True)):
        for name, size in names:
            apart = steps_between(name, arrays[name], count, size, shared=shared)
            numbers["apart", name], numbers["stride", name] = apart
    for name, width in program.curves:
        members, length, own = arrays[name].shape
        if members not in (1, count) or own != width:
            raise ValueError(f"the curve {name!r} has shape {arrays[name].shape}, not ({count} or 1, …, {width})")
        numbers["apart", name], numbers["rows", name] = 0 if members == 1 else length * width, length
    return numbers
