"""The home of NumPy arrays: routines as machine code of this processor, or interpreted where they ask Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise import targets
from linkwise.targets import recycled
from linkwise.targets.home import Home, Runner
from linkwise.trace.program import Program


class Processor(Home):
    """The processor's own memory."""

    name = "the host"
    calls_python = True
    xp = np

    def __reduce__(self) -> str:
        """Name of the only one."""
        return "PROCESSOR"

    def runner(self, routine: Program, dtype: np.dtype[Any], few: bool) -> Runner:
        """Compiled; stepped through by the interpreter where Python functions are called."""
        if routine.is_compilable:
            from linkwise.targets.llvm.program_kernel import ProgramKernel

            return ProgramKernel.build(routine, dtype, single=few)
        from linkwise.targets.hosted import HostedProgram

        return HostedProgram(routine, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Memory that was used before, where it is large."""
        return recycled.empty(shape, np.dtype(dtype))

    def seconds(self, operations: int, count: int) -> float:
        """Seconds by one core."""
        return 2e-9 + operations * count * 4e-10


PROCESSOR = Processor()


def home_of(arrays: Sequence[Any]) -> Home:
    """Home of these arrays: that of the first that is not on the host."""
    place = targets.place_of(arrays)
    return PROCESSOR if place is None else place.home(arrays)
