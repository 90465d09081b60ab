"""The arithmetic of a program as lines of CUDA, from places in memory to places in memory.

The table of operations says how each instruction is written, in C++ and in PTX. An expression of C++ has its operands
as ``{0}``, ``{1}``, ``{2}``; the names that begin with ``lw_`` are the device functions of ``device.cuh``. In PTX
``{type}`` is f32 or f64 and ``{out}`` the result; all have their rounding, so that the assembler fuses nothing. What
has no PTX is a function of C++ there too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from linkwise.dataclass import dataclass
from linkwise.targets.c.lines import TABLE as C_TABLE
from linkwise.targets.c.lines import literal, rounded
from linkwise.targets.cuda.instructions import Instruction, Operand, instructions, operand, ordered
from linkwise.targets.cuda.spilling import Reload, Spill, SpillPlan, plan
from linkwise.trace.block import Block, is_truth


class Operation(NamedTuple):
    """One instruction in both languages."""

    cpp: str
    ptx: str | None = None


TABLE: Mapping[str, Operation] = MappingProxyType(
    {
        "add": Operation(C_TABLE["add"], "add.rn.{type} {out}, {0}, {1};"),
        "sub": Operation(C_TABLE["sub"], "sub.rn.{type} {out}, {0}, {1};"),
        "mul": Operation(C_TABLE["mul"], "mul.rn.{type} {out}, {0}, {1};"),
        "fma": Operation("lw_fma({0}, {1}, {2})", "fma.rn.{type} {out}, {0}, {1}, {2};"),
        "div": Operation("lw_divide({0}, {1})"),
        "abs": Operation("lw_abs({0})", "abs.{type} {out}, {0};"),
        "sqrt": Operation("lw_sqrt({0})", "sqrt.rn.{type} {out}, {0};"),
        "atan2": Operation("lw_atan2({0}, {1})"),
        "exp": Operation("lw_exp({0})"),
        "log": Operation("lw_log({0})"),
        "min": Operation(C_TABLE["min"], "setp.lt.{type} p, {0}, {1}; selp.{type} {out}, {0}, {1}, p;"),
        "max": Operation(C_TABLE["max"], "setp.gt.{type} p, {0}, {1}; selp.{type} {out}, {0}, {1}, p;"),
        "lt": Operation(C_TABLE["lt"], "setp.lt.{type} {out}, {0}, {1};"),
        "le": Operation(C_TABLE["le"], "setp.le.{type} {out}, {0}, {1};"),
        "eq": Operation(C_TABLE["eq"], "setp.eq.{type} {out}, {0}, {1};"),
        "and": Operation(C_TABLE["and"], "and.pred {out}, {0}, {1};"),
        "or": Operation(C_TABLE["or"], "or.pred {out}, {0}, {1};"),
        "not": Operation(C_TABLE["not"], "not.pred {out}, {0};"),
        "hold": Operation(C_TABLE["hold"], "mov.{type} {out}, {0};"),
        "select": Operation(C_TABLE["select"], "selp.{type} {out}, {1}, {2}, {0};"),
    }
)

ABSORBED = ("neg", "sin", "cos")
"""Operations that are no expressions of their own: a sign belongs to an operand, sin and cos come together."""

KEEP, KEEP_TRUTH = "mov.{type} {out}, {0};", "selp.{type} {out}, {one}, {zero}, {0};"
"""Instructions of PTX for a result that is no value of its own; a truth value becomes one or zero."""


_MOST = 8000  # constants of a table: 64 kB are all that a kernel can have
UNLIMITED = 1 << 30
"""Values in registers: what does not fit is left to the compiler, which knows them all."""


def planned_body(program: Block, limit: int = UNLIMITED) -> tuple[list[int], SpillPlan]:
    """The inputs in the order of their slots, and the instructions with loads and stores."""
    given = [value for value, node in enumerate(program.nodes) if node[0] == "input"]
    wanted = [operand(program, value).value for row in program.results for value in row]
    order = ordered(instructions(program), set(given), wanted)
    truths = [value for value, node in enumerate(program.nodes) if is_truth(node)]
    slots = {value: k for k, value in enumerate(given)}
    return given, plan(order, slots, limit, reusable=(), registers_only=truths)


@dataclass(frozen=True)
class Constants:
    """Constants as they are written: in the instruction, or (64 bits do not fit there) as elements of a table."""

    bits: int
    places: Mapping[float, int]

    @classmethod
    def of(cls, programs: Iterable[Block], bits: int) -> Constants:
        """All constants of some programs."""
        if bits == 32:
            return cls(bits, {})
        nodes = (node for program in programs for node in program.nodes)
        values = dict.fromkeys(abs(node[1]) for node in nodes if node[0] == "const")
        table = [value for value in values if value not in (0.0, 0.5, 1.0, 2.0) and value == value]
        return cls(bits, {value: k for k, value in enumerate(table[:_MOST])})

    def table(self) -> list[str]:
        """Definition of the table."""
        if not self.places:
            return []
        rows = ",\n    ".join(literal(value, self.bits) for value in self.places)
        return ["__constant__ REAL lw_constant[] = {", f"    {rows}}};", ""]

    def text(self, value: float, negative: bool) -> str:
        """One constant, or its negative."""
        value = -value if negative else value
        place = self.places.get(abs(value))
        if place is None:
            return literal(rounded(value, self.bits), self.bits)
        return f"{'-' if value < 0 else ''}lw_constant[{place}]"


class PlanWriter:
    """Writes the steps of a plan.

    Args:
        program: what is computed.
        plan: its instructions, with loads and stores.
        constants: how constants are written.
        slots: for each slot the place it stands for.
        output: writes a result: (array, element, value) to a line.
        safe_angles: values whose sin and cos need no guard.
    """

    def __init__(
        self,
        program: Block,
        plan: SpillPlan,
        constants: Constants,
        slots: Callable[[int], str],
        output: Callable[[int, int, str], str],
        safe_angles: Collection[int] = (),
    ) -> None:
        self.program, self.constants, self.slots, self.output = program, constants, slots, output
        self.safe_angles = safe_angles
        self.names: dict[int, str] = {}
        self.times: dict[int, int] = {}
        self.lines: list[str] = []
        self.wanted: dict[int, list[tuple[int, int, bool]]] = {}
        for array, row in enumerate(program.results):
            for element, number in enumerate(row):
                base = operand(program, number)
                self.wanted.setdefault(base.value, []).append((array, element, base.negative))
        for step in plan.steps:
            if isinstance(step, Reload):
                self.lines.append(f"const REAL {self._name(step.value)} = {slots(step.slot)};")
            elif isinstance(step, Spill):
                self.lines.append(f"{slots(step.slot)} = {self.names[step.value]};")
            else:
                self._instruction(step)
        for value in self.wanted:
            if program.nodes[value][0] == "const":
                self._outputs(value)

    def _name(self, value: int) -> str:
        """A new name for a value; one that is read back from memory has a new one each time."""
        time = self.times[value] = self.times.get(value, -1) + 1
        self.names[value] = f"t{value}_{time}" if time else f"t{value}"
        return self.names[value]

    def _text(self, each: Operand) -> str:
        node = self.program.nodes[each.value]
        if node[0] == "const":
            return self.constants.text(node[1], each.negative)
        return f"-{self.names[each.value]}" if each.negative else self.names[each.value]

    def _instruction(self, each: Instruction) -> None:
        operands = [self._text(o) for o in each.operands]
        if each.op == "sincos":
            sine, cosine = (f"t{n}" if n is not None else f"unused{len(self.lines)}" for n in each.results)
            self.names.update((n, f"t{n}") for n in each.writes)
            self.times.update(dict.fromkeys(each.writes, 0))
            guard = "" if each.operands[0].value in self.safe_angles else "_any"
            self.lines.append(f"REAL {sine}, {cosine}; lw_sincos{guard}({operands[0]}, {sine}, {cosine});")
        elif each.op != "copy":
            (number,) = each.writes
            kind = "bool" if is_truth(self.program.nodes[number]) else "REAL"
            self.lines.append(f"const {kind} {self._name(number)} = {TABLE[each.op].cpp.format(*operands)};")
        for value in each.writes or each.reads:
            self._outputs(value)

    def _outputs(self, value: int) -> None:
        for array, element, negative in self.wanted.get(value, ()):
            text = self._text(Operand(value, negative))
            if is_truth(self.program.nodes[value]):
                text = f"(REAL){text}"
            self.lines.append(self.output(array, element, text))
