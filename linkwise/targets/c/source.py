"""A block or a program as a C file, and the header that declares its function.

    void inverse_dynamics(const double q[7], const double v[7], const double vdot[7], double out[7])

One array for each input and output, row-major. A program with loops has one more parameter, a workspace: its type is
in the header.
"""

from __future__ import annotations

from linkwise.targets.c.block_writer import BlockWriter
from linkwise.targets.c.lines import comment, shape_of, wrapped
from linkwise.targets.c.statements import ProgramWriter
from linkwise.trace.block import Block
from linkwise.trace.program import Program


def c_source(program: Block | Program, bits: int = 64, *, include: str | None = None) -> str:
    """A complete C file.

    Args:
        program: what it computes.
        bits: 64 for double, 32 for float.
        include: name of a header of its own to include; the type of a workspace is there.
    """
    return _FunctionFile(program, bits).text(include)


def c_header(program: Block | Program, bits: int = 64) -> str:
    """The header that declares the function."""
    return _FunctionFile(program, bits).header()


def guarded(name: str, first: list[str], declared: list[str]) -> str:
    """A header, from what comes before its guard and what is inside, for C and for C++."""
    guard = f"LINKWISE_{name.upper()}_H"
    opening = [f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    closing = ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""]
    return "\n".join([*first, *opening, *declared, *closing])


class _FunctionFile:
    """Writes one function with all that it calls."""

    def __init__(self, program: Block | Program, bits: int) -> None:
        self.writer: BlockWriter | ProgramWriter
        if isinstance(program, Block):
            self.writer = block = BlockWriter(program, bits)
            described = [
                (title, [(name, shape_of(spec)) for name, spec in zip(names, specs, strict=True)])
                for title, names, specs in (
                    ("Inputs", block.inputs, program.inputs),
                    ("Outputs", block.outputs, program.outputs),
                )
            ]
            last = "An output may be the same array as an input, but must not overlap one otherwise."
            self.workspace: list[str] = []
            self.parameters = block.parameters(sized=True)
        else:
            self.writer = many = ProgramWriter(program, bits)
            described, kind = many.described(), f"{many.name}_workspace"
            last = (
                "Outputs and workspace must not overlap each other, nor the inputs. Nothing need be in the workspace."
            )
            self.workspace = [f"typedef struct {{ {many.real} memory[{max(1, many.workspace)}]; }} {kind};", ""]
            self.parameters = [*many.parameters(sized=True), f"{kind} *workspace"]
        self.comment = comment(program.name, self.writer.real, described, last)

    def text(self, include: str | None) -> str:
        """The file."""
        lines = [*self.comment, "#include <math.h>"]
        if include:
            lines += ["", f'#include "{include}"']
        elif self.workspace:
            lines += ["", *self.workspace[:-1]]
        return "\n".join([*lines, *self._definitions(), ""])

    def _definitions(self) -> list[str]:
        if isinstance(self.writer, BlockWriter):
            return self.writer.definitions()
        return self.writer.definitions(f"{self.writer.name}_workspace")

    def header(self) -> str:
        """The header."""
        declared = [*self.workspace, *wrapped(f"void {self.writer.name}(", self.parameters, ");")]
        return guarded(self.writer.name, self.comment, declared)
