"""The text of a kernel: a program for a batch of states, or a step of one for many steps.

A warp takes a tile of 32 states. Their rows are staged in shared memory, each thread computes its state from there to
there, and the results leave side by side. In a rollout the computation runs many times over the same tile, results
taking the place of inputs, and nothing but what is recorded leaves the chip meanwhile. Programs with wide results,
matrices of derivatives say, run as several kernels (:mod:`linkwise.targets.cuda.parts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.targets.c.lines import identifier
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.instructions import Instruction, instructions, operand, ordered, pure_angles
from linkwise.targets.cuda.plan_writer import Constants, PlanWriter
from linkwise.targets.cuda.spilling import Reload, plan, with_some_local
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.targets.steps import Repetition, Rollout
from linkwise.trace.block import Block, is_truth
from linkwise.trace.program import Program

# Values in registers: what a thread has, less addresses, and pairs of them for 64 bits.
LIMIT = {32: 225, 64: 96}
_PAIR_BYTES = 56 * 1024  # of shared memory, up to which two tiles share a block
_BLOCK_BYTES = 1024  # of shared memory that each block takes for itself
_WARPS = 8  # that share a multiprocessor: so many have all the registers that a thread can have
_WIDE_ROW = 128  # bytes of input for each state, above which rows are copied without passing through registers


@dataclass(frozen=True)
class Kernel:
    """A kernel's text, and what is needed to launch it.

    Its parameters are the inputs, the outputs, ``count``, and for a rollout ``steps``; of parts and routines, what the
    functions say that write them.
    """

    name: str
    text: str = field(repr=False)
    threads: int
    shared_bytes: int
    in_place: bool  # an output may be the same array as an input
    states: int = 0  # of a block; one for each thread if not given

    def blocks(self, count: int) -> int:
        """Number of blocks of threads that cover a batch."""
        return -(-count // (self.states or self.threads))


def batch_kernel(
    program: Block,
    bits: int,
    kinds: tuple[ArrayOrder, ...] | None = None,
    shared_bytes: int = layouts.SHARED_BYTES,
) -> Kernel:
    """The kernel of a program.

    Args:
        program: what is computed.
        bits: 64 or 32.
        kinds: how each array comes, inputs and then outputs; rows if not given.
        shared_bytes: shared memory that a block may have.
    """
    return _TileKernelWriter(program, bits, kinds or all_rows(program), None, shared_bytes).kernel()


def rollout_kernel(
    routine: Repetition,
    bits: int,
    kinds: tuple[ArrayOrder, ...] | None = None,
    shared_bytes: int = layouts.SHARED_BYTES,
) -> Kernel:
    """The kernel of a routine that repeats one program.

    It is a program as any other, and :class:`linkwise.targets.cuda.thread_memory.ThreadKernel` writes it too. But this
    kernel keeps the state in shared memory, reads sequences and writes records side by side, and so runs nearly twice
    as fast: 6.7 G steps/s against 3.5 (rollouts of a Panda in float32 on an H200).
    """
    program = straight(routine)
    return _TileKernelWriter(program, bits, kinds or all_rows(program), routine.rollout, shared_bytes).kernel()


def straight(routine: Repetition) -> Block:
    """The program that a rollout repeats, which this kernel takes without loops; ``lw.compile`` makes no others."""
    program = routine.step
    if isinstance(program, Program):
        raise InputError(
            f"{routine.name} repeats a program with loops over the links, which rollouts on a GPU do not take",
            got=program.name,
            allowed="what lw.compile makes: all links written out",
            do='model.with_sweeps("unrolled"), or lw.simulate, which takes loops as well',
        )
    return program


def all_rows(program: Block) -> tuple[ArrayOrder, ...]:
    """Every array as rows."""
    return tuple[ArrayOrder, ...]("rows" for _ in (*program.inputs, *program.outputs))


@cache
def device_functions(name: str) -> str:
    """The functions that are in a file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def opening(bits: int, lanes: int, warps: int = 1, *, wide_rows: bool = False) -> Iterator[str]:
    """Opening lines of every kernel: its division into threads, and what all kernels use."""
    yield f"#define REAL {'float' if bits == 32 else 'double'}"
    yield "#ifndef LW_LANES"
    yield f"#define LW_LANES {lanes}"
    yield "#endif"
    yield f"#define LW_WARPS {warps}"
    yield f"#define LW_WIDE_ROWS {int(wide_rows)}"
    yield ""
    yield device_functions("device.cuh")


