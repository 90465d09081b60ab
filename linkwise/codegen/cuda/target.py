"""CUDA as a target: kernels as text, and calls with arrays on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.cuda.detect import on_device
from linkwise.codegen.targets import Target
from linkwise.tracing.block import Block
from linkwise.tracing.program import Program

if TYPE_CHECKING:
    from linkwise.codegen.home import Home
    from linkwise.codegen.steps import Repetition
    from linkwise.tracing.program import Program


class Cuda(Target):
    """One state per thread, compiled by NVRTC when first called."""

    name = "cuda"
    suffix = ".cu"
    summary = "a kernel for GPUs of NVIDIA"
    loops = True
    joins_far = True

    def source(self, program: Any, dtype: np.dtype[Any]) -> str:
        """The kernel for a batch: of states in rows, where it has no loops."""
        from linkwise.codegen.cuda.rolled import rolled_kernel
        from linkwise.codegen.cuda.source import batch_kernel

        if isinstance(program, Program):
            return rolled_kernel(program, dtype.itemsize * 8).text
        return batch_kernel(program, dtype.itemsize * 8).text

    def routine_source(self, routine: Program, dtype: np.dtype[Any]) -> str:
        """The kernel that runs a loop over time, each state in one thread from the first step to the last."""
        from linkwise.codegen.steps import Repetition

        bits = dtype.itemsize * 8
        if isinstance(routine, Repetition):
            from linkwise.codegen.cuda.source import rollout_kernel

            return rollout_kernel(routine, bits).text
        from linkwise.codegen.cuda.routine import routine_kernel

        return routine_kernel(routine, bits).text

    def available(self) -> bool:
        """Whether CuPy is installed and finds a device."""
        try:
            import cupy

            return bool(cupy.cuda.runtime.getDeviceCount() > 0)
        except Exception:  # no package, no driver, no device: CuPy has an error of its own for each
            return False

    def holds(self, array: Any) -> bool:
        """Whether an array, of whatever library, is on a CUDA device."""
        return on_device(array)

    def call(
        self,
        program: Block | Program,
        made: dict[Any, Any],
        name: str,
        arrays: Sequence[Any],
        out: Any = None,
        steps: tuple[int, Repetition] | None = None,
    ) -> list[Any]:
        """Evaluate on the device and the stream of the arrays."""
        from linkwise.codegen.cuda import exchange
        from linkwise.codegen.cuda.divided import device_program
        from linkwise.codegen.cuda.rolled_runtime import RolledDeviceProgram
        from linkwise.codegen.cuda.source import straight

        # The number of steps is an argument of the kernel, so one kernel serves every number.
        count, routine = steps or (None, None)
        key = (exchange.dtype_of(arrays), routine and routine.rollout)
        if key not in made:
            if isinstance(program, Program) and routine is None:
                made[key] = RolledDeviceProgram(program, key[0])
            else:
                made[key] = device_program(straight(name, program), key[0], routine)
        return exchange.call(made[key], name, arrays, out, count)

    def home(self, arrays: Sequence[Any]) -> Home:
        """The device of the arrays, and the library and the stream of the first that is on one."""
        from linkwise.codegen.cuda.device import Device

        return Device(arrays)


TARGET = Cuda()
