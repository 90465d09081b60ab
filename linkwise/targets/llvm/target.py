"""LLVM as a target: the text of what runs on this machine's processor."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.targets import Target
from linkwise.trace.program import Program


class LLVM(Target):
    """Machine code of this processor, which every call with arrays in ordinary memory runs."""

    name = "llvm"
    suffix = ".ll"
    summary = "LLVM's language, for this processor"
    loops = True

    def source(self, program: Any, dtype: np.dtype[Any]) -> str:
        """The module of the batch kernel."""
        from linkwise.targets.llvm import binding, source
        from linkwise.targets.llvm.program_kernel import program_module

        machine, bits = binding.host(), dtype.itemsize * 8
        if isinstance(program, Program):
            return program_module(program, machine, bits, machine.lanes(dtype))
        return source.batch_module(program, machine, bits).text

    def available(self) -> bool:
        """Always: llvmlite comes with every installation."""
        return True


TARGET = LLVM()
