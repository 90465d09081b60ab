"""Which angles can be brought within a turn before a kernel begins.

sin and cos are computed without a branch, for angles up to a limit. An input that is nothing but an angle (only sin
and cos read it, perhaps with a constant added) is looked at once, while it is staged; the rare huge one
is replaced by the same angle within a turn. So the long straight piece of code stays in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.codegen.cuda.instructions import Instruction, operand
from linkwise.tracing.block import Block


def pure_angles(program: Block, instructions: Sequence[Instruction]) -> tuple[set[int], set[int]]:
    """Input values that are nothing but angles, and all values whose sin and cos are safe when these are tamed."""
    readers: dict[int, list[Instruction]] = {}
    for each in instructions:
        for value in each.reads:
            readers.setdefault(value, []).append(each)
    results = {operand(program, value).value for row in program.results for value in row}
    inputs: set[int] = set()
    safe: set[int] = set()
    for value, node in enumerate(program.nodes):
        if node[0] != "input" or value not in readers or value in results:
            continue
        reached = {value}
        for each in readers[value]:
            if each.op == "sincos":
                continue
            shifted = each.op in ("add", "sub") and len(each.reads) == 1 and len(each.operands) == 2
            shifted = shifted and any(program.nodes[o.value][0] == "const" for o in each.operands)
            only = shifted and all(
                n not in results and all(r.op == "sincos" for r in readers.get(n, ())) for n in each.writes
            )
            if not only:
                break
            reached.update(each.writes)
        else:
            inputs.add(value)
            safe |= reached
    return inputs, safe
