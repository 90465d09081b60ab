"""Programs made by chance, for properties that must hold for all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from linkwise.targets.cuda.instructions import Instruction, Operand
from linkwise.trace.block import OPS, ArraySpec, Block

_ARITHMETIC = [
    "add",
    "sub",
    "mul",
    "mul",
    "add",
    "sub",
    "neg",
    "sin",
    "cos",
    "div",
    "abs",
    "min",
    "max",
    "lt",
    "le",
    "eq",
]
_LOGIC = ["and", "or", "not", "select"]


@st.composite
def programs(draw: Any, most: int = 60) -> Block:
    """Two inputs, two outputs, all operations that are the same on every machine, results repeated and negated."""
    sizes = draw(st.tuples(st.integers(1, 4), st.integers(0, 3)))
    nodes: list[tuple] = [("input", a, k) for a, n in enumerate(sizes) for k in range(n)]
    nodes += [("const", draw(st.sampled_from([0.0, 1.0, -2.5, 0.1])))]
    real, truth = list(range(len(nodes))), []
    for _ in range(draw(st.integers(1, most))):
        op = draw(st.sampled_from(_ARITHMETIC + (_LOGIC if truth else [])))
        chosen = [draw(st.sampled_from(truth if kind == "B" else real)) for kind in OPS[op].arguments]
        if op == "neg" and nodes[chosen[0]][0] in ("neg", "const"):
            continue
        (truth if OPS[op].result == "B" else real).append(len(nodes))
        nodes.append((op, *chosen))
    results = [draw(st.lists(st.sampled_from(real + truth), min_size=1, max_size=6)) for _ in range(2)]
    return Block(
        "chance", tuple(nodes), tuple(ArraySpec(f"x{a}", (n,)) for a, n in enumerate(sizes)),
        tuple(ArraySpec(f"y{j}", (len(row),)) for j, row in enumerate(results)), tuple(map(tuple, results)),
    )  # fmt: skip


def value_of(program: Block, values: dict[int, Any], each: Operand) -> Any:
    node = program.nodes[each.value]
    value = node[1] if node[0] == "const" else values[each.value]
    return -value if each.negative else value


def execute(program: Block, values: dict[int, Any], each: Instruction) -> None:
    """One instruction, by the definitions of the operations."""
    operands = [value_of(program, values, o) for o in each.operands]
    if each.op == "fma":
        values[each.writes[0]] = operands[0] * operands[1] + operands[2]
    elif each.op == "sincos":
        for op, result in zip(("sin", "cos"), each.results, strict=True):
            if result is not None:
                values[result] = OPS[op].define(operands[0])
    elif each.op != "copy":
        values[each.writes[0]] = OPS[each.op].define(*operands)
