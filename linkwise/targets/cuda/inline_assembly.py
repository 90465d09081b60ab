"""The steps of a plan in PTX, the assembly language of NVIDIA's GPUs, inside a kernel's text.

A long straight piece of C++ takes most of its compile time on the way to PTX, where nothing is gained: which operations
are fused, their order, and what waits in memory are decided already. Of 25 s for 22 000 instructions 22 went there, of
10 s for 12 000 seven. So arithmetic is written in PTX; what is a function in ``device.cuh`` stays in C++.

Registers ``t`` are the program's values, ``p`` its truth values, ``n`` what an instruction needs for a moment:
constants, numbers with their sign changed, truths on their way to memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence

from linkwise.targets.c.lines import rounded
from linkwise.targets.cuda.instructions import Instruction, Operand
from linkwise.targets.cuda.plan_writer import KEEP, KEEP_TRUTH, TABLE, Constants
from linkwise.targets.cuda.spilling import Reload, Spill, SpillPlan
from linkwise.trace.block import Block, is_truth

Address = tuple[str, str]
"""Address of a number: the memory of PTX and the address there; "C++", and an expression; or "columns", and how many
bytes columns are apart, the number of the column, and where the first one is."""

_BLOCK = 1000  # lines of a statement: compilers have limits


def declarations(count: int, constants: Constants, local: int) -> list[str]:
    """The first lines of a kernel: its registers, for so many values, and its local slots."""
    bits, size = constants.bits, constants.bits // 8
    used = ' :: "l"(lw_constant)' if constants.places else ""  # the compiler drops what it sees nobody use
    registers = f".reg .f{bits} t<{count}>, n<3>; .reg .pred p, p<{count}>; .reg .u64 lw_at;"
    lines = [f'asm volatile("{registers}"{used});']
    if local:
        lines.append(f'asm volatile(".local .align {size} .b8 lw_far[{local * size}];");')
    return lines


class AssemblyWriter:
    """Writes the steps of a plan.

    Args:
        program: what is computed.
        plan: its instructions, with loads and stores.
        constants: how constants are written in C++.
        place: for each slot its place in PTX: the memory it is in, and the address.
        leaves: the places to which values go as soon as they are computed.
        pointers: C++ expressions of the addresses that places name, ``%0`` and so on, and their PTX types.
        safe_angles: values whose sin and cos need no guard.
    """

    def __init__(
        self,
        program: Block,
        plan: SpillPlan,
        constants: Constants,
        place: Callable[[int], Address],
        leaves: Mapping[int, Sequence[Address]],
        pointers: Mapping[str, str],
        safe_angles: Collection[int] = (),
    ) -> None:
        self.program, self.constants, self.leaves, self.safe_angles = program, constants, leaves, safe_angles
        self.bits, self.type = constants.bits, f"f{constants.bits}"
        self.pointers = ", ".join(f'"{kind}"({text})' for text, kind in pointers.items())
        self.lines: list[str] = []
        self._block: list[str] = []
        for step in plan.steps:
            if isinstance(step, Reload):
                self._load(step.value, place(step.slot))
            elif isinstance(step, Spill):
                self._store(step.value, place(step.slot))
            else:
                self._instruction(step)
                for value in step.writes:
                    for left in leaves.get(value, ()):
                        self._store(value, left)
            if len(self._block) >= _BLOCK:
                self._close()
        self._close()

    def _load(self, value: int, place: Address) -> None:
        memory, address = place
        if memory == "C++":
            self._close()
            self.lines.append(f"LW_PUT(t{value}, {address});")
            return
        name = self._name(value)
        into = name if name.startswith("t") else "n0"
        memory, address = self._reached(memory, address)
        # What is read there, this kernel does not write: so loads need not wait for stores in front of them.
        memory = "global.nc" if memory == "global" else memory
        self._block.append(f"ld.{memory}.{self.type} {into}, [{address}];")
        if into != name:
            self._block.append(f"setp.ne.{self.type} {name}, n0, {self._number(0.0)};")

    def _store(self, value: int, place: Address) -> None:
        memory, address = place
        name = self._name(value)
        if name.startswith("p"):
            self._block.append(f"selp.{self.type} n0, {self._number(1.0)}, {self._number(0.0)}, {name};")
            name = "n0"
        memory, address = self._reached(memory, address)
        self._block.append(f"st.{memory}.{self.type} [{address}], {name};")

    def _reached(self, memory: str, address: str) -> Address:
        """An address that loads and stores take."""
        if memory != "columns":
            return memory, address
        self._block.append(f"mad.wide.u32 lw_at, {address};")
        return "global", "lw_at+0"

    def _number(self, value: float) -> str:
        form, kind = (">f", "0f") if self.bits == 32 else (">d", "0d")
        return kind + struct.pack(form, rounded(value, self.bits)).hex()

    def _close(self) -> None:
        """Join the collected lines to one statement."""
        if self._block:
            self.lines.append("asm volatile(")
            self.lines += [f'    "{line}\\n"' for line in self._block]
            self.lines.append(f'    :: {self.pointers} : "memory");')
            self._block = []

    def _instruction(self, each: Instruction) -> None:
        text = KEEP if each.op == "keep" else TABLE[each.op].ptx if each.op in TABLE else None
        if text is None:
            self._close()
            self._function(each)
            return
        (number,) = each.writes
        operands = [self._operand(o, k) for k, o in enumerate(each.operands)]
        if each.op == "keep" and operands[0].startswith("p"):
            text = KEEP_TRUTH
        numbers = {"one": self._number(1.0), "zero": self._number(0.0)}
        self._block.append(text.format(*operands, out=self._name(number), type=self.type, **numbers))

    def _name(self, value: int) -> str:
        nodes = self.program.nodes
        return f"{'p' if value < len(nodes) and is_truth(nodes[value]) else 't'}{value}"

    def _operand(self, each: Operand, place: int) -> str:
        node = self.program.nodes[each.value]
        if node[0] == "const":
            return self._constant(-node[1] if each.negative else node[1], place)
        if not each.negative:
            return self._name(each.value)
        self._block.append(f"neg.{self.type} n{place}, t{each.value};")
        return f"n{place}"

    def _constant(self, value: float, place: int) -> str:
        """Operand of a constant: in the instruction, if it has room for it."""
        at = self.constants.places.get(abs(value))
        if at is None:
            return self._number(value)
        self._block.append(f"ld.const.{self.type} n{place}, [lw_constant+{at * self.bits // 8}];")
        if value < 0:
            self._block.append(f"neg.{self.type} n{place}, n{place};")
        return f"n{place}"

    def _function(self, each: Instruction) -> None:
        """One that C++ has: operands out of their registers, results into theirs."""
        texts, lines = [], []
        for k, o in enumerate(each.operands):
            node = self.program.nodes[o.value]
            if node[0] == "const":
                texts.append(self.constants.text(node[1], o.negative))
            else:
                lines.append(f"REAL x{k}; LW_GET(x{k}, t{o.value});")
                texts.append(f"{'-' if o.negative else ''}x{k}")
        if each.op == "sincos":
            guard = "" if each.operands[0].value in self.safe_angles else "_any"
            lines.append(f"REAL sine, cosine; lw_sincos{guard}({texts[0]}, sine, cosine);")
            results = dict(zip(("sine", "cosine"), each.results, strict=True))
        else:
            lines.append(f"const REAL y = {TABLE[each.op].cpp.format(*texts)};")
            results = {"y": each.results[0]}
        lines += [f"LW_PUT(t{value}, {name});" for name, value in results.items() if value is not None]
        self.lines.append(f"{{ {' '.join(lines)} }}")
