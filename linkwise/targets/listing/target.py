"""The operations and statements of a program as a target: ``source("program")``."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.targets import Target
from linkwise.trace.block import Block
from linkwise.trace.printer import to_text
from linkwise.trace.program import Program


class ProgramListing(Target):
    """The program itself."""

    name = "program"
    suffix = ".txt"
    summary = "the operations themselves"
    loops = True

    def source(self, program: Block | Program, dtype: np.dtype[Any]) -> str:
        """One line for each operation and each statement; the same in every precision."""
        return to_text(program)


TARGET = ProgramListing()
