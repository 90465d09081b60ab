"""The kernels of blocks with wide results (:mod:`linkwise.targets.cuda.parts`), one for each part and a last one.

As everywhere a thread has a state. Its inputs are brought to slots of shared memory, where values for which there is no
register wait too. What another kernel needs is in memory between the kernels, 32 states side by side, or among results
that have their states side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from linkwise.targets.c.lines import identifier
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.inline_assembly import Address, AssemblyWriter, declarations
from linkwise.targets.cuda.instructions import ordered
from linkwise.targets.cuda.parts import KernelPart, KernelParts
from linkwise.targets.cuda.plan_writer import Constants
from linkwise.targets.cuda.source import LIMIT, Kernel, device_functions, opening
from linkwise.targets.cuda.spilling import plan, with_shared_slots
from linkwise.targets.cuda.tile_layout import ArrayOrder, array_names
from linkwise.trace.block import Block, is_truth

LONGEST = {32: 6800, 64: 4600}
"""Instructions of a part. Each takes 16 bytes, with 64 bits many take two, and a multiprocessor keeps about 128 kB."""

LONGEST_AT_HOME = {32: 4800, 64: 3400}
"""The same where results are left where they belong, each at an address of its own. A part of a humanoid's step
that was cut from 150 to 120 kB took half the time."""

_STATES = (32, 16, 8, 4, 2, 1)  # of a block of the last kernel: as many as find room
_THREADS = 512  # of such a block
_BYTES = 104 * 1024  # of shared memory for a block, so that two find room on the large devices
_FEW = 2  # warps that share a multiprocessor at least, however large inputs are
_WARPS = {32: 8, 64: 6}  # that share a multiprocessor: eight have all the registers that a thread can have
_BLOCK_BYTES = 1024  # of shared memory that each block takes for itself

Homes = Mapping[int, Sequence[tuple[int, int]]]
"""Outputs and numbers in them that results are, by their places."""


def part_kernel(
    program: Block,
    whole: KernelParts,
    part: KernelPart,
    bits: int,
    kinds: Sequence[ArrayOrder],
    shared_bytes: int,
    homes: Homes | None = None,
) -> Kernel:
    """The kernel of a part.

    Its parameters are the inputs, the outputs if they have ``homes``, the memory between the kernels, ``count``, and
    which states it takes: from ``lw_begin`` to ``lw_end``.

    Args:
        program: the whole.
        whole: its division.
        part: what this one computes.
        bits: 64 or 32.
        kinds: how each input comes.
        shared_bytes: shared memory that a block may have.
        homes: of results that are left where they belong.
    """
    return _WideKernelWriter(program, whole, part, bits, kinds, shared_bytes, homes).kernel()


class _WideKernelWriter:
    """Writes one kernel."""

    def __init__(
        self,
        program: Block,
        whole: KernelParts,
        part: KernelPart,
        bits: int,
        kinds: Sequence[ArrayOrder],
        shared_bytes: int,
        homes: Homes | None,
    ) -> None:
        self.program, self.whole, self.bits, self.homes = program, whole, bits, homes or {}
        self.name = f"linkwise_{identifier(program.name)}"
        names, given = array_names(program), len(program.inputs)
        self.inputs = list(zip(names[:given], program.inputs, kinds, strict=True))
        self.outputs = () if homes is None else names[given:]
        self.zeros = self.homes.get(-1, ()) if part is whole.parts[-1] else ()
        slot_bytes = (layouts.LANES[0] + 1) * bits // 8
        self.given = self._given(part, shared_bytes // (_FEW * slot_bytes))
        truths = [value for value, node in enumerate(program.nodes) if is_truth(node)]
        slots = {slot for slot in self.given.values() if slot >= 0}
        order = ordered(part.order, self.given.keys(), list(part.writes))
        planned = plan(order, self.given, LIMIT[bits], reusable=slots, registers_only=truths)
        room = (shared_bytes + _BLOCK_BYTES) // _WARPS[bits] - _BLOCK_BYTES
        self.shared = with_shared_slots(planned, room // slot_bytes)
        self.shared_bytes = max(self.staged, self.shared.slots) * slot_bytes
        angles = whole.angles & self.given.keys()
        tame = all(self.given[value] >= 0 for value in angles)
        self.angles = sorted(angles) if tame else []
        self.constants = Constants.of([program], bits)
        pointers = {"lw_own": "r", "lw_row": "l"} | dict.fromkeys(self._ones, "l")
        if self.outputs:
            pointers |= {"lw_apart": "r"} | {f"lw_to{k}": "l" for k in range(len(self.outputs))}
        leaves = {value: self._left(place) for value, place in part.writes.items()}
        self.body = AssemblyWriter(
            program, self.shared.plan, self.constants, self._place, leaves, pointers, whole.safe if tame else ()
        )

    def _given(self, part: KernelPart, room: int) -> dict[int, int]:
        """The slot of each value that is read and was given; a negative one for what is read where it is.

        Inputs are brought here, the small ones first, while there is room.
        """
        nodes = self.program.nodes
        read = sorted({value for each in part.order for value in each.reads})
        inputs = [value for value in read if value < len(nodes) and nodes[value][0] == "input"]
        self.first: dict[int, int] = {}  # slot of each input that is brought here
        self.staged = 0
        for k in sorted({nodes[value][1] for value in inputs}, key=lambda k: self.inputs[k][1].size):
            if self.inputs[k][2] != "one" and self.staged + self.inputs[k][1].size <= room:
                self.first[k] = self.staged
                self.staged += self.inputs[k][1].size
        staged = [value for value in inputs if nodes[value][1] in self.first]
        given = {value: self.first[nodes[value][1]] + nodes[value][2] for value in staged}
        self.elsewhere: list[Address] = []
        for value in read:
            if value in part.reads:
                self.elsewhere.append(self._left(part.reads[value])[0])
            elif value in inputs and value not in given:
                self.elsewhere.append(self._at_home(*nodes[value][1:]))
            else:
                continue
            given[value] = -len(self.elsewhere)
        return given

    def _at_home(self, array: int, number: int) -> Address:
        """A number of an input that is read where it is."""
        name, spec, kind = self.inputs[array]
        if kind == "one":
            return "global", f"%{2 + self._ones.index(name)}+{number * self.bits // 8}"
        return (
            "C++",
            f"{name}[lw_here * {spec.size} + {number}]" if kind == "rows" else f"{name}[{number} * count + lw_here]",
        )

    @property
    def _ones(self) -> list[str]:
        """Names of the inputs that serve all states."""
        return [name for name, _, kind in self.inputs if kind == "one"]

    def _left(self, place: int) -> list[Address]:
        """Addresses at which a value is left for others: all numbers that a result is, or one between the kernels."""
        apart = 2 + len(self._ones)
        if place in self.homes:
            return [("columns", f"%{apart}, {number}, %{apart + 1 + array}") for array, number in self.homes[place]]
        return [("global", f"%1+{place * layouts.LANES[0] * self.bits // 8}")]

    def _place(self, slot: int) -> Address:
        size = self.bits // 8
        if slot < 0:
            return self.elsewhere[-1 - slot]
        if slot >= self.shared.slots:
            return "local", f"lw_far+{(slot - self.shared.slots) * size}"
        return "shared", f"%0+{slot * (layouts.LANES[0] + 1) * size}"

    def kernel(self) -> Kernel:
        return Kernel(self.name, "\n".join(self._lines()), layouts.LANES[0], self.shared_bytes, in_place=False)

    def _lines(self) -> Iterator[str]:
        real = "float" if self.bits == 32 else "double"
        threads = layouts.LANES[0]
        yield f"// A part of {self.program.name}: one state per thread, {real}. Generated by linkwise."
        yield f"// Launch with {threads} threads a block and {self.shared_bytes} bytes of shared memory."
        yield from opening(self.bits, threads)
        yield f"#define LW_BITS {self.bits}"
        yield device_functions("wide.cuh")
        yield from self.constants.table()
        parameters = [f"const REAL *{name}" for name, _, _ in self.inputs]
        parameters += [f"REAL *{name}" for name in self.outputs]
        parameters += [
            "REAL *lw_between",
            "const long long count",
            "const long long lw_begin",
            "const long long lw_end",
        ]
        yield f'extern "C" __global__ void __launch_bounds__({threads})'
        yield f"{self.name}({', '.join(parameters)})"
        yield "{"
        yield from (f"    {line}" for line in self._inside())
        yield "}"
        yield ""

    def _inside(self) -> Iterator[str]:
        yield from declarations(self.whole.values, self.constants, self.shared.local)
        yield "extern __shared__ __align__(16) REAL lw_memory[];"
        yield "REAL *const lw_slots = lw_memory;"
        yield "const int lane = lw_lane();"
        yield "const long long first = lw_begin + (long long)blockIdx.x * LW_LANES;"
        yield "const int rows = lw_end - first < LW_LANES ? (int)(lw_end - first) : LW_LANES;"
        yield "const long long lw_here = first + (lane < rows ? lane : 0);"
        yield "const lw_shared lw_own = lw_address(lw_slots + lane);"
        yield f"REAL *const lw_row = lw_between + (long long)blockIdx.x * ({self.whole.places} * LW_LANES) + lane;"
        if self.outputs:  # a lane without a state writes to its own place between the kernels
            yield "const unsigned lw_apart = lane < rows ? (unsigned)(count * sizeof(REAL)) : 0;"
            for k, name in enumerate(self.outputs):
                yield f"REAL *const lw_to{k} = lane < rows ? {name} + lw_here : lw_row;"
        for k, slot in self.first.items():
            name, spec, kind = self.inputs[k]
            if kind == "rows":
                yield f"lw_rows_in<{spec.size}>(lw_slots + {slot} * LW_PITCH, {name} + first * {spec.size}, rows);"
            else:
                inward = (
                    f"lw_numbers_in<{spec.size}>(lw_slots + {slot} * LW_PITCH + lane, {name} + first + lane, count);"
                )
                yield f"if (lane < rows) {inward}"
        yield "lw_arrived();"
        if self.angles:
            places = [f"lw_slots[{self.given[value]} * LW_PITCH + lane]" for value in self.angles]
            yield "lw_size largest = 0;"
            yield from (f"largest = lw_larger(largest, lw_magnitude({place}));" for place in places)
            yield "if (largest >= lw_magnitude(lw_angle_limit((REAL)0))) {"
            yield from (f"    {place} = lw_within_a_turn({place});" for place in places)
            yield "}"
        yield "(void)count, (void)lw_here;"
        yield from self.body.lines
        for array, number in self.zeros:
            yield f"if (lane < rows) {self.outputs[array]}[{number} * count + lw_here] = 0;"


def last_kernel(
    program: Block, parts: KernelParts, bits: int, kinds: Sequence[ArrayOrder], shared_bytes: int = layouts.SHARED_BYTES
) -> Kernel:
    """The last kernel: what the others computed, to the rows where it belongs.

    Most numbers of a matrix of derivatives are zero or occur twice. Its different numbers come from the memory between
    the kernels, and whole rows leave, those of several states one behind the other: memory takes long stretches at its
    full rate, and rows that lie apart at half of it.

    Its parameters are the outputs, the memory between the kernels, ``count``, and which states it
    takes: from ``lw_begin`` to ``lw_end``; a block takes some of them.

    Args:
        program: the whole.
        parts: its division.
        bits: 64 or 32.
        kinds: how each output comes.
        shared_bytes: shared memory that a block may have.
    """
    numbers, tile = sum(map(len, parts.tables)), layouts.LANES[0]

    def shared(states: int) -> int:
        return _bytes(parts.results, numbers, states, bits)

    room = min(_BYTES, shared_bytes)
    states = next((n for n in _STATES if n <= tile and shared(n) <= room), None)
    text = "\n".join(_lines(program, parts, bits, kinds, states))
    taken = 0 if states is None else shared(states)
    return Kernel(f"linkwise_{identifier(program.name)}", text, _THREADS, taken, in_place=False, states=states or tile)


def _bytes(results: int, numbers: int, states: int, bits: int) -> int:
    return results * (states + 1) * bits // 8 + _index(results, states)[1] * numbers


def _index(results: int, states: int) -> tuple[str, int]:
    """The type of a place in the table, and its bytes."""
    return ("short", 2) if results * (states + 1) < 1 << 15 else ("int", 4)


def _lines(
    program: Block, parts: KernelParts, bits: int, kinds: Sequence[ArrayOrder], fitting: int | None
) -> Iterator[str]:
    """``fitting``: states for whose numbers there is room on the chip; None: they are read where they are."""
    states, apart = (fitting, fitting + 1) if fitting else (layouts.LANES[0], layouts.LANES[0])
    names = array_names(program)[len(program.inputs) :]
    yield f"// The last part of {program.name}: its results to rows. Generated by linkwise."
    yield from opening(bits, layouts.LANES[0])
    yield f"#define LW_BITS {bits}"
    yield "#ifndef LW_THREADS"
    yield f"#define LW_THREADS {_THREADS}"
    yield "#endif"
    yield f"#define LW_STATES {states}"
    yield f"#define LW_TILE {layouts.LANES[0]}"
    yield f"#define LW_INDEX {_index(parts.results, apart)[0]}"
    yield device_functions("wide.cuh")
    places = [-1 if place < 0 else place * apart for table in parts.tables for place in table]
    yield "__device__ const LW_INDEX lw_table[] = {"
    yield from (f"    {', '.join(map(str, places[k : k + 24]))}," for k in range(0, len(places), 24))
    yield "};"
    yield ""
    parameters = [*(f"REAL *{name}" for name in names), "const REAL *lw_between"]
    parameters += ["const long long count", "const long long lw_begin", "const long long lw_end"]
    yield f'extern "C" __global__ void __launch_bounds__({_THREADS})'
    yield f"linkwise_{identifier(program.name)}({', '.join(parameters)})"
    yield "{"
    yield "    const long long lw_some = (long long)blockIdx.x * LW_STATES, first = lw_begin + lw_some;"
    yield "    const int rows = lw_end - first < LW_STATES ? (int)(lw_end - first) : LW_STATES;"
    yield f"    const REAL *const tile = lw_between + lw_some / LW_TILE * ({parts.places} * LW_TILE);"
    if fitting:
        yield "    extern __shared__ __align__(16) REAL lw_memory[];"
        yield "    REAL *const lw_slots = lw_memory;"
        yield f"    LW_INDEX *const lw_places = reinterpret_cast<LW_INDEX *>(lw_slots + {parts.results * apart});"
        yield f"    for (int k = threadIdx.x; k < {len(places)}; k += LW_THREADS) lw_places[k] = lw_table[k];"
        yield f"    lw_gather<{parts.results}>(lw_slots, tile, (int)(lw_some % LW_TILE));"
        yield "    __syncthreads();"
    else:
        yield "    const REAL *const lw_slots = tile;"
        yield "    const LW_INDEX *const lw_places = lw_table;"
    at = 0
    for name, spec, kind in zip(names, program.outputs, kinds, strict=True):
        if spec.size and kind == "rows":
            yield f"    lw_spread<{spec.size}>({name} + first * {spec.size}, lw_places + {at}, lw_slots, rows);"
        elif spec.size:
            yield f"    lw_spread_apart<{spec.size}>({name} + first, lw_places + {at}, lw_slots, rows, count);"
        at += spec.size
    yield "}"
    yield ""
