"""The operations of a program as a target: ``source("program")``."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.codegen.targets import Target
from linkwise.tracing.printer import to_text


class Listing(Target):
    """The program itself."""

    name = "program"
    suffix = ".txt"
    summary = "the operations themselves"

    def source(self, program: Any, dtype: np.dtype[Any]) -> str:
        """One line for each operation; the same in every precision."""
        return to_text(program)


TARGET = Listing()
