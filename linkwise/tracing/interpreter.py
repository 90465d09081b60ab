"""The definition of what a program computes: one value after another, in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.tracing.ops import OPS
from linkwise.tracing.program import Program


def interpret(program: Program, inputs: Sequence[Sequence[float]]) -> list[list[float]]:
    """Run on flat input arrays; flat output arrays."""
    values: list[Any] = []
    for op, *arguments in program.nodes:
        if op == "const":
            values.append(arguments[0])
        elif op == "input":
            values.append(float(inputs[arguments[0]][arguments[1]]))
        else:
            values.append(OPS[op].define(*(values[a] for a in arguments)))
    return [[values[number] for number in result] for result in program.results]
