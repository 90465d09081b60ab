"""The text of a kernel: a program for a batch of states, or a step of one for many steps.

A warp takes a tile of 32 states. Their rows are staged in shared memory, each thread computes its state from there to
there, and the results leave side by side. With :class:`Rollout` the computation runs many times over the same
tile, results taking the place of inputs, and nothing but what is recorded leaves the chip meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from linkwise.codegen.c.names import identifier
from linkwise.codegen.cuda.angles import pure_angles
from linkwise.codegen.cuda.body import Body, Constants
from linkwise.codegen.cuda.instructions import instructions, is_truth, operand
from linkwise.codegen.cuda.layout import LANES, ROLLOUT_BYTES, STAGED_BYTES, Kind, Layout, Place, lay_out
from linkwise.codegen.cuda.memory import plan
from linkwise.codegen.cuda.order import most_alive, ordered
from linkwise.errors import InputError
from linkwise.tracing.program import Program

# Values in registers: what a thread has, less addresses, and pairs of them for 64 bits.
LIMIT = {32: 225, 64: 104}
# Registers beyond the values alive that the compiler was seen to want.
_OVERHEAD = {32: 12, 64: 20}
_REGISTERS = 65536  # of a multiprocessor
_SHARED = 227 * 1024
_WIDE_ROW = 128  # bytes of input for each state, above which rows are copied without passing through registers


@dataclass(frozen=True)
class Rollout:
    """What happens between two steps.

    Args:
        feedback: outputs that become inputs of the next step: output number to input number.
        sequences: inputs that have a row for each step, ``(steps, count, size)``.
        record: whether outputs are stored after each step, ``(steps, count, size)``, or after the last only.
    """

    feedback: tuple[tuple[int, int], ...] = ()
    sequences: tuple[int, ...] = ()
    record: bool = False


@dataclass(frozen=True)
class Kernel:
    """A kernel's text, and what is needed to launch it.

    Its parameters are the inputs, the outputs, ``count``, and for a rollout ``steps``.
    """

    name: str
    text: str = field(repr=False)
    threads: int
    shared_bytes: int
    in_place: bool  # an output may be the same array as an input

    def blocks(self, count: int) -> int:
        """How many blocks of threads cover a batch."""
        return -(-count // self.threads)


def batch_kernel(program: Program, bits: int, kinds: tuple[Kind, ...] | None = None) -> Kernel:
    """The kernel of a program.

    Args:
        program: what is computed.
        bits: 64 or 32.
        kinds: how each array comes, inputs and then outputs; rows if not given.
    """
    return _Writer(program, bits, kinds or _all_rows(program), None).kernel()


def rollout_kernel(program: Program, bits: int, rollout: Rollout, kinds: tuple[Kind, ...] | None = None) -> Kernel:
    """The kernel of many steps."""
    return _Writer(program, bits, kinds or _all_rows(program), rollout).kernel()


def _all_rows(program: Program) -> tuple[Kind, ...]:
    return tuple[Kind, ...]("rows" for _ in (*program.inputs, *program.outputs))


def _check_staged(program: Program, layout: Layout) -> None:
    large = [p for p in layout.places if p.size and not p.staged and p.kind != "one"]
    if large:
        raise InputError(
            f"the arrays of {program.name} are too large for a rollout on a GPU",
            got=", ".join(f"{p.name}: {p.size} numbers for each state" for p in large),
            allowed=f"{ROLLOUT_BYTES // 1024} kB for 32 states, all arrays together",
            do="leave out outputs that no later step needs, or roll out on the CPU",
        )


@cache
def device_functions() -> str:
    """What every kernel's text begins with."""
    return Path(__file__).with_name("device.cuh").read_text(encoding="utf-8")


