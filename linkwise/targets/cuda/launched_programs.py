"""Launches of programs on a GPU, compiled when first needed: one kernel, or several that run one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.targets import DirectLaunch
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.device_memory import DeviceKernel
from linkwise.targets.cuda.launched_blocks import (
    DeviceBlock,
    Launched,
    LaunchedBlock,
    device_block,
    is_long,
    launch_states,
    tiles_of,
    turns,
)
from linkwise.targets.cuda.pooled_threads import HEAD, PooledKernel
from linkwise.targets.cuda.runtime import (
    Launcher,
    compiled_kernels,
    cupy,
    external_stream,
    shared_bytes,
    working_memory,
    zeros,
)
from linkwise.targets.cuda.source import Kernel
from linkwise.targets.cuda.statements import arguments_of
from linkwise.targets.cuda.thread_memory import CALLS, ThreadKernel, most_thread_bytes, thread_bytes
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.targets.recycled import steps_between
from linkwise.trace.block import Block
from linkwise.trace.program import PARAMETERS, Call, Program
from linkwise.trace.waiting import WaitingLoop, with_loops_inlined

_TILES = 16  # that a multiprocessor works on at a time: as many warps as its registers can feed


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
        if ready.is_pooled or len(ready.kernels) > 1:
            self._launch_in_turns(ready, own, count)
            return
        blocks = ready.kernel.blocks(count)
        if ready.tables:
            name, tiles = self.program.name, min(blocks, ready.most)
            scratch, blocks = working_memory(name, tiles, ready.memory, self.dtype)
            own = (*own, scratch, *ready.tables)
        threads, shared = ready.kernel.threads, ready.kernel.shared_bytes
        ready.launchers[0]((blocks,), (threads,), (*own, np.int64(count)), shared_mem=shared)

    def _launch_in_turns(self, ready: _Ready, own: Sequence[object], count: int) -> None:
        """A launch of each kernel, and each turn: as many states as the memory has room for."""
        running = 0 if ready.is_pooled else ready.most
        least = running * ready.memory * layouts.LANES[0] * self.dtype.itemsize
        memory, tiles = working_memory(self.program.name, tiles_of(count), ready.memory, self.dtype, least)
        for begin, end in turns(count, tiles):
            queue = (zeros(HEAD + end - begin),) if ready.is_pooled else ()
            numbers = (np.int64(count), np.int64(begin), np.int64(end))
            for kernel, launcher in zip(ready.kernels, ready.launchers, strict=True):
                launch_states(kernel, launcher, end - begin, (*own, memory, *ready.tables, *queue, *numbers))

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
        numbers = sum(buffer.size for buffer in self.between)
        memory, tiles = working_memory(self.program.name, tiles_of(count), numbers, self.dtype)
        if tiles < tiles_of(count) and "columns" in kinds:
            return False
        own = [b for b in self.program.buffers if b.load] + [b for b in self.program.buffers if b.store]
        for begin, end in turns(count, tiles):
            at: dict[object, tuple[object, ArrayOrder]] = {}
            for buffer, array, kind in zip(own, arrays, kinds, strict=True):
                skipped = 0 if kind == "one" else begin * buffer.size * self.dtype.itemsize
                at[buffer.name] = (_from(array, skipped), kind)
            at |= self._between(memory, end - begin)
            self._prepare({name: kind for name, (_, kind) in at.items()})
            for code, places in self.calls:
                code.launch([at[place][0] for place in places], tuple(at[place][1] for place in places), end - begin)
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
