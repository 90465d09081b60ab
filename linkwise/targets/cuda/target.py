"""CUDA as a target: kernels as text, and calls with arrays on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from linkwise.array_types import Precision
from linkwise.targets import DirectLaunch, Target
from linkwise.trace.block import Block
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.targets.device import Device

_CUDA, _MANAGED = 2, 13  # DLPack's numbers for memory of CUDA devices


def on_device(array: object) -> bool:
    """Whether an argument is an array on a CUDA device. Imports nothing."""
    kind = type(array)
    library = kind.__module__.partition(".")[0]
    if library in ("numpy", "builtins"):
        return False
    if library == "cupy":
        return True
    if library == "torch":
        return bool(getattr(array, "is_cuda", False))
    try:
        where = getattr(array, "__dlpack_device__", None)
        if where is not None:
            return int(where()[0]) in (_CUDA, _MANAGED)
    except Exception:  # traced arrays without a place, objects that refuse to say
        return False
    return hasattr(kind, "__cuda_array_interface__")


class Cuda(Target):
    """One state per thread, compiled by NVRTC when first called."""

    name = "cuda"
    suffix = ".cu"
    summary = "a kernel for GPUs of NVIDIA"
    loops = True
    prefers_few_loops = True

    def source(self, program: Block | Program, dtype: Precision) -> str:
        """The kernel for a batch; of a block, for states in rows."""
        from linkwise.targets.cuda.launched_programs import kernel_writer
        from linkwise.targets.cuda.source import batch_kernel

        if isinstance(program, Program):
            return kernel_writer(program, dtype.itemsize * 8).kernel().text
        return batch_kernel(program, dtype.itemsize * 8).text

    def routine_source(self, routine: Program, dtype: Precision) -> str:
        """The kernel that runs a loop over time, each state in one thread from the first step to the last."""
        from linkwise.targets.cuda.source import rollout_kernel
        from linkwise.targets.steps import Repetition

        if isinstance(routine, Repetition):
            return rollout_kernel(routine, dtype.itemsize * 8).text
        return self.source(routine, dtype)

    def available(self) -> bool:
        """Whether CuPy is installed and finds a device."""
        try:
            import cupy

            return bool(cupy.cuda.runtime.getDeviceCount() > 0)
        except Exception:  # no package, no driver, no device: CuPy has an error of its own for each
            return False

    def holds(self, array: object) -> bool:
        """Whether an array, of whatever library, is on a CUDA device."""
        return on_device(array)

    def device(self, arrays: Sequence[object]) -> Device:
        """The device of the arrays, and the library and the stream of the first that is on one."""
        from linkwise.targets.cuda.device import CudaDevice

        return CudaDevice(arrays)

    def launch(
        self, program: Block | Program, dtype: Precision
    ) -> Callable[[int, Sequence[int], int], DirectLaunch | None]:
        """Function that launches on a stream; compiled when it is first called."""
        from linkwise.targets.cuda.launched_programs import launch_on_stream

        return launch_on_stream(program, dtype)


TARGET = Cuda()
