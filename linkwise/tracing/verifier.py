"""Checks that a program is well formed; run between passes and before code is emitted in tests."""

from __future__ import annotations

import math

from linkwise.tracing.ops import OPS
from linkwise.tracing.program import Program


def verify(program: Program) -> None:
    """Raise ``ValueError`` naming the first node that breaks a rule."""
    kinds: list[str] = []
    for number, (op, *arguments) in enumerate(program.nodes):
        where = f"node %{number} {(op, *arguments)} of {program.name}"
        if op == "const":
            if not isinstance(arguments[0], float) or math.isnan(arguments[0]):
                raise ValueError(f"{where}: a constant is a float, not NaN")
            kinds.append("R")
        elif op == "input":
            array, element = arguments
            if not (0 <= array < len(program.inputs) and 0 <= element < program.inputs[array].size):
                raise ValueError(f"{where}: reads outside the inputs {program.inputs}")
            kinds.append("R")
        elif op in OPS:
            if len(arguments) != OPS[op].arity:
                raise ValueError(f"{where}: takes {OPS[op].arity} arguments")
            if not all(0 <= a < number for a in arguments):
                raise ValueError(f"{where}: uses a value that is not computed yet")
            if "".join(kinds[a] for a in arguments) != OPS[op].arguments:
                raise ValueError(f"{where}: takes kinds {OPS[op].arguments}")
            kinds.append(OPS[op].result)
        else:
            raise ValueError(f"{where}: no such operation; there are {', '.join(OPS)}")
    for spec, result in zip(program.outputs, program.results, strict=True):
        if len(result) != spec.size:
            raise ValueError(f"output {spec.name} of {program.name} has {len(result)} values, shape {spec.shape}")
        if any(kinds[n] != "R" for n in result):
            raise ValueError(f"output {spec.name} of {program.name} holds a truth value")
