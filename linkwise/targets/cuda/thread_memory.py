"""The kernel of a program whose buffers are the thread's own: every pass of its loops for one state in one thread.

With one state a thread, a loop that goes on while *any* state has its flag up is a plain loop. In a short program all
blocks are written out in place: all indexes are known, and the compiler keeps the buffers in registers. In a long one
blocks are functions, and what they work on lies in the thread's local memory, behind the nearest cache: then all but
the smallest are, so that no values wait in registers while another block wants them all (with only the longest as a
function, the compiler had it spill eleven kilobytes, instead of none).

The instructions of a long program do not stay at hand on a multiprocessor, and warps that run apart would each wait for
their own. So all warps there form a block, wait for each other before every function, and go through loops together, as
the vectors of a CPU do: while any of their states has its flag up.

Loops over rows are written word for word: what the rows say is part of the text. This is for what a simulation does
besides (a linear system, say) and for mechanisms of moderate size; a batch of one large mechanism is for
:mod:`linkwise.targets.cuda.device_memory`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkwise.dataclass import dataclass, replace
from linkwise.targets.c.lines import identifier, identifiers, literal, rounded
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.plan_writer import UNLIMITED, PlanWriter, planned_body
from linkwise.targets.cuda.row_loops import copied_arguments
from linkwise.targets.cuda.source import LIMIT, Kernel, device_functions, opening
from linkwise.targets.cuda.spilling import SpillPlan
from linkwise.targets.cuda.statements import (
    Argument,
    ProgramKernelWriter,
    StatementScope,
    Strided,
    indented,
)
from linkwise.trace.block import Block
from linkwise.trace.program import (
    PARAMETERS,
    Buffer,
    Call,
    For,
    Place,
    Program,
    Slice,
    Statement,
    Stretch,
    buffer_of,
    walked,
)

CALLS = 8
"""Calls one after the other, up to which they are few."""

_WRITTEN_OUT = 5000  # instructions of all copies of a block, up to which it is written out wherever it is called
_SMALL = 100  # instructions of a block that is written out in any case
_LOCAL_BYTES = 64 * 1024  # of a thread's own memory: a card sets it aside for every thread it could run
_FEW_LOCAL_BYTES = 16 * 1024  # of programs of more calls one after the other, which need not be one kernel
_FRAME_BYTES = 56 * 1024  # of shared memory for a tile, above which values wait in local memory instead
_LONG = 5000  # instructions of all blocks, above which warps stay together
_WARPS = 8  # that do: so many have all the registers that a thread can have


def most_thread_bytes(program: Program) -> int:
    """Bytes of a thread's own memory up to which a program works there."""
    calls = [each for each in program.statements if isinstance(each, Call)]
    return _FEW_LOCAL_BYTES if len(calls) > CALLS else _LOCAL_BYTES


def thread_bytes(program: Program, bits: int) -> int:
    """Bytes of a thread's own memory that a program takes, with those that it calls."""
    copied = copied_arguments(program)

    def numbers(each: Program) -> int:
        passed = [] if each is program else [b.name for b in each.buffers if b.load or b.store]
        own = sum(b.size for b in each.buffers if b.name not in passed or (id(each), b.name) in copied)
        return own + max((numbers(code) for code in each.codes if isinstance(code, Program)), default=0)

    return numbers(program) * bits // 8


