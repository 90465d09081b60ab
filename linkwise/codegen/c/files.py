"""The files of an emitted function: ``name.c``, ``name.h`` and ``name_test.c``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol

from linkwise.codegen.c.check import check_source, random_states
from linkwise.codegen.c.source import c_header, c_source, function_name
from linkwise.errors import InputError
from linkwise.tracing.block import Block


class HasProgram(Protocol):
    """A compiled function, seen from here."""

    @property
    def program(self) -> Block:
        """What it computes."""
        ...


def emit_c(
    function: Block | HasProgram,
    folder: str | PathLike[str],
    *,
    bits: int = 64,
    states: Sequence[Sequence[Sequence[float]]] | int = 5,
) -> tuple[Path, Path, Path]:
    """Write a function as C, with its header and a test program; the paths of the three files.

    The test is built from ``name.c`` and ``name_test.c`` with any C99 compiler and ``-lm``; it prints the largest error
    and returns 0 if that is within rounding.

    Args:
        function: a compiled function (``model.function("forward_dynamics")``), or a program.
        folder: where the files go; made if need be.
        bits: 64 for double, 32 for float.
        states: how many random states the test has, or the states themselves: for each one flat list for each input.
    """
    if bits not in (64, 32):
        raise InputError("there is no such precision in C", got=f"{bits} bits", allowed="64 (double) or 32 (float)")
    program = function if isinstance(function, Block) else function.program
    name = function_name(program)
    given = random_states(program, states) if isinstance(states, int) else states
    for state in given:
        sizes = [len(flat) for flat in state]
        if sizes != [array.size for array in program.inputs]:
            raise InputError(
                f"a test state of {name} has the wrong sizes",
                got=str(sizes),
                allowed=", ".join(f"{array.name} {array.size}" for array in program.inputs),
            )
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    texts = {
        f"{name}.c": c_source(program, bits, include=f"{name}.h"),
        f"{name}.h": c_header(program, bits),
        f"{name}_test.c": check_source(program, bits, f"{name}.h", given),
    }
    for file, text in texts.items():
        (home / file).write_text(text, encoding="utf-8")
    source, header, test = (home / file for file in texts)
    return source, header, test