class _TileKernelWriter:
    """Writes one kernel."""

    def __init__(
        self,
        program: Block,
        bits: int,
        kinds: tuple[ArrayOrder, ...],
        rollout: Rollout | None,
        shared_bytes: int,
    ) -> None:
        self.program, self.bits, self.rollout = program, bits, rollout
        self.name = f"linkwise_{identifier(program.name)}"
        nodes = program.nodes
        made = instructions(program)
        self.given = [value for value, node in enumerate(nodes) if node[0] == "input"]
        wanted = [operand(program, value).value for row in program.results for value in row]
        self.order = ordered(made, set(self.given), wanted)
        self._fit(kinds, shared_bytes)
        # What comes between steps reads inputs too, so no input is only an angle there.
        angles, safe = (set(), set()) if rollout else pure_angles(program, made)
        if not all(self.layout.inputs[nodes[value][1]].staged for value in angles):
            angles, safe = set(), set()
        self.angles: set[int] = angles
        self.constants = Constants.of([program], bits)
        self.body = PlanWriter(program, self.plan, self.constants, self._slot, self._output, safe)

    def _fit(self, kinds: tuple[ArrayOrder, ...], shared_bytes: int) -> None:
        """Put as many states into a tile as fit. Below 32 some threads idle, but rows are read side by side."""
        size = self.bits // 8
        self._lay_out(kinds, 1 << 30, shared_bytes)
        fitting = [lanes for lanes in layouts.LANES if lanes * self.size * size <= shared_bytes]
        self.lanes = (fitting or layouts.LANES)[0]
        if not fitting:
            if self.rollout:
                raise InputError(
                    f"the arrays of {self.program.name} are too large for a rollout on this GPU",
                    got=", ".join(f"{p.name}: {p.size}" for p in self.layout.places) + " numbers for each state",
                    allowed=f"{shared_bytes // (layouts.LANES[-1] * size)} numbers, all arrays together",
                    do="drop outputs that no later step needs, or roll out on the CPU",
                )
            self._lay_out(kinds, max(0, shared_bytes // (self.lanes * size) - 2 * self.shared_slots), shared_bytes)
        whole = self.lanes == layouts.LANES[0]
        self.warps = 2 if whole and 2 * self.lanes * self.size * size <= min(_PAIR_BYTES, shared_bytes) else 1
        self.threads = self.warps * self.lanes
        self.shared_bytes = self.threads * self.size * size

    def _lay_out(self, kinds: tuple[ArrayOrder, ...], most: int, shared_bytes: int) -> None:
        program = self.program
        # What is fed back should be written where it is read in the next step; where that does not work, it is copied.
        # Any other result may take the place of an input that is as large.
        self.same = dict(self.rollout.feedback) if self.rollout else self._replaced(kinds)
        while True:
            self.layout = layouts.lay_out(program, self.bits, kinds, most, self.same)
            place = {value: self.layout.inputs[program.nodes[value][1]] for value in self.given}
            slots = {value: k for k, value in enumerate(self.given)}
            held = self._held()
            reusable = {slots[v] for v, p in place.items() if p.staged and program.nodes[v][1] not in held}
            truths = [value for value, node in enumerate(program.nodes) if is_truth(node)]
            self.plan = plan(self.order, slots, LIMIT[self.bits], reusable=reusable, registers_only=truths)
            too_early = self._written_too_early()
            if not too_early:
                break
            for output in too_early:
                del self.same[output]
        self.shared_slots, self.local_slots = self.plan.slots - self.plan.given, 0
        if self.rollout is None:
            # Warps hide each other's waiting: as many as registers allow are worth more than all values on the chip.
            tile = shared_bytes // _WARPS - _BLOCK_BYTES
            room = max(0, tile // (layouts.LANES[0] * self.bits // 8) - self.layout.size)
            placed = with_some_local(self.plan, room)
            self.plan, self.local_slots = placed.plan, placed.local
            self.shared_slots = placed.slots - self.plan.given
        self.size = self.layout.size + self.shared_slots

    def _replaced(self, kinds: tuple[ArrayOrder, ...]) -> dict[int, int]:
        """For each output an input of its size, the one of its name if there is one."""
        cut = len(self.program.inputs)
        left = [k for k, kind in enumerate(kinds[:cut]) if kind != "one"]
        found: dict[int, int] = {}
        for output in sorted(range(len(self.program.outputs)), key=lambda k: -self.program.outputs[k].size):
            spec = self.program.outputs[output]
            fitting = [k for k in left if self.program.inputs[k].size == spec.size]
            if kinds[cut + output] != "one" and fitting:
                found[output] = min(fitting, key=lambda k: self.program.inputs[k].name != spec.name)
                left.remove(found[output])
        return found

    def _held(self) -> set[int]:
        """Inputs that must not be overwritten: the same in every step, or written only by what takes their place."""
        if self.rollout is None:
            return set(self.same.values())
        renewed = {i for _, i in self.rollout.feedback} | set(self.rollout.sequences)
        return (set(range(len(self.program.inputs))) - renewed) | set(self.same.values())

    def _written_too_early(self) -> set[int]:
        """Outputs some number of which would overwrite an input that is read later."""
        if not self.same:
            return set()
        written: dict[int, int] = {}
        read: dict[tuple[int, int], int] = {}
        for k, step in enumerate(self.plan.steps):
            if isinstance(step, Instruction):
                written.update(dict.fromkeys(step.writes or step.reads, k))
            elif isinstance(step, Reload) and self.program.nodes[step.value][0] == "input":
                _, array, number = self.program.nodes[step.value]
                read[array, number] = k
        found = set()
        for output, given in self.same.items():
            for number, value in enumerate(self.program.results[output]):
                when = written.get(operand(self.program, value).value, len(self.plan.steps))
                if when < read.get((given, number), -1):
                    found.add(output)
        return found

    def _slot(self, slot: int) -> str:
        if slot < self.plan.given:
            _, array, number = self.program.nodes[self.given[slot]]
            place = self.layout.inputs[array]
            at = layouts.element(place, number)
            # Where not all arrays are brought to the tile, no result lies where an input does.
            return at if place.staged or self.rollout else f"lw_read(&{at})"
        own = slot - self.plan.given
        return f"frame[LW_LANES * {own}]" if own < self.shared_slots else f"far[{own - self.shared_slots}]"

    def _output(self, array: int, number: int, value: str) -> str:
        place = self.layout.outputs[array]
        store = f"{layouts.element(place, number)} = {value};"
        return store if place.staged else f"if (inside) {store}"

    def kernel(self) -> Kernel:
        in_place = all(place.staged or not place.size for place in self.layout.places)
        return Kernel(self.name, "\n".join(self._lines()), self.threads, self.shared_bytes, in_place)

    def _lines(self) -> Iterator[str]:
        real = "float" if self.bits == 32 else "double"
        row_bytes = sum(p.size for p in self.layout.inputs if p.staged) * self.bits // 8
        shapes = ", ".join(f"{p.name} {p.size}" for p in self.layout.inputs)
        filled = ", ".join(f"{p.name} {p.size}" for p in self.layout.outputs)
        steps = " many steps," if self.rollout else ""
        yield f"// {self.program.name}:{steps} one state per thread, {real}. Generated by linkwise."
        yield f"// Numbers of each state: in {shapes or 'none'}; out {filled or 'none'}."
        yield f"// Launch with {self.threads} threads a block and {self.shared_bytes} bytes of shared memory."
        yield from opening(self.bits, self.lanes, self.warps, wide_rows=row_bytes > _WIDE_ROW)
        yield from self.constants.table()
        yield from self._head()
        yield "{"
        for line in self._inside():
            yield f"    {line}" if line and not line.startswith("#") else line
        yield "}"
        yield ""

    def _head(self) -> Iterator[str]:
        # How many blocks should fit a multiprocessor is left to the compiler: every hint tried was worse or no better.
        # But a loop over a long body is best run by few warps with many registers: more would run apart, and wait for
        # instructions.
        hint = ", 1" if self.rollout else ""
        yield f'extern "C" __global__ void __launch_bounds__({self.threads}{hint})'
        # Not restrict: an output may be the same array as an input.
        parameters = [f"const REAL *{p.name}" for p in self.layout.inputs]
        parameters += [f"REAL *{p.name}" for p in self.layout.outputs]
        parameters += ["const long long count"] + (["const int steps"] if self.rollout else [])
        yield f"{self.name}({', '.join(parameters)})"

    def _inside(self) -> Iterator[str]:
        # Slots that are used again must be read and written in the order written here.
        volatile = "volatile " if self.plan.stores or self.rollout else ""
        yield "extern __shared__ __align__(16) REAL lw_memory[];"
        yield "const int lane = lw_lane();"
        yield "const int warp = threadIdx.x / LW_LANES;"
        yield "const long long first = ((long long)blockIdx.x * LW_WARPS + warp) * LW_LANES;"
        yield "if (first >= count) return;"
        yield "const int rows = count - first < LW_LANES ? (int)(count - first) : LW_LANES;"
        yield "const bool inside = lane < rows;"
        yield "const long long here = first + (inside ? lane : 0);"
        yield f"REAL *const tile = lw_memory + warp * (LW_LANES * {self.size});"
        moving = self.rollout.sequences if self.rollout else ()
        for number, place in enumerate(self.layout.places):
            if place.staged or number not in moving:
                qualifiers = volatile if place.staged or self.rollout else ""
                yield from layouts.pointers(place, qualifiers, number < len(self.layout.inputs))
        if self.local_slots:
            yield f"volatile REAL far[{self.local_slots}];"
        if self.shared_slots:
            yield f"{volatile}REAL *const frame = tile + LW_LANES * {self.layout.size} + lane;"
        yield "(void)here;"
        yield ""
        if self.rollout is None:
            yield from self._batch()
        else:
            yield from self._steps(self.rollout)

    def _batch(self) -> Iterator[str]:
        watched = {self.layout.inputs[self.program.nodes[value][1]].name for value in self.angles}
        yield f"const bool whole = {layouts.whole(self.layout.places)};"
        if watched:
            yield "lw_size largest = 0;"
        yield from layouts.bring_in(self.layout.inputs, "whole", watched)
        if watched:
            yield "if (__any_sync(LW_MASK, largest >= lw_magnitude(lw_angle_limit((REAL)0)))) {"
            for value in sorted(self.angles):
                place = self._slot(self.given.index(value))
                yield f"    {place} = lw_within_a_turn({place});"
            yield "}"
        yield ""
        yield from self.body.lines
        yield ""
        yield from layouts.bring_out(self.layout.outputs, "whole")

    def _steps(self, rollout: Rollout) -> Iterator[str]:
        """The loop. Everything is in the tile between steps; each thread touches its own numbers only."""
        sequences = [self.layout.inputs[i] for i in rollout.sequences]
        outputs = self.layout.outputs
        once = [p for i, p in enumerate(self.layout.inputs) if i not in rollout.sequences]
        yield from layouts.bring_in(once, layouts.whole(once))
        yield "#pragma unroll 1"
        yield "for (int step = 0; step < steps; ++step) {"
        inner: list[str] = []
        for place in sequences:
            inner += [] if place.staged else layouts.pointers(place, "", is_input=True)
        staged = [place for place in sequences if place.staged]
        if staged:
            inner += layouts.bring_in(staged, layouts.whole(staged))
        inner += self.body.lines
        for output, given in rollout.feedback:
            if output in self.same:
                continue
            goal, source = self.layout.inputs[given], self.layout.outputs[output]
            inner.append(f"for (int e = 0; e < {goal.size}; ++e) {goal.row}[e] = {source.row}[e];")
        if rollout.record:
            inner += layouts.bring_out(outputs, layouts.whole(outputs))
            inner += [f"{p.name} += count * {p.size};" for p in outputs]
        inner += [f"{p.name} += {'' if p.kind == 'one' else 'count * '}{p.size};" for p in sequences]
        if rollout.record or staged:
            inner.append("__syncwarp(LW_MASK);")
        yield from (f"    {line}" for line in inner)
        yield "}"
        if not rollout.record:
            yield from layouts.bring_out(outputs, layouts.whole(outputs))
