"""The arithmetic of a program as LLVM functions over values in memory.

``body(in..., out..., frame)``: one pointer for each array, each holding its elements one behind the
other, where an element is a vector (a number of many states) or a plain scalar (of one state). The frame
is scratch memory. No loads or stores happen to anything else, and there is no branch but inside the calls of
grouped functions, so a piece is one basic block.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import chain

from linkwise.targets.llvm import ops, transcendental
from linkwise.targets.llvm.function_plan import FunctionPiece, FunctionPlan, GroupedCall
from linkwise.targets.llvm.ir import FunctionText, LaneShape, masked_load, real_bits
from linkwise.targets.llvm.residence import Residence, Step, residence
from linkwise.targets.llvm.weaving import Overlap
from linkwise.targets.shared_places import shared_places
from linkwise.trace.block import Block, arguments, is_truth

REACH = 128
"""Operands on either side of a pointer whose distance fits into one byte of an AVX-512 instruction.

Further away it takes four: a tenth of the code of a long body, which is more than caches of instructions hold.
"""

_LINE = 64  # bytes of a line of a cache


class BlockCode:
    """Emits the functions of one program for one shape of value."""

    def __init__(
        self,
        program: Block,
        plan: FunctionPlan,
        shape: LaneShape,
        vector: LaneShape,
        name: str = "body",
        masked: bool = False,
        uniform: frozenset[int] = frozenset(),
        apart: bool = True,
        woven: Overlap | None = None,
        skipped: frozenset[tuple[int, int]] = frozenset(),
        registers: int = 0,
        called: bool = False,
        fetched: bool = False,
    ) -> None:
        self.program, self.plan, self.shape, self.vector, self.name = program, plan, shape, vector, name
        self.uniform = uniform  # inputs that hold one number for all lanes, not one for each
        self.masked = masked  # vectors may be loaded with lanes left out
        self.woven = woven  # other work to do between the operations; for programs in one piece
        self.registers = registers  # that values may wait in, if that is not left to LLVM
        self.constants: dict[str, int] = {}  # those that are read from memory -> their places there
        self.frame_slots = -REACH if registers else 0  # the frame's pointer is then behind its first slots
        self.slots: dict[int, int] = {}  # value that waits in the frame -> its place there
        self.group_slots: dict[int, tuple[list[tuple[str, int]], list[int]]] = {}  # id of group -> arguments, results
        self.destinations: dict[int, list[tuple[int, int]]] = {}
        for array, row in enumerate(program.results):
            for element, value in enumerate(row):
                if (array, element) not in skipped:  # zeros that are there already
                    self.destinations.setdefault(value, []).append((array, element))
        pointers = [f"%in{i}" for i in range(len(program.inputs))]
        pointers += [f"%out{i}" for i in range(len(program.outputs))] + ["%frame"]
        pointers += woven.parameters if woven else ()
        promise = "noalias " if apart else ""  # arrays that may be one and the same promise nothing
        self.given = ", ".join(f"ptr {promise}{pointer}" for pointer in pointers)
        pointers += ["%constants"] if registers else ()
        self.parameters = ", ".join(f"ptr {promise}{pointer}" for pointer in pointers)
        self.passed = ", ".join(f"ptr {pointer}" for pointer in pointers)
        self.called = called and registers > 0
        """Whether it is called with the beginning of its frame and without its constants."""
        self.fetched = fetched
        """Whether the code of each piece is fetched while the one before it runs."""
        self.functions = self._all()

    @property
    def frame_bytes(self) -> int:
        """Scratch memory that the functions need, from the frame's pointer on, or from its beginning."""
        return max(0, self.frame_slots + (REACH if self.called else 0)) * self.shape.size

    def _reserve(self, count: int) -> int:
        """Frame slots, whole vectors of them, so that a scalar frame can be read by vectors."""
        per_vector = self.vector.lanes // self.shape.lanes
        start = self.frame_slots
        self.frame_slots += -(-count // per_vector) * per_vector
        return start

    def _all(self) -> list[FunctionText]:
        self.residences = [self._residence(piece) if self.registers else None for piece in self.plan.pieces]
        if self.registers:
            self._place_constants()
        self.slots, count = shared_places(self._lives(), self.frame_slots)
        self.frame_slots += count
        self.frame_slots = self._reserve(0) if self.shape.lanes > 1 else -(-self.frame_slots // 16) * 16
        pieces = [self._piece(k, piece) for k, piece in enumerate(self.plan.pieces)]
        if not self._is_cut:
            return pieces
        whole = FunctionText(
            f"define internal void @{self.name}({self.given if self.called else self.parameters}) noinline #0"
        )
        if self.fetched:
            whole.label("entry")
        passed = self.passed
        if self.called:
            behind, constants = whole.address(self.shape.real, "%frame", REACH), whole.emit(self.constants_pointer)
            passed = passed.replace("ptr %frame", f"ptr {behind}").replace("%constants", constants)
        names = [f"@{self.name}_{k}" for k in range(len(pieces))]
        for k, name in enumerate(names):
            if self.fetched and name != names[-1]:
                _fetch(whole, names[k + 1], [*names, f"@{self.name}"][k + 2])
            whole.do(f"call void {name}({passed})")
        whole.do("ret void")
        return [*pieces, whole]

    @property
    def _is_cut(self) -> bool:
        """Whether pieces are functions of their own, which another calls."""
        return self.called or len(self.plan.pieces) > 1

    def _lives(self) -> list[tuple[int, int, int]]:
        """Values that wait in the frame, with the steps of all pieces that make them and read them last.

        Results are read where they are stored anyway.
        """
        waits = {value for value, *_ in self.plan.crossing}.union(*(found.stored for found in self.residences if found))
        waits -= self.plan.item_of.keys() | self.destinations.keys()
        made, last = dict[int, int](), dict[int, int]()
        for place, step in enumerate(chain.from_iterable(piece.steps for piece in self.plan.pieces)):
            last |= dict.fromkeys(waits.intersection(self._read(step)), place)
            if step in waits:
                made[step] = place
        return [(value, begin, last[value]) for value, begin in made.items()]

    def _read(self, step: int | GroupedCall) -> Iterable[int]:
        """Values that a step reads."""
        if isinstance(step, GroupedCall):
            return chain.from_iterable(step.members)
        return self.program.nodes[step][1:]

    def _place_constants(self) -> None:
        """A place in memory for each constant, those that are read most often within reach."""
        nodes = self.program.nodes
        read = map(self._read, chain.from_iterable(piece.steps for piece in self.plan.pieces))
        constants = (nodes[a] for a in chain(self.destinations, *read) if nodes[a][0] == "const")
        uses = Counter(real_bits(node[1], self.shape.bits) for node in constants)
        self.constants = {bits: place for place, (bits, _) in enumerate(uses.most_common())}

    def _residence(self, piece: FunctionPiece) -> Residence:
        """Values that wait in registers.

        Constants are read from memory wherever they are used, and truth values have registers of their own.
        """
        nodes = self.program.nodes

        def step_of(step: int | GroupedCall) -> Step:
            if isinstance(step, GroupedCall):
                return list(self._read(step)), None, 0
            read = dict.fromkeys(self._read(step))
            kept = [value for value in read if nodes[value][0] != "const" and not is_truth(nodes[value])]
            return kept, None if is_truth(nodes[step]) else step, self.registers

        return residence(map(step_of, piece.steps))

    def _piece(self, k: int, piece: FunctionPiece) -> FunctionText:
        name = f"{self.name}_{k}" if self._is_cut else self.name
        return _PieceWriter(self, name, piece, self.residences[k], last=k == len(self.plan.pieces) - 1).function

    @property
    def tables(self) -> list[str]:
        """Definition of the constants in memory, if they are there."""
        kind = self.shape.element
        values = ", ".join(f"{kind} {bits}" for bits in self.constants)
        table = f"@{self.name}_constants = internal constant [{len(self.constants)} x {kind}] [{values}]"
        return [table] if self.registers else []

    @property
    def constants_pointer(self) -> str:
        """Value of the parameter from which constants are read, as an instruction."""
        return f"getelementptr {self.shape.element}, ptr @{self.name}_constants, i64 {REACH}"


def _fetch(f: FunctionText, name: str, following: str) -> None:
    """Ask for the lines of a function, which end where another begins, to be brought into the second level of a cache.

    Were it elsewhere, nothing but these lines would be lost.
    """
    f.declare("declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)")
    first, behind = (f.emit(f"ptrtoint ptr {each} to i64") for each in (name, following))
    size, after = f.emit(f"sub i64 {behind}, {first}"), f"behind{name[1:]}"
    with f.counted(size, f"%line{name[1:]}", _LINE, block=f"fetch{name[1:]}", after=after):
        place = f.emit(f"getelementptr i8, ptr {name}, i64 %line{name[1:]}")
        f.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")


class _PlannedText(FunctionText):
    """Function whose constants, those of work that is woven in too, are operands in memory.

    LLVM would bring each into a register and, for want of registers, do so again wherever it is used.
    """

    def __init__(self, head: str, places: dict[str, int]) -> None:
        super().__init__(head)
        self.places = places  # in the table, by bits; those that are not there yet come behind the others

    def constant(self, shape: LaneShape, value: float) -> str:
        place = self.places.setdefault(real_bits(value, shape.bits), len(self.places))
        return self.spread(shape, "%constants", place - REACH, "volatile ")


class _PieceWriter:
    """Emits one function."""

    def __init__(
        self, body: BlockCode, name: str, piece: FunctionPiece, residence: Residence | None, last: bool
    ) -> None:
        self.body, self.shape = body, body.shape
        self.nodes = body.program.nodes
        attributes = "#1" if body.shape.lanes > 1 else "#0"
        head = f"define internal void @{name}({body.parameters}) noinline {attributes}"
        self.function = _PlannedText(head, body.constants) if body.registers else FunctionText(head)
        self.known: dict[int, str] = {}
        woven = body.woven
        self.fragments = deque((*woven.outward, *woven.inward) if woven else ())
        self.before_results = len(woven.inward) if woven else 0  # fragments that may be left when a result is stored
        self.spacing = len(piece.steps) / max(1, sum(fragment.weight for fragment in self.fragments))
        self.due = 0.0  # step at which the next fragment begins to be late
        for done, step in enumerate(piece.steps):
            if isinstance(step, GroupedCall):
                self._group(step)
            else:
                self._node(step)
            for number in residence.leaving.get(done, ()) if residence else ():
                self.known.pop(number, None)
            while self.fragments and done >= self.due + self.fragments[0].weight * self.spacing / 2:
                self._weave(len(self.fragments) - 1)
        self._weave(0)
        if last:
            self._results_from_memory()
        if woven:
            woven.end(self.function)
        else:
            self.function.do("ret void")

    def _weave(self, left: int) -> None:
        """Emit other work until at most ``left`` fragments of it are left."""
        while len(self.fragments) > left:
            fragment = self.fragments.popleft()
            self.due += fragment.weight * self.spacing
            fragment.write(self.function)

    def _value(self, number: int) -> str:
        """The name of a value, loaded first where it lives in memory."""
        name = self.known.get(number)
        if name is not None:
            return name
        node = self.nodes[number]
        if node[0] == "const":
            return self.function.constant(self.shape, node[1])
        if node[0] == "input" and node[1] in self.body.uniform:
            name = self.function.spread(self.shape, f"%in{node[1]}", node[2])
        elif node[0] == "input":
            name = self._load(f"%in{node[1]}", node[2])
        elif number in self.body.plan.item_of:
            group, item, result = self.body.plan.item_of[number]
            name = self._load("%frame", self.body.group_slots[id(group)][1][result] + item)
        else:
            array, place = next(iter(self.body.destinations.get(number, ())), (None, 0))
            name = self._load("%frame", self.body.slots[number]) if array is None else self._load(f"%out{array}", place)
            if is_truth(node):
                name = self.function.emit(f"fcmp une {self.shape.real} {name}, {self.shape.constant(0.0)}")
        self.known[number] = name
        return name

    def _load(self, base: str, slot: int) -> str:
        return self.function.load(self._kept(self.shape.real), self._place(base, slot), self._align())

    def _kept(self, kind: str) -> str:
        """A type to load or store; where values wait is not LLVM's to change, if we have planned it."""
        return f"volatile {kind}" if self.body.registers else kind

    def _store(self, value: str, base: str, slot: int) -> None:
        kind = self._kept(self.shape.real) if base == "%frame" else self.shape.real
        self.function.store(kind, value, self._place(base, slot), self._align())

    def _place(self, base: str, slot: int) -> str:
        return base if slot == 0 else self.function.address(self.shape.real, base, slot)

    def _align(self) -> int:
        return self.shape.size

    def _as_real(self, number: int) -> str:
        value = self._value(number)
        if not is_truth(self.nodes[number]):
            return value
        one, zero = self.shape.constant(1.0), self.shape.constant(0.0)
        kind = self.shape.real
        return self.function.emit(f"select {self.shape.truth} {value}, {kind} {one}, {kind} {zero}")

    def _node(self, number: int) -> None:
        node = self.nodes[number]
        if node[0] in ("const", "input"):
            return
        values = [self._value(a) for a in arguments(node)]
        self.known[number] = ops.TABLE[node[0]](self.function, self.shape, *values)
        if number in self.body.slots:
            self._store(self._as_real(number), "%frame", self.body.slots[number])
        for array, element in self.body.destinations.get(number, ()):
            self._weave(self.before_results)
            self._store(self._as_real(number), f"%out{array}", element)

    def _results_from_memory(self) -> None:
        """Outputs that are no operation of a piece: constants, copies of inputs, and results of groups."""
        for number, places in self.body.destinations.items():
            if self.nodes[number][0] in ("const", "input") or number in self.body.plan.item_of:
                for array, element in places:
                    self._store(self._as_real(number), f"%out{array}", element)

    def _group(self, group: GroupedCall) -> None:
        """Put the arguments in a row, call, and leave the results in the frame."""
        body = self.body
        count = len(group.members)
        row = transcendental.TABLE[group.entry]
        pointers = [self._in_a_row([members[k] for members in group.members]) for k in range(row.arguments)]
        results = [body._reserve(count) for _ in range(row.results)]
        body.group_slots[id(group)] = (pointers, results)
        places = [self._place(base, slot) for base, slot in [*pointers, *(("%frame", slot) for slot in results)]]
        vectors = -(-count * self.shape.lanes // body.vector.lanes)
        passed = ", ".join(f"ptr {place}" for place in places)
        self.function.do(f"call void @{transcendental.function_name(group.entry)}({passed}, i64 {vectors})")

    def _in_a_row(self, values: list[int]) -> tuple[str, int]:
        """Address of the values one behind the other: in an input as they are, or else copied to the frame."""
        nodes = [self.nodes[value] for value in values]
        array, first = (nodes[0][1], nodes[0][2]) if nodes[0][0] == "input" else (-1, 0)
        whole_vectors = self.shape.lanes == self.body.vector.lanes
        consecutive = array not in self.body.uniform and all(
            node == ("input", array, first + k) for k, node in enumerate(nodes)
        )
        if whole_vectors and consecutive:
            return f"%in{array}", first
        start = self.body._reserve(len(values))
        if not whole_vectors and self.body.masked and array >= 0 and consecutive:
            self._copy_by_vectors(array, first, len(values), start)
            return "%frame", start
        for k, value in enumerate(values):
            self._store(self._value(value), "%frame", start + k)
        for k in range(len(values), self.body.frame_slots - start):
            # Lanes that no value fills still take part in the call: let them be ordinary.
            self._store(self.shape.constant(0.5), "%frame", start + k)
        return "%frame", start

    def _copy_by_vectors(self, array: int, first: int, count: int, start: int) -> None:
        """Neighbouring scalars of an input to the frame by vector moves.

        The call reads them as vectors, which would have to wait for scalar stores to drain.
        """
        f, vector = self.function, self.body.vector
        for done in range(0, count, vector.lanes):
            mask = ", ".join(f"i1 {int(done + k < count)}" for k in range(vector.lanes))
            source = self._place(f"%in{array}", first + done)
            value = masked_load(f, vector, source, f"<{mask}>")
            f.store(vector.real, value, self._place("%frame", start + done), vector.size)
