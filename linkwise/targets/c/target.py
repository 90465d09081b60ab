"""C as a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from linkwise.targets import Target
from linkwise.targets.c.emission import emit_c
from linkwise.targets.c.source import c_source
from linkwise.trace.block import Block
from linkwise.trace.program import Program


class C(Target):
    """Plain C99, for a controller."""

    name = "c"
    suffix = ".c"
    summary = "C99, with a header and a test"
    loops = True

    def source(self, program: Block | Program, dtype: np.dtype[Any]) -> str:
        """The function alone, in one file."""
        return c_source(program, dtype.itemsize * 8)

    def emit(self, program: Block | Program, folder: Path, dtype: np.dtype[Any]) -> tuple[Path, ...]:
        """The function, its header, and a test program."""
        return emit_c(program, folder, bits=dtype.itemsize * 8)


TARGET = C()
