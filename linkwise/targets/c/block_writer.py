"""A block as C functions: one, or several where it is long.

Each operation is one line, in the order of the block; constants are written so that no digit is lost. All results are
stored at the end: an output may be the same array as an input.

Compilers' work grows faster than the length of a function, so a long block becomes several. What one computes and a
later one reads travels in an array ``w`` that the first function has on its stack; a place in it is given to another
value as soon as nothing reads the old one any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.dataclass import dataclass
from linkwise.targets.c.lines import TABLE, array_names, function_name, literal, wrapped
from linkwise.targets.shared_places import shared_places
from linkwise.trace.block import OPS, Block, arguments

PIECE = 3000  # statements in one function


@dataclass(frozen=True)
class CutBlock:
    """Node numbers of each piece in order, and the places of the values that cross from one to another."""

    pieces: tuple[tuple[int, ...], ...]
    places: dict[int, int]
    size: int


def cut(program: Block) -> CutBlock:
    """Pieces of equal length. Results count as read by the last piece, which stores all of them."""
    order = [n for n in program.live if program.nodes[n][0] not in ("const", "input")]
    count = max(1, -(-len(order) // PIECE))
    length = max(1, -(-len(order) // count))
    pieces = tuple(tuple(order[k * length : (k + 1) * length]) for k in range(count))
    home = {number: k for k, part in enumerate(pieces) for number in part}
    last_read: dict[int, int] = {}
    for k, part in enumerate(pieces):
        for number in part:
            last_read.update((a, k) for a in arguments(program.nodes[number]) if a in home)
    last_read.update((value, count - 1) for row in program.results for value in row if value in home)
    crossing = [(value, k, last_read[value]) for value, k in home.items() if last_read.get(value, k) > k]
    return CutBlock(pieces, *shared_places(crossing))


class BlockWriter:
    """Writes one block.

    Args:
        program: the block.
        bits: 64 for double, 32 for float.
        name: of the function; that of the block, if not given.
    """

    def __init__(self, program: Block, bits: int, name: str | None = None) -> None:
        self.program, self.bits = program, bits
        self.real = "double" if bits == 64 else "float"
        self.suffix = "" if bits == 64 else "f"
        self.name = function_name(program) if name is None else name
        self.inputs, self.outputs = array_names(program, self.name)
        self.cut = cut(program)
        self.results = {value for row in program.results for value in row}

    def parameters(self, sized: bool) -> list[str]:
        """The parameters of the function; arrays without elements are pointers."""
        found = []
        for qualifier, names, specs in (
            (f"const {self.real}", self.inputs, self.program.inputs),
            (self.real, self.outputs, self.program.outputs),
        ):
            for name, spec in zip(names, specs, strict=True):
                found.append(f"{qualifier} {name}[{spec.size}]" if sized and spec.size else f"{qualifier} *{name}")
        return found

    def definitions(self, static: bool = False) -> list[str]:
        """The functions: those of the parts that the block is cut into, then the one that others call."""
        lines: list[str] = []
        count = len(self.cut.pieces)
        for k, part in enumerate(self.cut.pieces[:-1]):
            lines += ["", *self._piece(k, part)]
        head = f"static void {self.name}(" if static else f"void {self.name}("
        lines += ["", *wrapped(head, self.parameters(sized=not static), ")"), "{"]
        if count > 1:
            lines.append(f"    {self.real} w[{max(1, self.cut.size)}];")
            lines.append("")
            passed = ", ".join([*self.inputs, "w"])
            lines += [f"    {self.name}_part{k}({passed});" for k in range(count - 1)]
        body = [*self._statements(self.cut.pieces[-1], last=True)]
        lines += [f"    (void){name};" for name in self._unused()]
        lines += [f"    {line}" for line in body]
        return [*lines, "}"]

    def _piece(self, k: int, part: tuple[int, ...]) -> Iterator[str]:
        own = [*self.parameters(sized=False)[: len(self.inputs)], f"{self.real} *w"]
        yield from wrapped(f"static void {self.name}_part{k}(", own, ")")
        yield "{"
        read = {self.program.nodes[a][1] for n in part for a in self._reads(n) if self.program.nodes[a][0] == "input"}
        for array, name in enumerate(self.inputs):
            if array not in read:
                yield f"    (void){name};"
        statements = list(self._statements(part, last=False))
        if not any("w[" in line for line in statements):
            yield "    (void)w;"
        for line in statements:
            yield f"    {line}"
        yield "}"

    def _reads(self, number: int) -> tuple[int, ...]:
        return arguments(self.program.nodes[number])

    def _unused(self) -> list[str]:
        """Parameters that the function itself does not mention; several pieces are handed all inputs."""
        nodes, many = self.program.nodes, len(self.cut.pieces) > 1
        read = {nodes[a][1] for n in self.cut.pieces[-1] for a in self._reads(n) if nodes[a][0] == "input"}
        read.update(nodes[value][1] for value in self.results if nodes[value][0] == "input")
        unused = [name for array, name in enumerate(self.inputs) if array not in read and not many]
        return unused + [name for name, row in zip(self.outputs, self.program.results, strict=True) if not row]

    def _statements(self, part: tuple[int, ...], last: bool) -> Iterator[str]:
        here = set(part)
        for number in part:
            op, *arguments = self.program.nodes[number]
            kind = "int" if OPS[op].result == "B" else self.real
            right = TABLE[op].format(*(self._value(a, here) for a in arguments), f=self.suffix)
            yield f"const {kind} t{number} = {right};"
            if number in self.cut.places:
                yield f"w[{self.cut.places[number]}] = {self._as_real(number)};"
        if last:
            yield from self._stores(here)

    def _stores(self, here: set[int]) -> Iterator[str]:
        """Results; those that are inputs are read before anything is stored, since the arrays may be the same."""
        copied: dict[int, str] = {}
        for value in sorted(self.results):
            if self.program.nodes[value][0] == "input":
                copied[value] = f"t{value}"
                yield f"const {self.real} t{value} = {self._value(value, here)};"
        for name, row in zip(self.outputs, self.program.results, strict=True):
            for element, value in enumerate(row):
                yield f"{name}[{element}] = {copied.get(value) or self._as_real(value, here)};"

    def _value(self, number: int, here: set[int]) -> str:
        node = self.program.nodes[number]
        if node[0] == "const":
            return literal(node[1], self.bits)
        if node[0] == "input":
            return f"{self.inputs[node[1]]}[{node[2]}]"
        if number in here:
            return f"t{number}"
        place = f"w[{self.cut.places[number]}]"
        return f"({place} != 0)" if OPS[node[0]].result == "B" else place

    def _as_real(self, number: int, here: set[int] | None = None) -> str:
        node = self.program.nodes[number]
        value = self._value(number, {number} if here is None else here)
        return f"({self.real}){value}" if node[0] in OPS and OPS[node[0]].result == "B" else value