@dataclass(frozen=True)
class _BlockFunction:
    """A block as a function of pointers.

    Args:
        name: of the function.
        block: what it computes.
        body: its lines.
        written_out: wherever it is called.
        aligned: whether its arrays are whole buffers.
        overlaps: whether results may lie where inputs do, so that they are stored in the end.
        frame: values that wait in memory.
        apart: numbers of shared memory from one warp's frame to the next one's; 0: the frame is the thread's own.
    """

    name: str
    block: Block
    body: PlanWriter
    written_out: bool
    aligned: bool
    overlaps: bool
    frame: int = 0
    apart: int = 0

    def lines(self) -> Iterator[str]:
        """Definition of the function."""
        names = [f"lw_in{k}" for k in range(len(self.block.inputs))]
        results = [f"lw_out{k}" for k in range(len(self.block.outputs))]
        restrict = "" if self.overlaps else "__restrict__ "
        parameters = [f"const REAL *{restrict}{name}" for name in names]
        parameters += [f"REAL *{restrict}{name}" for name in results]
        how = "LW_INLINE" if self.written_out else "__device__ __noinline__"
        yield f"{how} void {self.name}({', '.join(parameters)})"
        yield "{"
        if self.aligned:
            yield from (f"    {name} = LW_ALIGNED({name});" for name in (*names, *results))
        if self.frame and not self.apart:
            yield f"    volatile REAL frame[{self.frame}];"
        elif self.frame:
            yield "    extern __shared__ __align__(16) REAL lw_memory[];"
            yield f"    volatile REAL *const frame = lw_memory + threadIdx.x / LW_LANES * {self.apart} + lw_lane();"
        yield from (f"    {line}" for line in self.body.lines)
        if self.overlaps:
            sizes = [spec.size for spec in self.block.outputs]
            yield from (f"    lw_out{a}[{e}] = lw_made{a}_{e};" for a, size in enumerate(sizes) for e in range(size))
        yield "}"
        yield ""


