"""The kernel of a program whose buffers are in device memory: large mechanisms, with loops over their links.

A warp takes a tile of 32 states at a time. Buffers have neighbouring states side by side; inputs are laid out so first,
and results are brought back to rows in the end. The text depends on the kinds of links only: their number, order and
constants are tables, see :mod:`linkwise.targets.cuda.row_loops`.

A few thousand states leave each part of a multiprocessor one or two warps, so nothing hides the time that memory takes:
while one link is worked on, the numbers of the next few are on their way to shared memory, and what a link hands to the
next stays in registers.

A program of many calls is cut into parts, a kernel for each, which leave in the memory of the tiles what the next ones
need: shorter texts compile side by side, and stay in the cache of instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from linkwise.dataclass import dataclass, replace
from linkwise.targets.c.lines import identifier
from linkwise.targets.cuda import tile_layout as layouts
from linkwise.targets.cuda.parts import with_shorter_blocks
from linkwise.targets.cuda.plan_writer import UNLIMITED, Constants, PlanWriter, planned_body
from linkwise.targets.cuda.row_loops import (
    FROM,
    KIND_BITS,
    TO,
    LinkLoop,
    LoopPlans,
    Tables,
    elements_read,
)
from linkwise.targets.cuda.source import LIMIT, Kernel, device_functions, opening
from linkwise.targets.cuda.statements import (
    Argument,
    ProgramKernelWriter,
    StatementScope,
    Strided,
    indented,
)
from linkwise.trace.block import Block
from linkwise.trace.in_place import in_place
from linkwise.trace.program import PARAMETERS, Call, For, Place, Program, Slice, Statement, Stretch, buffer_of, walked

_STAGES = (4, 2, 1)  # links whose numbers are in shared memory or on their way there, as many as fit; powers of two
_FETCHED_BYTES = 32 * 1024  # of shared memory for them
_PART = 6000  # nodes of all blocks of a part that has several statements
_SHORT = 40  # nodes of a block that is written out wherever it is called
_TURN = ("const long long lw_begin", "const long long lw_end")


@dataclass(frozen=True)
class _BlockCall:
    """The call of a block."""

    call: Call
    code: Block

    @property
    def places(self) -> tuple[Place, ...]:
        """Inputs and outputs."""
        return (*self.call.inputs, *self.call.outputs)

    @property
    def apart(self) -> tuple[str, ...]:
        """Distances between the numbers of each place."""
        return tuple("1" if buffer_of(place) == PARAMETERS else DeviceKernel.apart for place in self.places)

    @property
    def key(self) -> tuple[int, tuple[str, ...]]:
        """The same for calls that one function serves."""
        return id(self.code), self.apart

    @property
    def used(self) -> list[int]:
        """Numbers of the places that are read or written."""
        read = {array for array, _ in elements_read(self.code)}
        return [k for k in range(len(self.places)) if k in read or k >= len(self.call.inputs)]

    @property
    def kinds(self) -> list[str]:
        """Types of pointers to these."""
        return ["const REAL *" if k < len(self.call.inputs) else "REAL *" for k in self.used]

    @property
    def overlaps(self) -> bool:
        """Whether results may lie where inputs do."""
        read, written = ({buffer_of(place) for place in each} for each in (self.call.inputs, self.call.outputs))
        return bool(read & written)


@dataclass(frozen=True)
class _BlockFunction:
    """A block that is called in several places."""

    name: str
    call: _BlockCall
    overlaps: bool


def _repeated(calls: Sequence[_BlockCall]) -> dict[tuple[int, tuple[str, ...]], _BlockFunction]:
    """Functions of the blocks that are called more than once and not short."""
    of_key: dict[tuple[int, tuple[str, ...]], list[_BlockCall]] = {}
    for call in calls:
        if len(call.code.nodes) > _SHORT:
            of_key.setdefault(call.key, []).append(call)
    several = {key: own for key, own in of_key.items() if len(own) > 1}
    return {
        key: _BlockFunction(f"lw_{k}_{identifier(own[0].code.name)}", own[0], any(call.overlaps for call in own))
        for k, (key, own) in enumerate(several.items())
    }


class DeviceKernel(ProgramKernelWriter):
    """The kernel of a program in device memory; its last parameters: ``scratch``, ``table``, ``numbers``, ``count``."""

    apart = "LW_LANES"
    goes_on_in_place = True
    context = MappingProxyType(
        {
            "own": "REAL *",
            "table": "const int *",
            "numbers": "const REAL *",
            "constant_ring": "REAL *",
            "fetched": "REAL *",
            "row_ring": "int *",
        }
    )

    def __init__(self, program: Program, bits: int) -> None:
        super().__init__(with_shorter_blocks(in_place(program), _PART), bits)
        program = self.program
        self.lanes = layouts.LANES[0]
        self.plans = {id(each): LoopPlans(each) for each in self.programs}
        self.is_open = any(buffer.open for each in self.programs for buffer in each.buffers)
        self.tables = Tables(program, list(self.plans.values()))
        loops = [loop for plans in self.plans.values() for loop in plans.loops.values() if isinstance(loop, LinkLoop)]
        self.reals = max((loop.reals for loop in loops), default=0)
        self.integers = max((loop.integers for loop in loops), default=0)
        each = self.lanes * bits // 8
        self.most_early = _FETCHED_BYTES // each  # further ones are read when their link's turn has come
        self.early = min(self.most_early, max((loop.ahead for loop in loops), default=0))
        self.stages = next(n for n in _STAGES if n * self.early * each <= _FETCHED_BYTES)
        self.ring = 2 * self.stages  # records: those of the stages, and one that is put there meanwhile

    def kernel(self) -> Kernel:
        """The whole."""
        return self._kernel(None)

    def parts(self) -> list[Kernel]:
        """Kernels that run one after the other, whose last parameters are besides the first and the last state."""
        cuts = self._cuts()
        if len(cuts) == 2:
            return [self.kernel()]
        return [self._kernel(range(begin, end)) for begin, end in pairwise(cuts)]

    def _cuts(self) -> list[int]:
        """Statements with which parts begin, and the end."""
        cuts, length, statements = [0], 0, self.program.statements
        for k, statement in enumerate(statements):
            blocks = {id(call.code): call.code for call in self._calls(statement)}
            own = sum(len(block.nodes) for block in blocks.values())
            if length and length + own > _PART:
                cuts.append(k)
                length = 0
            length += own
        return [*cuts, len(statements)]

    def _called_by(self, statements: Sequence[Statement]) -> set[int]:
        """Programs that statements call, and those that these call."""
        found: set[int] = set()
        open_ones = [call.code for each in statements for call in walked(each) if isinstance(call, Call)]
        while open_ones:
            code = open_ones.pop()
            if isinstance(code, Program) and id(code) not in found:
                found.add(id(code))
                open_ones += code.codes
        return found

    def _calls(self, *statements: Statement) -> list[_BlockCall]:
        """Calls of blocks in statements and in the programs that these call, each program once."""
        called = self._called_by(statements)
        bodies = [walked(*statements), *(each.walk() for each in self.programs if id(each) in called)]
        calls = [call for body in bodies for call in body if isinstance(call, Call)]
        return [_BlockCall(call, call.code) for call in calls if isinstance(call.code, Block)]

    def _kernel(self, part: range | None) -> Kernel:
        square = self.lanes * (self.lanes + 1)
        numbers = square + self.ring * self.reals + self.stages * self.early * self.lanes
        shared = numbers * self.bits // 8 + self.ring * self.integers * 4
        return Kernel(self.name, "\n".join(self._lines(part)), self.lanes, shared, in_place=True)

    def _lines(self, part: range | None) -> Iterator[str]:
        real = "float" if self.bits == 32 else "double"
        statements = self.program.statements if part is None else [self.program.statements[k] for k in part]
        called, calls = self._called_by(statements), self._calls(*statements)
        self.constants = Constants.of((call.code for call in calls), self.bits)
        self._functions = _repeated(calls)
        yield f"// {self.program.name}: in device memory, one state per thread, {real}. Generated by linkwise."
        yield from opening(self.bits, self.lanes)
        yield f"#define LW_AHEAD {self.stages - 1}"
        yield f"#define LW_RING {self.ring}"
        yield device_functions("statements.cuh")
        yield device_functions("device_memory.cuh")
        yield from self.constants.table()
        for function in self._functions.values():
            yield from self._function(function)
        for program in reversed(self.programs[1:]):
            if id(program) in called:
                yield from self.function(program)
        # Few warps with many registers each, see above.
        yield f'extern "C" __global__ void __launch_bounds__({self.lanes}, 1)'
        fixed = ["REAL *scratch", "const int *__restrict__ table", "const REAL *__restrict__ numbers"]
        last = ["const long long count", *([] if part is None else _TURN)]
        yield f"{self.name}({', '.join([*self.parameters(), *fixed, *last])})"
        yield "{"
        yield from indented(self._inside_kernel(part))
        yield "}"
        yield ""

    def _inside_kernel(self, part: range | None) -> Iterator[str]:
        yield "extern __shared__ __align__(16) REAL lw_memory[];"
        yield "const int lane = lw_lane();"
        yield "REAL *const square = lw_memory;"
        yield "REAL *const constant_ring = lw_memory + LW_LANES * (LW_LANES + 1);"
        yield f"REAL *const fetched = constant_ring + {self.ring * self.reals} + lane;"
        yield f"int *const row_ring = (int *)(fetched - lane + {self.stages * self.early} * LW_LANES);"
        yield "REAL *const memory = scratch + (long long)blockIdx.x * table[0] * LW_LANES;"
        yield "REAL *const own = memory + lane;"
        yield "(void)own; (void)constant_ring; (void)fetched; (void)row_ring; (void)numbers;"
        if part is not None:
            yield "const long long first = lw_begin + (long long)blockIdx.x * LW_LANES;"
            yield "const int rows = lw_end - first < LW_LANES ? (int)(lw_end - first) : LW_LANES;"
            yield from self._tile(part)
            return
        yield "for (long long tile = blockIdx.x; tile * LW_LANES < count; tile += gridDim.x) {"
        yield "    const long long first = tile * LW_LANES;"
        yield "    const int rows = count - first < LW_LANES ? (int)(count - first) : LW_LANES;"
        yield from indented(self._tile(range(len(self.program.statements))))
        yield "}"

    def _tile(self, part: range) -> Iterator[str]:
        statements = self.program.statements
        if any((self.program.tables, self.program.records, self.program.curves, self.program.series)):
            yield "const bool inside = lane < rows;"
            yield "const long long state = first + (inside ? lane : rows - 1);"
            yield "(void)inside; (void)state;"
        for buffer in self.program.buffers:
            if buffer.load and buffer.in_lanes:
                array, size = self.array(Argument("array", "in", buffer.name)), self.size(buffer.name)
                yield f"const REAL *const {array}_lanes = {array} + first * {size} + lane;"
            elif buffer.load and part.start == 0:
                yield self._moved("in", buffer.name, "lw_to_lanes({memory}, {array});")
        if part.start == 0:
            yield from self.begin(self.program)
        yield from self.statements([statements[k] for k in part], StatementScope(self.program))
        yield "__syncwarp(LW_MASK);"
        for buffer in self.program.buffers:
            if buffer.store and part.stop == len(statements):
                yield self._moved("out", buffer.name, "lw_from_lanes({array}, {memory});")

    def _moved(self, role: str, name: str, call: str) -> str:
        """A move between a caller's array and its place in memory."""
        array, apart, step = (self.array(Argument(kind, role, name)) for kind in ("array", "apart", "stride"))
        memory = f"memory + {self._start(name)} * LW_LANES"
        more = f", {apart}, {step}, {self.size(name)}, rows, square);"
        return call.removesuffix(");").format(memory=memory, array=f"{array} + first * {apart}") + more

    def _head(self, key: tuple[int, str], number: int = 0) -> str:
        """A number of the table's head; where nothing is open, the number itself."""
        place = self.tables.head_at[key] + number
        return f"table[{place}]" if self.is_open else str(self.tables.head[place])

    def _start(self, name: str, program: Program | None = None) -> str:
        return f"(long long){self._head((id(program or self.program), name), 1)}"

    def begin(self, program: Program) -> Iterator[str]:
        """The initial numbers; buffers are in the memory of the tile."""
        if program.initial:
            count, places, values = (self._head((id(program), "initial"), k) for k in range(3))
            yield f"for (int k = 0; k < {count}; ++k)"
            yield f"    own[(long long)table[{places} + k] * LW_LANES] = numbers[{values} + k];"

    def at(self, place: Place, scope: StatementScope) -> Strided:
        """Numbers of a place, found by a record or by the head of the table."""
        name, program = buffer_of(place), scope.program
        if isinstance(place, Stretch) and scope.loop is not None:  # a record's places are from the memory's beginning
            return self._stretch(place, scope.row, scope.loop.number(place), scope)
        base = self._base(name, scope)
        if name == PARAMETERS:
            begin, started = Strided(base), self._head((id(program), PARAMETERS))
        else:
            begin = Strided(base, self.apart)
            started = self._start(name, program) if base == "own" else ""
        if isinstance(place, Slice):
            passing = f"{scope.passing} * {place.stride}"
            return begin.of(f"({started} + {passing})" if started else f"({passing})")
        return begin.of(started) if started else begin

    def _base(self, name: str, scope: StatementScope) -> str:
        """Origin from which the numbers of a buffer are counted."""
        if name == PARAMETERS:
            return "numbers"
        alias = self.alias(name, scope)
        if alias is not None:
            return alias
        laned = any(b.name == name and b.load and b.in_lanes for b in scope.program.buffers)
        return f"{self.array(Argument('array', 'in', name))}_lanes" if laned else "own"

    def _stretch(self, place: Stretch, row: str, number: int, scope: StatementScope) -> Strided:
        start = Strided(self._base(place.buffer, scope), "1" if place.buffer == PARAMETERS else self.apart)
        return start.of(f"(long long){row}[{number}]")

    def size(self, name: str, scope: StatementScope | None = None) -> str:
        """Number of values of a buffer: in the head of the table, where it is data."""
        program = scope.program if scope else self.program
        is_data = any(buffer.name == name and buffer.open for buffer in program.buffers)
        return self._head((id(program), name)) if is_data else str(program.sizes[name])

    def copy(self, source: Strided, target: Strided, size: str) -> Iterator[str]:
        """As a loop: these numbers are in memory in any case."""
        if size != "0":
            yield f"lw_copy_some({source.pointer}, {source.apart}, {target.pointer}, {target.apart}, {size});"

    def any(self, flag: str, scope: StatementScope) -> str:
        """The states of a tile stay together."""
        return f"__any_sync(LW_MASK, {flag} != (REAL)0)"

    def column(self, number: int, scope: StatementScope) -> str:
        """Number in a column of the record."""
        assert scope.loop is not None
        return f"{scope.row}[{scope.loop.columns.index(number)}]"

    def statement(self, statement: Statement, scope: StatementScope) -> Iterator[str]:
        """One statement, but for angles that a loop has taken already."""
        if id(statement) not in self.plans[id(scope.program)].taken:
            yield from super().statement(statement, scope)

    def block(self, block: Block, call: Call, scope: StatementScope) -> Iterator[str]:
        """The call of a function, or the arithmetic itself."""
        made = _BlockCall(call, block)
        pointers = [self.at(place, scope).pointer for place in made.places]
        if made.key in self._functions:
            yield f"{self._functions[made.key].name}({', '.join(pointers)});"
            return
        yield "{"
        for kind, k in zip(made.kinds, made.used, strict=True):
            yield f"    {kind}const at{k} = {pointers[k]};"
        yield from indented(self._arithmetic(made, overlapping=made.overlaps))
        yield "}"

    def _function(self, function: _BlockFunction) -> Iterator[str]:
        """A block as a function of the beginnings of its arrays."""
        made = function.call
        kinds = dict(zip(made.used, made.kinds, strict=True))
        parameters = [f"{kinds.get(k, 'const REAL *')}at{k}" for k in range(len(made.places))]
        yield f"__device__ __noinline__ void {function.name}({', '.join(parameters)})"
        yield "{"
        yield from indented(self._arithmetic(made, function.overlaps))
        yield "}"
        yield ""

    def _arithmetic(self, made: _BlockCall, overlapping: bool) -> Iterator[str]:
        """Numbers read when they are needed, or all of them first where results may lie where inputs do."""
        read, cut = elements_read(made.code), len(made.call.inputs)
        there = [Strided(f"at{k}", apart) for k, apart in enumerate(made.apart)]
        known = {(array, element): there[array].element(element) for array, element in read}
        if overlapping:
            for number, place in enumerate(read):
                yield f"const REAL x{number} = {known[place]};"
                known[place] = f"x{number}"
        limit = UNLIMITED if overlapping else LIMIT[self.bits]
        yield from self._body(made.code, known, lambda a, e, x: f"{there[cut + a].element(e)} = {x};", limit)

    def _body(
        self,
        block: Block,
        inputs: Mapping[tuple[int, int], str],
        output: Callable[[int, int, str], str],
        limit: int = UNLIMITED,
    ) -> Sequence[str]:
        """The arithmetic, from named inputs; of more values than registers hold, some wait in the thread's memory."""
        given, steps = planned_body(block, limit)
        names = [inputs[block.nodes[value][1:]] for value in given]
        waiting = steps.slots - steps.given
        names += [f"far[{k}]" for k in range(waiting)]
        lines = PlanWriter(block, steps, self.constants, names.__getitem__, output).lines
        return [f"volatile REAL far[{waiting}];", *lines] if waiting else lines

    # Loops over rows.
    def over_rows(self, loop: For, scope: StatementScope) -> Iterator[str]:
        """Lines of a loop over rows, in the order of the records."""
        plan = self.plans[id(scope.program)].loops[id(loop)]
        count, records, constants = (self._head((id(scope.program), f"loop {id(loop)}"), k) for k in range(3))
        if isinstance(plan, LinkLoop):
            yield "{"
            yield from indented(self._links(plan, count, records, constants, scope))
            yield "}"
            return
        k, row = f"k{scope.depth}", f"row{scope.depth}"
        if scope.program.range_of[str(loop.over)][1] == 1:
            yield "{"
            yield f"    [[maybe_unused]] const int *const {row} = table + {records};"
        else:
            yield "#pragma unroll 1"
            yield f"for (int {k} = 0; {k} < {count}; ++{k}) {{"
            yield f"    [[maybe_unused]] const int *const {row} = table + {records} + {k} * {plan.integers};"
        inner = replace(scope, row=row, loop=plan, depth=scope.depth + 1)
        yield from indented(self.statements(loop.body, inner))
        yield "}"

    def _links(self, loop: LinkLoop, count: str, records: str, constants: str, scope: StatementScope) -> Iterator[str]:
        yield f"const int links = {count};"
        yield f"lw_records<{loop.integers}, {loop.reals}> records;"
        yield f"records.rows = table + {records};"
        yield f"records.constants = numbers + {constants};"
        yield "records.row_ring = row_ring;"
        yield "records.constant_ring = constant_ring;"
        yield "records.last = links - 1;"
        yield "if (links > 0) records.begin();"
        if loop.ahead:
            yield "for (int link = 0; link < (links > 0 ? LW_AHEAD : 0); ++link) {"
            yield from indented(self._fetch(loop, "link", scope))
            yield "}"
        for number, each in enumerate(loop.carried):
            yield f"REAL carried{number}[{each.size}];"
        yield "#pragma unroll 1"
        yield "for (int link = 0; link < links; ++link) {"
        yield from indented(self._link(loop, scope))
        yield "}"

    def _link(self, loop: LinkLoop, scope: StatementScope) -> Iterator[str]:
        yield "records.advance(link);"
        yield "const int *const row = records.row(link);"
        yield "const REAL *const constant = records.constants_of(link);"
        yield "(void)constant;"
        if loop.ahead:
            yield "{"
            yield from indented(self._fetch(loop, "link + LW_AHEAD", scope))
            yield "}"
            yield "lw_arrived();"
            yield f"const REAL *const given = fetched + (link & LW_AHEAD) * {self.early} * LW_LANES;"
            yield "(void)given;"
        yield "const int what = row[0];"
        yield "(void)what;"
        for number, each in enumerate(loop.carried):
            source = Stretch(each.buffer, each.source)
            yield f"if (what & {1 << KIND_BITS + 2 * number + FROM}) {{"
            yield f"    const REAL *const from = {self._of_link(loop, source, scope)};"
            yield "#pragma unroll"
            yield f"    for (int e = 0; e < {each.size}; ++e) carried{number}[e] = from[e * LW_LANES];"
            yield "}"
        yield from _each_kind(loop, "what", lambda kind: self._of_kind(loop, kind, scope))
        yield "__syncwarp(LW_MASK);"

    def _of_link(self, loop: LinkLoop, place: Place, scope: StatementScope, row: str = "row") -> str:
        """Beginning of a stretch."""
        assert isinstance(place, Stretch)
        return self._stretch(place, row, loop.number(place), scope).pointer

    def _fetch(self, loop: LinkLoop, link: str, scope: StatementScope) -> Iterator[str]:
        """The early numbers of a link are sent for."""

        def of_kind(kind: int) -> Iterator[str]:
            inputs = loop.calls[kind].inputs
            chosen = loop.early[kind][: self.most_early]
            for array in dict.fromkeys(array for array, _ in chosen):
                yield f"const REAL *const at{array} = {self._of_link(loop, inputs[array], scope, 'next')};"
            for number, (array, element) in enumerate(chosen):
                yield f"lw_ahead(to + {number} * LW_LANES, at{array} + {element} * LW_LANES);"

        yield f"const int *const next = records.row({link});"
        yield f"REAL *const to = fetched + (({link}) & LW_AHEAD) * {self.early} * LW_LANES;"
        yield from _each_kind(loop, "next[0]", of_kind)
        yield "lw_sent();"

    def _of_kind(self, loop: LinkLoop, kind: int, scope: StatementScope) -> Iterator[str]:
        """Lines for one link: late numbers are read, then everything is computed and stored."""
        call = loop.calls[kind]
        assert isinstance(call.code, Block)
        early = loop.early[kind][: self.most_early]
        inputs = {place: f"given[{k} * LW_LANES]" for k, place in enumerate(early)}
        late: list[tuple[int, int]] = []
        for array, element in elements_read(call.code):
            carried = loop.carries(call.inputs[array])
            if buffer_of(call.inputs[array]) == PARAMETERS:
                inputs[array, element] = f"constant[{loop.constants[kind].index((array, element))}]"
            elif carried is not None:
                inputs[array, element] = f"carried{carried}[{element}]"
            elif (array, element) not in inputs:
                inputs[array, element] = f"x{len(late)}"
                late.append((array, element))
        for array in dict.fromkeys(array for array, _ in late):
            yield f"const REAL *const at{array} = {self._of_link(loop, call.inputs[array], scope)};"
        for number, (array, element) in enumerate(late):
            yield f"const REAL x{number} = at{array}[{element} * LW_LANES];"
        yield from self._results(loop, call, call.code, inputs, scope)

    def _results(
        self, loop: LinkLoop, call: Call, block: Block, inputs: Mapping[tuple[int, int], str], scope: StatementScope
    ) -> Iterator[str]:
        targets: dict[Place, int] = {Stretch(c.buffer, c.target): number for number, c in enumerate(loop.carried)}
        handed = {k: targets[place] for k, place in enumerate(call.outputs) if place in targets}
        angles = loop.angles
        turned = {k for k, place in enumerate(call.outputs) if angles and buffer_of(place) == angles.arguments}
        for k, place in enumerate(call.outputs):
            if k in handed:
                yield f"REAL next{handed[k]}[{loop.carried[handed[k]].size}];"
            elif angles is not None and isinstance(place, Stretch) and k in turned:
                for name, buffer in (("sine", angles.sines), ("cosine", angles.cosines)):
                    yield f"REAL *const {name}{k} = {self._of_link(loop, Stretch(buffer, place.column), scope)};"
            else:
                yield f"REAL *const out{k}_at = {self._of_link(loop, place, scope)};"

        def output(array: int, element: int, value: str) -> str:
            if array in handed:
                return f"next{handed[array]}[{element}] = {value};"
            if array in turned:
                return f"lw_turned({value}, sine{array}[{element} * LW_LANES], cosine{array}[{element} * LW_LANES]);"
            return f"out{array}_at[{element} * LW_LANES] = {value};"

        yield from self._body(block, inputs, output)
        for k, number in handed.items():
            size = loop.carried[number].size
            yield f"if (what & {1 << KIND_BITS + 2 * number + TO}) {{"
            yield f"    REAL *const to = {self._of_link(loop, call.outputs[k], scope)};"
            yield "#pragma unroll"
            yield f"    for (int e = 0; e < {size}; ++e) to[e * LW_LANES] = next{number}[e];"
            yield "}"
            yield "#pragma unroll"
            yield f"for (int e = 0; e < {size}; ++e) carried{number}[e] = next{number}[e];"


def _each_kind(loop: LinkLoop, what: str, inside: Callable[[int], Iterator[str]]) -> Iterator[str]:
    """A choice of what is done for a link of each kind; none, where there is one only."""
    kinds = list(loop.calls)
    if len(kinds) == 1:
        yield "{"
        yield from indented(inside(kinds[0]))
        yield "}"
        return
    yield f"switch ({what} & {(1 << KIND_BITS) - 1}) {{"
    for kind in kinds:
        yield f"case {kind}: {{"
        yield from indented(inside(kind))
        yield "    break;"
        yield "}"
    yield "}"
