"""Blocks and programs for people: as text, one line a value or statement, and by their numbers of operations.

Counts are as the papers print them: multiplications and divisions (M), additions and subtractions (A).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkwise.dataclass import dataclass
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import PARAMETERS, Program, lines_of


def to_text(code: Block | Program) -> str:
    """The code; of a program, its statements and then all that it calls, each once."""
    names: dict[int, str] = {}
    return "\n".join(_block(code, code.name) if isinstance(code, Block) else _program(code, code.name, names))


def _shown(arrays: Sequence[ArraySpec]) -> str:
    return ", ".join(f"{array.name}{list(array.shape)}" for array in arrays)


def _block(block: Block, name: str) -> Iterator[str]:
    """One assignment a line."""
    yield f"program {name}({_shown(block.inputs)})"
    for number, (op, *arguments) in enumerate(block.nodes):
        if op == "const":
            text = repr(arguments[0])
        elif op == "input":
            text = f"{block.inputs[arguments[0]].name}[{arguments[1]}]"
        else:
            text = f"{op} {', '.join(f'%{a}' for a in arguments)}"
        yield f"  %{number} = {text}"
    for spec, result in zip(block.outputs, block.results, strict=True):
        yield f"  {spec.name}{list(spec.shape)} = {', '.join(f'%{n}' for n in result)}"


def _program(program: Program, name: str, names: dict[int, str]) -> Iterator[str]:
    """Lines of a program: its memory, its tables in a few words, its statements; then what it calls, once."""
    new = [code for code in program.codes if id(code) not in names]
    for code in new:
        alike = sum(known == code.name or known.startswith(f"{code.name}#") for known in names.values())
        names[id(code)] = f"{code.name}#{alike + 1}" if alike else code.name
    yield f"program {name}({_shown(program.inputs)}) -> {_shown(program.outputs)}"
    own = [f"{buffer.name}[{buffer.size}]" for buffer in program.buffers if not (buffer.load or buffer.store)]
    if len(program.parameters):
        own.append(f"{PARAMETERS}[{len(program.parameters)}]")
    if own:
        yield f"  memory {', '.join(own)}"
    given = [*program.tables, *(f"{each}[:, {size}]" for each, size in (*program.curves, *program.series))]
    if given:
        yield f"  tables {', '.join(given)}"
    if program.records:
        yield f"  records {', '.join(f'{each}[:, {size}]' for each, size in program.records)}"
    for each, first, count in program.ranges:
        yield f"  {each} = rows {first} to {first + count} of {program.rows.shape[1]} numbers"
    for number in program.initial:
        yield f"  {number.buffer}[{number.offset}] = {number.value!r}"
    yield from lines_of(program.statements, lambda code: names[id(code)], 1)
    for code in new:
        yield ""
        yield from _block(code, names[id(code)]) if isinstance(code, Block) else _program(code, names[id(code)], names)


@dataclass(frozen=True)
class Counts:
    """Numbers of operations of each kind in one evaluation."""

    mul: int
    add: int
    div: int
    trig: int
    other: dict[str, int]

    @property
    def M(self) -> int:  # the papers' letter
        """Multiplications and divisions together, the papers' M."""
        return self.mul + self.div

    @property
    def A(self) -> int:  # the papers' letter
        """Additions and subtractions together, the papers' A."""
        return self.add

    def __str__(self) -> str:
        rest = "".join(f", {count} {name}" for name, count in sorted(self.other.items()))
        return f"{self.mul} mul, {self.div} div, {self.add} add, {self.trig} sin/cos{rest}"


def count(code: Block | Program) -> Counts:
    """Count the operations of a block or a program; sign changes are free (they fold into the neighbouring operation).

    Loops count as often as they pass; those that ask a flag, one pass.
    """
    tally: Counter[str] = Counter()
    if isinstance(code, Block):
        tally.update(node[0] for node in code.nodes)
    else:
        for block, times in code.times:
            tally.update({op: n * times for op, n in Counter(node[0] for node in block.nodes).items()})
    for free in ("const", "input", "neg"):
        tally.pop(free, None)
    return Counts(
        mul=tally.pop("mul", 0),
        add=tally.pop("add", 0) + tally.pop("sub", 0),
        div=tally.pop("div", 0),
        trig=tally.pop("sin", 0) + tally.pop("cos", 0),
        other=dict(tally),
    )
