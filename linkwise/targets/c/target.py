"""C as a target, and the files of an emitted function or simulator: ``name.c``, ``name.h`` and ``name_test.c``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol, runtime_checkable

from linkwise.array_types import Precision
from linkwise.errors import InputError
from linkwise.targets import Target, folder_for_code, target
from linkwise.targets.c.lines import function_name
from linkwise.targets.c.self_test import check_source, random_states
from linkwise.targets.c.source import c_header, c_source
from linkwise.targets.c.stand_alone import Simulator, simulator_files
from linkwise.trace.block import Block
from linkwise.trace.program import Program


class C(Target):
    """Plain C99, for a controller."""

    name = "c"
    suffix = ".c"
    summary = "C99, with a header and a test"
    loops = True

    def source(self, program: Block | Program, dtype: Precision) -> str:
        """The function alone, in one file."""
        return c_source(program, dtype.itemsize * 8)

    def emit(self, program: Block | Program, folder: Path, dtype: Precision) -> tuple[Path, ...]:
        """The function, its header, and a test program."""
        return emit_c(program, folder, bits=dtype.itemsize * 8)


TARGET = C()


States = Sequence[Sequence[Sequence[float]]]


class HasProgram(Protocol):
    """A compiled function, seen from here."""

    def program_for(self, target: Target) -> Block | Program:
        """Program that a target writes."""
        ...


@runtime_checkable
class HasSimulator(Protocol):
    """A simulation, seen from here."""

    def simulator(self, bits: int = 64) -> Simulator:
        """The program that goes on from call to call, in a precision."""
        ...


def emit_c(
    function: Block | Program | HasProgram | HasSimulator,
    folder: str | PathLike[str],
    *,
    bits: int = 64,
    states: States | int = 5,
) -> tuple[Path, Path, Path]:
    """Write a function or a simulator as C, with its header and a test program; the paths of the three files.

    The test is built from ``name.c`` and ``name_test.c`` with any C99 compiler and ``-lm``; it prints the largest error
    and returns 0 if that is within rounding.

    Args:
        function: a compiled function (``model.function("forward_dynamics")``), a program, or an
            :class:`linkwise.Simulation`, which becomes a simulator that starts where it stands.
        folder: where the files go; made if need be.
        bits: 64 for double, 32 for float.
        states: how many random states the test has, or the states themselves: for each one flat list for each input.
            The test of a simulator has none of them: it goes on from the start.
    """
    if bits not in (64, 32):
        raise InputError("there is no such precision in C", got=f"{bits} bits", allowed="64 (double) or 32 (float)")
    if isinstance(function, HasSimulator):
        texts = simulator_files(function.simulator(bits), bits)
    elif not isinstance(function, (Block, Program)) and not hasattr(function, "program_for"):
        raise InputError(
            "there is no C code of this",
            got=repr(function)[:80],
            allowed='a compiled function, model.function("forward_dynamics") say, or a lw.Simulation',
        )
    else:
        texts = _function_files(
            function if isinstance(function, (Block, Program)) else function.program_for(target("c")), bits, states
        )
    home = folder_for_code(folder)
    for file, text in texts.items():
        (home / file).write_text(text, encoding="utf-8")
    source, header, test = (home / file for file in texts)
    return source, header, test


def _function_files(program: Block | Program, bits: int, states: States | int) -> dict[str, str]:
    """Names and texts: source, header, test."""
    name = function_name(program)
    if isinstance(program, Program) and (program.tables or program.records or program.curves or program.series):
        raise InputError(
            f"{name} takes arrays of any number of rows, for which there is no test program",
            got=", ".join(
                [*program.tables, *(each for each, _ in (*program.records, *program.curves, *program.series))]
            ),
            do='take the text alone, .source("c")',
        )
    given = random_states(program, states) if isinstance(states, int) else states
    for state in given:
        sizes = [len(flat) for flat in state]
        if sizes != [array.size for array in program.inputs]:
            raise InputError(
                f"a test state of {name} has the wrong sizes",
                got=str(sizes),
                allowed=", ".join(f"{array.name} {array.size}" for array in program.inputs),
            )
    return {
        f"{name}.c": c_source(program, bits, include=f"{name}.h"),
        f"{name}.h": c_header(program, bits),
        f"{name}_test.c": check_source(program, bits, f"{name}.h", given),
    }