class ThreadKernel(ProgramKernelWriter):
    """The kernel of a program in the memory of threads, where a block of them may have so much shared memory."""

    def __init__(self, program: Program, bits: int, shared_bytes: int = layouts.SHARED_BYTES) -> None:
        super().__init__(program, bits)
        shared_bytes = min(shared_bytes, layouts.SHARED_BYTES)
        self.lanes = layouts.LANES[0]
        calls = [s for each in self.programs for s in each.walk() if isinstance(s, Call)]
        top = [call for call in program.walk() if isinstance(call, Call)]
        apart = {
            id(call.code) for call in calls if call not in top or not all(isinstance(p, str) for p in _places(call))
        }
        overlapping = {id(call.code) for call in calls if _overlaps(call)}
        blocks = list({id(call.code): call.code for call in calls if isinstance(call.code, Block)}.values())
        limits = [UNLIMITED if id(block) in overlapping else LIMIT[bits] for block in blocks]
        plans = [planned_body(block, limit) for block, limit in zip(blocks, limits, strict=True)]
        frame = max((each.slots - each.given for _, each in plans), default=0)
        frame_bytes = frame * self.lanes * bits // 8
        self.frames = 0 if frame_bytes > min(_FRAME_BYTES, shared_bytes) else frame * self.lanes
        room = _WARPS if not self.frames else min(_WARPS, shared_bytes // frame_bytes)
        lengths = {id(block): len(each.steps) for block, (_, each) in zip(blocks, plans, strict=True)}
        whole = [id(block) for block in blocks if id(block) not in apart]
        self.warps = room if sum(lengths[each] for each in whole) > _LONG else 1
        self.together = self.warps > 1
        self.shared_bytes = self.warps * frame_bytes if self.frames else 0
        times = Counter(id(call.code) for call in calls)
        short = {each for each, n in lengths.items() if times[each] == 1 or times[each] * n <= _WRITTEN_OUT}
        if len(self.programs) > 1 or not short >= set(whole):
            short -= set(whole)
        if sum(lengths.values()) > _LONG:
            short -= apart
        short |= {each for each, n in lengths.items() if n <= _SMALL}
        self.blocks = {
            id(block): self._function(
                k, block, plans[k], id(block) in short, id(block) not in apart, id(block) in overlapping
            )
            for k, block in enumerate(blocks)
        }
        buffers = [buffer.name for buffer in program.buffers]
        self.places = dict(zip(buffers, identifiers([f"b_{name}" for name in buffers]), strict=True))

    def _function(
        self,
        number: int,
        block: Block,
        plan: tuple[list[int], SpillPlan],
        written_out: bool,
        aligned: bool,
        overlaps: bool,
    ) -> _BlockFunction:
        given, steps = plan

        def slot(k: int) -> str:
            if k < len(given):
                _, array, element = block.nodes[given[k]]
                return f"lw_in{array}[{element}]"
            own = k - len(given)
            return f"frame[LW_LANES * {own}]" if self.frames else f"frame[{own}]"

        def output(array: int, element: int, value: str) -> str:
            place = f"const REAL lw_made{array}_{element}" if overlaps else f"lw_out{array}[{element}]"
            return f"{place} = {value};"

        body, name = PlanWriter(block, steps, self.constants, slot, output), f"lw_{number}_{identifier(block.name)}"
        waiting = steps.slots - steps.given
        return _BlockFunction(name, block, body, written_out, aligned, overlaps, waiting, self.frames)

    def kernel(self) -> Kernel:
        """The whole."""
        return self._kernel(self.program.statements, self._whole())

    def parts(self) -> list[Kernel]:
        """Kernels that run one after the other: one."""
        return [self.kernel()]

    def _kernel(
        self,
        statements: Sequence[Statement],
        inside: Iterator[str],
        more: Sequence[str] = (),
        last: Sequence[str] = (),
    ) -> Kernel:
        """A kernel of some statements, with what stands in it, and parameters before and after the count."""
        own = [*self.parameters(), *more, "const long long count", *last]
        text = "\n".join(self._lines(statements, inside, own))
        return Kernel(self.name, text, self.warps * self.lanes, self.shared_bytes, True)

    def _lines(
        self, statements: Sequence[Statement], inside: Iterator[str], parameters: Sequence[str]
    ) -> Iterator[str]:
        program, real = self.program, "float" if self.bits == 32 else "double"
        yield f"// {program.name}: one state per thread, {real}. Generated by linkwise."
        threads = self.warps * self.lanes
        yield f"// Launch with {threads} threads a block and {self.shared_bytes} bytes of shared memory."
        yield from opening(self.bits, self.lanes, self.warps)
        yield device_functions("statements.cuh")
        yield from self.constants.table()
        called = codes_called_by(statements)
        for key, function in self.blocks.items():
            if key in called:
                yield from function.lines()
        yield from self._tables(program)
        for each in self.programs[1:]:
            if id(each) in called:
                yield from self._tables(each)
        for each in reversed(self.programs[1:]):
            if id(each) in called:
                yield from self.function(each)
        yield f'extern "C" __global__ void __launch_bounds__({threads})'
        yield f"{self.name}({', '.join(parameters)})"
        yield "{"
        yield from indented(inside)
        yield "}"
        yield ""

    def _whole(self) -> Iterator[str]:
        """All statements."""
        yield from self._own_state()
        yield from self.begin(self.program)
        yield from self._brought_in(self.program.buffers)
        yield from self.statements(self.program.statements, StatementScope(self.program))
        yield from self._brought_out()

    def _own_state(self) -> Iterator[str]:
        """The state of this thread."""
        yield f"const long long own = (long long)blockIdx.x * {self.warps * self.lanes} + threadIdx.x;"
        if self.together:  # a thread without a state goes along with the last one's, and writes nothing
            yield "const bool inside = own < count;"
            yield "const long long state = inside ? own : count - 1;"
        else:
            yield "if (own >= count) return;"
            yield "const bool inside = true;"
            yield "const long long state = own;"

    def _brought_in(self, buffers: Sequence[Buffer]) -> Iterator[str]:
        """The caller's numbers, in the arrays of the thread."""
        scope = StatementScope(self.program)
        for buffer in buffers:
            if buffer.load:
                given, size = self._caller_at("in", buffer.name), self.size(buffer.name, scope)
                yield from self.copy(given, self.at(buffer.name, scope), size)

    def _brought_out(self) -> Iterator[str]:
        """The results, in the caller's arrays."""
        scope = StatementScope(self.program)
        for buffer in self.program.buffers:
            if buffer.store:
                made, size = self._caller_at("out", buffer.name), self.size(buffer.name, scope)
                yield from (f"if (inside) {line}" for line in self.copy(self.at(buffer.name, scope), made, size))

    def _caller_at(self, role: str, name: str) -> Strided:
        array, apart, stride = (self.array(Argument(kind, role, name)) for kind in ("array", "apart", "stride"))
        return Strided(f"{array} + state * {apart}", stride)

    def _tables(self, program: Program) -> Iterator[str]:
        """Tables of loops over rows, and of parameters; C knows no empty arrays."""
        rows, numbers = program.rows.reshape(-1), program.parameters
        loops = any(isinstance(s, For) and isinstance(s.over, str) for s in program.walk())
        if loops and rows.size:
            values = ", ".join(str(int(x)) for x in rows)
            yield f"__device__ const int {self._table(program, 'rows')}[] = {{{values}}};"
        if program.reads_parameters and numbers.size:
            values = ", ".join(literal(rounded(float(x), self.bits), self.bits) for x in numbers)
            yield f"__device__ const REAL {self._table(program, PARAMETERS)}[] = {{{values}}};"

    def _table(self, program: Program, what: str) -> str:
        return f"{self.functions.get(id(program), self.name)}_{what}"

    def begin(self, program: Program) -> Iterator[str]:
        """Arrays of the thread."""
        scope = StatementScope(program)
        for buffer in program.buffers:
            if self.alias(buffer.name, scope) is None:
                name = self.at(buffer.name, scope).pointer
                yield f"[[maybe_unused]] __align__(16) REAL {name}[{max(1, buffer.size)}];"
        for number in program.initial:
            value = literal(rounded(number.value, self.bits), self.bits)
            yield f"{self.at(number.buffer, scope).element(number.offset)} = {value};"

    def at(self, place: Place, scope: StatementScope) -> Strided:
        """Numbers of a place: in an array of the thread, or a table of the text."""
        name = buffer_of(place)
        alias = self.alias(name, scope)
        if name == PARAMETERS:
            begin = Strided(self._table(scope.program, PARAMETERS))
        elif alias is not None:
            begin = Strided(alias)
        else:
            names = [buffer.name for buffer in scope.program.buffers]
            begin = Strided(self.places[name] if scope.program is self.program else f"s{names.index(name)}")
        match place:
            case Stretch(_, column):
                return begin.of(f"{scope.row}[{column}]")
            case Slice(_, stride):
                return begin.of(f"{scope.passing} * {stride}")
            case _:
                return begin

    def size(self, name: str, scope: StatementScope) -> str:
        """Part of the text."""
        return str(scope.program.sizes[name])

    def any(self, flag: str, scope: StatementScope) -> str:
        """Condition that this thread's flag is up, or those of all warps that stay together."""
        own = f"{flag} != (REAL)0"
        return f"__syncthreads_or(inside && {own})" if self.together and scope.program is self.program else own

    def column(self, number: int, scope: StatementScope) -> str:
        """Number in a column of the table of the text."""
        return f"{scope.row}[{number}]"

    def over_rows(self, loop: For, scope: StatementScope) -> Iterator[str]:
        """Row by row of the table in the text."""
        k, row = f"k{scope.depth}", f"row{scope.depth}"
        first, count = scope.program.range_of[str(loop.over)]
        last = first + count - 1
        order = (
            f"int {k} = {last}; {k} >= {first}; --{k}" if loop.reverse else f"int {k} = {first}; {k} <= {last}; ++{k}"
        )
        if not count:  # there may be no table
            return
        yield "#pragma unroll 1"
        yield f"for ({order}) {{"
        table = self._table(scope.program, "rows")
        yield f"    [[maybe_unused]] const int *const {row} = {table} + {k} * {scope.program.rows.shape[1]};"
        yield from indented(self.statements(loop.body, replace(scope, row=row, depth=scope.depth + 1)))
        yield "}"

    def block(self, block: Block, call: Call, scope: StatementScope) -> Iterator[str]:
        """A function, which long ones begin together."""
        function = self.blocks[id(block)]
        if self.together and scope.program is self.program and not function.written_out:
            yield "__syncthreads();"
        yield f"{function.name}({', '.join(self.at(place, scope).pointer for place in _places(call))});"


def codes_called_by(statements: Sequence[Statement]) -> set[int]:
    """The blocks and programs that statements call, and those that these call, by their ids."""
    found: set[int] = set()
    todo = list(statements)
    while todo:
        for call in walked(todo.pop()):
            if isinstance(call, Call) and id(call.code) not in found:
                found.add(id(call.code))
                todo += call.code.statements if isinstance(call.code, Program) else ()
    return found


def _overlaps(call: Call) -> bool:
    """Whether results may lie where inputs do."""
    read, written = ({buffer_of(place) for place in places} for places in (call.inputs, call.outputs))
    return bool(read & written)


def _places(call: Call) -> tuple[Place, ...]:
    return (*call.inputs, *call.outputs)