class _Writer:
    """Writes one kernel."""

    def __init__(self, program: Program, bits: int, kinds: tuple[Kind, ...], rollout: Rollout | None) -> None:
        self.program, self.bits, self.rollout = program, bits, rollout
        self.layout: Layout = lay_out(program, bits, kinds, ROLLOUT_BYTES if rollout else STAGED_BYTES)
        if rollout:
            _check_staged(program, self.layout)
        self.name = identifier(program.name)
        nodes = program.nodes
        made = instructions(program)
        place = {value: self.layout.inputs[node[1]] for value, node in enumerate(nodes) if node[0] == "input"}
        # What comes between steps reads inputs too, so no input is only an angle there.
        self.angles, safe = (set(), set()) if rollout else pure_angles(program, made)
        staged_angles = {value for value in self.angles if place[value].staged}
        if staged_angles != self.angles:
            self.angles, safe = set(), set()
        wanted = [operand(program, value).value for row in program.results for value in row]
        order = ordered(made, place.keys(), wanted)
        slots = {value: k for k, value in enumerate(place)}
        self.given = list(place)
        held = self._held()
        reusable = {slots[v] for v, p in place.items() if p.staged and nodes[v][1] not in held}
        truths = [value for value, node in enumerate(nodes) if is_truth(node)]
        self.plan = plan(order, slots, LIMIT[bits], reusable=reusable, registers_only=truths)
        self.constants = Constants.of(program, bits)
        self.body = Body(program, self.plan, self.constants, self._slot, self._output, safe)
        self.alive = most_alive(order, place.keys())
        self.frame = self.layout.size  # where the extra slots begin
        self.size = self.layout.size + self.plan.slots - self.plan.given
        tile_bytes = LANES * self.size * bits // 8
        self.warps = 2 if 2 * tile_bytes <= _SHARED // 4 else 1
        self.shared_bytes = self.warps * tile_bytes

    def _held(self) -> set[int]:
        """Inputs that stay the same from step to step, and so must not be overwritten."""
        if self.rollout is None:
            return set()
        renewed = {i for _, i in self.rollout.feedback} | set(self.rollout.sequences)
        return set(range(len(self.program.inputs))) - renewed

    def _slot(self, slot: int) -> str:
        if slot < self.plan.given:
            _, array, element = self.program.nodes[self.given[slot]]
            return f"{self.layout.inputs[array].row}[{element}]"
        return f"frame[LW_LANES * {slot - self.plan.given}]"

    def _output(self, array: int, element: int, value: str) -> str:
        place = self.layout.outputs[array]
        store = f"{place.row}[{self._direct_index(place, element)}] = {value};"
        return store if place.staged else f"if (inside) {store}"

    @staticmethod
    def _direct_index(place: Place, element: int) -> str:
        return f"{element} * count" if place.kind == "columns" and not place.staged else str(element)

    def kernel(self) -> Kernel:
        in_place = all(place.staged or not place.size for place in self.layout.places)
        text = "\n".join(self._lines())
        return Kernel(self.name, text, self.warps * LANES, self.shared_bytes, in_place)

    def _lines(self) -> Iterator[str]:
        real = "float" if self.bits == 32 else "double"
        row_bytes = sum(p.size for p in self.layout.inputs if p.staged) * self.bits // 8
        shapes = ", ".join(f"{p.name} {p.size}" for p in self.layout.inputs)
        filled = ", ".join(f"{p.name} {p.size}" for p in self.layout.outputs)
        steps = " many steps," if self.rollout else ""
        yield f"// {self.program.name}:{steps} one state per thread, {real}. Generated by linkwise."
        yield f"// Numbers of each state: in {shapes or 'none'}; out {filled or 'none'}."
        yield f"#define REAL {real}"
        yield f"#define LW_WARPS {self.warps}"
        yield f"#define LW_WIDE_ROWS {int(row_bytes > _WIDE_ROW)}"
        yield ""
        yield device_functions()
        yield from self.constants.table()
        yield from self._head()
        yield "{"
        for line in self._inside():
            yield f"    {line}" if line and not line.startswith("#") else line
        yield "}"
        yield ""

    def _head(self) -> Iterator[str]:
        yield f'extern "C" __global__ void __launch_bounds__({self.warps * LANES}, {self._blocks_wanted()})'
        # Not restrict where an output may be an input: the compiler would be free to read after it wrote.
        parameters = [f"const REAL *{p.name}" for p in self.layout.inputs]
        parameters += [f"REAL *{p.name}" for p in self.layout.outputs]
        parameters += ["const long long count"] + (["const int steps"] if self.rollout else [])
        yield f"{self.name}({', '.join(parameters)})"

    def _blocks_wanted(self) -> int:
        """How many blocks should fit a multiprocessor: as many as the values alive leave registers for."""
        if self.plan.stores or self.rollout:
            return 1
        wanted = self.alive * self.bits // 32 + _OVERHEAD[self.bits]
        rounded = min(255, max(32, -(-wanted // 8) * 8))
        by_registers = _REGISTERS // (rounded * LANES * self.warps)
        by_memory = _SHARED // (self.shared_bytes + 1024)
        return max(1, min(by_registers, by_memory, 32))

    def _inside(self) -> Iterator[str]:
        volatile = "volatile " if self.plan.stores or self.rollout else ""
        yield "extern __shared__ __align__(16) REAL lw_memory[];"
        yield "const int lane = lw_lane();"
        yield "const int warp = threadIdx.x / LW_LANES;"
        yield "const long long first = ((long long)blockIdx.x * LW_WARPS + warp) * LW_LANES;"
        yield "if (first >= count) return;"
        yield "const int rows = count - first < LW_LANES ? (int)(count - first) : LW_LANES;"
        yield "const bool inside = lane < rows;"
        yield f"REAL *const tile = lw_memory + warp * (LW_LANES * {self.size});"
        for number, place in enumerate(self.layout.places):
            yield from self._pointers(place, number < len(self.layout.inputs), volatile)
        if self.plan.slots > self.plan.given:
            yield f"{volatile}REAL *const frame = tile + LW_LANES * {self.frame} + lane;"
        yield "(void)inside;"
        yield "(void)rows;"
        yield ""
        if self.rollout is None:
            yield from self._stage_in(self.layout.inputs, "")
            yield from self.body.lines
            yield ""
            yield "__syncwarp();"
            yield from self._stage_out(self.layout.outputs, "")
        else:
            yield from self._steps(self.rollout)

    def _pointers(self, place: Place, is_input: bool, volatile: str) -> Iterator[str]:
        if place.staged:
            yield f"REAL *const {place.tile} = tile + LW_LANES * {place.offset};"
            constant = "" if self.plan.stores or self.rollout or self.angles or not is_input else "const "
            yield f"{volatile}{constant}REAL *const {place.row} = {place.tile} + lane * {place.pitch};"
            return
        constant = "const " if is_input else ""
        if place.kind == "one":
            yield f"{constant}REAL *const {place.row} = {place.name};"
        elif place.kind == "columns":
            yield f"{constant}REAL *const {place.row} = {place.name} + first + (inside ? lane : 0);"
        else:
            yield f"{constant}REAL *const {place.row} = {place.name} + (first + (inside ? lane : 0)) * {place.size};"

    def _watched(self, place: Place) -> bool:
        return any(self.layout.inputs[self.program.nodes[v][1]] is place for v in self.angles)

    def _stage_in(self, places: tuple[Place, ...], shift: str) -> Iterator[str]:
        rows = [p for p in places if p.staged and p.kind == "rows"]
        columns = [p for p in places if p.staged and p.kind == "columns"]
        if self.angles:
            yield "REAL largest = 0;"
        if rows:
            aligned = " && ".join(f"lw_aligned({p.name}{shift})" for p in rows)
            yield f"if (rows == LW_LANES && {aligned}) {{"
            for p in rows:
                yield f"    {self._rows_of(p)} {p.name}_in;"
            for p in rows:
                yield f"    {p.name}_in.fetch({p.tile}, {p.name}{shift} + first * {p.size});"
            yield "    lw_arrive();"
            for p in rows:
                yield f"    {self._noting(p, f'{p.name}_in.put({p.tile})')}"
            yield "} else {"
            for p in rows:
                some = f"{self._rows_of(p)}::some({p.tile}, {p.name}{shift} + first * {p.size}, rows)"
                yield f"    {self._noting(p, some)}"
            yield "}"
        for p in columns:
            call = f"lw_columns_in<{p.size}, {p.pitch}>({p.tile}, {p.name}{shift} + first + lane, count, inside)"
            yield self._noting(p, call)
        yield "__syncwarp();"
        if self.angles:
            yield "if (__any_sync(0xffffffff, largest > lw_angle_limit(largest))) {"
            for value in sorted(self.angles):
                spot = self._slot(self.given.index(value))
                yield f"    {spot} = lw_within_a_turn({spot});"
            yield "}"
        yield ""

    def _rows_of(self, place: Place) -> str:
        return f"lw_rows<{place.size}, {place.pitch}, {str(self._watched(place)).lower()}>"

    def _noting(self, place: Place, call: str) -> str:
        return f"lw_note(largest, {call});" if self._watched(place) else f"{call};"

    def _stage_out(self, places: tuple[Place, ...], shift: str) -> Iterator[str]:
        rows = [p for p in places if p.staged and p.kind == "rows"]
        if rows:
            aligned = " && ".join(f"lw_aligned({p.name}{shift})" for p in rows)
            yield f"if (rows == LW_LANES && {aligned}) {{"
            for p in rows:
                yield f"    {self._rows_of(p)}::back({p.name}{shift} + first * {p.size}, {p.tile});"
            yield "} else {"
            for p in rows:
                yield f"    {self._rows_of(p)}::some_back({p.name}{shift} + first * {p.size}, {p.tile}, rows);"
            yield "}"
        for p in places:
            if p.staged and p.kind == "columns":
                yield (
                    f"lw_columns_back<{p.size}, {p.pitch}>({p.name}{shift} + first + lane, {p.tile}, count, inside);"
                )

    def _steps(self, rollout: Rollout) -> Iterator[str]:
        """The loop. Everything is in shared memory between steps; each thread touches its own numbers only."""
        sequences = [self.layout.inputs[i] for i in rollout.sequences]
        once = tuple(p for i, p in enumerate(self.layout.inputs) if i not in rollout.sequences)
        yield from self._stage_in(once, "")
        yield "#pragma unroll 1"
        yield "for (int step = 0; step < steps; ++step) {"
        for line in self._stage_in(tuple(sequences), "") if sequences else ():
            yield f"    {line}"
        yield from (f"    {line}" for line in self.body.lines)
        for output, given in rollout.feedback:
            goal, source = self.layout.inputs[given], self.layout.outputs[output]
            yield f"    for (int e = 0; e < {goal.size}; ++e) {goal.row}[e] = {source.row}[e];"
        if rollout.record or sequences:
            yield "    __syncwarp();"
        if rollout.record:
            yield from (f"    {line}" for line in self._stage_out(self.layout.outputs, ""))
            yield "    __syncwarp();"
            for p in self.layout.outputs:
                yield f"    {p.name} += count * {p.size};"
        for p in sequences:
            yield f"    {p.name} += count * {p.size};"
        yield "}"
        if not rollout.record:
            yield "__syncwarp();"
            yield from self._stage_out(self.layout.outputs, "")
