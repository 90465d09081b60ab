"""LLVM as a target: the text of what runs on this machine's processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.targets import Target
from linkwise.tracing.program import Program

if TYPE_CHECKING:
    from linkwise.tracing.program import Program


class LLVM(Target):
    """What every call with arrays in ordinary memory runs."""

    name = "llvm"
    suffix = ".ll"
    summary = "LLVM's language, for this processor"
    loops = True

    def source(self, program: Any, dtype: np.dtype[Any]) -> str:
        """The module of the batch kernel."""
        from linkwise.codegen.llvm import machines, rolled_source, source

        bits = dtype.itemsize * 8
        if isinstance(program, Program):
            return rolled_source.rolled_module(program, machines.host(), bits, single=False)
        return source.batch_module(program, machines.host(), bits).text

    def routine_source(self, routine: Program, dtype: np.dtype[Any]) -> str:
        """The module of a loop over time, as many states at a time as a vector has lanes."""
        from linkwise.codegen.llvm import machines
        from linkwise.codegen.llvm.routine import routine_module

        machine = machines.host()
        return routine_module(routine, machine, dtype.itemsize * 8, machine.lanes(dtype))

    def available(self) -> bool:
        """Always: llvmlite comes with every installation."""
        return True


TARGET = LLVM()
